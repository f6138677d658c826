# SPDX-License-Identifier: Apache-2.0
"""``wls``: iterated weighted least squares in base parameters, with Huber's loss on request."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import MAD_TO_STD, FloatArray
from sysid_core.dynamics.rows import RowBlock, Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import ParameterError
from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.least_squares import LeastSquares, LeastSquaresEstimator
from sysid_core.estimation.noise import fitted_degrees, rounding_std, row_weights
from sysid_core.estimation.problem import Problem

__all__ = ["ESTIMATOR", "Wls"]

_SETTLED = 1e-3  # relative change of the noise that ends the reweighting


@dataclass(frozen=True, kw_only=True)
class Wls(LeastSquaresEstimator):
    """Minimise Σ‖A_g β − y_g‖²/(σ_g² η_g), with σ_g from the residuals, iterated (Han et al.)."""

    name = "wls"
    huber: float | None = None
    """[-] residuals beyond this many standard deviations count linearly, by iteratively reweighted
    least squares; needs `Problem.rows`. None: all count quadratically."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.huber is not None and not (np.isfinite(self.huber) and self.huber > 0.0):
            raise ParameterError(f"huber must be a positive number or None, got {self.huber}")

    @property
    def needs_rows(self) -> bool:
        """Whether Huber's loss is wanted."""
        return self.huber is not None

    def solve(self, problem: Problem, start: FloatArray | None = None) -> Estimate:
        """Return the estimate; the start plays no part.

        Raises
        ------
        ParameterError
            If Huber's loss is wanted and the problem has no rows.
        """
        if self.huber is not None and problem.rows is None:
            raise ParameterError("Huber's loss needs single residuals; give the problem its rows")
        setting, statistics = LeastSquares(problem, self), problem.statistics
        noise = np.ones(len(problem.groups)) if problem.noise_std is None else problem.noise_std
        converged = problem.noise_std is not None and self.huber is None
        iterations = 0
        while iterations < self.max_iterations:
            iterations += 1
            fit = setting.fit(statistics, row_weights(noise, problem.correlation))
            if converged:
                break
            degrees = fitted_degrees(statistics, noise, setting.coordinates.lifted(fit.inverse))
            updated, weighted = self._reweighted(setting, fit.beta, degrees)
            base_vector = setting.coordinates.base_vector(fit.beta)
            rounding = rounding_std(problem.statistics, base_vector, degrees)
            ratio = np.maximum(updated, rounding) / np.maximum(noise, rounding)
            change = np.abs(np.log(ratio)).max(initial=0.0)
            moved = float(np.abs(weighted.count - statistics.count).max(initial=0.0))
            enough = _SETTLED * float(statistics.count.max(initial=0.0))
            converged = bool(change < _SETTLED and moved <= enough)
            noise, statistics = updated, weighted
        return setting.estimate(fit, fit.inverse, noise, iterations, converged)

    def _reweighted(
        self, setting: LeastSquares, beta: FloatArray, degrees: FloatArray
    ) -> tuple[FloatArray, Statistics]:
        """Return the noise that the residuals show, and the statistics under Huber's weights."""
        problem = setting.problem
        if self.huber is None or problem.rows is None:
            return setting.noise(problem.statistics, beta, degrees), problem.statistics
        residuals = problem.rows.residuals(setting.coordinates.base_vector(beta))
        noise, blocks, counts = [], [], []
        for group, (block, residual) in enumerate(
            zip(problem.rows.blocks, residuals, strict=True)
        ):
            # the median is blind to the outliers that Huber's loss is there to bound
            robust = MAD_TO_STD * float(np.median(np.abs(residual))) if len(residual) else 1.0
            dof = max(len(residual) - degrees[group], 0.01 * len(residual))
            robust *= np.sqrt(len(residual) / dof) if len(residual) else 1.0
            given = problem.noise_std
            sigma = (
                max(robust, setting.least_noise[group]) if given is None else float(given[group])
            )
            limit = self.huber * sigma
            root = np.sqrt(np.minimum(1.0, limit / np.maximum(np.abs(residual), 1e-300)))
            noise.append(sigma)
            counts.append(float((root**2).sum()))
            blocks.append(
                RowBlock(block.matrix * root[:, None], block.target * root, block.sample)
            )
        weighted = Statistics.of(Rows(tuple(blocks)))
        return np.array(noise), Statistics(
            weighted.gram, weighted.moment, weighted.square, np.array(counts)
        )


ESTIMATOR = Wls
