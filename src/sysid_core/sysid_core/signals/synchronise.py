# SPDX-License-Identifier: Apache-2.0
"""Bringing irregular recordings of several sources onto one uniform grid, gap by gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError, ParameterError
from sysid_core.signals.arrival import Taken, taken_times
from sysid_core.signals.interpolation import resample
from sysid_core.signals.outliers import without_spoiled
from sysid_core.signals.timing import (
    estimate_clock,
    find_passes,
    split_at_gaps,
    thin_duplicates,
)

__all__ = ["Segment", "SynchroniseReport", "Synchronised", "Track", "synchronise"]

Timing = Literal["auto", "stamped", "uniform"]

# Jitter below this part of a period is rounding of the stamps.
_JITTER_OF_NOTE = 1e-3
_CLEARLY_SMOOTHER = 0.95


@dataclass(frozen=True)
class Track:
    """The signals of one source, as recorded.

    Attributes
    ----------
    time : (n,) [s]
    values : (n, nc)
        NaN where a row lacks a channel; what no robot can reach counts as lacking, too.
    flags : bool
        Take the nearest row instead of interpolating.
    required : bool
        End a stretch where this track has a gap, instead of leaving NaN there.
    """

    time: FloatArray
    values: FloatArray
    flags: bool = False
    required: bool = True


@dataclass(frozen=True)
class Segment:
    """A gap-free stretch on a uniform grid.

    Attributes
    ----------
    time : (m,) [s]
    values : tuple[(m, nc), ...]
        One array per track.
    """

    time: FloatArray
    values: tuple[FloatArray, ...]


@dataclass(frozen=True)
class SynchroniseReport:
    """What was found in the time stamps and done about it; counts are the worst track's.

    Attributes
    ----------
    received : int
        Rows of the first track.
    late, duplicates, resets, implausible, lost, gaps : int
        Rows put in order; left out as duplicates; times the clock went back; rows with impossible
        stamps; periods without a row that were interpolated; interruptions that were not.
    jitter : float [s]
        Standard deviation of the intervals around whole periods.
    timing : str
        `stamped`: rows lie where their stamps say; `uniform`: on the regular clock behind them.
    """

    received: int = 0
    late: int = 0
    duplicates: int = 0
    resets: int = 0
    implausible: int = 0
    lost: int = 0
    gaps: int = 0
    jitter: float = 0.0
    timing: str = "stamped"


@dataclass(frozen=True)
class Synchronised:
    """Tracks on a common uniform grid.

    Attributes
    ----------
    rate : float [Hz]
        Of the grid.
    sensor_rate : float [Hz]
        Lowest rate of any channel; spectra above half of it mean nothing.
    segments : tuple[Segment, ...]
    report : SynchroniseReport
    """

    rate: float
    sensor_rate: float
    segments: tuple[Segment, ...]
    report: SynchroniseReport


@dataclass
class _Group:
    """Channels of a track that have values in the same rows."""

    track: int
    channels: FloatArray
    time: FloatArray
    values: FloatArray
    flags: bool
    required: bool
    rate: float
    runs: list[slice] = field(default_factory=list)


@dataclass
class _Tally:
    late: int = 0
    duplicates: int = 0
    resets: int = 0
    implausible: int = 0
    lost: int = 0
    gaps: int = 0
    jitter: float = 0.0
    timing: str = "stamped"


def synchronise(
    tracks: Sequence[Track],
    *,
    rate: float | None = None,
    gap: float = 5.0,
    timing: Timing = "auto",
) -> Synchronised:
    """Resample tracks onto a uniform grid; never across a gap.

    Channels that are present in different rows (drivers that publish groups of joints separately)
    keep their own nodes. Interruptions longer than `gap` periods of a channel's own rate end a
    segment. Columns without any value come out as NaN.

    Stamps often jitter more than the samples did: a controller samples by its own clock and the
    driver stamps on arrival. Under `auto`, rows are moved onto the regular clock behind the stamps
    if that makes every value better predictable from its neighbours.

    Parameters
    ----------
    tracks : sequence of Track
        The first one gives the rate of the grid; faster ones are averaged over its periods.
    rate : float, optional [Hz]
        Of the grid; default: the estimated rate of the first track's fastest channels.
    gap : float
        Longest interruption that is interpolated, in periods.
    timing : {"auto", "stamped", "uniform"}

    Raises
    ------
    ParameterError
        If the rate is not positive or the gap is shorter than 1.5 periods.
    DataError
        If a track has no usable rows.
    """
    if rate is not None and not (np.isfinite(rate) and rate > 0.0):
        raise ParameterError(f"the sampling rate must be positive, not {rate} Hz")
    if not gap >= 1.5:
        raise ParameterError(f"the longest gap must be at least 1.5 periods, not {gap}")
    passes = [find_passes(track.time, gap=gap) for track in tracks]
    if not tracks or not passes[0].rows:
        raise DataError("no rows with a finite time stamp; record again")
    needed = [p for track, p in zip(tracks, passes, strict=True) if track.required]
    tally = _Tally(
        late=max(p.late for p in needed),
        resets=max(p.resets for p in needed),
        implausible=max(p.implausible for p in needed),
    )
    segments: list[Segment] = []
    rates: list[float] = []
    for number in range(min(len(p.rows) for p in needed)):
        groups = [
            group
            for index, (track, p) in enumerate(zip(tracks, passes, strict=True))
            if number < len(p.rows)
            for group in _groups(index, track, p.rows[number], gap, timing, tally)
        ]
        if not groups or groups[0].track != 0:
            continue
        rates.append(min(group.rate for group in groups if group.required))
        grid = rate or max(group.rate for group in groups if group.track == 0)
        rate = grid
        for start, stop in _common_runs([group for group in groups if group.required]):
            if (time := _grid(groups[0], start, stop, grid)) is not None:
                segments.append(Segment(time, _resampled(tracks, groups, time, grid)))
    if rate is None or not segments:
        raise DataError("no stretch in which all signals are present; record again")
    report = SynchroniseReport(received=len(tracks[0].time), **vars(tally))
    return Synchronised(rate, min(rates), tuple(segments), report)


def _groups(
    index: int, track: Track, rows: np.ndarray, gap: float, timing: Timing, tally: _Tally
) -> list[_Group]:
    """Group the channels by the rows that have them, and clean up each group's time."""
    present = np.isfinite(without_spoiled(track.values[rows]))
    groups: list[_Group] = []
    patterns: dict[bytes, list[int]] = {}
    for channel in range(present.shape[1]):
        if present[:, channel].any():
            patterns.setdefault(present[:, channel].tobytes(), []).append(channel)
    for channels in patterns.values():
        chosen = rows[present[:, channels[0]]]
        time = track.time[chosen]
        if len(np.unique(time)) < 2:
            continue
        taken = taken_times(time, gap) if timing == "auto" and not track.flags else None
        everything = chosen
        if taken is not None and taken.queued(time):
            # stamps that came in bursts do not even tell the rate
            time, taken, tally.timing = taken.time, None, "uniform"
        clock = estimate_clock(time, gap=gap)
        keep = thin_duplicates(time, 1.0 / clock.rate)
        chosen, time = chosen[keep], time[keep]
        clock = estimate_clock(time, gap=gap)
        runs = split_at_gaps(time, gap / clock.rate)
        group = _Group(
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
        elif taken is not None and _undelay(group, taken, track.values[everything][:, channels]):
            tally.timing, duplicates, lost = "uniform", 0, 0
        if track.required:
            tally.duplicates = max(tally.duplicates, duplicates)
            tally.lost = max(tally.lost, lost)
            tally.gaps = max(tally.gaps, len(group.runs) - 1)
            tally.jitter = max(tally.jitter, clock.jitter)
        groups.append(group)
    return groups


def _undelay(group: _Group, taken: Taken, values: FloatArray) -> bool:
    """Take all rows of a group at the times behind their delays, where that is clearly better."""
    if not _clearly_smoother(taken.time, values, taken.runs, group):
        return False
    group.time, group.values, group.runs = taken.time, values, taken.runs
    group.rate = 1.0 / taken.period
    return True


def _regularise(group: _Group, jitter: float, timing: Timing) -> bool:
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
    time: FloatArray, values: FloatArray, runs: Sequence[slice], group: _Group
) -> bool:
    """Whether values at other times are clearly smoother than a group as it is stamped."""
    stamped_error = _unpredictability(group.time, group.values, group.runs)
    moving = stamped_error > 0.0
    if not moving.any():
        return False
    # Noisy channels tell nothing (ratio 1), so the geometric mean lets the smooth ones decide.
    regular_error = _unpredictability(time, values, runs)[moving]
    ratios = np.maximum(regular_error, 1e-12) / stamped_error[moving]
    return bool(np.exp(np.mean(np.log(ratios))) < _CLEARLY_SMOOTHER)


def _unpredictability(time: FloatArray, values: FloatArray, runs: Sequence[slice]) -> FloatArray:
    """Return, per channel, the RMS error of predicting values from two neighbours on each side."""
    total, count = np.zeros(values.shape[1]), 0
    for run in runs:
        t, y = time[run], values[run]
        if len(t) < 5:
            continue
        nodes = np.stack([t[:-4], t[1:-3], t[3:-1], t[4:]])
        known = np.stack([y[:-4], y[1:-3], y[3:-1], y[4:]])
        here, truth = t[2:-2], y[2:-2]
        predicted = np.zeros_like(truth)
        for i in range(4):
            weight = np.ones_like(here)
            for j in range(4):
                if j != i:
                    weight *= (here - nodes[j]) / (nodes[i] - nodes[j])
            predicted += weight[:, np.newaxis] * known[i]
        total += np.sum((truth - predicted) ** 2, axis=0)
        count += len(here)
    return np.sqrt(total / max(count, 1))


def _common_runs(groups: Sequence[_Group]) -> list[tuple[float, float]]:
    """Intersect the gap-free stretches of all groups."""
    common = [(-np.inf, np.inf)]
    for group in groups:
        own = [(group.time[run.start], group.time[run.stop - 1]) for run in group.runs]
        common = [
            (max(a, c), min(b, d)) for a, b in common for c, d in own if max(a, c) < min(b, d)
        ]
    return common


def _grid(group: _Group, start: float, stop: float, rate: float) -> FloatArray | None:
    """Return a uniform grid within a stretch, through the leading group's first row in it."""
    # A thousandth of a period absorbs rounding of stamps at both ends.
    slack = 1e-3 / rate
    anchor = group.time[np.searchsorted(group.time, start - slack)]
    before = np.floor((anchor - start + slack) * rate)
    after = np.floor((stop - anchor + slack) * rate)
    if before + after < 1:
        return None
    return np.asarray(anchor + np.arange(-before, after + 1) / rate)


def _resampled(
    tracks: Sequence[Track], groups: Sequence[_Group], time: FloatArray, rate: float
) -> tuple[FloatArray, ...]:
    results = [np.full((len(time), track.values.shape[1]), np.nan) for track in tracks]
    for group in groups:
        results[group.track][:, group.channels] = resample(
            group.time,
            group.values,
            group.runs,
            time,
            flags=group.flags,
            average=round(group.rate / rate) if group.track else 1,
        )
    return tuple(results)
