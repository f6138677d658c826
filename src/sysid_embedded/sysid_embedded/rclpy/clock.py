# SPDX-License-Identifier: Apache-2.0
"""Clocks."""

from __future__ import annotations

import time

from .clock_type import ClockType
from .time import Time

__all__ = ["Clock", "ClockType", "ROSClock"]


class Clock:
    """A clock of the system's time, or of the time since the machine started."""

    def __init__(self, *, clock_type: ClockType = ClockType.SYSTEM_TIME) -> None:
        self.clock_type = clock_type

    def _now_ns(self) -> int:
        steady = self.clock_type is ClockType.STEADY_TIME
        return time.monotonic_ns() if steady else time.time_ns()

    def now(self) -> Time:
        """Return the current time."""
        return Time(self._now_ns(), self.clock_type)


class ROSClock(Clock):
    """The clock of a node: the system's time until sim time is switched on."""

    def __init__(self) -> None:
        super().__init__(clock_type=ClockType.ROS_TIME)
        self.ros_time_is_active = False
        self.override_ns = 0

    def _now_ns(self) -> int:
        return self.override_ns if self.ros_time_is_active else time.time_ns()
