# SPDX-License-Identifier: Apache-2.0
"""Settings of contact estimation and checks, validated once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.errors import ParameterError

__all__ = ["ContactConfig"]


@dataclass(frozen=True)
class ContactConfig:
    """Thresholds of contact estimation and checks.

    Attributes
    ----------
    load_on, load_off : float [-]
        A contact counts as loaded from `load_on` times the mean load at rest (weight over number
        of contacts) until it falls below `load_off`. Between swing legs, whose estimated load is
        an error of the leg's model, and stance lies a wide gap: 0.04 to 0.4 on a trotting Solo12
        whose prior is 30 % off.
    slip_speed : float [m/s]
        A loaded contact that moves faster slips.
    contact_margin : float [s]
        A foot counts as in contact this long before and after its contact, too. Flags lag,
        filters smear impacts, and projecting out a force that is none only costs rows.
    switch_margin : float [s]
        Samples closer than this to a change of loaded contacts are left out: an impact is no
        smooth motion.
    """

    load_on: float = 0.3
    load_off: float = 0.15
    slip_speed: float = 0.4
    contact_margin: float = 0.02
    switch_margin: float = 0.005

    def __post_init__(self) -> None:
        if not 0.0 < self.load_off < self.load_on < 1.0:
            raise ParameterError(
                "loads must satisfy 0 < load_off < load_on < 1, "
                f"got {self.load_off} and {self.load_on}"
            )
        if not (np.isfinite(self.slip_speed) and self.slip_speed > 0.0):
            raise ParameterError(f"slip_speed must be positive, got {self.slip_speed}")
        for name in ("contact_margin", "switch_margin"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise ParameterError(f"{name} must be finite and not negative, got {value}")
