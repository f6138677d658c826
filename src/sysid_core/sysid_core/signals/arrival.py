# SPDX-License-Identifier: Apache-2.0
"""The robot's clock behind messages that wait in a queue: recorded, or live."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray

__all__ = [
    "BURSTS",
    "LiveLine",
    "Taken",
    "come_at_once",
    "come_in_bursts",
    "in_bursts",
    "taken_times",
]

_WINDOWS = (64, 256, 1024)
"""Messages of which one at least comes with hardly any delay, although most wait in a queue: the
longer the delays, the more it takes; the fewer, the closer a clock that drifts is followed."""

_BURST = 0.2
"""Part of a period between stamps that no clock of that period gives."""
BURSTS = 0.1
"""Share of such intervals from which stamps tell of a queue rather than of the robot."""

_BLOCK = 64
"""Live messages of which one at least comes with hardly any delay."""
_BLOCKS = 64
"""Such blocks that the live clock is told from: over more, clocks drift."""
_EASING = 500.0
"""Messages over which most of a change of the live clock is taken over."""
_SPREAD = 3.0
"""Standard deviations of the first comers' delays beyond which they are no delays."""
_FEW = 8
"""Such blocks below which the rate as it was given is closer than theirs."""


class Taken(NamedTuple):
    """When samples were taken, by an even clock."""

    time: FloatArray  # (n,) [s]
    runs: list[slice]  # Stretches without interruption
    period: float  # [s] of the clock
    lost: int = 0  # Ticks without a sample within the runs

    def queued(self, stamps: FloatArray) -> bool:
        """Whether many of the stamps (n,) came in bursts, so that they tell no rate."""
        return come_in_bursts(stamps, self.period)


def come_in_bursts(stamps: FloatArray, period: float) -> bool:
    """Whether stamps (n,) [s] of messages of a period [s] are those of a queue."""
    return bool(np.mean(in_bursts(np.diff(stamps), period)) > BURSTS)


def in_bursts(steps: FloatArray, period: float) -> BoolArray:
    """Return which intervals (n,) [s] no clock of a period [s] gives."""
    return np.asarray((steps > 0.0) & (steps < _BURST * period))


def come_at_once(steps: FloatArray, period: float) -> BoolArray:
    """Return which messages come with the one before, by the intervals (n,) [s] to it."""
    return in_bursts(steps, period) | (steps == 0.0)


class LiveLine:
    """The clock behind the live messages of one run.

    The k-th sample was taken k periods after the first, and no message comes before it was sent.
    So the robot's clock is the least squares line through the first comers among the last ones,
    later by a delay that hardly changes. A message with which the next one comes waited for sure:
    a block of such ones tells nothing.

    Parameters
    ----------
    period : float [s]
        Of the messages, roughly.
    longest : float [s]
        First comers that are late by more than this end the run.
    """

    def __init__(self, period: float, longest: float) -> None:
        self.delay = 0.0  # [s] longest that was seen
        self._period, self._longest = period, longest
        self._begin()

    def _begin(self) -> None:
        self.delay = 0.0
        self._count = 0
        self._newest = np.zeros((0, 2))  # Number and stamp [s] of the newest message
        self._lowest = np.zeros((0, 2))  # of each block: number and stamp [s] of its first comer
        self._ahead = np.nan  # [s] where the last line had the next message

    def follow(self, stamps: FloatArray) -> FloatArray:
        """Return the line (m,) [s] at the next messages, and learn from their stamps (m,) [s]."""
        if not len(stamps):
            return stamps
        index = self._count + np.arange(len(stamps))
        self._count += len(stamps)
        messages = np.vstack([self._newest, np.column_stack([index, stamps])])
        self._newest = messages[-1:]
        waited = come_at_once(np.diff(messages[:, 1]), self._period)
        told = messages[:-1][~waited]
        if not len(told) and not len(self._lowest):
            told = self._newest
        block = told[:, 0] // _BLOCK
        for own in np.unique(block):
            here = told[block == own]
            number, stamp = here[np.argmin(here[:, 1] - self._period * here[:, 0])]
            self._add(int(own), float(number), float(stamp))
        offset, slope = self._line()
        line = np.asarray(offset + slope * index, dtype=np.float64)
        self.delay = max(self.delay, float(np.max(stamps - line)))
        late = self._lowest[:-1, 1] - offset - slope * self._lowest[:-1, 0]
        if len(late) and late[-1] > self._longest + _SPREAD * float(np.std(late)):
            self._begin()  # a whole block is late: that was an interruption
        return np.asarray(self._eased(line, slope))

    def _eased(self, line: FloatArray, slope: float) -> FloatArray:
        """Return a line (m,) that leaves the last one by and by: a step would look like motion."""
        off = self._ahead - line[0]
        off = off if np.isfinite(off) else 0.0
        eased = line + off * np.exp(-np.arange(len(line)) / _EASING)
        self._ahead = float(eased[-1]) + slope
        return np.asarray(eased)

    def _add(self, block: int, index: float, stamp: float) -> None:
        """Take the first comer of a block, or of one more part of the newest block."""
        known = self._lowest
        if len(known) and int(known[-1, 0]) // _BLOCK == block:
            if stamp - known[-1, 1] >= self._period * (index - known[-1, 0]):
                return
            known = known[:-1]
        self._lowest = np.vstack([known, [[index, stamp]]])[-_BLOCKS:]

    def _line(self) -> tuple[float, float]:
        """Return the stamp [s] of message 0 and the period [s] by the first comers."""
        whole = self._lowest[:-1] if len(self._lowest) > 1 else self._lowest
        index, stamp = whole.T
        middle, slope = index - index.mean(), self._period
        if len(index) >= _FEW:
            slope = float(middle @ (stamp - stamp.mean())) / float(middle @ middle)
        return float(stamp.mean() - slope * index.mean()), slope


def taken_times(stamps: FloatArray, gap: float) -> Iterator[Taken]:
    """Separate the robot's clock from the delays of the transport, over several windows.

    A transport keeps messages in order and delays them by different times, never by less than
    none. So the k-th sample was taken k periods after the first, and what its stamp says beyond
    that is delay: the lower envelope of the rest is the clock, with its drift and with messages
    that were lost. Where the envelope rises for good, there was an interruption; the ends are
    too short to tell. Windows over which the times would not ascend, or that see too few
    messages, are passed over. The last times are those of a clock that is as even as can be.

    Parameters
    ----------
    stamps : (n,) [s]
        Ascending or equal.
    gap : float
        Rises of more than this many periods are interruptions.
    """
    found = None
    for window in _WINDOWS:
        if len(stamps) >= 4 * window and (found := _taken(stamps, gap, window)) is not None:
            yield found
    if found is not None:
        lines = np.concatenate([_line(stamps[run]) for run in found.runs])
        yield Taken(lines, found.runs, _mean_period(lines, found.runs))


def _taken(stamps: FloatArray, gap: float, window: int) -> Taken | None:
    """Return the times behind stamps; None where they would not ascend."""
    count = len(stamps)
    period = float(stamps[-1] - stamps[0]) / (count - 1)
    if not period > 0.0:
        return None
    index = np.arange(count)
    rest = stamps - period * index
    before, after = _running_minima(rest, window)
    rise = after[1:] - before[:-1]
    jump = np.flatnonzero((rise > gap * period) & (np.diff(stamps) > gap * period))
    told = (jump >= _WINDOWS[0]) & (jump < count - _WINDOWS[0])
    edges = [0, *(jump[told] + 1).tolist(), count]
    runs = [slice(a, b) for a, b in pairwise(edges)]
    time = np.empty(count)
    for run in runs:
        time[run] = period * index[run] + _envelope(rest[run], window)
    if np.any(np.diff(time) <= 0.0):
        return None
    return Taken(time, runs, _mean_period(time, runs))


def _mean_period(time: FloatArray, runs: Sequence[slice]) -> float:
    """Return the mean interval [s] within runs."""
    spans = [float(time[run][-1] - time[run][0]) for run in runs]
    return sum(spans) / max(1, len(time) - len(runs))


def _line(stamps: FloatArray) -> FloatArray:
    """Return the least squares line (n,) through stamps (n,) [s], moved to the first comers."""
    index = np.arange(len(stamps)) - 0.5 * (len(stamps) - 1)
    slope = float(index @ stamps) / max(float(index @ index), 1.0)
    late = stamps - slope * index
    blocks = np.array_split(late, max(1, len(stamps) // _WINDOWS[-1]))
    return np.asarray(slope * index + np.median([block.min() for block in blocks]))


def _running_minima(rest: FloatArray, window: int) -> tuple[FloatArray, FloatArray]:
    """Return the smallest of the last and of the next messages, both with the present one."""
    padded = np.pad(rest, window - 1, constant_values=np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, window).min(axis=1)
    return windows[: len(rest)], windows[window - 1 :]


def _envelope(rest: FloatArray, window: int) -> FloatArray:
    """Return the line through the lowest point of each window, level beyond the outer ones."""
    blocks = np.array_split(np.arange(len(rest)), max(1, len(rest) // window))
    lowest = np.array([block[np.argmin(rest[block])] for block in blocks])
    return np.asarray(np.interp(np.arange(len(rest)), lowest, rest[lowest]))
