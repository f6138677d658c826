# SPDX-License-Identifier: Apache-2.0
"""How large innovations usually are and how coloured, learned while samples pass."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.rows import Rows

__all__ = ["ResidualColour"]

_MEMORY = 20.0
"""Time constant of what is usual [s]: some cycles of a task; the robot warms up slower [s]."""

_LONGEST = 1.5
"""Longest batch whose mean is looked at [s]; the memory still holds a dozen of them."""

_FEWEST = 8
"""Batches of one length that must have been seen before their scatter is believed."""

_LEAST = 0.5
"""Time that a group must have been seen for [s]."""

_OUTLIER = 4.0
"""Residuals beyond so many standard deviations count as that many: a step must not hide itself by
looking usual [-]."""


class ResidualColour:
    """Mean square and colour of the innovations of every row group.

    Batch means: if neighbouring residuals were independent, sums over L of them would have L times
    the variance of one. How much more they have, at the length L where it is largest, is the
    integrated autocorrelation time: for so many rows stands one independent row. Sums of doubling
    lengths are built from one another, so that a sample costs the same whatever the length.

    Where a sample has several rows in one group, as in the null space of contacts, the turn of
    those rows is arbitrary; the product with the prediction, summed over the sample, is not.
    """

    def __init__(self, groups: int, sample_rate: float) -> None:
        self._groups, self._rate = groups, sample_rate
        self._levels = 1 + max(0, int(np.log2(max(1.0, _LONGEST * sample_rate))))
        self._forget = np.exp(-1.0 / (_MEMORY * sample_rate))
        self.clear()

    def clear(self) -> None:
        """Forget what was usual."""
        count = self._groups
        self.duration = 0.0  # [s] time that was learned from
        self._square, self._weight = np.zeros(count), np.zeros(count)
        self._seen = np.zeros(count)
        self._power = np.zeros((count, self._levels))
        self._open: list[list[FloatArray]] = [
            [np.zeros(0) for _ in range(self._levels)] for _ in range(count)
        ]

    def push(self, rows: Rows, base_vector: FloatArray, samples: int) -> None:
        """Learn from the residuals that base parameters (b,) leave of so many samples."""
        self.duration += samples / self._rate
        for g, block in enumerate(rows.blocks):
            if not len(block.target):
                continue
            predicted: FloatArray = block.matrix @ base_vector
            residual: FloatArray = block.target - predicted
            fade = self._forget**samples
            if self._weight[g] > _FEWEST:
                bound = _OUTLIER * np.sqrt(self._square[g] / self._weight[g])
                residual = np.minimum(np.maximum(residual, -bound), bound)
            self._square[g] = fade * self._square[g] + residual @ residual
            self._weight[g] = fade * self._weight[g] + len(residual)
            if len(residual) > samples:
                _, index = np.unique(block.sample, return_inverse=True)
                residual = np.bincount(index, predicted * residual).astype(float)
            self._add(g, residual, fade)

    def _add(self, g: int, values: FloatArray, fade: float) -> None:
        """Add a stretch of values (n,) to the sums of every length."""
        self._seen[g] += len(values)
        self._power[g] *= fade
        for level in range(self._levels):
            self._power[g, level] += values @ values
            values = np.concatenate([self._open[g][level], values])
            pairs = len(values) // 2
            self._open[g][level] = values[2 * pairs :]
            if not pairs:
                break
            values = values[: 2 * pairs : 2] + values[1 : 2 * pairs : 2]

    @property
    def known(self) -> BoolArray:
        """Whether a group (G,) was seen long enough to say what is usual."""
        return self._seen >= _LEAST * self._rate

    @property
    def variance(self) -> FloatArray:
        """Usual mean square (G,) [N²·m²] of the innovations; 0 where none were seen."""
        return self._square / np.maximum(self._weight, 1.0)

    @property
    def factor(self) -> FloatArray:
        """Rows (G,) ≥ 1 that stand for one independent row."""
        return self.factors[:, -1]

    @property
    def factors(self) -> FloatArray:
        """The same (G, L) within stretches of 1, 2, 4, … rows, where errors vary less."""
        usable = 2.0 ** np.arange(self._levels) * _FEWEST <= self._seen[:, None]
        ratio = self._power / np.maximum(self._power[:, :1], 1e-300)
        grown = np.maximum.accumulate(np.where(usable, ratio, 1.0), axis=1)
        return np.asarray(np.maximum(grown, 1.0))

    @property
    def cautious_factors(self) -> FloatArray:
        """The same (G, L), as if errors lasted through every stretch not seen often enough."""
        length = 2.0 ** np.arange(self._levels)
        beyond = length * _FEWEST / np.maximum(self._seen[:, None], 1.0)
        return np.asarray(np.minimum(self.factors * np.maximum(beyond, 1.0), length))
