# SPDX-License-Identifier: Apache-2.0
"""Least squares regularised towards the nominal parameters, which ``prior`` and ``qp`` share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.estimation.estimator import Estimator
from sysid_core.estimation.gaussian import Gaussian, estimate_noise, prior_covariance
from sysid_core.estimation.posterior import Certainty, Posterior
from sysid_core.estimation.problem import Problem
from sysid_core.estimation.quadratic import Quadratic
from sysid_core.estimation.setting import Setting

__all__ = ["Regularised", "certainty_of"]


class Regularised(Setting):
    """A problem with the diagonal quadratic prior that ``prior`` and ``qp`` share.

    The weighting is the diagonal of one over the prior's variances, so each parameter is drawn
    to its nominal value by its own uncertainty.
    """

    def __init__(self, problem: Problem, config: Estimator) -> None:
        super().__init__(problem, config.noise_floor)
        self.config = config
        self.variance = np.diagonal(prior_covariance(self.divergence))

    @cached_property
    def gaussian(self) -> Gaussian:
        """The diagonal prior."""
        return Gaussian(self.divergence.mean, np.diag(self.variance))

    def quadratic(self, noise: FloatArray) -> Quadratic:
        """Return the regularised least-squares problem for rows of this noise (G,) [N·m]."""
        given = self.problem
        data = self.data(given.statistics, noise, given.correlation, given.anchor)
        precision = np.diag(1.0 / self.variance)
        return Quadratic(self.coordinates, self.divergence.mean, precision, data, self.measured)

    def settled(
        self, solution: Callable[[Quadratic], FloatArray]
    ) -> tuple[Quadratic, FloatArray, FloatArray]:
        """Solve with noise as given or settled; return the problem, parameters (n,), noise."""
        problem, c = self.problem, self.coordinates
        statistics, correlation = problem.statistics, problem.correlation
        floor = self.floor(statistics, correlation)
        noise = problem.noise_std
        if noise is None:
            noise = estimate_noise(statistics, correlation, c, self.gaussian, floor)
        quadratic = self.quadratic(noise)
        return quadratic, solution(quadratic), noise

    def certainty(self, quadratic: Quadratic) -> Certainty | None:
        """Return what the quadratic problem knows, its constraints left aside."""
        return certainty_of(quadratic, self.config.covariance)


def certainty_of(quadratic: Quadratic, wanted: str) -> Certainty | None:
    """Return how far a quadratic problem knows its parameters, its constraints left aside."""
    posterior = Posterior.of(quadratic.coordinates, quadratic.factor.T)
    return posterior.certainty(quadratic.data.learned, wanted)
