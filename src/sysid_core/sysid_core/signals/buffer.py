# SPDX-License-Identifier: Apache-2.0
"""Recent rows of live sources: what is kept of them, and why the rest was left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.signals.interpolation import resample
from sysid_core.signals.outliers import HALF_WINDOW, LiveHampel
from sysid_core.signals.timing import ROUNDING, Kind, estimate_clock, follow, split_at_gaps

__all__ = ["GatedRows", "RecentRows", "StreamCounts"]

_NODES_BEFORE = 3
"""Rows before a time that its interpolation may rest on."""


@dataclass(frozen=True)
class StreamCounts:
    """What a stream has brought since the start."""

    # received, accepted: samples that came, and that were used.
    received: int = 0
    accepted: int = 0
    # late, duplicate, repeated, not_finite, implausible: samples that were left out, by reason.
    late: int = 0
    duplicate: int = 0
    repeated: int = 0
    not_finite: int = 0
    implausible: int = 0
    outliers: int = 0  # Values that stood out of their neighbours and were replaced
    lost: int = 0  # Periods without a sample, gaps included
    # gaps, resets: interruptions that were not bridged; times that the clock went back.
    gaps: int = 0
    resets: int = 0


class RecentRows:
    """Rows of one source, in order, that can be read at any time between them.

    Interruptions up to `longest` [s] are interpolated, of flags the nearest row is taken; rows are
    forgotten at the age `horizon` [s].
    """

    def __init__(self, *, longest: float, horizon: float, flags: bool = False) -> None:
        self.longest = longest
        self._horizon = horizon
        self._flags = flags
        # The newest interval's cubic may still change with the next row; flags may not.
        self._open = 1 if flags else 2
        self._times = np.zeros(0)
        self._rows = np.zeros((0, 0))
        self._start = self._stop = self._unrated = 0
        self._rate = np.nan
        self.reset()

    def __len__(self) -> int:
        return self._stop - self._start

    @property
    def newest(self) -> float:
        """Time [s] of the newest row; −∞ without any."""
        return float(self._times[self._stop - 1]) if len(self) else -np.inf

    @property
    def known_until(self) -> float:
        """Time [s] up to which values are final; −∞ before the first two rows."""
        if len(self) < max(2, self._open):
            return -np.inf
        return float(self._times[self._stop - self._open])

    @property
    def rate(self) -> float:
        """Rate [Hz] behind the stamps, as of when half of them were new; NaN before two rows."""
        if len(self) > 1 and 2 * self._unrated >= len(self):
            self._rate = estimate_clock(self._times[self._start : self._stop]).rate
            self._unrated = 0
        return self._rate

    def reset(self) -> None:
        """Forget all rows, as when time goes back."""
        self._start = self._stop = self._unrated = 0
        self._rate = np.nan

    def push(self, time: FloatArray, rows: FloatArray) -> int:
        """Take rows (m, nc) of times (m,) [s]; return how many were left out.

        Those are the ones that are not finite or not younger than all before them.
        """
        finite = np.isfinite(time) & np.isfinite(rows).all(axis=1)
        youngest = np.maximum.accumulate(np.append(self.newest, np.where(finite, time, -np.inf)))
        good = finite & (time > youngest[:-1])
        if good.any():
            self.extend(time[good], rows[good])
            if self.newest - self._times[self._start] > 2.0 * self._horizon:
                self.forget(self.newest - self._horizon)
        return int(np.count_nonzero(~good))

    def extend(self, time: FloatArray, rows: FloatArray) -> None:
        """Take rows that are known to be in order."""
        self._reserve(len(time), rows.shape[1])
        added = slice(self._stop, self._stop + len(time))
        self._times[added], self._rows[added] = time, rows
        self._stop = added.stop
        self._unrated += len(time)

    def _reserve(self, count: int, channels: int) -> None:
        """Make room for rows behind the newest: move what is kept to the front."""
        if self._stop + count <= len(self._times):
            return
        kept, size = slice(self._start, self._stop), len(self)
        times, rows = self._times[kept], self._rows[kept].reshape(size, channels)
        # Room for as many again as are kept, so that a row is moved once on average.
        room = 2 * (size + count)
        self._times, self._rows = np.empty(room), np.empty((room, channels))
        self._times[:size], self._rows[:size] = times, rows
        self._start, self._stop = 0, size

    def forget(self, before: float) -> None:
        """Forget rows before a time [s] that no interpolation after it rests on."""
        self._start = self._first_node(before)

    def _first_node(self, time: float) -> int:
        older = int(np.searchsorted(self._times[self._start : self._stop], time))
        return self._start + max(0, older - _NODES_BEFORE)

    def at(self, time: FloatArray, *, rate: float = np.inf) -> FloatArray:
        """Return the values (m, nc) at ascending times (m,) [s]; NaN in gaps and where unknown.

        Rows that come faster than a `rate` [Hz] of the times are averaged.
        """
        kept = slice(self._first_node(time[0]), self._stop)
        nodes = self._times[kept]
        runs = split_at_gaps(nodes, self.longest)
        average = round(self.rate / rate) if np.isfinite(rate) and len(self) > 1 else 1
        return resample(nodes, self._rows[kept], runs, time, flags=self._flags, average=average)


class GatedRows(RecentRows):
    """Rows of the source that leads: a gap-free run of plausible ones, all others counted.

    The stream has a rate [Hz] but for jitter and losses; interruptions up to `gap` periods are
    interpolated. Beyond `upper` and `max_rate` (channels,) sizes and changes per second are
    implausible. Values that stand out of their neighbours are replaced, as in a recording, which
    takes the `HALF_WINDOW` rows after them.

    Raises
    ------
    ParameterError
        If a setting is out of range.
    """

    def __init__(
        self,
        rate: float,
        channels: int,
        *,
        gap: float = 5.0,
        upper: FloatArray | None = None,
        max_rate: FloatArray | None = None,
    ) -> None:
        if not (np.isfinite(rate) and rate > 0.0):
            raise ParameterError(f"the sampling rate must be positive, not {rate} Hz")
        if not gap >= 1.5:
            raise ParameterError(f"the longest gap must be at least 1.5 periods, not {gap}")
        self.period = 1.0 / rate
        self._upper = _limits(upper, channels)
        self._max_rate = _limits(max_rate, channels)
        self._tally = asdict(StreamCounts())
        self._hampel = LiveHampel(channels)
        super().__init__(longest=gap * self.period * ROUNDING, horizon=np.inf)
        self._open += HALF_WINDOW

    @property
    def counts(self) -> StreamCounts:
        """What the stream has brought so far."""
        return StreamCounts(**self._tally)

    def reset(self) -> None:
        """Start afresh with the next row."""
        super().reset()
        self.origin = np.nan
        """Time [s] of the run's first row: where its grid begins."""
        self._unjudged = 0  # Newest rows that may be outliers
        self._suspect = np.zeros(0), np.zeros((0, len(self._upper)))

    def sort_in(
        self, time: FloatArray, values: FloatArray, at_end: Callable[[bool], None]
    ) -> None:
        """Take rows (m, channels) of times (m,) [s].

        `at_end` is told before a run that is over is forgotten, and whether time went back.
        """
        self._tally["received"] += len(time)
        finite = np.isfinite(time) & np.isfinite(values).all(axis=1)
        plausible = finite & (np.abs(values) <= self._upper).all(axis=1)
        if not plausible.all():
            self._tally["not_finite"] += int(np.count_nonzero(~finite))
            self._tally["implausible"] += int(np.count_nonzero(finite & ~plausible))
            time, values = time[plausible], values[plausible]
        # New rows follow the newest one, and one that stood out since, if there are such.
        known = min(1, len(self))
        newest = slice(self._stop - known, self._stop)
        rows = self._rows[newest].reshape(known, values.shape[1])
        time = np.concatenate([self._times[newest], self._suspect[0], time])
        values = np.concatenate([rows, self._suspect[1], values])
        kinds, begins = follow(time, self.period, self.longest, values, self._max_rate)
        if not kinds.any() and len(begins) == 1:
            self._go_on(time, values, known)
            self._suspect = time[:0], values[:0]
            return
        for begin, end in pairwise((*begins, len(time))):
            if begin:
                step = time[begin] - self.newest
                self._tally["gaps" if step > 0.0 else "resets"] += 1
                self._tally["lost"] += max(0, round(step / self.period) - 1)
                at_end(bool(step <= 0.0))
                self.reset()
            good = begin + np.flatnonzero(kinds[begin:end] == Kind.GOOD)
            self._go_on(time[good], values[good], known if begin == 0 else 0)
        self._tally["late"] += int(np.count_nonzero(kinds == Kind.LATE))
        self._tally["duplicate"] += int(np.count_nonzero(kinds == Kind.DUPLICATE))
        unfit = (kinds == Kind.IMPLAUSIBLE) | (kinds == Kind.ALONE)
        self._tally["implausible"] += int(np.count_nonzero(unfit))
        pending = kinds == Kind.PENDING
        self._suspect = time[pending], values[pending]

    def _go_on(self, time: FloatArray, rows: FloatArray, known: int) -> None:
        """Take rows of a run, `known` of which are there already."""
        if len(time) == known:
            return
        if not known:
            self.origin = float(time[0])
        periods = np.rint(np.diff(time) / self.period)
        self._tally["lost"] += int(np.maximum(0.0, periods - 1.0).sum())
        self._tally["accepted"] += len(time) - known
        self._unjudged += len(time) - known
        self.extend(time[known:], rows[known:])

    def forget(self, before: float) -> None:
        """Forget rows before a time [s] that nothing after it rests on."""
        start = self._start
        super().forget(before)
        needed = self._stop - self._unjudged - HALF_WINDOW
        self._start = max(start, min(self._start, needed))

    def at(self, time: FloatArray, *, rate: float = np.inf) -> FloatArray:
        """Return the values (m, nc) at ascending times (m,) [s], without outliers."""
        kept = slice(self._start, self._stop)
        first = len(self) - self._unjudged
        needed = int(np.searchsorted(self._times[kept], time[-1], side="right")) + 2
        stop = min(max(needed, len(self) - HALF_WINDOW), len(self))
        if stop > first:
            self._tally["outliers"] += self._hampel.clean(self._rows[kept], first, stop)
            self._unjudged = len(self) - stop
        return super().at(time, rate=rate)


def _limits(values: FloatArray | None, channels: int) -> FloatArray:
    limits = np.full(channels, np.inf) if values is None else np.asarray(values, dtype=np.float64)
    if limits.shape != (channels,) or np.isnan(limits).any():
        raise ParameterError(f"limits must be {channels} numbers, one per channel")
    return limits
