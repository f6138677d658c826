# SPDX-License-Identifier: Apache-2.0
"""Timers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .clock import Clock, ROSClock

__all__ = ["Timer"]


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
        """The period [ns]."""
        return self._period

    @timer_period_ns.setter
    def timer_period_ns(self, value: int) -> None:
        self._period = int(value)
        self._wake()

    def is_ready(self) -> bool:
        """Whether a call is due."""
        return not self._canceled and self._remaining() <= 0

    def is_canceled(self) -> bool:
        """Whether it has been cancelled."""
        return self._canceled

    def cancel(self) -> None:
        """Make no more calls until `reset`."""
        self._canceled = True

    def reset(self) -> None:
        """Start over: the next call is one period from now."""
        self._anchor()
        self._canceled = False
        self._wake()
