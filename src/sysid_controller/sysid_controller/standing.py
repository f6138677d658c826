# SPDX-License-Identifier: Apache-2.0
"""Checks motions of robots that stand on their feet, and watches base and feet meanwhile."""

from collections.abc import Sequence

import numpy as np

from sysid_controller.planning import Quintics
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.stance import StandingFeet
from sysid_core.errors import ParameterError
from sysid_core.excitation.limits import MotionLimits
from sysid_core.excitation.standing import StandingLimits, differentiated
from sysid_core.robot import Robot
from sysid_core.robot.limits import Limits
from sysid_core.signals.rotation import rotate_into_body

__all__ = ["StandingPath", "StandingPlanner", "StandingWatch"]

_DRAG = 0.01  # Distance [m] by which the feet may be off where they stand: soles give, joints play
_RATE = 25.0  # [Hz] at which paths are held against the limits
_AGILE = 1e6  # [rad/s²] no limit
_TILT = 0.15  # Angle [rad] by which the base may tilt from where the joints take it
_TILT_PERIOD = 0.05  # [s] between looks at that, each of 1.5 ms: robots fall in several times that
_LIFTED = 0.1  # [s] for which a foot may have no load: landing feet bounce, and flags may err
_SPENT, _LONG = 0.98, 0.1
"""Share of its torque limit and time [s] for which a joint gives it: it pushes at something."""


class StandingPath:
    """The motion of base and joints along a path of the joints, all feet where they stand."""

    def __init__(self, limits: StandingLimits, path: Quintics) -> None:
        self._feet, self._path, self._actuated = limits.feet, path, limits.robot.actuated
        self.gap = 0.0  # [m] by which a foot was farthest from where it stands

    def times(self, rate: float) -> FloatArray:
        """Return the times (n,) [s] of the path, both ends included, at about a rate [Hz]."""
        return np.linspace(0.0, self._path.end, int(np.ceil(self._path.end * rate)) + 1)

    def whole(self, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return Pinocchio's q (n, nq), v and a (n, nv) at times (n,) [s]."""
        return differentiated(self._feet.kinematics.robot.model, self.configurations, time)

    def configurations(self, time: FloatArray) -> FloatArray:
        """Return Pinocchio's q (n, nq) at times (n,) [s]."""
        joints = np.tile(self._feet.stance.joints, (len(time), 1))
        joints[:, self._actuated] = [self._path.at(t).position for t in time.tolist()]
        q, gaps = self._feet.carried(joints)
        self.gap = max(self.gap, float(gaps.max()))
        return q


class StandingPlanner:
    """Holds paths of the joints against what joints, floor and feet bear.

    Raises
    ------
    ModelError
        If the robot does not stand on three legs or more, of three joints each.
    """

    def __init__(self, robot: Robot, limits: Limits) -> None:
        agile = np.full(len(limits.velocity), _AGILE)
        bounds = MotionLimits(limits.lower, limits.upper, limits.velocity, agile, limits.effort)
        self._limits = StandingLimits(robot, bounds)

    def check(self, path: Quintics) -> None:
        """Check a path.

        Raises
        ------
        ParameterError
            If a foot is dragged, lifts off or slips, or a joint's limit is left.
        """
        motion = StandingPath(self._limits, path)
        reason = self._limits.obstacle(motion, _RATE)
        if motion.gap > _DRAG:
            raise ParameterError(
                f"it would drag a foot by {1e3 * motion.gap:.0f} mm: let the robot stand as the "
                "motion begins, with all feet on level ground"
            )
        if reason:
            raise ParameterError(f"in its way is {reason}")


class StandingWatch:
    """Watches the base and the feet of a robot that plays a motion on its feet."""

    def __init__(self, robot: Robot, limits: Limits) -> None:
        gravity = np.array(robot.description.gravity)
        self._up = -gravity / np.linalg.norm(gravity)
        self._joints, self._effort = robot.actuated_names, limits.effort
        self._actuated, self._legs = robot.actuated, StandingFeet(robot)
        self._looked = -np.inf
        self._feet = tuple(contact.name for contact in robot.description.contacts)
        self._loaded = np.full(len(self._feet), -np.inf)
        self._below = np.full(len(self._joints), -np.inf)
        self._vertical: FloatArray | None = None

    def take_base(self, pose: FloatArray) -> None:
        """Take the base's measured pose (7,)."""
        if np.isfinite(pose).all():
            self._vertical = rotate_into_body(pose[None, 3:7], self._up[None])[0]

    def take_contacts(self, names: Sequence[str], active: Sequence[bool], stamp: float) -> None:
        """Take which feet are loaded at a time [s]."""
        flags = dict(zip(names, active, strict=False))
        on = np.array([bool(flags.get(name)) for name in self._feet])
        self._loaded = np.where(on | (self._loaded > stamp), stamp, self._loaded)

    def lacks(self, stamp: float) -> str:
        """Say what a motion cannot begin without at a time [s]; empty if nothing is missing."""
        if self._vertical is None:
            return "no odometry, without which nobody knows how the base is tilted"
        return self._lifted(stamp)

    def judge(self, stamp: float, position: FloatArray, torque: FloatArray) -> str:
        """Say why the robot must stop; empty while it need not.

        Positions and torques are those measured, (na,) [rad, N·m].
        """
        if not 0.0 <= stamp - self._looked < _TILT_PERIOD:
            self._looked, tilt = stamp, self._tilt(position)
            if tilt > _TILT:
                return f"the base is tilted by {tilt:.2f} rad from where its joints take it"
        spent = np.abs(torque) >= _SPENT * self._effort
        self._below = np.where(spent & (self._below <= stamp), self._below, stamp)
        if (stamp - self._below > _LONG).any():
            j = int(np.argmax(stamp - self._below))
            return f"joint '{self._joints[j]}' gives all its torque: is it blocked?"
        return self._lifted(stamp)

    def _tilt(self, position: FloatArray) -> float:
        """Return the angle [rad] between the vertical and where feet that stand have it."""
        if self._vertical is None:
            return 0.0
        joints = self._legs.stance.joints.copy()
        joints[self._actuated] = position
        q, _ = self._legs.carried(joints[None])
        upright = rotate_into_body(q[:, 3:7], np.array([[0.0, 0.0, 1.0]]))[0]
        return float(np.arccos(np.clip(self._vertical @ upright, -1.0, 1.0)))

    def _lifted(self, stamp: float) -> str:
        if not (stamp - self._loaded > _LIFTED).any():
            return ""
        foot = self._feet[int(np.argmin(self._loaded))]
        return f"foot '{foot}' is not on the ground"
