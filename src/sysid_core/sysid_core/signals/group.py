# SPDX-License-Identifier: Apache-2.0
"""Channels of one source that have values in the same rows, with the times at which they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.signals.arrival import Taken, taken_times
from sysid_core.signals.outliers import without_spoiled
from sysid_core.signals.smoothness import CLEARLY_SMOOTHER, smoother, unpredictability
from sysid_core.signals.timing import estimate_clock, split_at_gaps, thin_duplicates
from sysid_core.signals.updates import fresh_rows, knot_rate

__all__ = ["Group", "Tally", "Timing", "Track", "grouped"]

Timing = Literal["auto", "stamped", "uniform"]

# Jitter below this part of a period is rounding of the stamps.
_JITTER_OF_NOTE = 1e-3
_TINY = 1e-12


@dataclass(frozen=True)
class Track:
    """The signals of one source, as recorded."""

    time: FloatArray  # (n,) [s]
    values: FloatArray
    """(n, nc): NaN where a row lacks a channel; what no robot can reach counts as lacking, too."""
    flags: bool = False  # Take the nearest row instead of interpolating
    required: bool = True  # End a stretch where this track has a gap, instead of leaving NaN there


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
        time = track.time[chosen]
        if len(np.unique(time)) < 2:
            continue
        everything = track.values[chosen][:, channels]
        taken = _taken(time, everything, gap, timing) if not track.flags else None
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
        if not track.flags and _regularise(group, clock.jitter, timing):
            tally.timing = "uniform"
        elif taken is not None and _undelay(group, taken, everything):
            tally.timing, duplicates, lost = "uniform", 0, 0
        if track.required:
            tally.duplicates = max(tally.duplicates, duplicates)
            tally.lost = max(tally.lost, lost)
            tally.gaps = max(tally.gaps, len(group.runs) - 1)
            tally.jitter = max(tally.jitter, clock.jitter)
        groups += [group] if track.flags else _updated(group, gap, timing, tally)
    return groups


def _updated(group: Group, gap: float, timing: Timing, tally: Tally) -> list[Group]:
    """Leave out values that were only repeated; note where values were only interpolated.

    What is left lies where the sensor's own clock ticked, if that is clearly smoother: a log of
    nearly its rate sees its updates ever later, until it sees one twice.
    """
    fresh = fresh_rows(group.values)
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
            # what was missed by chance is no interruption, and rests are left in
            count = np.concatenate([[0], np.cumsum(pattern)]).tolist()
            ends = [(count[run.start], count[run.stop]) for run in group.runs]
            part.runs = [slice(a, b) for a, b in ends if a < b]
            regular = _regularise(part, clock.jitter, timing)
            # a log that is faster than its sensor misses no update
            taken = None if regular else _taken(part.time, part.values, gap, timing)
            if taken is not None and _undelay(part, taken, part.values):
                tally.timing = "uniform"
        part.knots = knot_rate(part.time, part.values)
        parts.append(part)
    return parts


def _taken(time: FloatArray, values: FloatArray, gap: float, timing: Timing) -> Taken | None:
    """Return the times behind delayed stamps: of the most even clock that others hardly beat."""
    tried = list(taken_times(time, gap)) if timing == "auto" else []
    rough = [np.log(unpredictability(t.time, values, t.runs) + _TINY).mean() for t in tried]
    even = [
        t
        for t, own in zip(tried, rough, strict=True)
        if CLEARLY_SMOOTHER * np.exp(own - min(rough)) <= 1.0
    ]
    return even[-1] if even else None


def _undelay(group: Group, taken: Taken, values: FloatArray) -> bool:
    """Take all rows of a group at the times behind their delays, where that is clearly better."""
    if not _clearly_smoother(taken.time, values, taken.runs, group):
        return False
    group.time, group.values, group.runs = taken.time, values, taken.runs
    group.rate = 1.0 / taken.period
    return True


def _regularise(group: Group, jitter: float, timing: Timing) -> bool:
    """Move the rows of a group onto a regular clock where that is asked for or better."""
    if timing == "stamped" or (timing == "auto" and jitter * group.rate < _JITTER_OF_NOTE):
        return False
    regular = group.time.copy()
    for run in group.runs:
        stamps = group.time[run]
        if len(stamps) < 3:
            continue
        count = np.concatenate([[0.0], np.cumsum(np.round(np.diff(stamps) * group.rate))])
        if np.any(np.diff(count) < 1.0):
            return False
        slope, offset = np.polyfit(count, stamps - stamps[0], 1)
        regular[run] = stamps[0] + offset + slope * count
    if np.any(np.diff(regular) <= 0.0):
        return False
    if timing == "auto" and not _clearly_smoother(regular, group.values, group.runs, group):
        return False
    group.time = regular
    return True


def _clearly_smoother(
    time: FloatArray, values: FloatArray, runs: Sequence[slice], group: Group
) -> bool:
    """Whether values at other times are clearly smoother than a group as it is stamped."""
    stamped = unpredictability(group.time, group.values, group.runs)
    return smoother(unpredictability(time, values, runs), stamped) < CLEARLY_SMOOTHER
