# SPDX-License-Identifier: Apache-2.0
"""Settings of the conditioning of contacts, validated once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.errors import ParameterError

__all__ = ["ContactConfig"]


@dataclass(frozen=True)
class ContactConfig:
    """Times around contacts and their changes.

    Attributes
    ----------
    contact_margin : float [s]
        A foot counts as in contact this long before and after its contact, too. Flags lag,
        filters smear impacts, and projecting out a force that is none only costs rows.
    switch_margin : float [s]
        Samples closer than this to a change of loaded contacts are left out: an impact is no
        smooth motion.
    """

    contact_margin: float = 0.02
    switch_margin: float = 0.005

    def __post_init__(self) -> None:
        for name in ("contact_margin", "switch_margin"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise ParameterError(f"{name} must be finite and not negative, got {value}")
