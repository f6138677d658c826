# SPDX-License-Identifier: Apache-2.0
"""Finding samples that do not belong, single ones or by a full turn, and mending them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.errors import ParameterError

__all__ = ["HampelResult", "hampel", "unwrapped", "without_spoiled"]

_MAD_TO_STD = 1.4826
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


def hampel(values: FloatArray, *, half_window: int = 5, threshold: float = 8.0) -> HampelResult:
    """Replace samples that stand out of the median of their neighbourhood (Hampel's identifier).

    The scale is the local median absolute deviation, but no less than the noise of the whole
    channel and than its quantum: a quantised signal at rest has a local deviation of zero, and its
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
        # few samples are that far off: the scale around the others does not matter
        bad[bad] = residual[bad] > threshold * _scale(series, half_window, np.flatnonzero(bad))
        begins = np.flatnonzero(np.diff(series, prepend=np.inf))
        lengths = np.diff([*begins, len(bad)])
        bad = np.repeat(np.minimum.reduceat(bad, begins), lengths)
        first = present[np.repeat(begins, lengths)[bad]]
        outliers[present[bad], channel] = True
        # Over the rows, not over the samples: where rows lack values, a slope goes on.
        cleaned[present[bad], channel] = np.interp(first, present[~bad], series[~bad])
    return HampelResult(cleaned, outliers, np.count_nonzero(outliers, axis=0))


def without_spoiled(values: FloatArray) -> FloatArray:
    """Return a copy in which values that no robot can reach, infinite ones too, are NaN."""
    return np.where(np.abs(values) < _ABSURD, values, np.nan)


def _scale(series: FloatArray, half_window: int, rows: IndexArray) -> FloatArray:
    """Return the scale around the running median at some rows, the ends mirrored."""
    padded = np.pad(series, half_window, mode="reflect")
    windows = sliding_window_view(padded, 2 * half_window + 1)[rows]
    median = np.median(windows, axis=1, keepdims=True)
    return np.asarray(_MAD_TO_STD * np.median(np.abs(windows - median), axis=1))


def _floor(series: FloatArray, residual: FloatArray) -> float:
    """Return the least scale of a channel: its typical noise and its quantum.

    Monotone stretches are their own medians, so the noise shows in the other samples only; if
    these are few, they may be the outliers themselves.
    """
    noisy = residual[residual > 0.0]
    noise = _MAD_TO_STD * float(np.median(noisy)) if len(noisy) > _NOISY * len(series) else 0.0
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
