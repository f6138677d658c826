# SPDX-License-Identifier: Apache-2.0
"""What checks of legged data report."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import BoolArray

__all__ = ["Finding", "percentage", "with_share"]

_PERCENTAGE = re.compile(r"\d+(\.\d+)? %")


@dataclass(frozen=True)
class Finding:
    """One thing that a check noticed.

    Attributes
    ----------
    kind : str
        ``base_missing``, ``quaternion_norm``, ``quaternion_sign``, ``twist_in_world``,
        ``twist_disagrees``, ``no_contact_data``, ``flight``, ``flight_doubtful``,
        ``contact_missed``, ``contact_false``, ``slip`` or ``switch``.
    message : str
        What, where and what to do about it, in one line.
    samples : (n,) bool
        The samples concerned.
    fatal : bool
        Whether the data cannot be used before this is mended.
    contact : str
        Name of the contact concerned; empty if it is no single one.
    """

    kind: str
    message: str
    samples: BoolArray
    fatal: bool = False
    contact: str = ""

    def __post_init__(self) -> None:
        self.samples.setflags(write=False)


def percentage(samples: BoolArray) -> str:
    """Return the share of samples as text, e.g. ``"3.1 %"``."""
    return f"{100.0 * float(np.mean(samples)):.1f} %" if samples.size else "0 %"


def with_share(message: str, share: float) -> str:
    """Return a finding's message with another share [-] of the samples in it."""
    return _PERCENTAGE.sub(f"{100.0 * share:.1f} %", message, count=1)
