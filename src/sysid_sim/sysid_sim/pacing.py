# SPDX-License-Identifier: Apache-2.0
"""Keeps simulated time in step with a clock, and commands fresh; knows no ROS."""

import numpy as np

from sysid_core.arrays import FloatArray

__all__ = ["CommandGate", "Pacing"]

_MOST_BEHIND = 0.05  # [s] that is made up for; more would starve the callbacks that bring commands
_STALE = 0.1  # Simulated time [s] after which a command is dropped, as drivers of real robots do


class Pacing:
    """Says which periods [s] of simulated time are due, at some simulated seconds per second."""

    def __init__(self, period: float, speed: float, now: float) -> None:
        self.ticks = 0
        self._period = period
        self._late = 0.0
        self.set_speed(speed, now)

    def set_speed(self, speed: float, now: float) -> None:
        """Go on at another speed."""
        self._speed = speed
        self._begin, self._first = now, float(self.ticks)

    def ready(self, now: float) -> bool:
        """Tell whether the next period is due; time that cannot be made up is lost."""
        behind, most = self._behind(now)
        if behind > most + 1.0:
            self._late += (behind - most) * self._period / self._speed
            self._begin, self._first = now, self.ticks + most
            behind = most
        return behind >= 1.0 - 1e-6

    def _behind(self, now: float) -> tuple[float, float]:
        """Return how many periods are due, and how many may be."""
        due = self._first + (now - self._begin) * self._speed / self._period
        return due - self.ticks, max(1.0, _MOST_BEHIND * self._speed / self._period)

    def take(self) -> int:
        """Return the number of the period that is simulated now."""
        self.ticks += 1
        return self.ticks - 1

    def wait(self, now: float) -> None:
        """Let simulated time stand still until now; only a short wait is made up for later."""
        behind, most = self._behind(now)
        if behind > most:
            self._begin, self._first = now, self.ticks + most

    def take_late(self) -> float:
        """Return the time [s] that was lost since the last call."""
        late, self._late = self._late, 0.0
        return late


class CommandGate:
    """Holds the newest command, of so many torques, as long as it is fresh."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.refused = 0  # Commands of the wrong length or with numbers that are not finite
        self.lapses = 0  # Times that commands stopped coming
        self.clear()

    def clear(self) -> None:
        """Forget the command: brakes hold until the next one."""
        self._command: FloatArray | None = None
        self._age = 0.0
        self._arrival = -np.inf

    @property
    def driven(self) -> bool:
        """Whether a fresh command is at hand."""
        return self._command is not None

    def offer(self, command: FloatArray, now: float) -> bool:
        """Take a command (na,) [N·m] that arrives `now` [s], unless it is malformed."""
        if command.shape != (self.count,) or not np.isfinite(command).all():
            self.refused += 1
            return False
        self._command, self._age, self._arrival = command, 0.0, now
        return True

    def late(self, allowed: float, timeout: float, now: float) -> bool:
        """Tell whether the next command is overdue but may still come.

        It may be applied for some simulated time [s], and is waited for some real time [s].
        """
        return self.driven and self._age >= allowed - 1e-9 and now - self._arrival < timeout

    def next(self, period: float) -> FloatArray | None:
        """Return what to apply in the next `period` [s]; None: let the brakes hold."""
        if self._command is not None and self._age > _STALE:
            self._command = None
            self.lapses += 1
        self._age += period
        return self._command
