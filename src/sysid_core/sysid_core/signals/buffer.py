# SPDX-License-Identifier: Apache-2.0
"""Recent rows of live sources: what is kept of them, and why the rest was left out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.signals.interpolation import resample
from sysid_core.signals.timing import DUPLICATE, ROUNDING, estimate_clock, split_at_gaps

__all__ = ["GatedRows", "RecentRows", "StreamCounts"]

_NODES_BEFORE = 3
"""Rows before a time that its interpolation may rest on."""


@dataclass(frozen=True)
class StreamCounts:
    """What a stream has brought since the start.

    Attributes
    ----------
    received, accepted : int
        Samples that came, and that were used.
    late, duplicate, not_finite, implausible : int
        Samples that were left out, by reason.
    lost : int
        Periods without a sample, gaps included.
    gaps, resets : int
        Interruptions that were not bridged; times that the clock went back.
    """

    received: int = 0
    accepted: int = 0
    late: int = 0
    duplicate: int = 0
    not_finite: int = 0
    implausible: int = 0
    lost: int = 0
    gaps: int = 0
    resets: int = 0


class RecentRows:
    """Rows of one source, in order, that can be read at any time between them.

    Parameters
    ----------
    longest : float [s]
        Longest interruption that is interpolated.
    horizon : float [s]
        Age at which rows are forgotten.
    flags : bool
        Take the nearest row instead of interpolating.
    """

    def __init__(self, *, longest: float, horizon: float, flags: bool = False) -> None:
        self.longest = longest
        self._horizon = horizon
        self._flags = flags
        self.reset()

    def __len__(self) -> int:
        return len(self._times)

    @property
    def newest(self) -> float:
        """Time [s] of the newest row; −∞ without any."""
        return self._times[-1] if self._times else -np.inf

    @property
    def last(self) -> FloatArray | None:
        """The newest row's values."""
        return self._rows[-1] if self._rows else None

    @property
    def known_until(self) -> float:
        """Time [s] up to which values are final; −∞ before the first two rows."""
        if len(self._times) < 2:
            return -np.inf
        # The newest interval's cubic may still change with the next row; flags may not.
        return self._times[-1 if self._flags else -2]

    @property
    def rate(self) -> float:
        """Rate [Hz] behind the stamps; NaN before the first two rows."""
        return estimate_clock(np.array(self._times)).rate if len(self._times) > 1 else np.nan

    def reset(self) -> None:
        """Forget all rows, as when time goes back."""
        self._times: list[float] = []
        self._rows: list[FloatArray] = []

    def push(self, time: float, row: FloatArray) -> bool:
        """Take a row; leave it out if it is not finite or not younger than the last one."""
        if not (np.isfinite(time) and np.isfinite(row).all()) or time <= self.newest:
            return False
        self._times.append(time)
        self._rows.append(row)
        if time - self._times[0] > 2.0 * self._horizon:
            self.forget(time - self._horizon)
        return True

    def extend(self, time: list[float], rows: FloatArray) -> None:
        """Take rows that are known to be in order."""
        self._times.extend(time)
        self._rows.extend(rows)

    def forget(self, before: float) -> None:
        """Forget rows before a time [s] that no interpolation after it rests on."""
        count = max(0, bisect_left(self._times, before) - _NODES_BEFORE)
        del self._times[:count]
        del self._rows[:count]

    def at(self, time: FloatArray) -> FloatArray:
        """Return the values (m, nc) at ascending times (m,) [s]; NaN in gaps and where unknown."""
        first = max(0, bisect_left(self._times, time[0]) - _NODES_BEFORE)
        nodes = np.array(self._times[first:])
        runs = split_at_gaps(nodes, self.longest)
        return resample(nodes, np.array(self._rows[first:]), runs, time, flags=self._flags)


class GatedRows(RecentRows):
    """Rows of the source that leads: a gap-free run of plausible ones, all others counted.

    Parameters
    ----------
    rate : float [Hz]
        Of the stream, but for jitter and losses.
    channels : int
    gap : float
        Longest interruption that is interpolated, in periods.
    upper, max_rate : (channels,), optional
        Sizes, and changes per second [1/s], beyond these are implausible.

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
        super().__init__(longest=gap * self.period * ROUNDING, horizon=np.inf)

    @property
    def counts(self) -> StreamCounts:
        """What the stream has brought so far."""
        return StreamCounts(**self._tally)

    def reset(self) -> None:
        """Start afresh with the next row."""
        super().reset()
        self.origin = np.nan
        """Time [s] of the run's first row: where its grid begins."""
        self._suspect: tuple[float, FloatArray] | None = None

    def sort_in(
        self, time: FloatArray, values: FloatArray, at_end: Callable[[bool], None]
    ) -> None:
        """Take rows; call `at_end` before a run that is over is forgotten.

        Parameters
        ----------
        time : (m,) [s]
        values : (m, channels)
        at_end : callable
            Gets whether time went back.
        """
        self._tally["received"] += len(time)
        finite = np.isfinite(time) & np.isfinite(values).all(axis=1)
        plausible = finite & np.all(np.abs(values) <= self._upper, axis=1)
        if self._times and self._suspect is None and plausible.all():
            steps = np.diff(time, prepend=self.newest)
            changes = np.abs(np.diff(values, axis=0, prepend=self._rows[-1][None]))
            even = (steps > DUPLICATE * self.period) & (steps <= self.longest)
            if even.all() and np.all(changes <= self._max_rate * steps[:, None]):
                self._tally["accepted"] += len(time)
                self._tally["lost"] += int(np.maximum(0, np.rint(steps / self.period) - 1).sum())
                self.extend(time.tolist(), values)
                return
        for stamp, row, is_finite, is_plausible in zip(
            time.tolist(), values, finite.tolist(), plausible.tolist(), strict=True
        ):
            if not is_finite:
                self._tally["not_finite"] += 1
            elif not is_plausible:
                self._tally["implausible"] += 1
            else:
                self._take(stamp, row, at_end)

    def _take(self, stamp: float, row: FloatArray, at_end: Callable[[bool], None]) -> None:
        """Sort one row in."""
        if not self._times:
            self._start(stamp, row)
            return
        step = stamp - self.newest
        if -self.longest <= step <= self.longest:
            # The stream goes on, so a stamp that stood out before it was a mistake.
            self._dismiss_suspect()
            self._go_on(stamp, row, step)
            return
        # One stamp out of line is a mistake, two in line with each other are a new beginning.
        confirmed = self._suspect
        if confirmed is None or not 0.0 < stamp - confirmed[0] <= self.longest:
            self._dismiss_suspect()
            self._suspect = (stamp, row)
            return
        step = confirmed[0] - self.newest
        self._tally["gaps" if step > 0.0 else "resets"] += 1
        self._tally["lost"] += max(0, round(step / self.period) - 1)
        at_end(step <= 0.0)
        self.reset()
        self._start(*confirmed)
        self._go_on(stamp, row, stamp - confirmed[0])

    def _dismiss_suspect(self) -> None:
        if self._suspect is not None:
            self._suspect = None
            self._tally["implausible"] += 1

    def _go_on(self, stamp: float, row: FloatArray, step: float) -> None:
        if abs(step) < DUPLICATE * self.period:
            self._tally["duplicate"] += 1
        elif step < 0.0:
            self._tally["late"] += 1
        elif np.any(np.abs(row - self._rows[-1]) > self._max_rate * step):
            self._tally["implausible"] += 1
        else:
            self._tally["accepted"] += 1
            self._tally["lost"] += max(0, round(step / self.period) - 1)
            self.extend([stamp], row[None])

    def _start(self, stamp: float, row: FloatArray) -> None:
        self.origin = stamp
        self.extend([stamp], row[None])
        self._tally["accepted"] += 1


def _limits(values: FloatArray | None, channels: int) -> FloatArray:
    limits = np.full(channels, np.inf) if values is None else np.asarray(values, dtype=np.float64)
    if limits.shape != (channels,) or np.isnan(limits).any():
        raise ParameterError(f"limits must be {channels} numbers, one per channel")
    return limits
