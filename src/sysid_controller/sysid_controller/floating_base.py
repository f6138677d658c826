# SPDX-License-Identifier: Apache-2.0
"""Takes odometry, contacts and their plan for a floating base, and tells whether it fell."""

from collections.abc import Sequence

import numpy as np

from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.robot import Robot
from sysid_core.signals.rotation import rotate_into_body

__all__ = ["FloatingBase"]

_CONTACT_HOLD = 0.015  # [s] for which a foot that lost touch still counts as in contact
_UNIT_TOLERANCE = 0.05
_LONGEST_LEAD = 60.0  # [s] before its start that a plan is believed
_MOST_PLANS = 1000
_FALL_READINGS = 5  # in a row: one wrong reading is not a fall


class FloatingBase:
    """The newest measured state of a floating base and of its feet."""

    def __init__(self, robot: Robot, config: ControllerConfig) -> None:
        self.foot_names = tuple(contact.name for contact in robot.description.contacts)
        gravity = np.array(robot.description.gravity)
        self._up = -gravity / max(float(np.linalg.norm(gravity)), 1e-300)
        # (7,) position in the world [m], unit quaternion x, y, z, w
        self.pose: FloatArray = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
        # (6,) linear [m/s] and angular [rad/s] velocity in the base frame
        self.twist: FloatArray = np.zeros(6)
        self.tilt = 0.0  # [rad] angle between the base's vertical axis and the world's
        self._touched: FloatArray = np.full(len(self.foot_names), -np.inf)
        self._contact_stamp = -np.inf
        self._plans: list[tuple[float, BoolArray]] = []
        self._fed: dict[str, float] = {}
        self._tilted = 0
        self.configure(config)

    def configure(self, config: ControllerConfig) -> None:
        """Take over new settings."""
        self._timeout = config.stale_timeout
        self._tilt_limit = config.tilt_limit

    @property
    def missing(self) -> str:
        """What has never been received, in words; empty once all is known."""
        return " and ".join(kind for kind in ("odometry", "contacts") if kind not in self._fed)

    @property
    def fallen(self) -> str:
        """Why the robot counts as fallen, in words; empty while it does not."""
        if self._tilted < _FALL_READINGS:
            return ""
        return (
            f"the base is tilted by {self.tilt:.2f} rad, more than tilt_limit "
            f"({self._tilt_limit:g} rad): the robot fell"
        )

    def contacts(self, now: float) -> BoolArray:
        """Return the feet (nc,) that are to carry load at a time [s].

        One that lost touch for a moment still counts, one that is to lift does not.
        """
        standing = self._touched >= self._contact_stamp - _CONTACT_HOLD
        while len(self._plans) > 1 and self._plans[1][0] <= now:
            self._plans.pop(0)
        if self._plans and self._plans[0][0] <= now:
            return standing & self._plans[0][1]
        return standing

    def forget_plan(self) -> None:
        """Forget which feet are to lift: the clock was set back, or the robot is not driven."""
        self._plans.clear()

    def age(self, kind: str, steady: float) -> float:
        """Return the age [s] of ``odometry`` or ``contacts``; infinite before the first."""
        return steady - self._fed.get(kind, -np.inf)

    def unknown(self, steady: float) -> str:
        """Say what is not known at a steady time [s]; empty while all is fresh."""
        if self.missing:
            return f"no valid {self.missing} yet"
        old = {
            kind: self.age(kind, steady)
            for kind in ("odometry", "contacts")
            if self.age(kind, steady) > self._timeout
        }
        if not old:
            return ""
        return f"no valid {' and '.join(old)} for {max(old.values()):.2f} s"

    def take_odometry(
        self, pose: FloatArray, twist: FloatArray, steady: float
    ) -> Diagnostic | None:
        """Take pose (7,) and twist (6,) that arrived at `steady`, or say why not."""
        if not (np.isfinite(pose).all() and np.isfinite(twist).all()):
            return Diagnostic("refused", "the pose or the twist is not finite")
        norm = float(np.linalg.norm(pose[3:]))
        if not abs(norm - 1.0) < _UNIT_TOLERANCE:
            return Diagnostic(
                "refused", f"the orientation is not a unit quaternion (its length is {norm:.3g})"
            )
        self.pose = pose.copy()
        self.pose[3:] /= norm
        self.twist = twist
        upright = rotate_into_body(self.pose[None, 3:], self._up[None])[0, 2]
        self.tilt = float(np.arccos(np.clip(upright, -1.0, 1.0)))
        self._tilted = self._tilted + 1 if self.tilt > self._tilt_limit else 0
        self._fed["odometry"] = steady
        return None

    def take_contacts(
        self, names: Sequence[str], active: Sequence[bool], stamp: float, steady: float
    ) -> Diagnostic | None:
        """Take the flags of all feet, in any order, that came at `steady` [s], or say why not."""
        reason = self._unusable(names, active)
        if reason:
            return Diagnostic("refused", reason)
        if stamp < self._contact_stamp:
            self._touched[:] = -np.inf  # the clock was set back
        self._touched[self._flags(names, active)] = stamp
        self._contact_stamp = stamp
        self._fed["contacts"] = steady
        return None

    def plan_contacts(
        self, names: Sequence[str], active: Sequence[bool], start: float, now: float
    ) -> Diagnostic | None:
        """Take which feet are to carry load from `start` [s] on, or say why not.

        It replaces what was planned for later, and holds until the next plan.
        """
        reason = self._unusable(names, active)
        if not reason and start > now + _LONGEST_LEAD:
            reason = (
                f"starts {start - now:.3g} s from now, more than {_LONGEST_LEAD:g} s; check the "
                "clocks of both sides and use_sim_time"
            )
        if not reason and len(self._plans) >= _MOST_PLANS:
            reason = f"more than {_MOST_PLANS} plans are waiting to start"
        if reason:
            return Diagnostic("refused", reason)
        earlier = [plan for plan in self._plans if plan[0] < start]
        self._plans = [*earlier, (start, self._flags(names, active))]
        return None

    def _unusable(self, names: Sequence[str], active: Sequence[bool]) -> str:
        if len(active) != len(names):
            return f"{len(active)} flags for {len(names)} feet"
        missing = [name for name in self.foot_names if name not in names]
        return f"without the feet {', '.join(missing)}" if missing else ""

    def _flags(self, names: Sequence[str], active: Sequence[bool]) -> BoolArray:
        flags = dict(zip(names, active, strict=True))
        return np.array([bool(flags[name]) for name in self.foot_names])
