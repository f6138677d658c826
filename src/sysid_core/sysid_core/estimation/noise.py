# SPDX-License-Identifier: Apache-2.0
"""The noise of the rows: how strong it is, and for how many independent rows it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.dynamics.statistics import Statistics

__all__ = [
    "WeightedSums",
    "fitted_degrees",
    "residual_std",
    "rounding_std",
    "row_weights",
    "settled_noise",
    "target_size",
    "weighted_sums",
]

_Solution = TypeVar("_Solution")
_SETTLED = 1e-3  # relative change of the noise that no longer moves the estimate
_SPARSE = 0.05
"""Share of entries up to which to pick them takes less time than to read all; half of what it is
where both take the same [-]."""


def target_size(statistics: Statistics) -> FloatArray:
    """Return the root mean square target (G,) [N·m], never less than 1e-3 of the largest.

    A group that hardly sees torque must not get an unbounded weight.
    """
    rms = statistics.rms
    largest = float(rms.max(initial=0.0))
    return np.maximum(rms, 1e-3 * largest if largest > 0.0 else 1.0)


def residual_std(
    statistics: Statistics,
    base_vector: FloatArray,
    floor: FloatArray,
    degrees: FloatArray | None = None,
) -> FloatArray:
    """Return the noise (G,) [N·m] that the residuals of a base vector show, a floor at least.

    Fitting took some degrees of freedom (G,) from each group; None: none.
    """
    std = _per_row(statistics, statistics.residual_square(base_vector), degrees)
    return np.where(statistics.count > 0.0, np.maximum(std, floor), 1.0)


def rounding_std(
    statistics: Statistics, base_vector: FloatArray, degrees: FloatArray
) -> FloatArray:
    """Return the noise (G,) [N·m] that rounding alone may show.

    It differs from one solution to the next, so weights below it never settle.
    """
    return _per_row(statistics, statistics.rounding_square(base_vector), degrees)


def _per_row(statistics: Statistics, square: FloatArray, degrees: FloatArray | None) -> FloatArray:
    count = statistics.count
    left = count if degrees is None else np.maximum(count - degrees, 0.01 * count)
    return np.sqrt(square / np.maximum(left, 1e-300))


def row_weights(noise_std: FloatArray, correlation: FloatArray | None) -> FloatArray:
    """Return the weight (G,) 1/(σ² η) of the rows of each group."""
    weights = 1.0 / noise_std**2
    return weights if correlation is None else weights / correlation


def fitted_degrees(
    statistics: Statistics, noise_std: FloatArray, covariance: FloatArray
) -> FloatArray:
    """Return the degrees of freedom (G,) in rows that fitting took from each group.

    The posterior covariance (b, b) of the base parameters is that under weights of the noise (G,)
    [N·m].
    """
    groups = len(statistics.gram)
    traces = statistics.gram.reshape(groups, -1) @ np.ascontiguousarray(covariance).ravel()
    return np.asarray(traces / noise_std**2)


def settled_noise(
    first: FloatArray,
    rounds: int,
    solution: Callable[[FloatArray], _Solution],
    updated: Callable[[FloatArray, _Solution], FloatArray],
) -> tuple[_Solution, FloatArray]:
    """Alternate between solving and re-estimating the noise (G,) [N·m] until that settles.

    At most so many rounds; `updated` gives the noise that a solution's residuals show.
    """
    noise = first
    for update in range(rounds + 1):
        result = solution(noise)
        if update == rounds:
            break
        following = updated(noise, result)
        if np.abs(np.log(following / noise)).max(initial=0.0) < _SETTLED:
            break
        noise = following
    return result, noise


def weighted_sums(statistics: Statistics, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the Gram matrix (b, b) and moment (b,) over all groups with weights (G,)."""
    groups, size = statistics.moment.shape
    gram = weights @ statistics.gram.reshape(groups, -1)
    return gram.reshape(size, size), weights @ statistics.moment


class WeightedSums:
    """`weighted_sums` of statistics whose rows touch the same columns, one after the other.

    A joint's torque tells of what it carries: of a large tree's Gram matrices most is zero.
    """

    def __init__(self) -> None:
        self._seen: BoolArray | None = None
        self._source: IndexArray | None = None

    def __call__(
        self, statistics: Statistics, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the Gram matrix (b, b) and moment (b,) over all groups with weights (G,)."""
        gram = statistics.gram
        seen = np.einsum("gii->gi", gram) > 0.0  # where it is zero, so are row and column
        if self._seen is None or not np.array_equal(seen, self._seen):
            self._find(seen)
        if self._source is None:
            return weighted_sums(statistics, weights)
        values = gram.take(self._source)
        values *= np.repeat(weights, self._sizes)
        size = gram.shape[1]
        total: FloatArray = np.bincount(self._target, values, size**2).astype(float, copy=False)
        return total.reshape(size, size), weights @ statistics.moment

    def _find(self, seen: BoolArray) -> None:
        """Find the entries that can differ from zero, given the columns (G, b) of each group."""
        self._seen, self._source = seen, None
        counts, size = seen.sum(axis=1), seen.shape[1]
        self._sizes = counts**2
        if self._sizes.sum() > _SPARSE * seen.size * size:
            return
        columns = [np.flatnonzero(row) for row in seen]
        places = [(c[:, None] * size + c).ravel() for c in columns]
        self._target = np.concatenate(places)
        self._source = np.concatenate([g * size**2 + p for g, p in enumerate(places)])
