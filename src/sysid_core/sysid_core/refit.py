# SPDX-License-Identifier: Apache-2.0
"""Fits a recording's model anew under what else may be true of it, and weighs the evidence."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.batch import Batch, rest_speed, rows_of, training_rows
from sysid_core.contradiction import log_evidence
from sysid_core.dynamics.rows import Regression, Rows
from sysid_core.estimation import Entropic, Estimate, Problem
from sysid_core.estimation.noise import row_weights
from sysid_core.estimation.setting import Setting

__all__ = ["SETTLED", "Fit", "Pose", "Refit", "Step"]

SETTLED = 1.0
"""Gain in log evidence below which a further step is not worth its time."""

_SAMPLES = 1000
"""Most samples that are looked at: of few numbers' doubt, most is the model's error."""

Pose = Callable[[Regression, Rows], Problem]


class Fit(NamedTuple):
    """A model that assumes something, and the log evidence for it."""

    regression: Regression
    rows: Rows
    problem: Problem
    estimate: Estimate
    evidence: float


class Step(NamedTuple):
    """Where numbers that torques depend on should be (k,), and their covariance (k, k)."""

    mean: FloatArray
    covariance: FloatArray

    @property
    def std(self) -> FloatArray:
        """Standard deviations (k,)."""
        return np.asarray(np.sqrt(np.diagonal(self.covariance)))

    @property
    def gain(self) -> float:
        """What it is worth in log evidence, as far as the torques are linear."""
        return 0.5 * float(self.mean @ np.linalg.solve(self.covariance, self.mean))

    @property
    def gains(self) -> FloatArray:
        """What it is worth (k,) to change one number alone."""
        information = np.linalg.inv(self.covariance)
        return np.asarray(0.5 * (information @ self.mean) ** 2 / np.diagonal(information))


class Refit:
    """Fits a model to samples of a batch, with what was found of their errors.

    Takes `still` as in `rest_speed`, an estimate and the correlation (G,) of its residuals.
    """

    def __init__(
        self,
        batch: Batch,
        still: float,
        pose: Pose,
        estimate: Estimate,
        correlation: FloatArray,
    ) -> None:
        step = max(1, -(-len(batch) // _SAMPLES))
        self.batch = batch.select(slice(0, None, step))
        self._still = still
        self.colour = np.maximum(correlation / step, 1.0)
        self._pose, self._estimate = pose, estimate
        self._solver = Entropic(covariance="none")

    def rows(self, regression: Regression, batch: Batch | None = None) -> Rows:
        """Return the rows of a regression, of other samples if some are given."""
        batch = self.batch if batch is None else batch
        regression.assume_load(self._estimate.parameters)
        return training_rows(regression, rows_of(regression, batch), batch, self.rest(batch))

    def rest(self, batch: Batch) -> FloatArray:
        """Return the speeds (nj,) [rad/s] below which joints of a batch are at rest."""
        return rest_speed(batch.samples, self._still)

    def evenly(self) -> Refit:
        """Return one that takes residuals of all groups to be as coloured as the most are."""
        even = copy.copy(self)
        even.colour = np.full_like(self.colour, self.colour.max())
        return even

    def evidence(self, fit: Fit) -> float:
        """Return the log evidence for a fit by residuals as coloured as here."""
        return log_evidence(replace(fit.problem, correlation=self.colour), fit.estimate)

    def fit(self, regression: Regression, batch: Batch | None = None, *, sign: float = 1.0) -> Fit:
        """Return the fit of a regression, of other samples or of torques with another sign."""
        rows = self.rows(regression, batch)
        for block in rows.blocks:
            block.target[:] *= sign
        problem = replace(self._pose(regression, rows), correlation=self.colour, rows=None)
        solved = self._solver.solve(problem)
        return Fit(regression, rows, problem, solved, log_evidence(problem, solved))

    def step(self, fit: Fit, along: Sequence[FloatArray]) -> Step:
        """Return how far numbers are off that torques of each group depend on `along` (n, k).

        They have a standard normal prior, and the model's parameters are averaged out.
        """
        problem, base = fit.problem, fit.regression.base
        setting = Setting(problem, 0.0)
        mapping = base.mapping[:, setting.coordinates.free]
        values, axes = np.linalg.eigh(mapping @ setting.gaussian.covariance @ mapping.T)
        root = axes * np.sqrt(np.maximum(values, 0.0))
        known = base.project(problem.prior.mean)
        weights = np.sqrt(row_weights(fit.estimate.noise_std, problem.correlation))
        size = len(values) + along[0].shape[1]
        information, moment = np.eye(size), np.zeros(size)
        for block, columns, weight in zip(fit.rows.blocks, along, weights, strict=True):
            weighted = weight * np.hstack([block.matrix @ root, columns])
            information += weighted.T @ weighted
            moment += weighted.T @ (weight * (block.target - block.matrix @ known))
        covariance = np.linalg.inv(information)
        own = slice(len(values), None)
        return Step(np.asarray((covariance @ moment)[own]), np.asarray(covariance[own, own]))
