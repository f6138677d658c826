# SPDX-License-Identifier: Apache-2.0
"""Joint trajectories of a quadruped whose base sways over standing feet."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.stance import StandingFeet
from sysid_core.excitation.fourier import States
from sysid_core.robot import Robot
from sysid_sim.errors import SimulationError
from sysid_sim.legged_motion import SwayConfig, quaternion_of

__all__ = ["StanceTrajectory"]

_STEP = 1e-3  # [s] of the differences
_CHECKED = 60.0  # [s] of the motion whose range is looked at
_GRID = 600
_SHRINK, _SHRINKS = 0.8, 10
_MARGIN = 0.1  # [rad] to the position limits


class StanceTrajectory:
    """The base sways and turns; the joints follow so that all feet stay where they stand.

    `amplitude` is a share of the usual sway, `speed` one of the velocity limits; the motion grows
    from rest within `fade` [s].

    Raises
    ------
    SysidError
        If the robot does not stand on legs of three joints each, or cannot sway at all.
    """

    def __init__(
        self, robot: Robot, seed: int, *, amplitude: float, speed: float, fade: float
    ) -> None:
        self._feet = StandingFeet(robot)
        self.stance = self._feet.stance
        self._share = amplitude
        self._sway = SwayConfig().wander(self.stance, np.random.default_rng(seed), fade)
        self._fit(robot, speed)

    def _fit(self, robot: Robot, speed: float) -> None:
        """Shrink the sway until the joints stay within their limits."""
        lower, upper, fastest, _ = robot.limits
        time = np.linspace(0.0, _CHECKED, _GRID)
        for _ in range(_SHRINKS):
            moved = self.at(time)
            inside = (moved.position > lower + _MARGIN) & (moved.position < upper - _MARGIN)
            if (inside & (np.abs(moved.velocity) < speed * fastest)).all():
                return
            self._share *= _SHRINK
        raise SimulationError(
            f"robot '{robot.name}' cannot sway over its feet within its joints' limits; "
            "allow more speed"
        )

    def base(self, time: FloatArray) -> FloatArray:
        """Return the base's poses (n, 7) at times (n,) [s]; before time zero it rests."""
        pose = np.tile(self.stance.pose, (len(time), 1))
        for row, t in zip(pose, np.maximum(time, 0.0), strict=True):
            x = self._share * self._sway.at(t)[0]
            row[:3] += x[:3]
            row[3:] = quaternion_of(x[5], x[3], x[4])
        return pose

    def at(self, time: FloatArray) -> States:
        """Return the joints' motion at times (n,) [s]; before time zero they rest."""
        time = np.asarray(time, dtype=float)
        n = len(time)
        around = np.concatenate([time - _STEP, time, time + _STEP])
        joints = self._feet.configurations(self.base(around))[:, 7:]
        before, now, after = joints[:n], joints[n : 2 * n], joints[2 * n :]
        velocity = (after - before) / (2.0 * _STEP)
        return States(now, velocity, (after - 2.0 * now + before) / _STEP**2)
