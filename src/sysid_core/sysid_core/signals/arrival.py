# SPDX-License-Identifier: Apache-2.0
"""When samples were taken, where their stamps say when they arrived."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray

__all__ = ["Taken", "taken_times"]

_WINDOWS = (64, 256, 1024)
"""Messages of which one at least comes with hardly any delay, although most wait in a queue: the
longer the delays, the more it takes; the fewer, the closer a clock that drifts is followed."""


_BURST = 0.2
"""Part of a period between stamps that no clock of that period gives."""
_BURSTS = 0.1
"""Share of such intervals from which stamps tell of a queue rather than of the robot."""


class Taken(NamedTuple):
    """When samples were taken."""

    time: FloatArray  # (n,) [s]
    runs: list[slice]  # Stretches without interruption

    @property
    def period(self) -> float:
        """Mean interval [s] within the runs."""
        spans = [float(self.time[run][-1] - self.time[run][0]) for run in self.runs]
        return sum(spans) / max(1, len(self.time) - len(self.runs))

    def queued(self, stamps: FloatArray) -> bool:
        """Whether many of the stamps (n,) came in bursts, so that they tell no rate."""
        step = np.diff(stamps)
        return bool(np.mean((step > 0.0) & (step < _BURST * self.period)) > _BURSTS)


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
        yield Taken(np.concatenate([_line(stamps[run]) for run in found.runs]), found.runs)


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
    return Taken(time, runs)


def _line(stamps: FloatArray) -> FloatArray:
    """Return the least squares line (n,) through stamps (n,)."""
    index = np.arange(len(stamps)) - 0.5 * (len(stamps) - 1)
    slope = float(index @ stamps) / max(float(index @ index), 1.0)
    return np.asarray(stamps.mean() + slope * index)


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
