# SPDX-License-Identifier: Apache-2.0
"""Prediction errors on samples that the predicting model had not yet learned from."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.rows import Rows

__all__ = ["Prequential", "PrequentialScores"]


class PrequentialScores(NamedTuple):
    """Prediction scores over the newest samples.

    Attributes
    ----------
    r2 : float [-]
        1 − Σe²/Σy² over all groups (Kolathaya et al.: 1 − eᵀe/UᵀU); NaN without data.
    r2_groups : (G,) [-]
    rmse_groups : (G,) [N·m]
        Of the candidate model.
    rmse_nominal_groups : (G,) [N·m]
    rmse_used_groups : (G,) [N·m]
        Of the model in use.
    r2_nominal_groups, r2_used_groups : (G,) [-]
    samples : int
    """

    r2: float
    r2_groups: FloatArray
    rmse_groups: FloatArray
    rmse_nominal_groups: FloatArray
    rmse_used_groups: FloatArray
    r2_nominal_groups: FloatArray
    r2_used_groups: FloatArray
    samples: int


class Prequential:
    """Sums of squared predictions errors over the last samples, per group and per model.

    Parameters
    ----------
    groups : int
    samples : int
        Number of newest samples that count.
    """

    def __init__(self, groups: int, samples: int) -> None:
        self.capacity = samples
        self._groups = groups
        self.clear()

    def clear(self) -> None:
        """Forget all errors."""
        self._batches: deque[tuple[int, FloatArray]] = deque()
        self._held = 0

    def push(
        self,
        rows: Rows,
        samples: int,
        candidate: FloatArray,
        nominal: FloatArray,
        used: FloatArray,
    ) -> None:
        """Score the base parameters (b,) of three models on rows that none has learned from."""
        sums = np.zeros((5, self._groups))
        models = np.stack([candidate, nominal, used], axis=1)
        for g, block in enumerate(rows.blocks):
            errors = block.target[:, None] - block.matrix @ models
            sums[:3, g] = np.einsum("ij,ij->j", errors, errors)
            sums[3, g] = block.target @ block.target
            sums[4, g] = len(block.target)
        self._batches.append((samples, sums))
        self._held += samples
        while self._held - self._batches[0][0] >= self.capacity:
            self._held -= self._batches.popleft()[0]

    def scores(self) -> PrequentialScores:
        """Return the scores over the newest samples."""
        sums = np.zeros((5, self._groups))
        for _, batch in self._batches:
            sums += batch
        errors, square = sums[:3], sums[3]
        with np.errstate(divide="ignore", invalid="ignore"):
            r2 = np.where(square > 0.0, 1.0 - errors / square, 0.0)
            total = 1.0 - errors[0].sum() / square.sum() if square.sum() > 0.0 else np.nan
        rmse = np.sqrt(errors / np.maximum(sums[4], 1.0))
        return PrequentialScores(
            float(total), r2[0], rmse[0], rmse[1], rmse[2], r2[1], r2[2], self._held
        )
