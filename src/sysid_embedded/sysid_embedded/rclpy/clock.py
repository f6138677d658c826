# SPDX-License-Identifier: Apache-2.0
"""Clocks."""

from __future__ import annotations

import time
from typing import Any

from .clock_type import ClockType
from .time import Time

__all__ = [
    "Clock",
    "ClockType",
    "ROSClock",
]


class Clock:
    """A clock; ROS time follows the system's time until sim time is switched on."""

    def __new__(cls, *, clock_type: ClockType = ClockType.SYSTEM_TIME) -> Clock:
        """Make a clock that can follow sim time where ROS time is asked for."""
        if not isinstance(clock_type, ClockType):
            raise TypeError("Clock type must be a ClockType enum")
        return super().__new__(ROSClock if clock_type is ClockType.ROS_TIME else cls)

    def __init__(self, *, clock_type: ClockType = ClockType.SYSTEM_TIME) -> None:
        self._clock_type = clock_type

    @property
    def clock_type(self) -> ClockType:
        """The kind of clock."""
        return self._clock_type

    def __repr__(self) -> str:
        return f"Clock(clock_type={self._clock_type.name})"

    def _now_ns(self) -> int:
        if self._clock_type is ClockType.STEADY_TIME:
            return time.monotonic_ns()
        return time.time_ns()

    def now(self) -> Time:
        """Return the current time."""
        return Time(nanoseconds=self._now_ns(), clock_type=self._clock_type)


class ROSClock(Clock):
    """The clock of a node."""

    def __new__(cls) -> Any:
        """Make a clock of ROS time."""
        return super().__new__(cls, clock_type=ClockType.ROS_TIME)

    def __init__(self, *, clock_type: ClockType = ClockType.ROS_TIME) -> None:
        super().__init__(clock_type=ClockType.ROS_TIME)
        self._override_ns = 0
        self._is_active = False

    @property
    def ros_time_is_active(self) -> bool:
        """Whether sim time drives the clock."""
        return self._is_active

    def _now_ns(self) -> int:
        return self._override_ns if self._is_active else time.time_ns()

    def _set_ros_time_is_active(self, enabled: bool) -> None:
        self._is_active = enabled

    def set_ros_time_override(self, time: Time) -> None:
        """Set the sim time."""
        if not isinstance(time, Time):
            raise TypeError("Time must be specified as rclpy.time.Time")
        self._override_ns = time.nanoseconds
