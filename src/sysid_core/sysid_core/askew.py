# SPDX-License-Identifier: Apache-2.0
"""What of a whole robot is otherwise than described: gravity, a joint's zero, or their order."""

from __future__ import annotations

from collections.abc import Callable

from sysid_core.joint_order import JointOrder, find_joint_order
from sysid_core.joint_zeros import JointZeros, find_joint_zeros
from sysid_core.refit import Fit, Refit
from sysid_core.tilt import Tilt, find_tilt

__all__ = ["ALL", "Askew", "Way", "find_askew"]

Askew = Tilt | JointZeros | JointOrder

Way = Callable[[Refit, Fit], tuple[Askew, Fit] | None]
"""Finds one, and the fit with it."""

ALL: tuple[Way, ...] = find_tilt, find_joint_zeros, find_joint_order


def find_askew(refit: Refit, described: Fit, *ways: Way) -> Askew | None:
    """Return what explains the torques best, if a way does clearly better than the description.

    None, too, where it is one effort's sign, which bends other joints less where its own joint is
    named. Raises as `find_tilt`.
    """
    found = [way for way in (find(refit, described) for find in ways) if way is not None]
    even = refit.evenly()
    best = max(found, key=lambda way: even.evidence(way[1]), default=None)
    if best is None or (isinstance(best[0], JointOrder) and best[0].known_otherwise):
        return None
    return best[0]
