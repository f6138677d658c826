# SPDX-License-Identifier: Apache-2.0
"""Bringing irregular recordings of several sources onto one uniform grid, gap by gap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError, ParameterError
from sysid_core.signals.group import Group, Tally, Timing, Track, grouped
from sysid_core.signals.interpolation import resample
from sysid_core.signals.timing import Passes, find_passes

__all__ = ["Segment", "SynchroniseReport", "Synchronised", "Track", "synchronise"]

_FREE_ROWS = 1_000_000
_ROWS_PER_ROW = 20
"""Rows of a grid: gaps of 5 periods are filled; what wants more has scrambled times."""


@dataclass(frozen=True)
class Segment:
    """A gap-free stretch on a uniform grid."""

    time: FloatArray  # (m,) [s]
    values: tuple[FloatArray, ...]  # each (m, nc) one array per track


@dataclass(frozen=True)
class SynchroniseReport:
    """What was found in the time stamps and done about it; counts are the worst track's."""

    received: int = 0  # Rows of the first track
    # late, duplicates, resets, implausible, lost, gaps: rows put in order; left out as duplicates;
    # times the clock went back; rows with impossible stamps; periods without a row that were
    # interpolated; interruptions that were not.
    late: int = 0
    duplicates: int = 0
    resets: int = 0
    implausible: int = 0
    lost: int = 0
    gaps: int = 0
    frozen: float = 0.0  # [s] for which values were held too long to be drawn out
    jitter: float = 0.0  # [s] standard deviation of the intervals around whole periods
    timing: str = "stamped"
    """`stamped`: rows lie where their stamps say; `uniform`: on the regular clock behind them."""


@dataclass(frozen=True)
class Synchronised:
    """Tracks on a common uniform grid."""

    rate: float  # [Hz] of the grid
    sensor_rate: float
    """[Hz] lowest rate of any channel that accelerations rest on; spectra above half of it mean
    nothing."""
    segments: tuple[Segment, ...]
    report: SynchroniseReport
    # held, drawn: [Hz] channels of the first track whose values were repeated or interpolated
    # between the ticks of a slower rate.
    held: dict[int, float]
    drawn: dict[int, float]


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
    _check(rate, gap)
    passes = [find_passes(track.time, gap=gap) for track in tracks]
    if not tracks or not passes[0].rows:
        raise DataError("no rows with a finite time stamp; record again")
    needed = [p for track, p in zip(tracks, passes, strict=True) if track.required]
    tally = _tally(needed)
    segments, rates = list[Segment](), list[float]()
    held, drawn = dict[int, float](), dict[int, float]()
    for number in range(min(len(p.rows) for p in needed)):
        groups = list(_groups(tracks, passes, number, gap, timing, tally))
        if not groups or groups[0].track != 0:
            continue
        pacing = [group for group in groups if group.required and tracks[group.track].paces]
        rates.append(min(group.sensor_rate for group in pacing))
        first = [group for group in groups if group.track == 0]
        for group in first:
            if group.held:
                held |= dict.fromkeys(group.channels.tolist(), group.rate)
            if group.knots < group.rate:
                drawn |= dict.fromkeys(group.channels.tolist(), group.knots)
        rate = grid = rate or max(group.rate for group in first)
        segments += _segments(tracks, groups, grid)
    if rate is None or not segments:
        raise DataError("no stretch in which all signals are present; record again")
    report = SynchroniseReport(received=len(tracks[0].time), **vars(tally))
    return Synchronised(rate, min(rates), tuple(segments), report, held, drawn)


def _groups(
    tracks: Sequence[Track],
    passes: Sequence[Passes],
    number: int,
    gap: float,
    timing: Timing,
    tally: Tally,
) -> Iterator[Group]:
    """Yield the groups of channels of all tracks that have such a pass."""
    for index, (track, p) in enumerate(zip(tracks, passes, strict=True)):
        if number < len(p.rows):
            yield from grouped(index, track, p.rows[number], gap, timing, tally)


def _segments(tracks: Sequence[Track], groups: Sequence[Group], rate: float) -> Iterator[Segment]:
    """Yield the stretches of a pass in which all that is needed is there."""
    for start, stop in _common_runs([group for group in groups if group.required]):
        if (time := _grid(groups[0], start, stop, rate)) is not None:
            inside = np.clip(time, start, stop)  # the grid's ends may lie beyond by its slack
            yield Segment(time, _resampled(tracks, groups, inside, rate))


def _check(rate: float | None, gap: float) -> None:
    if rate is not None and not (np.isfinite(rate) and rate > 0.0):
        raise ParameterError(f"the sampling rate must be positive, not {rate} Hz")
    if not gap >= 1.5:
        raise ParameterError(f"the longest gap must be at least 1.5 periods, not {gap}")


def _tally(passes: Sequence[Passes]) -> Tally:
    return Tally(
        late=max(p.late for p in passes),
        resets=max(p.resets for p in passes),
        implausible=max(p.implausible for p in passes),
    )


def _common_runs(groups: Sequence[Group]) -> list[tuple[float, float]]:
    """Intersect the gap-free stretches of all groups."""
    common = [(-np.inf, np.inf)]
    for group in groups:
        own = [(group.time[run.start], group.time[run.stop - 1]) for run in group.runs]
        common = [
            (max(a, c), min(b, d)) for a, b in common for c, d in own if max(a, c) < min(b, d)
        ]
    return common


def _grid(group: Group, start: float, stop: float, rate: float) -> FloatArray | None:
    """Return a uniform grid within a stretch, through the leading group's first row in it."""
    # A thousandth of a period absorbs rounding of stamps at both ends.
    slack = 1e-3 / rate
    anchor = group.time[np.searchsorted(group.time, start - slack)]
    before = np.floor((anchor - start + slack) * rate)
    after = np.floor((stop - anchor + slack) * rate)
    if before + after < 1:
        return None
    if before + after > max(_FREE_ROWS, _ROWS_PER_ROW * len(group.time)):
        raise DataError(
            f"{len(group.time)} rows would need a grid of {before + after:.3g} at {rate:.3g} Hz; "
            "check the time stamps and the rate"
        )
    return np.asarray(anchor + np.arange(-before, after + 1) / rate)


def _resampled(
    tracks: Sequence[Track], groups: Sequence[Group], time: FloatArray, rate: float
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
