# SPDX-License-Identifier: Apache-2.0
"""What time stamps say about the clock behind them: rate, jitter, gaps, steps back."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError

__all__ = [
    "DUPLICATE",
    "ROUNDING",
    "ClockEstimate",
    "Passes",
    "estimate_clock",
    "find_passes",
    "split_at_gaps",
    "thin_duplicates",
]

IndexArray = npt.NDArray[np.int64]

DUPLICATE = 0.2
"""Part of a period within which a second stamp is the same sample again."""

ROUNDING = 1.001
"""An interruption of exactly the longest allowed is bridged, however its stamps are rounded."""


@dataclass(frozen=True)
class ClockEstimate:
    """The regular clock that irregular stamps come from.

    Attributes
    ----------
    rate : float [Hz]
    jitter : float [s]
        Standard deviation of the stamps' intervals around whole periods.
    lost : int
        Periods without a sample, outside of gaps.
    """

    rate: float
    jitter: float
    lost: int


@dataclass(frozen=True)
class Passes:
    """Runs of a recording through which time goes forwards.

    Attributes
    ----------
    rows : tuple[(m,) int, ...]
        Row numbers of each pass, ascending in time.
    late : int
        Rows that came after younger ones and were put in order.
    resets : int
        How often time went back for good, as when a bag starts over.
    implausible : int
        Rows left out because their stamp is not finite, or leaps ahead of all that follow.
    """

    rows: tuple[IndexArray, ...]
    late: int
    resets: int
    implausible: int


def estimate_clock(time: FloatArray, *, gap: float = 5.0) -> ClockEstimate:
    """Estimate the rate behind ascending stamps with jitter, losses and gaps.

    The median interval is a first guess; every interval then is a whole number of periods, and
    the period is the total time over the total number of periods, gaps left out. Jitter averages
    out, since the intervals between their ends share all stamps but two.

    Parameters
    ----------
    time : (n,) [s]
        Ascending, without duplicates.
    gap : float
        Intervals longer than this many periods are gaps.

    Raises
    ------
    DataError
        If fewer than two distinct stamps are given.
    """
    intervals = np.diff(time)
    intervals = intervals[intervals > 0.0]
    if not len(intervals):
        raise DataError("fewer than two distinct time stamps; record for longer")
    # Duplicates would pull the median down, hence the second one over plausible intervals only.
    period = float(np.median(intervals))
    period = float(np.median(intervals[intervals > DUPLICATE * period]))
    for _ in range(2):
        kept = intervals[intervals <= gap * period * ROUNDING]
        periods = np.maximum(np.round(kept / period), 0.0)
        if periods.sum() < 1.0:
            break
        period = float(kept.sum() / periods.sum())
    kept = intervals[intervals <= gap * period * ROUNDING]
    periods = np.maximum(np.round(kept / period), 1.0)
    jitter = float(np.std(kept - periods * period)) if len(kept) else 0.0
    return ClockEstimate(1.0 / period, jitter, int(np.sum(periods - 1.0)))


def find_passes(time: FloatArray, *, gap: float = 5.0) -> Passes:
    """Split a recording where time goes back for good; put late rows in order elsewhere.

    A row that goes back by more than `gap` periods starts a new pass if the next row goes on from
    there; alone, it was late.
    """
    finite = np.flatnonzero(np.isfinite(time))
    implausible = len(time) - len(finite)
    if len(finite) < 2:
        return Passes((finite,) if len(finite) else (), 0, 0, implausible)
    forward = np.diff(time[finite])
    forward = forward[forward > 0.0]
    limit = gap * float(np.median(forward)) if len(forward) else 0.0
    leaping = _leaps(time[finite], limit)
    implausible += int(np.count_nonzero(leaping))
    finite = finite[~leaping]
    passes: list[IndexArray] = []
    late = 0
    while len(finite):
        stamps = time[finite]
        behind = stamps < np.maximum.accumulate(stamps) - limit
        ends = np.flatnonzero(behind[:-1] & behind[1:])
        stop = int(ends[0]) if len(ends) else len(finite)
        rows = finite[:stop]
        late += int(np.count_nonzero(time[rows] < np.maximum.accumulate(time[rows])))
        passes.append(rows[np.argsort(time[rows], kind="stable")])
        finite = finite[stop:]
    return Passes(tuple(passes), late, len(passes) - 1, implausible)


def _leaps(stamps: FloatArray, limit: float) -> npt.NDArray[np.bool_]:
    """Return which single stamps leap ahead of both neighbours, which are in order themselves."""
    leaping = np.zeros(len(stamps), dtype=np.bool_)
    before, here, after = stamps[:-2], stamps[1:-1], stamps[2:]
    leaping[1:-1] = (here > before + limit) & (here > after + limit) & (after >= before)
    return leaping


def thin_duplicates(time: FloatArray, period: float) -> npt.NDArray[np.bool_]:
    """Return which of ascending stamps to keep: those a fifth of a period or more after the last.

    Two stamps closer than that are the same sample twice, or a burst after a stall; the
    difference of their values says more about noise than about motion.
    """
    keep = np.ones(len(time), dtype=np.bool_)
    suspects = np.flatnonzero(np.diff(time) < DUPLICATE * period) + 1
    last = -1
    for row in suspects:
        last = max(last, int(row) - 1)
        while not keep[last]:
            last -= 1
        if time[row] - time[last] < DUPLICATE * period:
            keep[row] = False
    return keep


def split_at_gaps(time: FloatArray, longest: float) -> tuple[slice, ...]:
    """Return the runs of ascending stamps [s] without an interval longer than `longest` [s]."""
    if not len(time):
        return ()
    cuts = np.flatnonzero(np.diff(time) > longest * ROUNDING) + 1
    edges = [0, *cuts.tolist(), len(time)]
    return tuple(slice(a, b) for a, b in pairwise(edges))
