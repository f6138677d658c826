# SPDX-License-Identifier: Apache-2.0
"""Local interpolation of irregular samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sysid_core.arrays import FloatArray

__all__ = ["hermite", "nearest", "resample"]

_ROUNDING = 1e-6
"""Time [s] that stamps may be rounded by; epochs in double precision are, by less."""


def hermite(nodes: FloatArray, values: FloatArray, time: FloatArray) -> FloatArray:
    """Interpolate with piecewise cubics whose slopes come from parabolas through three nodes.

    Exact on parabolas, with an error of O(h³) on smooth signals, and local: a value depends on two
    nodes on each side only, so that a stream can be interpolated as it comes.

    Parameters
    ----------
    nodes : (n,) [s]
        Strictly ascending, at least one.
    values : (n, nc)
    time : (m,) [s]
        Within the nodes; beyond them the end values are held.

    Returns
    -------
    (m, nc)
    """
    if len(nodes) == 1:
        return np.repeat(values, len(time), axis=0)
    slopes = _slopes(nodes, values)
    left = np.clip(np.searchsorted(nodes, time, side="right") - 1, 0, len(nodes) - 2)
    width = nodes[left + 1] - nodes[left]
    s = np.clip((time - nodes[left]) / width, 0.0, 1.0)[:, np.newaxis]
    width = width[:, np.newaxis]
    return np.asarray(
        (1.0 + 2.0 * s) * (1.0 - s) ** 2 * values[left]
        + s * (1.0 - s) ** 2 * width * slopes[left]
        + s**2 * (3.0 - 2.0 * s) * values[left + 1]
        + s**2 * (s - 1.0) * width * slopes[left + 1]
    )


def nearest(nodes: FloatArray, values: FloatArray, time: FloatArray) -> FloatArray:
    """Return the value of the nearest node, for flags; nodes as for `hermite`."""
    right = np.clip(np.searchsorted(nodes, time), 1, max(len(nodes) - 1, 1))
    if len(nodes) == 1:
        return np.repeat(values, len(time), axis=0)
    take_left = time - nodes[right - 1] <= nodes[right] - time
    return np.asarray(values[np.where(take_left, right - 1, right)])


def resample(
    nodes: FloatArray,
    values: FloatArray,
    runs: Sequence[slice],
    time: FloatArray,
    *,
    flags: bool = False,
    average: int = 1,
) -> FloatArray:
    """Read rows at ascending times (m,) within gap-free runs of them; NaN in the gaps.

    Of rows that are denser than the times, the mean around each time is taken, so that what is
    too fast for the times does not fold back; at a tenth of their rate it is 2 % less.

    Parameters
    ----------
    nodes : (n,) [s]
    values : (n, nc)
    runs : sequence of slice
        Each run is interpolated by itself, since nodes beyond a gap would bend its ends.
    time : (m,) [s]
    flags : bool
        Take the nearest row instead of interpolating.
    average : int
        Rows per step of the times, which are uniform where it is more than one.

    Returns
    -------
    (m, nc)
    """
    if average > 1 and len(time) > 1 and not flags:
        step = (time[-1] - time[0]) / (len(time) - 1)
        around = step * ((np.arange(average) + 0.5) / average - 0.5)
        fine = resample(nodes, values, runs, (time[:, np.newaxis] + around).ravel())
        fine = fine.reshape(len(time), average, -1)
        known = np.isfinite(fine)
        count = known.sum(axis=1)
        total = np.where(known, fine, 0.0).sum(axis=1)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)
    result = np.full((len(time), values.shape[1]), np.nan)
    interpolate = nearest if flags else hermite
    for run in runs:
        first, last = nodes[run.start] - _ROUNDING, nodes[run.stop - 1] + _ROUNDING
        inside = slice(*np.searchsorted(time, [first, last], side="left"))
        if inside.stop > inside.start:
            result[inside] = interpolate(nodes[run], values[run], time[inside])
    return result


def _slopes(nodes: FloatArray, values: FloatArray) -> FloatArray:
    """Return the slope at every node of the parabola through it and its neighbours."""
    h = np.diff(nodes)[:, np.newaxis]
    chord = np.diff(values, axis=0) / h
    slopes = np.empty_like(values)
    if len(nodes) == 2:
        slopes[:] = chord
        return slopes
    slopes[1:-1] = (h[1:] * chord[:-1] + h[:-1] * chord[1:]) / (h[1:] + h[:-1])
    # A parabola's chord slope is the mean of the slopes at both ends.
    slopes[0] = 2.0 * chord[0] - slopes[1]
    slopes[-1] = 2.0 * chord[-1] - slopes[-2]
    return slopes
