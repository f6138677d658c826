# SPDX-License-Identifier: Apache-2.0
"""Finding samples that do not belong, single ones or by a full turn, and mending them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from sysid_core.arrays import MAD_TO_STD, BoolArray, FloatArray
from sysid_core.errors import ParameterError

__all__ = ["HALF_WINDOW", "HampelResult", "LiveHampel", "hampel", "unwrapped", "without_spoiled"]

HALF_WINDOW = 5
"""Samples on each side of the one that is judged: longer excursions are signal."""
_THRESHOLD = 8.0  # Standard deviations by which an outlier stands out
_RECENT = 500  # Live samples that tell the noise of their channels
_ENOUGH = 100  # Live samples that tell it at first, and after which it is told anew
_NOISY = 0.02
# No quantity of a robot in SI units comes near; such values are spoiled bytes.
_ABSURD = 1e12
_TURN = 2.0 * np.pi
_TURN_TOLERANCE = 0.5


@dataclass(frozen=True)
class HampelResult:
    """Cleaned samples."""

    values: FloatArray
    """(n, nc) outliers replaced by interpolation between the nearest samples that are none."""
    outliers: BoolArray  # (n, nc)
    counts: npt.NDArray[np.int64]  # (nc,) outliers per channel


def hampel(
    values: FloatArray, *, half_window: int = HALF_WINDOW, threshold: float = _THRESHOLD
) -> HampelResult:
    """Replace samples that stand out of the median of their neighbourhood (Hampel's identifier).

    The scale is the local median absolute deviation from a trend, but no less than the noise of
    the whole channel and than its quantum: a quantised signal at rest has no deviation, and its
    next flip of a bit is no outlier. Steps pass, because a median keeps them. A value that is held
    is an outlier all along, and one value takes its place. Missing values stay missing and count
    for nothing.

    Parameters
    ----------
    values : (n, nc)
    half_window : int
        Samples on each side; excursions of more samples than this are signal.
    threshold : float
        In standard deviations.

    Raises
    ------
    ParameterError
        If the window or the threshold is not positive.
    """
    if half_window < 1 or threshold <= 0.0:
        raise ParameterError("the half window and the threshold of outliers must be positive")
    values = np.asarray(values, dtype=np.float64)
    cleaned = values.copy()
    outliers = np.zeros(values.shape, dtype=np.bool_)
    for channel in range(values.shape[1]):
        present = np.flatnonzero(np.isfinite(values[:, channel]))
        if len(present) <= 2 * half_window:
            continue
        series = values[present, channel]
        around = sliding_window_view(
            np.pad(series, half_window, mode="reflect"), 2 * half_window + 1
        )
        residual = np.abs(series - np.partition(around, half_window, axis=1)[:, half_window])
        least = _floor(series, residual)
        bad = residual > threshold * least
        # few samples are that far off: what is around the others does not matter
        bad[bad] = _stand_out(around[bad], least, threshold)
        begins = np.flatnonzero(np.diff(series, prepend=np.inf))
        lengths = np.diff([*begins, len(bad)])
        bad = np.repeat(np.minimum.reduceat(bad, begins), lengths)
        first = present[np.repeat(begins, lengths)[bad]]
        outliers[present[bad], channel] = True
        # Over the rows, not over the samples: where rows lack values, a slope goes on.
        cleaned[present[bad], channel] = np.interp(first, present[~bad], series[~bad])
    return HampelResult(cleaned, outliers, np.count_nonzero(outliers, axis=0))


class LiveHampel:
    """The same on rows that come one after the other: the newest tell the channels' noise."""

    def __init__(self, channels: int) -> None:
        # The newest rows (n, nc), and how far from their running medians they are
        self._rows = self._off = np.zeros((0, channels))
        self._least = np.full(channels, np.inf)  # Least scale of each channel
        self._since = 0  # Rows since it was told

    def clean(self, rows: FloatArray, first: int, stop: int) -> int:
        """Replace what stands out among rows (n, nc) from `first` to `stop`; return how many.

        Rows beyond both ends of the n are taken as if mirrored. Fewer than a window are left as
        they are, and so are all until the noise is known.
        """
        last = len(rows) - 1
        if last < 2 * HALF_WINDOW:
            return 0
        index = np.abs(np.arange(first - HALF_WINDOW, stop + HALF_WINDOW))
        index = last - np.abs(last - index)
        around = sliding_window_view(rows[index], 2 * HALF_WINDOW + 1, axis=0)
        median = np.partition(around, HALF_WINDOW, axis=2)[:, :, HALF_WINDOW]
        off = np.abs(rows[first:stop] - median)
        self._learn(rows[first:stop], off)
        bad = off > _THRESHOLD * self._least
        if not bad.any():
            return 0
        least = np.broadcast_to(self._least, bad.shape)[bad]
        bad[bad] = _stand_out(around[bad], least, _THRESHOLD)
        place = np.arange(max(first - HALF_WINDOW, 0), len(rows))
        for channel in np.flatnonzero(bad.any(axis=0)):
            outliers = first + np.flatnonzero(bad[:, channel])
            good = place[~np.isin(place, outliers)]
            rows[outliers, channel] = np.interp(outliers, good, rows[good, channel])
        return int(np.count_nonzero(bad))

    def _learn(self, rows: FloatArray, off: FloatArray) -> None:
        """Learn the noise of the channels from rows and their distances from the medians."""
        self._rows = np.vstack([self._rows, rows])[-_RECENT:]
        self._off = np.vstack([self._off, off])[-_RECENT:]
        self._since += len(rows)
        if self._since >= _ENOUGH:
            self._since = 0
            least = np.array(
                [_floor(*both) for both in zip(self._rows.T, self._off.T, strict=True)]
            )
            # a channel that says nothing at all has no outliers
            self._least = np.where(least > 0.0, least, np.inf)


def without_spoiled(values: FloatArray) -> FloatArray:
    """Return a copy in which values that no robot can reach, infinite ones too, are NaN."""
    return np.where(np.abs(values) < _ABSURD, values, np.nan)


def _stand_out(windows: FloatArray, least: FloatArray | float, threshold: float) -> BoolArray:
    """Return whether the middle of windows (m, n) stands out of the others' trend.

    The scale is the median absolute deviation from that trend, as motion is no noise.
    """
    half = windows.shape[1] // 2
    rise = np.median(windows[:, half + 1 :], axis=1) - np.median(windows[:, :half], axis=1)
    level = windows - rise[:, np.newaxis] * np.arange(-half, half + 1) / (half + 1)
    off = np.abs(level - np.median(level, axis=1, keepdims=True))
    scale = np.maximum(MAD_TO_STD * np.median(off, axis=1), least)
    return np.asarray(off[:, half] > threshold * scale)


def _floor(series: FloatArray, residual: FloatArray) -> float:
    """Return the least scale of a channel: its typical noise and its quantum.

    Monotone stretches are their own medians, so the noise shows in the other samples only; if
    these are few, they may be the outliers themselves.
    """
    noisy = residual[residual > 0.0]
    noise = MAD_TO_STD * float(np.median(noisy)) if len(noisy) > _NOISY * len(series) else 0.0
    steps = np.abs(np.diff(series))
    steps = steps[steps > 0.0]
    return max(noise, float(steps.min()) if len(steps) else 0.0)


def unwrapped(values: FloatArray) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Return angles (n, nc) [rad] without jumps by a full turn, and the jumps per channel.

    Only jumps close to a full turn count: others are outliers or resets. Rows that lack an angle
    do not interrupt the chain.
    """
    result = np.array(values, dtype=np.float64)
    counts = np.zeros(result.shape[1], dtype=np.int64)
    jumps = np.diff(result, axis=0)
    # Where nothing is missing and nothing jumps, as mostly live, there is nothing to do.
    for channel in np.flatnonzero(~(np.abs(jumps) < _TURN - _TURN_TOLERANCE).all(axis=0)):
        series = result[:, channel]
        present = np.flatnonzero(np.isfinite(series))
        steps = np.diff(series[present])
        wrapped = np.abs(np.abs(steps) - _TURN) < _TURN_TOLERANCE
        series[present[1:]] += _TURN * np.cumsum(np.where(wrapped, -np.sign(steps), 0.0))
        counts[channel] = np.count_nonzero(wrapped)
    return result, counts
