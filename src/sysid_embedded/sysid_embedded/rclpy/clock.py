# SPDX-License-Identifier: Apache-2.0
"""Clocks and points in time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from sysid_embedded.messages import message_class

__all__ = ["NANO", "Clock", "ClockType", "ROSClock", "Time"]

NANO = 1_000_000_000
"""Nanoseconds in a second."""


class ClockType(IntEnum):
    """Kind of a clock."""

    ROS_TIME = 1
    SYSTEM_TIME = 2
    STEADY_TIME = 3


@dataclass(frozen=True)
class Time:
    """A point in time of one kind of clock.

    Parameters
    ----------
    nanoseconds : int
        Since the epoch [ns].
    """

    nanoseconds: int = 0
    clock_type: ClockType = ClockType.SYSTEM_TIME

    def to_msg(self) -> Any:
        """Return it as a `builtin_interfaces/Time`."""
        seconds, nanoseconds = divmod(self.nanoseconds, NANO)
        return message_class("builtin_interfaces/msg/Time")(sec=seconds, nanosec=nanoseconds)


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
