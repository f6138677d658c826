# SPDX-License-Identifier: Apache-2.0
"""What time stamps say about the clock behind them: rate, jitter, gaps, steps back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from math import factorial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.errors import DataError

__all__ = [
    "DUPLICATE",
    "ROUNDING",
    "ClockEstimate",
    "Followed",
    "Kind",
    "Passes",
    "estimate_clock",
    "find_passes",
    "follow",
    "split_at_gaps",
    "thin_duplicates",
    "usual_interval",
]

IndexArray = npt.NDArray[np.int64]

DUPLICATE = 0.2
"""Part of a period within which a second stamp is the same sample again."""

ROUNDING = 1.001
"""An interruption of exactly the longest allowed is bridged, however its stamps are rounded."""


_BLOCK = 256
"""Stamps whose phases are added up: over more of them, a clock may drift."""
_BLOCKS = 16
"""Blocks that the search for the rate takes at most; all of them refine it."""
_FINENESS = 8
"""Bins of the median interval in which stamps are counted: half a percent of a phase is lost."""
_RATES = (0.55, 2.5)
"""Rates that are looked at, over one of the median interval: with half of the stamps lost, that is
two periods; with stamps at random, ln 2 of one."""
_FALSE_ALARM = 1e-4
"""Probability that random stamps show a rate."""
_UNBROKEN = 0.99
"""Share of the intervals that are no interruptions."""
_TIED = 100
"""Rows of one stamp out of line that wait for another: a clock that stands still brings more."""
_AS_HIGH = 0.5
"""Part of the highest peak that the lowest one needs; without jitter, multiples are as high."""


@dataclass(frozen=True)
class ClockEstimate:
    """The regular clock that irregular stamps come from."""

    rate: float  # [Hz]
    jitter: float  # [s] standard deviation of the stamps' intervals around whole periods
    lost: int  # Periods without a sample, outside of gaps


class Kind(IntEnum):
    """How a row follows those before it; `ALONE`: between two interruptions."""

    GOOD = 0
    LATE = 1
    DUPLICATE = 2
    IMPLAUSIBLE = 3
    ALONE = 4
    PENDING = 5


class Followed(NamedTuple):
    """How rows follow each other."""

    kinds: npt.NDArray[np.int8]  # (n,): a `Kind` of each
    begins: tuple[int, ...]
    """First rows of all runs: row 0, and those after an interruption or a step back."""


@dataclass(frozen=True)
class Passes:
    """Runs of a recording through which time goes forwards."""

    rows: tuple[IndexArray, ...]  # each (m,) row numbers of each pass, ascending in time
    late: int  # Rows that came after younger ones and were put in order
    resets: int  # How often time went back for good, as when a bag starts over
    implausible: int
    """Rows left out because their stamp is not finite, or leaps ahead of all that follow."""


def estimate_clock(time: FloatArray, *, gap: float = 5.0) -> ClockEstimate:
    """Estimate the rate behind ascending stamps with jitter, losses and gaps.

    Stamps of a clock, seen as phases of its rate, agree, whichever of them are lost; jitter blurs
    them, up to half a period. So the rate is where the sum of these phases is largest
    (Rayleigh's test). Where none stands out, jitter hides losses, and the stamps are counted.

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
    forward = intervals[intervals > 0.0]
    if not len(forward):
        raise DataError("fewer than two distinct time stamps; record for longer")
    period = usual_interval(forward)
    # duplicates would pull the median down
    period = float(np.median(forward[forward > DUPLICATE * period]))
    within = (intervals >= 0.0) & (intervals <= gap * period * ROUNDING)
    runs = np.split(time, np.flatnonzero(~within) + 1)
    kept = intervals[within & (intervals > 0.0)]
    rate = _resonance(runs, period) or (len(kept) / float(kept.sum()))
    jitter = float(np.std(kept - np.maximum(np.round(kept * rate), 1.0) / rate))
    lost = sum(max(0, round((run[-1] - run[0]) * rate) - len(run) + 1) for run in runs)
    return ClockEstimate(rate, jitter, lost)


def usual_interval(intervals: FloatArray) -> float:
    """Return the median of intervals (n,) [s] > 0; their mean where messages come in bursts.

    A hundredth of the intervals, the longest, may be interruptions.
    """
    median = float(np.median(intervals))
    last = int(np.ceil(_UNBROKEN * len(intervals)))
    mean = float(np.partition(intervals, last - 1)[:last].mean())
    return mean if median < DUPLICATE * mean else median


def _resonance(runs: Sequence[FloatArray], period: float) -> float | None:
    """Return the rate [Hz] at which gap-free stamps are in phase; None if no rate stands out.

    Parameters
    ----------
    runs : sequence of (m,) [s]
    period : float [s]
        First guess.
    """
    blocks = [
        block - block[0]
        for run in runs
        for block in np.array_split(run, -(-len(run) // _BLOCK))
        if len(block) > 1
    ]
    if not blocks:
        return None
    chosen = sorted(blocks, key=len)[-_BLOCKS:]
    bins = period / _FINENESS
    longest = max(float(block[-1]) for block in chosen)
    # Four times as long as the stamps, so that a peak is not missed between two frequencies.
    length = 1 << int(np.ceil(np.log2(4.0 * (longest / bins + 1.0))))
    power = np.zeros(length // 2 + 1)
    for block in chosen:
        counts = np.bincount((block / bins).astype(np.int64), minlength=length)
        power += np.abs(np.fft.rfft(counts)) ** 2 / len(block)
    first, last = (round(share * length / _FINENESS) for share in _RATES)
    power = power[first:last]
    chances = max(1.0, (_RATES[1] - _RATES[0]) * longest / period)
    if chances * _random_power(len(chosen), float(power.max())) > _FALSE_ALARM:
        return None
    peak = int(np.flatnonzero(power >= _AS_HIGH * power.max())[0])
    while peak + 1 < len(power) and power[peak + 1] > power[peak]:
        peak += 1
    rate = (first + peak) / (length * bins)
    # The second time, phases turn so little within a part that their mean is that of its time.
    return _refined(_refined(rate, runs), runs)


def _random_power(blocks: int, power: float) -> float:
    """Return the probability that random stamps have more power at a rate: χ² of 2 `blocks`."""
    terms = [power**k / factorial(k) for k in range(blocks)]
    return float(np.exp(-power)) * sum(terms)


def _refined(rate: float, runs: Sequence[FloatArray]) -> float:
    """Return the rate [Hz] at which the phases of parts of runs do not drift."""
    turned = elapsed = 0.0
    for run in runs:
        if len(run) < 2:
            continue
        parts = np.array_split(run - run[0], max(2, -(-2 * len(run) // _BLOCK)))
        phases = np.unwrap([np.angle(np.exp(2j * np.pi * rate * part).sum()) for part in parts])
        turned += float(phases[-1] - phases[0]) / (2.0 * np.pi)
        elapsed += float(parts[-1].mean() - parts[0].mean())
    return rate - turned / elapsed


def follow(
    time: FloatArray,
    period: float,
    longest: float,
    values: FloatArray | None = None,
    max_rate: FloatArray | None = None,
) -> Followed:
    """Say of every row of a stream how it follows those before it.

    One stamp out of line is a mistake, two in line with each other are a new beginning. So what
    comes of the last row may depend on the next: then it is `PENDING`.

    Parameters
    ----------
    time : (n,) [s]
        Finite, as they came.
    period : float [s]
    longest : float [s]
        Longest interruption of a run.
    values : (n, nc), optional
    max_rate : (nc,), optional
        Changes per second of the values beyond these are implausible.
    """
    kinds = np.zeros(len(time), dtype=np.int8)
    begins = [0]
    steps = time[1:] - time[:-1]
    odd = (steps <= DUPLICATE * period) | (steps > longest)
    odd |= _leaps(values, max_rate, slice(None), steps[:, np.newaxis])
    # Rows that follow the one before them as they should need no look of their own.
    looks = iter([*(np.flatnonzero(odd) + 1).tolist(), len(time)])
    row = next(looks)
    newest, suspect = row - 1, -1
    stamps = time.tolist() if row < len(time) else []
    while row < len(stamps):
        if suspect >= 0 and stamps[row] == stamps[suspect] and row - suspect < _TIED:
            row += 1  # it says nothing more
            continue
        step = stamps[row] - stamps[newest]
        if suspect >= 0 and abs(step) > longest and 0.0 < stamps[row] - stamps[suspect] <= longest:
            begins.append(suspect)
            kinds[suspect + 1 : row] = Kind.DUPLICATE
            newest, suspect, step = suspect, -1, stamps[row] - stamps[suspect]
        elif suspect >= 0:
            ahead = Kind.ALONE if stamps[suspect] < stamps[row] else Kind.IMPLAUSIBLE
            kinds[suspect:row] = Kind.LATE if stamps[suspect] < stamps[newest] else ahead
            suspect = -1
        if abs(step) > longest:
            suspect = row
        elif abs(step) < DUPLICATE * period:
            kinds[row] = Kind.DUPLICATE
        elif step < 0.0:
            kinds[row] = Kind.LATE
        elif _leaps(values, max_rate, [newest, row], step):
            kinds[row] = Kind.IMPLAUSIBLE
        else:
            newest = row
        row += 1
        if newest == row - 1:
            row = next(look for look in looks if look >= row) if row < len(stamps) else row
            newest = row - 1
    if suspect >= 0:
        kinds[suspect:] = Kind.PENDING
    return Followed(kinds, tuple(begins))


def _leaps(
    values: FloatArray | None,
    max_rate: FloatArray | None,
    rows: slice | list[int],
    steps: FloatArray | float,
) -> BoolArray:
    """Return whether values change too much from each of the rows to the next."""
    if values is None or max_rate is None:
        return np.zeros((), dtype=np.bool_)
    chosen = values[rows]
    changes = np.abs(chosen[1:] - chosen[:-1])
    # No limit times no time is not a number: nothing exceeds it.
    with np.errstate(invalid="ignore"):
        return np.asarray((changes > max_rate * steps).any(axis=1))


def find_passes(time: FloatArray, *, gap: float = 5.0) -> Passes:
    """Split a recording where time goes back for good; put late rows in order elsewhere.

    Going back is by more than `gap` periods.
    """
    finite = np.flatnonzero(np.isfinite(time))
    stamps = time[finite]
    implausible = len(time) - len(finite)
    steps = np.diff(stamps)
    if not (steps > 0.0).any():
        return Passes((finite,) if len(finite) else (), 0, 0, implausible)
    period = usual_interval(steps[steps > 0.0])
    kinds, begins = follow(stamps, period, gap * period)
    leading = np.flatnonzero(np.isin(kinds, (Kind.GOOD, Kind.ALONE)))
    starts = np.array(begins[1:], dtype=np.int64)
    before = stamps[leading[np.searchsorted(leading, starts) - 1]]
    passes: list[IndexArray] = []
    late = 0
    for part in np.split(np.arange(len(stamps)), starts[stamps[starts] < before]):
        rows = part[kinds[part] != Kind.IMPLAUSIBLE]
        late += int(np.count_nonzero(stamps[rows] < np.maximum.accumulate(stamps[rows])))
        passes.append(finite[rows[np.argsort(stamps[rows], kind="stable")]])
    implausible += int(np.count_nonzero(kinds == Kind.IMPLAUSIBLE))
    return Passes(tuple(passes), late, len(passes) - 1, implausible)


def thin_duplicates(time: FloatArray, period: float) -> npt.NDArray[np.bool_]:
    """Return which of ascending stamps to keep: those a fifth of a period or more after the last.

    Two stamps closer than that are the same sample twice, or a burst after a stall; the
    difference of their values says more about noise than about motion.
    """
    return np.asarray(follow(time, period, np.inf).kinds == Kind.GOOD)


def split_at_gaps(time: FloatArray, longest: float) -> tuple[slice, ...]:
    """Return the runs of ascending stamps [s] without an interval longer than `longest` [s]."""
    if not len(time):
        return ()
    cuts = np.flatnonzero(np.diff(time) > longest * ROUNDING) + 1
    edges = [0, *cuts.tolist(), len(time)]
    return tuple(slice(a, b) for a, b in pairwise(edges))
