# SPDX-License-Identifier: Apache-2.0
"""Sums of squares and products of rows, kept only where these can differ from zero."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.rows import Regression, Rows
from sysid_core.dynamics.statistics import Statistics

__all__ = ["Places", "Sums"]


class Places:
    """Where the sums of each group's squares and products lie in one array of values (v,).

    First Σ y² and the number of rows of each group, then all Σ aᵀa, then all Σ aᵀy. `supports` has
    per group the columns, of so many, in which its rows can differ from zero.
    """

    def __init__(self, size: int, supports: Sequence[IndexArray]) -> None:
        self.size, self.supports = size, supports
        groups, widths = len(supports), np.array([len(s) for s in supports], dtype=np.intp)
        grams = 2 * groups + np.concatenate([[0], np.cumsum(widths**2)])
        moments = grams[-1] + np.concatenate([[0], np.cumsum(widths)])
        self.gram, self.moment = slice(grams[0], grams[-1]), slice(moments[0], moments[-1])
        # per group: where its Σ aᵀa and Σ aᵀy begin, and how many columns they have
        self.parts = tuple(zip(grams.tolist(), moments.tolist(), widths.tolist(), strict=False))
        # where the same values lie in arrays (G, b, b) and (G, b)
        rows = [g * size + support for g, support in enumerate(supports)]
        self.moment_target = np.concatenate(rows)
        products = zip(rows, supports, strict=True)
        self.gram_target = np.concatenate(
            [(row[:, None] * size + support).ravel() for row, support in products]
        )

    @staticmethod
    def of(regression: Regression) -> Places:
        """Return where those of a regression's rows lie."""
        return Places(regression.base.size, regression.supports)


class Sums:
    """A running sum of statistics, each group on the columns that its rows can touch."""

    def __init__(self, places: Places) -> None:
        self._places = places
        # all sums in one array, so that adding another is one operation
        self._values = np.zeros(places.moment.stop)
        self.samples = 0

    def __getstate__(self) -> dict[str, object]:
        """Return what a copy is made of: its views are its own."""
        return {key: value for key, value in vars(self).items() if key != "parts"}

    @property
    def square(self) -> FloatArray:
        """Σ y² of each group (G,), a view."""
        return self._values[: len(self._places.supports)]

    @property
    def count(self) -> FloatArray:
        """Number of rows of each group (G,), a view."""
        groups = len(self._places.supports)
        return self._values[groups : 2 * groups]

    @cached_property
    def parts(self) -> list[tuple[IndexArray, FloatArray, FloatArray]]:
        """The support (k,) of each group, and Σ aᵀa (k, k) and Σ aᵀy (k,) on it (views)."""
        places, values = self._places, self._values
        return [
            (support, values[g : g + n * n].reshape(n, n), values[m : m + n])
            for support, (g, m, n) in zip(places.supports, places.parts, strict=True)
        ]

    @staticmethod
    def of(statistics: Statistics, places: Places) -> Sums:
        """Return the same sums, of which only those on the supports are kept."""
        total = Sums(places)
        total._values[places.gram] = statistics.gram.take(places.gram_target)
        total._values[places.moment] = statistics.moment.take(places.moment_target)
        total.square[:], total.count[:] = statistics.square, statistics.count
        return total

    @staticmethod
    def total(parts: Sequence[Sums], weights: FloatArray | None = None) -> Sums:
        """Return the sum of at least one part, their rows times weights (n,) if given."""
        total = Sums(parts[0]._places)
        for part, weight in zip(
            parts, np.ones(len(parts)) if weights is None else weights, strict=True
        ):
            total.add(part, float(weight))
        return total

    def add_rows(self, rows: Rows, samples: int = 0) -> None:
        """Add the rows of some samples."""
        for g, (block, part) in enumerate(zip(rows.blocks, self.parts, strict=True)):
            matrix, (support, gram, moment) = block.matrix, part
            if len(support) < matrix.shape[1]:
                matrix = matrix.take(support, axis=1)
            gram += matrix.T @ matrix
            moment += block.target @ matrix
            self.square[g] += block.target @ block.target
            self.count[g] += len(block.target)
        self.samples += samples

    def add(self, other: Sums, factor: float = 1.0) -> None:
        """Add another sum of the same supports, every row of it times a factor."""
        self._values += other._values if factor == 1.0 else factor * other._values
        self.samples += other.samples

    def fade(self, factor: float) -> None:
        """Let every row count less by a factor."""
        self._values *= factor

    def predicted_square(self, base_vector: FloatArray) -> FloatArray:
        """Return Σ (a·β)² (G,) [N²·m²] per group for base parameters β (b,)."""
        return np.array([base_vector[s] @ gram @ base_vector[s] for s, gram, _ in self.parts])

    def residual_square(self, base_vector: FloatArray) -> FloatArray:
        """Return Σ (y − a·β)² (G,) [N²·m²] per group for base parameters β (b,)."""
        along = np.array([moment @ base_vector[support] for support, _, moment in self.parts])
        return np.maximum(self.square - 2.0 * along + self.predicted_square(base_vector), 0.0)

    def statistics(self) -> Statistics:
        """Return the same on all columns (a copy)."""
        places = self._places
        total = Statistics.zero(len(places.supports), places.size)
        total.gram.reshape(-1)[places.gram_target] = self._values[places.gram]
        total.moment.reshape(-1)[places.moment_target] = self._values[places.moment]
        total.square[:], total.count[:] = self.square, self.count
        return total
