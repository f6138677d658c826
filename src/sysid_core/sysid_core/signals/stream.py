# SPDX-License-Identifier: Apache-2.0
"""Bringing a live stream with jitter, losses and jumps onto a uniform grid, as it comes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError, ParameterError
from sysid_core.signals.interpolation import hermite
from sysid_core.signals.timing import ROUNDING

__all__ = ["StreamCounts", "StreamSynchroniser", "UniformBatch"]

_DUPLICATE = 0.2
# Part of a period that rounding of stamps may amount to.
_ROUNDING = 1e-3
# An interval's cubic needs two nodes on each side; three of them serve the next interval.
_KEPT_NODES = 3


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


class UniformBatch(NamedTuple):
    """Samples on the uniform grid.

    Attributes
    ----------
    time : (m,) [s]
    values : (m, nc)
    segment : (m,) int
        Number of the gap-free stretch that a sample belongs to.
    reset : bool
        Whether time went back since the last batch: what follows is another run.
    """

    time: FloatArray
    values: FloatArray
    segment: npt.NDArray[np.int64]
    reset: bool = False


class StreamSynchroniser:
    """Interpolates a stream onto a uniform grid with a delay of one received sample.

    A grid sample comes out as soon as the sample after the one that follows it is there, since
    the interpolation's slopes need it. Interruptions longer than `gap` periods end a segment; the
    next one starts its own grid at its first sample. Memory and time per sample are constant.

    Parameters
    ----------
    rate : float [Hz]
        Of the grid and, but for jitter and losses, of the stream.
    channels : int
    gap : float
        Longest interruption that is interpolated, in periods.
    lower, upper : (channels,), optional
        Values beyond these are implausible.
    max_rate : (channels,), optional
        Changes per second [1/s] beyond these are implausible.

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
        lower: FloatArray | None = None,
        upper: FloatArray | None = None,
        max_rate: FloatArray | None = None,
    ) -> None:
        if not (np.isfinite(rate) and rate > 0.0):
            raise ParameterError(f"the sampling rate must be positive, not {rate} Hz")
        if not gap >= 1.5:
            raise ParameterError(f"the longest gap must be at least 1.5 periods, not {gap}")
        self.period = 1.0 / rate
        self.channels = channels
        self._longest = gap * self.period * ROUNDING
        self._lower = _limits(lower, -np.inf, channels)
        self._upper = _limits(upper, np.inf, channels)
        self._max_rate = _limits(max_rate, np.inf, channels)
        self._bounded = bool(np.isfinite(self._max_rate).any())
        self._tally = asdict(StreamCounts())
        self._segment = -1
        self._begin()

    @property
    def counts(self) -> StreamCounts:
        """What the stream has brought so far."""
        return StreamCounts(**self._tally)

    def reset(self) -> UniformBatch:
        """Finish the current segment and start afresh with the next sample."""
        rest = self._finish()
        self._begin()
        return self._batch([rest], reset=False)

    def push(self, time: FloatArray | float, values: FloatArray) -> UniformBatch:
        """Take one or several samples and return the grid samples that they complete.

        Parameters
        ----------
        time : (m,) or float [s]
        values : (m, channels) or (channels,)

        Raises
        ------
        DataError
            If the shapes do not fit.
        """
        time = np.atleast_1d(np.asarray(time, dtype=np.float64))
        values = np.atleast_2d(np.asarray(values, dtype=np.float64))
        if values.shape != (len(time), self.channels):
            raise DataError(
                f"samples have shape {values.shape}, expected {(len(time), self.channels)}"
            )
        resets = self._tally["resets"]
        self._tally["received"] += len(time)
        finite = np.isfinite(time) & np.isfinite(values).all(axis=1)
        plausible = np.all((values >= self._lower) & (values <= self._upper), axis=1)
        pieces: list[_Piece] = []
        for stamp, row, is_finite, is_plausible in zip(
            time.tolist(), values, finite.tolist(), plausible.tolist(), strict=True
        ):
            if not is_finite:
                self._tally["not_finite"] += 1
            elif not is_plausible:
                self._tally["implausible"] += 1
            else:
                self._take(stamp, row, pieces)
        if len(self._times) >= 3:
            # The slope at the last but one node is known, so the grid up to it is.
            pieces.append(self._interpolate(self._times[-2]))
            del self._times[:-_KEPT_NODES]
            del self._values[:-_KEPT_NODES]
        return self._batch(pieces, reset=self._tally["resets"] > resets)

    def _begin(self) -> None:
        self._times: list[float] = []
        self._values: list[FloatArray] = []
        self._origin, self._emitted = np.nan, 0
        self._suspect: tuple[float, FloatArray] | None = None

    def _take(self, stamp: float, row: FloatArray, pieces: list[_Piece]) -> None:
        """Sort one sample in; a segment that it ends goes to the pieces."""
        if not self._times:
            self._start_segment(stamp, row)
            return
        step = stamp - self._times[-1]
        if -self._longest <= step <= self._longest:
            # The stream goes on, so a stamp that stood out before it was a mistake.
            self._dismiss_suspect()
            self._go_on(stamp, row, step)
            return
        # One stamp out of line is a mistake, two in line with each other are a new beginning.
        confirmed = self._suspect
        if confirmed is None or not 0.0 < stamp - confirmed[0] <= self._longest:
            self._dismiss_suspect()
            self._suspect = (stamp, row.copy())
            return
        pieces.append(self._finish())
        step = confirmed[0] - self._times[-1]
        if step > 0.0:
            self._tally["gaps"] += 1
            self._tally["lost"] += max(0, round(step / self.period) - 1)
        else:
            self._tally["resets"] += 1
        self._begin()
        self._start_segment(*confirmed)
        self._go_on(stamp, row, stamp - confirmed[0])

    def _dismiss_suspect(self) -> None:
        if self._suspect is not None:
            self._suspect = None
            self._tally["implausible"] += 1

    def _go_on(self, stamp: float, row: FloatArray, step: float) -> None:
        if abs(step) < _DUPLICATE * self.period:
            self._tally["duplicate"] += 1
        elif step < 0.0:
            self._tally["late"] += 1
        elif self._bounded and np.any(np.abs(row - self._values[-1]) > self._max_rate * step):
            self._tally["implausible"] += 1
        else:
            self._tally["accepted"] += 1
            self._tally["lost"] += max(0, round(step / self.period) - 1)
            self._times.append(stamp)
            self._values.append(row.copy())

    def _start_segment(self, stamp: float, row: FloatArray) -> None:
        self._segment += 1
        self._origin, self._emitted = stamp, 0
        self._times, self._values = [stamp], [row.copy()]
        self._tally["accepted"] += 1

    def _finish(self) -> _Piece:
        """Return the rest of the current segment, its last slope one-sided."""
        if self._times:
            return self._interpolate(self._times[-1])
        return _Piece(np.zeros(0), np.zeros((0, self.channels)), self._segment)

    def _interpolate(self, end: float) -> _Piece:
        """Return the grid samples up to a time [s]."""
        # Counted from the segment's start, so that rounding does not add up.
        count = int(np.floor((end - self._origin) / self.period + _ROUNDING)) + 1
        steps = np.arange(self._emitted, max(count, self._emitted), dtype=np.float64)
        grid = self._origin + self.period * steps
        self._emitted += len(grid)
        if not len(grid):
            return _Piece(grid, np.zeros((0, self.channels)), self._segment)
        values = hermite(np.array(self._times), np.array(self._values), grid)
        return _Piece(grid, values, self._segment)

    def _batch(self, pieces: list[_Piece], *, reset: bool) -> UniformBatch:
        if not pieces:
            return UniformBatch(
                np.zeros(0), np.zeros((0, self.channels)), np.zeros(0, dtype=np.int64), reset
            )
        return UniformBatch(
            np.concatenate([piece.time for piece in pieces]),
            np.concatenate([piece.values for piece in pieces]),
            np.concatenate([np.full(len(p.time), p.segment, dtype=np.int64) for p in pieces]),
            reset,
        )


class _Piece(NamedTuple):
    time: FloatArray
    values: FloatArray
    segment: int


def _limits(values: FloatArray | None, default: float, channels: int) -> FloatArray:
    limits = np.full(channels, default) if values is None else np.asarray(values, dtype=np.float64)
    if limits.shape != (channels,) or np.isnan(limits).any():
        raise ParameterError(f"limits must be {channels} numbers, one per channel")
    return limits
