# SPDX-License-Identifier: Apache-2.0
"""Sufficient statistics of regression rows: all that least squares needs of the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.rows import Rows
from sysid_core.errors import ModelError

__all__ = ["Statistics"]

_ROUNDING = 10.0
"""Rounding errors that sums of squares gather; up to 2 were seen, with any BLAS kernel [-]."""


@dataclass(frozen=True)
class Statistics:
    """Second moments of the rows per group, in base columns."""

    gram: FloatArray  # (G, b, b) σ aᵀa per group
    moment: FloatArray  # (G, b) σ aᵀy per group
    square: FloatArray  # (G,) [N²·m²] σ y² per group
    count: FloatArray  # (G,) number of rows per group

    @staticmethod
    def zero(groups: int, size: int) -> Statistics:
        """Return the statistics of no rows for `groups` groups and `size` base parameters."""
        return Statistics(
            np.zeros((groups, size, size)),
            np.zeros((groups, size)),
            np.zeros(groups),
            np.zeros(groups),
        )

    @staticmethod
    def of(rows: Rows) -> Statistics:
        """Return the statistics of rows."""
        total = Statistics.zero(len(rows.blocks), rows.blocks[0].matrix.shape[1])
        for g, (matrix, target, _) in enumerate(rows.blocks):
            # a joint's torque depends on little of a large robot
            touched = np.flatnonzero(matrix.any(axis=0))
            matrix = matrix.take(touched, axis=1)
            total.gram[g, touched[:, None], touched] = matrix.T @ matrix
            total.moment[g, touched] = matrix.T @ target
            total.square[g], total.count[g] = target @ target, len(target)
        return total

    def __add__(self, other: Statistics) -> Statistics:
        if self.gram.shape != other.gram.shape:
            raise ModelError("statistics of different regressions cannot be added")
        return Statistics(
            self.gram + other.gram,
            self.moment + other.moment,
            self.square + other.square,
            self.count + other.count,
        )

    def scaled(self, factor: float) -> Statistics:
        """Return the statistics with every row weighted by `factor` (forgetting)."""
        return Statistics(
            factor * self.gram, factor * self.moment, factor * self.square, factor * self.count
        )

    def leading(self, size: int) -> Statistics:
        """Return the statistics of the first columns alone, which may be more than there are."""
        gram, moment = self.gram, self.moment
        more = size - moment.shape[1]
        if more > 0:
            gram = np.pad(gram, ((0, 0), (0, more), (0, more)))
            moment = np.pad(moment, ((0, 0), (0, more)))
        return Statistics(gram[:, :size, :size], moment[:, :size], self.square, self.count)

    def shifted(self, shift: FloatArray) -> Statistics:
        """Return the statistics as if the base parameters had been larger by `shift` (b,).

        Rows ``(a, y)`` become ``(a, y + a·shift)``: what was learned before a known change of
        the robot, such as a payload, carries over it.
        """
        gram_shift = self.gram @ shift
        square = self.square + (2.0 * self.moment + gram_shift) @ shift
        return Statistics(self.gram, self.moment + gram_shift, square, self.count)

    @property
    def rms(self) -> FloatArray:
        """Root mean square target (G,) [N·m] per group."""
        return np.asarray(np.sqrt(self.square / np.maximum(self.count, 1.0)))

    def residual_square(self, base_vector: FloatArray) -> FloatArray:
        """Return Σ (y − a·β)² (G,) per group for base parameters β (b,)."""
        quadratic = (self.gram @ base_vector) @ base_vector
        value = self.square - 2.0 * self.moment @ base_vector + quadratic
        return np.maximum(value, 0.0)

    def rounding_square(self, base_vector: FloatArray) -> FloatArray:
        """Return how much (G,) of `residual_square` may be nothing but rounding.

        The residual is a difference of large sums, so it is known no better than those are.
        """
        size = np.abs(base_vector)
        sums = self.square + (2.0 * np.abs(self.moment) + np.abs(self.gram @ base_vector)) @ size
        return _ROUNDING * float(np.finfo(float).eps) * sums

    def rmse(self, base_vector: FloatArray) -> FloatArray:
        """Return the root mean square residual (G,) [N·m] per group."""
        return np.sqrt(self.residual_square(base_vector) / np.maximum(self.count, 1.0))
