# SPDX-License-Identifier: Apache-2.0
"""``ols``: unweighted least squares in base parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.least_squares import LeastSquares, LeastSquaresEstimator
from sysid_core.estimation.noise import fitted_degrees, row_weights, weighted_sums
from sysid_core.estimation.problem import Problem

__all__ = ["ESTIMATOR", "Ols"]


@dataclass(frozen=True, kw_only=True)
class Ols(LeastSquaresEstimator):
    """Minimise Σ‖A_g β − y_g‖², all groups weighted alike.

    The covariance is that of unweighted least squares under the noise of each group,
    G⁻¹ (Σ σ_g² η_g G_g) G⁻¹.
    """

    name = "ols"

    def solve(self, problem: Problem, start: FloatArray | None = None) -> Estimate:
        """Return the estimate; the start plays no part."""
        setting = LeastSquares(problem, self)
        statistics, c = problem.statistics, setting.coordinates
        ones = np.ones(len(problem.groups))
        fit = setting.fit(statistics, ones)
        degrees = fitted_degrees(statistics, ones, c.lifted(fit.inverse))
        noise = setting.noise(statistics, fit.beta, degrees)
        variances = 1.0 / row_weights(noise, problem.correlation)
        spread, _ = c.reduce(*weighted_sums(statistics, variances))
        covariance = fit.inverse @ spread @ fit.inverse
        return setting.estimate(fit, covariance, noise, 1, True)


ESTIMATOR = Ols
