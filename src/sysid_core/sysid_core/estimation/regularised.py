# SPDX-License-Identifier: Apache-2.0
"""Least squares regularised towards the nominal parameters, which ``prior`` and ``qp`` share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.estimation.certificate import Certainty
from sysid_core.estimation.coordinates import Coordinates
from sysid_core.estimation.divergence import Divergence
from sysid_core.estimation.estimator import Estimator
from sysid_core.estimation.gaussian import (
    Gaussian,
    believable_floor,
    estimate_noise,
    prior_covariance,
)
from sysid_core.estimation.measured import Measured
from sysid_core.estimation.noise import (
    fitted_degrees,
    residual_std,
    row_weights,
    settled_noise,
    weighted_sums,
)
from sysid_core.estimation.objective import Data
from sysid_core.estimation.posterior import Posterior, determined_share
from sysid_core.estimation.problem import Problem
from sysid_core.estimation.quadratic import Quadratic

__all__ = ["Regularised", "certainty_of"]


class Regularised:
    """A problem with the diagonal quadratic prior that ``prior`` and ``qp`` share.

    The weighting is the diagonal of one over the prior's variances, so each parameter is drawn
    to its nominal value by its own uncertainty.
    """

    def __init__(self, problem: Problem, config: Estimator) -> None:
        self.problem, self.config = problem, config
        self.coordinates = Coordinates.of(
            problem.base, problem.constraints.fixed, problem.prior.mean
        )
        self.divergence = Divergence.of(problem, self.coordinates)
        self.measured = Measured.total_mass(problem, self.coordinates)
        self.variance = np.diagonal(prior_covariance(self.divergence))
        self.gaussian = Gaussian(self.divergence.mean, np.diag(self.variance))
        self.floor = believable_floor(
            problem.statistics,
            problem.correlation,
            self.coordinates,
            self.gaussian,
            config.noise_floor,
        )

    def quadratic(self, noise: FloatArray) -> Quadratic:
        """Return the regularised least-squares problem for rows of this noise (G,) [N·m]."""
        problem, c = self.problem, self.coordinates
        sums = weighted_sums(problem.statistics, row_weights(noise, problem.correlation))
        data = Data(*c.reduce(*sums))
        return Quadratic(
            c, self.divergence.mean, np.diag(1.0 / self.variance), data, self.measured
        )

    def settled(
        self, solution: Callable[[Quadratic], FloatArray]
    ) -> tuple[Quadratic, FloatArray, FloatArray]:
        """Solve with noise as given or settled; return the problem, parameters (n,), noise."""
        problem, c = self.problem, self.coordinates

        def solved(noise: FloatArray) -> tuple[Quadratic, FloatArray]:
            quadratic = self.quadratic(noise)
            return quadratic, solution(quadratic)

        def updated(noise: FloatArray, result: tuple[Quadratic, FloatArray]) -> FloatArray:
            quadratic, x = result
            covariance = Posterior.of(c, quadratic.factor.T).base
            degrees = fitted_degrees(problem.statistics, noise, covariance)
            base_vector = c.base_vector(c.mapping @ x)
            return residual_std(problem.statistics, base_vector, self.floor, degrees)

        first, rounds = problem.noise_std, 0
        if first is None:
            rounds = self.config.noise_updates
            first = estimate_noise(
                problem.statistics, problem.correlation, c, self.gaussian, self.floor
            )
        (quadratic, x), noise = settled_noise(first, rounds, solved, updated)
        return quadratic, x, noise

    def certainty(self, quadratic: Quadratic) -> Certainty | None:
        """Return what the quadratic problem knows, its constraints left aside."""
        return certainty_of(quadratic, np.diag(self.variance), self.config.covariance)


def certainty_of(quadratic: Quadratic, prior: FloatArray, wanted: str) -> Certainty | None:
    """Return how far a quadratic problem with prior covariance (n, n) knows its parameters."""
    if wanted == "none":
        return None
    c = quadratic.coordinates
    posterior = Posterior.of(c, quadratic.factor.T)
    prior_base = np.diagonal(c.lifted(c.mapping @ prior @ c.mapping.T))
    base = posterior.base
    return Certainty(
        posterior.variance(),
        posterior.covariance() if wanted == "full" else None,
        base,
        determined_share(np.diagonal(base), prior_base),
    )
