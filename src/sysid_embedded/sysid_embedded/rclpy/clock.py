# SPDX-License-Identifier: Apache-2.0
"""Clocks, and being told when ROS time jumps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from .clock_type import ClockType
from .context import Context
from .duration import Duration
from .exceptions import NotInitializedException
from .time import Time

__all__ = [
    "Clock",
    "ClockChange",
    "ClockType",
    "JumpHandle",
    "JumpThreshold",
    "ROSClock",
    "TimeJump",
]

_POLL_S = 0.05


class ClockChange(IntEnum):
    """What happened to ROS time at a jump."""

    ROS_TIME_NO_CHANGE = 1
    ROS_TIME_ACTIVATED = 2
    ROS_TIME_DEACTIVATED = 3
    SYSTEM_TIME_NO_CHANGE = 4


class TimeJump(NamedTuple):
    """A jump of ROS time."""

    clock_change: ClockChange
    delta: Duration


class JumpThreshold:
    """Which jumps to be told of.

    Parameters
    ----------
    min_forward, min_backward : Duration or None
        Smallest jump ahead (positive), and back (negative); None: none of these.
    on_clock_change : bool
        Also when sim time is switched on or off.
    """

    def __init__(
        self,
        *,
        min_forward: Duration | None,
        min_backward: Duration | None,
        on_clock_change: bool = True,
    ) -> None:
        if min_forward is not None and min_forward.nanoseconds <= 0:
            raise ValueError("min_forward must be a positive non-zero duration")
        if min_backward is not None and min_backward.nanoseconds >= 0:
            raise ValueError("min_backward must be a negative non-zero duration")
        if min_forward is None and min_backward is None and not on_clock_change:
            raise ValueError("At least one jump threshold must be enabled")
        self.min_forward = min_forward
        self.min_backward = min_backward
        self.on_clock_change = on_clock_change

    def exceeded_by(self, jump: TimeJump) -> bool:
        """Whether to tell of a jump."""
        if jump.clock_change in (ClockChange.ROS_TIME_ACTIVATED, ClockChange.ROS_TIME_DEACTIVATED):
            return self.on_clock_change
        if self.min_forward is not None and jump.delta >= self.min_forward:
            return True
        return self.min_backward is not None and jump.delta <= self.min_backward


class JumpHandle:
    """Registration of callbacks for jumps."""

    def __init__(
        self,
        *,
        clock: Clock,
        threshold: JumpThreshold,
        pre_callback: Callable[[], None] | None,
        post_callback: Callable[[TimeJump], None] | None,
    ) -> None:
        if pre_callback is None and post_callback is None:
            raise ValueError("One of pre_callback or post_callback must be callable")
        self.threshold = threshold
        self.pre_callback = pre_callback
        self.post_callback = post_callback
        self._clock = clock
        clock._jump_handles.append(self)

    def unregister(self) -> None:
        """Be told no more."""
        if self in self._clock._jump_handles:
            self._clock._jump_handles.remove(self)

    def __enter__(self) -> JumpHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.unregister()


class Clock:
    """A clock; ROS time follows the system's time until sim time is switched on."""

    def __new__(cls, *, clock_type: ClockType = ClockType.SYSTEM_TIME) -> Clock:
        """Make a clock that can follow sim time where ROS time is asked for."""
        if not isinstance(clock_type, ClockType):
            raise TypeError("Clock type must be a ClockType enum")
        return super().__new__(ROSClock if clock_type is ClockType.ROS_TIME else cls)

    def __init__(self, *, clock_type: ClockType = ClockType.SYSTEM_TIME) -> None:
        self._clock_type = clock_type
        self._jump_handles: list[JumpHandle] = []

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

    def create_jump_callback(
        self,
        threshold: JumpThreshold,
        *,
        pre_callback: Callable[[], None] | None = None,
        post_callback: Callable[[TimeJump], None] | None = None,
    ) -> JumpHandle:
        """Call functions before and after a jump of ROS time."""
        return JumpHandle(
            clock=self, threshold=threshold, pre_callback=pre_callback, post_callback=post_callback
        )

    def sleep_until(self, until: Time, context: Context | None = None) -> bool:
        """Sleep until a point in time; False if shutdown or a change of clock came before it."""
        if until.clock_type != self._clock_type:
            raise ValueError("until's clock type does not match this clock's type")
        if context is None:
            from .utilities import get_default_context

            context = get_default_context()
        if not context.ok():
            raise NotInitializedException()
        source = self._source()
        woken = threading.Event()
        while context.ok() and self._source() is source:
            left = until.nanoseconds - self._now_ns()
            if left <= 0:
                return True
            # Sim time runs at a rate of its own; look often.
            woken.wait(min(left * 1e-9, 0.001 if source else _POLL_S))
        return False

    def sleep_for(self, rel_time: Duration, context: Context | None = None) -> bool:
        """Sleep for a span of time; False if shutdown or a change of clock came before its end."""
        return self.sleep_until(self.now() + rel_time, context)

    def _source(self) -> bool:
        """Whether sim time drives the clock."""
        return False


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

    def _source(self) -> bool:
        return self._is_active

    def _now_ns(self) -> int:
        return self._override_ns if self._is_active else time.time_ns()

    def _jump(self, change: ClockChange, apply: Callable[[], None], delta_ns: int) -> None:
        jump = TimeJump(change, Duration(nanoseconds=delta_ns))
        told = [handle for handle in self._jump_handles if handle.threshold.exceeded_by(jump)]
        for handle in told:
            if handle.pre_callback is not None:
                handle.pre_callback()
        apply()
        for handle in told:
            if handle.post_callback is not None:
                handle.post_callback(jump)

    def _set_ros_time_is_active(self, enabled: bool) -> None:
        if enabled == self._is_active:
            return
        change = ClockChange.ROS_TIME_ACTIVATED if enabled else ClockChange.ROS_TIME_DEACTIVATED
        delta = (self._override_ns - time.time_ns()) * (1 if enabled else -1)

        def apply() -> None:
            self._is_active = enabled

        self._jump(change, apply, delta)

    def set_ros_time_override(self, time: Time) -> None:
        """Set the sim time."""
        if not isinstance(time, Time):
            raise TypeError("Time must be specified as rclpy.time.Time")
        new = time.nanoseconds

        def apply() -> None:
            self._override_ns = new

        if not self._is_active:
            apply()
            return
        self._jump(ClockChange.ROS_TIME_NO_CHANGE, apply, new - self._override_ns)
