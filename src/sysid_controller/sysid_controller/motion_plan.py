# SPDX-License-Identifier: Apache-2.0
"""Plans how a motion is played: a slow approach, the motion with ramps in time, checked first."""

from typing import NamedTuple

import numpy as np

from sysid_controller.planning import Planner, Quintics, anywhere, rest
from sysid_controller.standing import StandingPlanner
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.select import make_dynamics
from sysid_core.errors import ParameterError
from sysid_core.exchange import check_point_count
from sysid_core.excitation.fourier import States, quintic_step
from sysid_core.excitation.motion_file import JointMotion
from sysid_core.robot import Robot
from sysid_core.robot.strength import working_limits

__all__ = ["MotionPlan", "MotionPlanner", "PlanPoints"]

_RATE = 20.0  # Points of the plan [Hz]; between them its players go by quintics
_RAMP = 1.0  # [s] in which a motion gains its speed, and loses it
_SHORTEST = 1.0  # Shortest approach [s]
_PEAK = 1.875  # Top speed of a quintic between rests over its mean speed
_SPEED_TOLERANCE = 1.01
"""Share of the velocity limits that motions may use: their own points were rounded."""


class PlanPoints(NamedTuple):
    """Points of a plan: times (n,) [s] and states (n, na) [rad, rad/s, rad/s²]."""

    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray


class MotionPlan(NamedTuple):
    """What is to be played."""

    points: PlanPoints
    path: Quintics  # The path through the points
    approach: float  # [s] time at which the motion itself begins

    @property
    def duration(self) -> float:
        """Time [s] from the beginning of the approach to rest."""
        return self.path.end


class MotionPlanner:
    """Checks a motion against a robot and plans how to play it.

    Torques are checked at the speed [-] at which it is played; the approach uses a share [-] of
    the velocity limits.

    Raises
    ------
    ParameterError
        If the motion is another robot's, lacks joints, or leaves the limits.
    """

    def __init__(
        self, robot: Robot, motion: JointMotion, *, speed: float = 1.0, approach_speed: float = 0.2
    ) -> None:
        _check_identity(robot, motion)
        self.robot, self._speed, self._approach_speed = robot, speed, approach_speed
        self.limits = working_limits(robot)
        self._standing = StandingPlanner(robot, self.limits) if robot.floating else None
        self._dynamics = None if robot.floating else make_dynamics(robot)
        reach = anywhere if self._dynamics is None else self._dynamics.unreachable
        self._planner = Planner(robot.actuated_names, self.limits, {}, reach=reach)
        self._motion = self._ramped(motion)
        check_point_count(len(self._motion.time))
        self._check(self._path(self._motion), self._motion)

    @property
    def start(self) -> FloatArray:
        """Positions (na,) [rad] at which the motion begins."""
        return self._motion.position[0]

    @property
    def summary(self) -> str:
        """What was checked, in words."""
        points = self._motion
        share = np.abs(points.velocity).max(axis=0) / self.limits.velocity
        return (
            f"motion of robot '{self.robot.name}', {points.time[-1]:.1f} s, at most "
            f"{share.max():.0%} of a velocity limit, is within all limits"
        )

    def plan(self, position: FloatArray) -> MotionPlan:
        """Return the plan from positions (na,) [rad] at rest.

        Raises
        ------
        ParameterError
            If the approach leaves the limits.
        """
        way = self.start - position
        needed = (_PEAK * np.abs(way) / (self._approach_speed * self.limits.velocity)).max()
        approach = max(float(needed), _SHORTEST)
        count = max(2, int(np.ceil(approach * _RATE)))
        w, dw, ddw = quintic_step(np.arange(count) / count)
        before = (
            approach * np.arange(count) / count,
            position + w[:, None] * way,
            dw[:, None] * way / approach,
            ddw[:, None] * way / approach**2,
        )
        after = self._motion._replace(time=self._motion.time + approach)
        joined = (np.concatenate(pair) for pair in zip(before, after, strict=True))
        points = PlanPoints(*joined)
        check_point_count(len(points.time))
        path = self._path(points)
        if self._standing is not None:
            self._standing.check(path)
        return MotionPlan(points, path, approach)

    def _ramped(self, motion: JointMotion) -> PlanPoints:
        """Return the motion with a phase that gains and loses its speed in `_RAMP`."""
        states = motion.states(self.robot.actuated_names)
        path = Quintics(motion.time, *states)
        length = float(motion.time[-1]) / self._speed
        ramp = min(_RAMP, 0.5 * length)
        time = np.linspace(0.0, length + ramp, max(2, int(np.ceil((length + ramp) * _RATE))) + 1)
        phases = (self._speed * part for part in _phase(time, length + ramp, ramp))
        rows = []
        for s, ds, dds in zip(*phases, strict=True):
            q, v, a = path.at(s)
            rows.append(States(q, ds * v, ds**2 * a + dds * v))
        rows[0], rows[-1] = (rest(states.position[end]) for end in (0, -1))
        return PlanPoints(time, *(np.array(part) for part in zip(*rows, strict=True)))

    def _path(self, points: PlanPoints) -> Quintics:
        path = Quintics(*points)
        dense, speed = path.dense(4)
        self._planner.check_range(dense)
        self._planner.check_speed(speed, _SPEED_TOLERANCE)
        self._planner.check_reach(dense)
        return path

    def _check(self, path: Quintics, points: PlanPoints) -> None:
        """Check the nominal torques of the motion, and of a standing robot its feet."""
        if self._standing is not None:
            self._standing.check(path)
        if self._dynamics is None:
            return
        torque = np.abs(self._dynamics.torques(*points[1:])).max(axis=0)
        beyond = ~(torque <= self.limits.effort)
        if beyond.any():
            j = int(np.argmax(beyond))
            raise ParameterError(
                f"the motion asks {torque[j]:.4g} N·m of joint "
                f"'{self.robot.actuated_names[j]}', its limit is {self.limits.effort[j]:.4g}; "
                "play it slower"
            )


def _check_identity(robot: Robot, motion: JointMotion) -> None:
    if motion.robot not in ("", robot.name):
        raise ParameterError(f"the motion is for robot '{motion.robot}', not '{robot.name}'")
    if motion.model_hash not in ("", robot.model_hash):
        raise ParameterError(
            f"the motion was designed with another model of '{robot.name}' (its description or "
            "URDF changed); design it anew with 'sysid excite'"
        )


def _phase(
    time: FloatArray, length: float, ramp: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the phase [s] at times (n,) [s], its rate and the rate's change.

    The rate rises from 0 to 1 as a quintic step in the first `ramp` seconds and falls in the last.
    """
    into, out = np.clip(time / ramp, 0.0, 1.0), np.clip((length - time) / ramp, 0.0, 1.0)
    rise, d_rise, _ = quintic_step(into)
    fall, d_fall, _ = quintic_step(out)
    # integral of the quintic step 6s⁵ − 15s⁴ + 10s³
    begun = ramp * (into**6 - 3.0 * into**5 + 2.5 * into**4)
    left = ramp * (out**6 - 3.0 * out**5 + 2.5 * out**4)
    phase = np.where(
        time < ramp, begun, np.where(time > length - ramp, length - ramp - left, time - 0.5 * ramp)
    )
    return phase, np.minimum(rise, fall), np.where(time < ramp, d_rise, -d_fall) / ramp
