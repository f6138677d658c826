# SPDX-License-Identifier: Apache-2.0
"""Unconstrained least squares in base parameters: what ``ols`` and ``wls`` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation.certificate import Optimum, certified
from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.estimator import SHARE, Estimator
from sysid_core.estimation.gaussian import Gaussian, spread_over_prior
from sysid_core.estimation.noise import residual_std, weighted_sums
from sysid_core.estimation.posterior import Certainty, determined_share
from sysid_core.estimation.problem import Problem
from sysid_core.estimation.setting import Setting
from sysid_core.settings import parameter

__all__ = ["Fit", "LeastSquares", "LeastSquaresEstimator"]


class Fit(NamedTuple):
    """A solution of the normal equations."""

    beta: FloatArray  # (r,)
    gram: FloatArray  # (r, r), (r,)
    moment: FloatArray  # (r, r), (r,)
    inverse: FloatArray  # (r, r): Pseudo-inverse of the Gram matrix
    left_out: FloatArray  # (r, r) projector on what the pseudo-inverse leaves out


@dataclass(frozen=True, kw_only=True)
class LeastSquaresEstimator(Estimator):
    """An estimator without constraints."""

    rank_tolerance: float = parameter(
        1e-13,
        "Directions whose eigenvalue of the scaled Gram matrix is smaller, relative to the "
        "largest, are left at the prior [-]",
        range=SHARE,
    )


class LeastSquares(Setting):
    """The way from a problem's statistics to a fit and on to an estimate."""

    def __init__(self, problem: Problem, config: LeastSquaresEstimator) -> None:
        super().__init__(problem, config.noise_floor)
        self.config = config
        self.least_noise = self.floor(problem.statistics, problem.correlation)

    def fit(self, statistics: Statistics, weights: FloatArray) -> Fit:
        """Fit under weights (G,); what the data leave open stays at the prior."""
        gram, moment = self.coordinates.reduce(*weighted_sums(statistics, weights))
        inverse, left_out = _pseudo_inverse(gram, self.config.rank_tolerance)
        centre = self.coordinates.mapping @ self.divergence.mean
        beta = centre + inverse @ (moment - gram @ centre)
        beta += inverse @ (moment - gram @ beta)
        return Fit(beta, gram, moment, inverse, left_out)

    def noise(self, statistics: Statistics, beta: FloatArray, degrees: FloatArray) -> FloatArray:
        """Return the noise (G,): as given, or from the residuals."""
        if self.problem.noise_std is not None:
            return self.problem.noise_std
        base_vector = self.coordinates.base_vector(beta)
        return residual_std(statistics, base_vector, self.least_noise, degrees)

    def estimate(
        self,
        fit: Fit,
        covariance: FloatArray,
        noise: FloatArray,
        iterations: int,
        converged: bool,
    ) -> Estimate:
        """Return the estimate with the full vector closest to the prior."""
        c, B = self.coordinates, self.coordinates.mapping
        prior_base = B @ self.gaussian.covariance @ B.T
        open_part = fit.left_out @ prior_base @ fit.left_out.T
        free = spread_over_prior(c, self.gaussian, Gaussian(fit.beta, covariance + open_part))
        rest = fit.moment - fit.gram @ fit.beta
        square = float(rest @ fit.inverse @ rest)
        base = c.lifted(covariance + open_part)
        determined = determined_share(np.diagonal(base), np.diagonal(c.lifted(prior_base)))
        wanted = self.config.covariance
        certainty = Certainty(
            np.diagonal(free.covariance),
            free.covariance if wanted == "full" else None,
            base,
            determined,
        )
        optimum = Optimum(
            method=self.config.name,
            free=free.mean,
            certainty=None if wanted == "none" else certainty,
            information=fit.gram,
            noise_std=noise,
            optimality=max(0.0, square) ** 0.5,
            iterations=iterations,
            converged=converged,
        )
        return certified(self.problem, c, optimum)


def _pseudo_inverse(gram: FloatArray, tolerance: float) -> tuple[FloatArray, FloatArray]:
    """Return the pseudo-inverse of a Gram matrix scaled to a unit diagonal, and its complement."""
    diagonal = np.diagonal(gram)
    scale = np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(gram * scale[:, None] * scale)
    keep = values > tolerance * max(float(values.max(initial=0.0)), 1e-300)
    kept = scale[:, None] * vectors[:, keep]
    inverse = (kept / values[keep]) @ kept.T
    left_out = np.eye(len(gram)) - (kept @ vectors[:, keep].T) / np.where(scale > 0.0, scale, 1.0)
    return inverse, left_out
