# SPDX-License-Identifier: Apache-2.0
"""A time that only grows, at the robot's own pace: simulated time where there is one."""

import time
from typing import Any

__all__ = ["NodeTimes", "RobotTime"]

_NANO = 1e-9
_CLOCK_LAG = 500_000_000  # Time [ns] that /clock may be behind joint states stamped with its time

_STANDS_STILL = 1.0
"""Time [s] after which a simulated clock that stands still counts as gone, and timeouts run on."""
_LATE_LOOK = 0.1  # [s] that counts at most between two looks at such a clock: the node was late


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
            missed = min(elapsed, _LATE_LOOK)
            self._still += missed
            self._time += missed if self._still > _STANDS_STILL else 0.0
        return self._time


class NodeTimes:
    """A node's times [s], counted from its first: epoch seconds would cost a float its resolution.

    Attributes
    ----------
    newest_stamp : int [ns]
        Of the joint states.
    """

    def __init__(self, clock: Any) -> None:
        self._clock, self._robot_time = clock, RobotTime()
        self._origin: int | None = None
        self.newest_stamp = self._latest = 0

    @property
    def origin(self) -> int:
        """Time [ns] that is counted from; 0 before it is known."""
        return self._origin or 0

    def now(self) -> float:
        """Return the clock's time, or that of the newest stamp where /clock lags behind."""
        now = self._nanoseconds()
        if self._origin is None:
            self._origin = now
        return _NANO * (now - self._origin)

    def steady(self) -> float:
        """Return a time that only grows, at the robot's pace."""
        simulated = self._clock.ros_time_is_active
        now = _NANO * self._nanoseconds()
        return self._robot_time(time.monotonic(), now, simulated=simulated)

    def _nanoseconds(self) -> int:
        now = int(self._clock.now().nanoseconds)
        if self._clock.ros_time_is_active:
            ahead = max(self.newest_stamp, self._latest)
            now = ahead if 0 < ahead - now < _CLOCK_LAG else now
        self._latest = now
        return now
