# SPDX-License-Identifier: Apache-2.0
"""Clocks, points in time, sim time, and timers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from sysid_embedded.messages import message_class

from .parameter import Parameter
from .qos import QoSProfile, ReliabilityPolicy

if TYPE_CHECKING:
    from .node import Node

__all__ = ["NANO", "Clock", "ClockType", "ROSClock", "Time", "TimeSource", "Timer"]

NANO = 1_000_000_000  # Nanoseconds in a second


class ClockType(IntEnum):
    """Kind of a clock."""

    ROS_TIME = 1
    SYSTEM_TIME = 2
    STEADY_TIME = 3


@dataclass(frozen=True)
class Time:
    """A point in time of one kind of clock."""

    nanoseconds: int = 0  # Since the epoch [ns]
    clock_type: ClockType = ClockType.SYSTEM_TIME

    def to_msg(self) -> Any:
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
        return Time(self._now_ns(), self.clock_type)


class ROSClock(Clock):
    """The clock of a node: the system's time until sim time is switched on."""

    def __init__(self) -> None:
        super().__init__(clock_type=ClockType.ROS_TIME)
        self.ros_time_is_active = False
        self.override_ns = 0

    def _now_ns(self) -> int:
        return self.override_ns if self.ros_time_is_active else time.time_ns()


_NAME = "use_sim_time"


class TimeSource:
    """Drives the clock of a node."""

    def __init__(self, node: Node, clock: ROSClock) -> None:
        self._node = node
        self._clock = clock
        self._subscription: Any = None
        self._follow(node.declare_parameter(_NAME, False).value)
        node.add_post_set_parameters_callback(self._changed)

    def _changed(self, parameters: list[Parameter]) -> None:
        for parameter in parameters:
            if parameter.name == _NAME:
                self._follow(parameter.value)

    def _follow(self, enabled: bool) -> None:
        if enabled and self._subscription is None:
            self._subscription = self._node.create_subscription(
                message_class("rosgraph_msgs/msg/Clock"),
                "/clock",
                self._on_clock,
                QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT),
            )
        elif not enabled and self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None
        self._clock.ros_time_is_active = enabled

    def _on_clock(self, message: Any) -> None:
        time = message.clock
        if time.sec >= 0:  # whatever others send must not end the node
            self._clock.override_ns = time.sec * NANO + time.nanosec


class Timer:
    """Calls a function again and again; when calls were missed, it doesn't make up for them."""

    def __init__(
        self,
        callback: Callable[[], Any],
        timer_period_ns: int,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        if timer_period_ns < 0:
            raise ValueError("timer period must not be negative")
        self.callback = callback
        self._clock = clock
        self._period = timer_period_ns
        self._wake = wake
        self._canceled = False
        self._anchor()

    def _is_sim(self) -> bool:
        return isinstance(self._clock, ROSClock) and self._clock.ros_time_is_active

    def _now(self) -> int:
        # Without sim time the period is kept by the steady clock, which nobody sets.
        return self._clock._now_ns() if self._sim else time.monotonic_ns()

    def _anchor(self) -> None:
        self._sim = self._is_sim()
        self._last = self._now()
        self._next = self._last + self._period

    def _remaining(self) -> int:
        """Return the time to the next call [ns], following changes of the clock."""
        if self._sim != self._is_sim():
            self._anchor()
        now = self._now()
        if now < self._last:
            self._anchor()
        return self._next - now

    def _call(self) -> None:
        """Mark that it is called now."""
        now = self._now()
        self._last = now
        self._next += self._period
        if self._next < now:
            if self._period == 0:
                self._next = now
            else:
                self._next += (1 + (now - self._next) // self._period) * self._period

    @property
    def timer_period_ns(self) -> int:
        return self._period

    @timer_period_ns.setter
    def timer_period_ns(self, value: int) -> None:
        self._period = int(value)
        self._wake()

    def is_ready(self) -> bool:
        return not self._canceled and self._remaining() <= 0

    def is_canceled(self) -> bool:
        return self._canceled

    def cancel(self) -> None:
        self._canceled = True

    def reset(self) -> None:
        self._anchor()
        self._canceled = False
        self._wake()
