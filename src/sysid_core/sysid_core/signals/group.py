# SPDX-License-Identifier: Apache-2.0
"""Channels of one source that have values in the same rows, with the times at which they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.signals.arrival import Taken, taken_times
from sysid_core.signals.outliers import without_spoiled
from sysid_core.signals.smoothness import CLEARLY_SMOOTHER, smoother, unpredictability
from sysid_core.signals.ticks import find_ticks
from sysid_core.signals.timing import (
    DUPLICATE,
    ROUNDING,
    ClockEstimate,
    estimate_clock,
    split_at_gaps,
    thin_duplicates,
    usual_interval,
)
from sysid_core.signals.updates import fresh_rows, knot_rate, longest_by_chance

__all__ = ["Group", "Tally", "Timing", "Track", "grouped"]

Timing = Literal["auto", "stamped", "uniform"]

# Jitter below this part of a period is rounding of the stamps.
_JITTER_OF_NOTE = 1e-3
_TINY = 1e-12
# Periods of a log within which a slower sensor's update is seen: one, with stamps that jitter.
_SEEN = 1.5


@dataclass(frozen=True)
class Track:
    """The signals of one source, as recorded."""

    time: FloatArray  # (n,) [s]
    values: FloatArray
    """(n, nc): NaN where a row lacks a channel; what no robot can reach counts as lacking, too."""
    flags: bool = False  # Take the nearest row instead of interpolating
    required: bool = True  # End a stretch where this track has a gap, instead of leaving NaN there
    positions: int = 0  # Leading channels that never leap
    paces: bool = True  # Whether accelerations rest on it, so that its rate bounds the cut-off


@dataclass
class Group:
    """Channels of a track that have values in the same rows; rates in [Hz].

    `knots` is the rate between whose ticks a logger interpolated, `held` whether it repeated
    values.
    """

    track: int
    channels: IndexArray
    time: FloatArray
    values: FloatArray
    flags: bool
    required: bool
    rate: float
    runs: list[slice] = field(default_factory=list)
    knots: float = np.inf
    held: bool = False

    @property
    def sensor_rate(self) -> float:
        """Rate [Hz] at which there was something new."""
        return min(self.rate, self.knots)


@dataclass
class Tally:
    """Counts of `SynchroniseReport` in the making."""

    late: int = 0
    duplicates: int = 0
    resets: int = 0
    implausible: int = 0
    lost: int = 0
    gaps: int = 0
    frozen: float = 0.0
    jitter: float = 0.0
    timing: str = "stamped"


def grouped(
    index: int, track: Track, rows: np.ndarray, gap: float, timing: Timing, tally: Tally
) -> list[Group]:
    """Group the channels by the rows that have them, and clean up each group's time."""
    present = np.isfinite(without_spoiled(track.values[rows]))
    groups: list[Group] = []
    patterns: dict[bytes, list[int]] = {}
    for channel in range(present.shape[1]):
        if present[:, channel].any():
            patterns.setdefault(present[:, channel].tobytes(), []).append(channel)
    for channels in patterns.values():
        chosen = rows[present[:, channels[0]]]
        if len(np.unique(track.time[chosen])) < 2:
            continue
        twice = _sent_twice(track.time[chosen], track.values[chosen][:, channels])
        chosen = chosen[~twice]
        time, everything = track.time[chosen], track.values[chosen][:, channels]
        clock = estimate_clock(time, gap=gap)
        taken = None if track.flags else _taken(time, everything, clock, gap, timing)
        if taken is not None and taken.queued(time):
            # stamps that came in bursts do not even tell the rate
            time, taken, tally.timing = taken.time, None, "uniform"
            clock = estimate_clock(time, gap=gap)
        keep = thin_duplicates(time, 1.0 / clock.rate)
        chosen, time = chosen[keep], time[keep]
        clock = estimate_clock(time, gap=gap)
        runs = split_at_gaps(time, gap / clock.rate)
        group = Group(
            index,
            np.array(channels),
            time.copy(),
            track.values[chosen][:, channels],
            track.flags,
            track.required,
            clock.rate,
            list(runs),
        )
        duplicates, lost = int(np.count_nonzero(~keep)), clock.lost
        if taken is not None and _undelay(group, taken, everything, timing):
            tally.timing, duplicates, lost = "uniform", 0, taken.lost
        if track.required:
            tally.duplicates = max(tally.duplicates, duplicates + int(np.count_nonzero(twice)))
            tally.lost = max(tally.lost, lost)
            tally.gaps = max(tally.gaps, len(group.runs) - 1)
            tally.jitter = max(tally.jitter, clock.jitter)
        if track.flags:
            groups.append(group)
        else:
            groups += _updated(group, track.positions, gap, timing, tally)
    return groups


def _updated(
    group: Group, positions: int, gap: float, timing: Timing, tally: Tally
) -> list[Group]:
    """Leave out values that were only repeated; note where values were only interpolated.

    What is left lies where the sensor's own clock ticked, if that is clearly smoother: a log of
    nearly its rate sees its updates ever later, until it sees one twice.
    """
    fresh = fresh_rows(group.values, group.channels < positions)
    parts: list[Group] = []
    for column in sorted({column.tobytes() for column in fresh.T}):
        pattern = np.frombuffer(column, dtype=np.bool_)
        columns = np.flatnonzero((fresh == pattern[:, np.newaxis]).all(axis=0))
        part = replace(
            group,
            channels=group.channels[columns],
            time=group.time[pattern],
            values=group.values[np.ix_(pattern, columns)],
        )
        if not pattern.all():
            clock = estimate_clock(part.time, gap=gap)
            part.rate, part.held = clock.rate, True
            # what was missed by chance is no interruption, and rests are left in; a motion that
            # went on unseen for longer is not drawn out
            count = np.concatenate([[0], np.cumsum(pattern)]).tolist()
            ends = [(count[run.start], count[run.stop]) for run in group.runs]
            part.runs = [slice(a, b) for a, b in ends if a < b]
            longest = max(gap / clock.rate, longest_by_chance(pattern) / group.rate)
            part.runs, frozen = _without_holds(part, positions, longest)
            if part.required:
                tally.frozen = max(tally.frozen, frozen)
            taken = _taken(part.time, part.values, clock, gap, timing)
            if (
                taken is not None
                and _seen_at_once(part, taken, group.rate)
                and _undelay(part, taken, part.values, timing)
            ):
                tally.timing = "uniform"
        part.knots = knot_rate(part.time, part.values)
        parts.append(part)
    return parts


def _without_holds(part: Group, positions: int, longest: float) -> tuple[list[slice], float]:
    """Return the runs without holds for longer than a time [s], and how long these are together.

    Efforts that all stay at an end of theirs are cut off there rather than held.
    """
    low, high = part.values.min(axis=0), part.values.max(axis=0)
    cut_off = ((part.values == low) | (part.values == high)).all(axis=1)
    cut_off &= (part.channels >= positions).all()
    steps = np.diff(part.time)
    held = (steps > longest * ROUNDING) & ~cut_off[:-1]
    runs, frozen = list[slice](), 0.0
    for run in part.runs:
        last = run.start + np.flatnonzero(held[run.start : run.stop - 1])  # before each hold
        edges = [run.start, *(last + 1).tolist(), run.stop]
        runs += [slice(a, b) for a, b in pairwise(edges)]
        frozen += float(steps[last].sum())
    return runs, frozen


def _seen_at_once(part: Group, taken: Taken, rate: float) -> bool:
    """Whether updates are seen within a period of a log at a rate [Hz] after they are made.

    Where some are not, values were missed, or new ones were the same: counting makes a clock of
    the rest that leaves the log's.
    """
    first, last = np.quantile(part.time - taken.time, (0.05, 0.95))
    return bool((last - first) * rate <= _SEEN)


def _sent_twice(time: FloatArray, values: FloatArray) -> BoolArray:
    """Return which messages (n,) at two times [s] or more are the one just before again.

    None are where most that come so closely are others: those waited in a queue, equal ones of a
    robot that rests among them.
    """
    intervals = np.diff(time)
    close = intervals < DUPLICATE * usual_interval(intervals[intervals > 0.0])
    twice = close & (values[1:] == values[:-1]).all(axis=1)
    if 2 * twice.sum() <= close.sum():
        twice[:] = False
    return np.append(False, twice)[: len(time)]


def _taken(
    time: FloatArray, values: FloatArray, clock: ClockEstimate, gap: float, timing: Timing
) -> Taken | None:
    """Return the times by the most even clock that hardly any other beats; None where none is."""
    if timing == "stamped":
        return None
    ticks = _by_ticks(time, clock, gap)
    if timing == "uniform":
        return ticks
    tried = [*taken_times(time, gap), *([] if ticks is None else [ticks])]
    rough = [np.log(unpredictability(t.time, values, t.runs) + _TINY).mean() for t in tried]
    even = [
        t
        for t, own in zip(tried, rough, strict=True)
        if CLEARLY_SMOOTHER * np.exp(own - min(rough)) <= 1.0
    ]
    return even[-1] if even else None


def _by_ticks(stamps: FloatArray, clock: ClockEstimate, gap: float) -> Taken | None:
    """Return the ticks that stamps (n,) [s] belong to; None where they show none, or are even."""
    if clock.jitter * clock.rate < _JITTER_OF_NOTE:
        return None
    runs = split_at_gaps(stamps, gap / clock.rate)
    found = [find_ticks(stamps[run], clock.rate) for run in runs]
    ticks = [one for one in found if one is not None]
    if len(ticks) < len(runs):
        return None
    lost = sum(int(np.ptp(one.number)) + 1 - len(one.number) for one in ticks)
    return Taken(np.concatenate([one.time for one in ticks]), list(runs), 1.0 / clock.rate, lost)


def _undelay(group: Group, taken: Taken, values: FloatArray, timing: Timing) -> bool:
    """Take all rows of a group at the times by an even clock, where that is clearly better."""
    if timing == "auto" and not _clearly_smoother(taken.time, values, taken.runs, group):
        return False
    group.time, group.values, group.runs = taken.time, values, taken.runs
    group.rate = 1.0 / taken.period
    return True


def _clearly_smoother(
    time: FloatArray, values: FloatArray, runs: Sequence[slice], group: Group
) -> bool:
    """Whether values at other times are clearly smoother than a group as it is stamped."""
    stamped = unpredictability(group.time, group.values, group.runs)
    return smoother(unpredictability(time, values, runs), stamped) < CLEARLY_SMOOTHER
