# SPDX-License-Identifier: Apache-2.0
"""Prediction errors on samples that the predicting model had not yet learned from."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.rows import Rows
from sysid_core.scores import Fit

__all__ = ["Prequential", "PrequentialScores"]


class PrequentialScores(NamedTuple):
    """Prediction scores over the newest samples."""

    r2: float  # [-]: 1 − Σe²/Σy² over all groups (Kolathaya et al.: 1 − eᵀe/UᵀU); NaN without data
    # candidate, nominal, used: of the newest estimate, the nominal model and the model in use.
    candidate: Fit
    nominal: Fit
    used: Fit
    samples: int
    constant: FloatArray
    """(G,) [N·m] root mean square error of the best constant, known with hindsight: the torque's
    deviation."""

    @property
    def centred_r2(self) -> FloatArray:
        """R² of the newest estimate about the mean of each torque (G,) [-]."""
        ratio = self.candidate.rmse / np.where(self.constant > 0.0, self.constant, 1.0)
        return np.where(self.constant > 0.0, 1.0 - ratio**2, 0.0)


class Prequential:
    """Sums of squared prediction errors over the newest samples, per group and per model."""

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
        sums = np.zeros((6, self._groups))
        models = np.stack([candidate, nominal, used], axis=1)
        for g, block in enumerate(rows.blocks):
            errors = block.target[:, None] - block.matrix @ models
            sums[:3, g] = np.einsum("ij,ij->j", errors, errors)
            sums[3, g] = block.target @ block.target
            sums[4, g] = len(block.target)
            sums[5, g] = block.target.sum()
        self._batches.append((samples, sums))
        self._held += samples
        while self._held - self._batches[0][0] >= self.capacity:
            self._held -= self._batches.popleft()[0]

    def scores(self) -> PrequentialScores:
        """Return the scores over the newest samples."""
        sums = np.zeros((6, self._groups))
        for _, batch in self._batches:
            sums += batch
        errors, square = sums[:3], sums[3]
        total = 1.0 - errors[0].sum() / square.sum() if square.sum() > 0.0 else np.nan
        candidate, nominal, used = (Fit.of(e, square, sums[4], unknown=0.0) for e in errors)
        count = np.maximum(sums[4], 1.0)
        constant = np.sqrt(np.maximum(square / count - (sums[5] / count) ** 2, 0.0))
        return PrequentialScores(float(total), candidate, nominal, used, self._held, constant)
