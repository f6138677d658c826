# SPDX-License-Identifier: Apache-2.0
"""When the samples of a live stream were taken, where its stamps do not tell."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.errors import DataError
from sysid_core.signals.arrival import BURSTS, LiveLine, come_at_once, in_bursts
from sysid_core.signals.smoothness import CLEARLY_SMOOTHER, smoother, unpredictability
from sysid_core.signals.ticks import CONTEXT, find_ticks
from sysid_core.signals.timing import estimate_clock

__all__ = ["Clock", "LiveArrivals"]

Clock = Literal["stamps", "ticks", "line"]

_CALM = 0.02
"""Share of bursts below which a queue is gone: less would switch to and fro."""
_RECENT = 1000
"""Intervals that a stream is judged by: one hold-up that ends in a burst is no queue."""
_FEWEST = 64
"""Intervals below which bursts may be chance."""
_MADE_UP = 0.9
"""Share of the messages missed in an interruption from which those that come at once behind it are
these: hardly any was lost, they were held up."""
_JUDGED = 128
"""Messages on which clocks are compared."""
_UNEVEN = 0.1
"""Part of a period by which intervals are off whole ones where stamps may not be believed."""
_SEEN = 512
"""Stamps that the ticks are told from."""
_HELD = 2 * CONTEXT
"""Messages that wait until their ticks are found, all but the newest of them."""


class LiveArrivals:
    """Tells when live samples were taken.

    Stamps are believed unless they come in bursts, as from a queue, or another clock makes the
    values clearly smoother. That is the even clock whose ticks the stamps belong to, some of them
    lost, or the line through the first comers where no ticks are seen. Ticks are known only from
    the stamps behind them, too, so that messages wait for these.

    Parameters
    ----------
    period : float [s]
        Of the messages, roughly.
    gap : float
        Interruptions of more than this many periods begin a new count.
    judged : int
        Leading columns of the rows by which clocks are compared: positions, which are smooth.
    """

    def __init__(self, period: float, gap: float, judged: int) -> None:
        self.clock: Clock = "stamps"
        self._period, self._longest, self._columns = period, gap * period, judged
        self._better: Clock = "stamps"  # While stamps do not come in bursts
        self._queued = False
        self._recent = np.zeros(0, dtype=np.bool_)
        self._newest, self._rate = np.nan, 1.0 / period
        self._opening: FloatArray | None = np.zeros(0)  # First stamps [s], until they are enough
        self._waiting: list[tuple[FloatArray, FloatArray]] = []
        self._timed: list[tuple[FloatArray, FloatArray]] = []
        self._begin()

    def _begin(self) -> None:
        """Begin a run."""
        self._pending: _Messages | None = None
        self._line = LiveLine(self._period, self._longest)
        self._unjudged: list[_Messages] = []
        self._seen = np.zeros(0)

    def push(self, stamps: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Take messages with stamps (m,) [s] and rows (m, nc).

        Returns
        -------
        time : (k,) [s]
            When the samples were taken that are timed by now. Stamps that are not finite stay.
        rows : (k, nc)
        """
        self._waiting.append((stamps, rows))
        if self._is_opening(stamps[np.isfinite(stamps)]):
            return stamps[:0], rows[:0]
        stamps, rows = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        self._waiting = []
        finite = np.isfinite(stamps)
        self._timed = [(stamps[~finite], rows[~finite])]
        stamps, rows = stamps[finite], rows[finite]
        open_ = self._open_end(stamps)
        if open_ < len(stamps):
            self._waiting = [(stamps[open_:], rows[open_:])]
        self._look(stamps[:open_], rows[:open_])
        self._emit()
        time, timed = zip(*self._timed, strict=True)
        return np.concatenate(time), np.concatenate(timed)

    def _is_opening(self, stamps: FloatArray) -> bool:
        """Whether stamps are uneven so far, and too few to tell whether to believe them."""
        if self._opening is None:
            return False
        self._opening = np.append(self._opening, stamps)
        uneven = self._are_uneven(self._opening)
        if len(self._opening) >= _JUDGED or len(self._waiting) >= _JUDGED:
            self._opening = None
        return self._opening is not None and uneven

    def _are_uneven(self, stamps: FloatArray) -> bool:
        periods = np.diff(stamps) / self._period
        return bool((np.abs(periods - np.rint(periods)) > _UNEVEN).any())

    def _open_end(self, stamps: FloatArray) -> int:
        """Return from which of the newest stamps on (m,) [s] it is open whether they were held up.

        Behind an interruption that is so until one comes that does not come at once.
        """
        steps = np.diff(stamps, prepend=self._newest)
        late = np.flatnonzero(steps > self._longest)
        if not len(late):
            return len(stamps)
        first = int(late[-1])
        came, missed = len(stamps) - first, steps[first] / self._period
        settled = came > _JUDGED or came >= _MADE_UP * missed
        if settled or not come_at_once(steps[first + 1 :], self._period).all():
            return len(stamps)
        return first

    def _interrupted(self, steps: FloatArray, longest: float) -> list[int]:
        """Return at which steps (m,) [s] a run begins: not where messages were only held up."""
        cuts = np.flatnonzero((steps > longest) | (steps < -self._longest))
        if not len(cuts):
            return []
        apart = np.append(np.flatnonzero(~come_at_once(steps, self._period)), len(steps))
        came = apart[np.searchsorted(apart, cuts, side="right")] - cuts
        held_up = (steps[cuts] > 0.0) & (came >= _MADE_UP * steps[cuts] / self._period)
        return cuts[~held_up].tolist()

    def _look(self, stamps: FloatArray, rows: FloatArray) -> None:
        """Sort messages into runs, and choose their clock."""
        steps = np.diff(stamps, prepend=self._newest)
        bursts = in_bursts(steps[np.isfinite(steps)], self._period)
        self._recent = np.append(self._recent, bursts)[-_RECENT:]
        share = float(np.mean(self._recent)) if len(self._recent) > _FEWEST else 0.0
        self._queued = share > (_CALM if self._queued else BURSTS)
        longest = max(self._longest, 2.0 * self._line.delay)
        cuts = self._interrupted(steps, longest)
        for first, last in pairwise([0, *cuts, len(stamps)]):
            new = first in cuts
            if new:
                self._finish()
            part = stamps[first:last]
            found = _Messages(part, self._line.follow(part), rows[first:last])
            self._pending = _joined([self._pending, found]) if self._pending else found
            enough = max(_SEEN, len(self._pending.stamps))
            self._seen = np.append(self._seen, part)[-enough:]
            self._unjudged.append(found)
            if sum(len(some.stamps) for some in self._unjudged) >= _JUDGED:
                self._compare(_joined(self._unjudged))
                self._unjudged = []
        self._newest = float(stamps[-1]) if len(stamps) else self._newest
        self.clock = "line" if self._queued else self._better

    def _compare(self, found: _Messages) -> None:
        """Believe whichever of stamps and another clock makes values clearly smoother."""
        if not self._are_uneven(found.stamps):
            self._better = "stamps"
            return
        try:
            self._rate = estimate_clock(self._seen).rate
        except DataError:  # it stands still
            return
        ticks = self._ticks(found.stamps)
        clock: Clock = "line" if ticks is None else "ticks"
        other = found.line if ticks is None else ticks
        values = found.rows[:, : self._columns]
        known = np.isfinite(values).all(axis=1)
        stamps, other, values = found.stamps[known], other[known], values[known]
        # neither clock may go back or stand still: nothing is between two equal times
        later = _ascending(stamps) & _ascending(other)
        whole = [slice(0, int(later.sum()))]
        with np.errstate(over="ignore", invalid="ignore"):  # values are as they came
            stamped, even = (
                unpredictability(time[later], values[later], whole) for time in (stamps, other)
            )
            ratio = smoother(even, stamped)
        if ratio > 1.0 / CLEARLY_SMOOTHER:
            self._better = "stamps"
        elif ratio < CLEARLY_SMOOTHER or self._better != "stamps":
            self._better = clock

    def _ticks(self, newest: FloatArray) -> FloatArray | None:
        """Return the times (m,) [s] of the ticks behind the newest stamps (m,) of a run."""
        window = self._seen if len(newest) < len(self._seen) else newest
        ticks = find_ticks(window, self._rate, len(newest))
        return None if ticks is None else ticks.time

    def _finish(self) -> None:
        """Time what waits of a run that is over, and begin another."""
        if self._pending is not None:
            self._timed.append((self._times(self._pending), self._pending.rows))
        self._begin()

    def _emit(self) -> None:
        """Time the messages that wait, but for the newest ones where ticks are believed."""
        found = self._pending
        if found is None or (self.clock == "ticks" and len(found.stamps) < _HELD):
            return
        time = self._times(found)
        count = len(time) - (CONTEXT if self.clock == "ticks" else 0)
        self._timed.append((time[:count], found.rows[:count]))
        self._pending = _Messages(*(column[count:] for column in found))

    def _times(self, found: _Messages) -> FloatArray:
        """Return when messages were taken (m,) [s] by the clock that is believed."""
        if self.clock == "ticks" and len(found.stamps):
            ticks = self._ticks(found.stamps)
            if ticks is not None:
                return ticks
            self.clock = self._better = "line"
        return found.line if self.clock == "line" else found.stamps


class _Messages(NamedTuple):
    """Messages of one run."""

    stamps: FloatArray  # (n,) [s]
    line: FloatArray  # (n,) [s] by the line through the first comers
    rows: FloatArray  # (n, nc)


def _joined(parts: list[_Messages]) -> _Messages:
    return _Messages(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _ascending(time: FloatArray) -> BoolArray:
    """Return which of some times (n,) are later than all before them."""
    return np.append(True, time[1:] > np.maximum.accumulate(time)[:-1])[: len(time)]
