# SPDX-License-Identifier: Apache-2.0
"""A time that only grows, at the robot's own pace: simulated time where there is one."""

from __future__ import annotations

__all__ = ["RobotTime"]

_STANDS_STILL = 1.0
"""Time [s] after which a simulated clock that stands still counts as gone, and timeouts run on."""


class RobotTime:
    """Steady time of a real robot, simulated time of a simulated one however slow it runs.

    Timeouts of a robot that is simulated at a hundredth of its speed would flap by the wall's
    clock. Where simulated time stands still for long, the wall's clock goes on for it: a robot
    whose simulation died must be stopped, too.
    """

    def __init__(self) -> None:
        self._time = 0.0
        self._wall: float | None = None
        self._now = self._still = 0.0

    def __call__(self, wall: float, now: float, *, simulated: bool) -> float:
        """Return the time [s] at a steady time of the wall's clock and a node's time [s]."""
        elapsed = 0.0 if self._wall is None else wall - self._wall
        moved = now - self._now
        self._wall, self._now = wall, now
        if not simulated:
            self._time += elapsed
        elif moved > 0.0:
            self._still = 0.0
            self._time += min(moved, max(elapsed, _STANDS_STILL))  # a jump is not a wait
        else:
            self._still += elapsed
            self._time += elapsed if self._still > _STANDS_STILL else 0.0
        return self._time
