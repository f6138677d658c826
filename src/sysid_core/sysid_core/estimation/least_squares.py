# SPDX-License-Identifier: Apache-2.0
"""``ols`` and ``wls``: least squares in base parameters, unconstrained."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.rows import RowBlock, Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import ParameterError
from sysid_core.estimation.certificate import Certainty, Optimum, certified
from sysid_core.estimation.coordinates import Coordinates
from sysid_core.estimation.divergence import Divergence
from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.gaussian import (
    Gaussian,
    believable_floor,
    prior_covariance,
    spread_over_prior,
)
from sysid_core.estimation.noise import (
    fitted_degrees,
    residual_std,
    rounding_std,
    row_weights,
    weighted_sums,
)
from sysid_core.estimation.options import EstimatorConfig
from sysid_core.estimation.posterior import determined_share
from sysid_core.estimation.problem import Problem

__all__ = ["solve_ols", "solve_wls"]

_SETTLED = 1e-3  # relative change of the noise that ends the reweighting


class _Inverse(NamedTuple):
    """Pseudo-inverse (r, r) of a Gram matrix and the projector (r, r) on what it left out."""

    matrix: FloatArray
    left_out: FloatArray


def solve_ols(problem: Problem, options: EstimatorConfig) -> Estimate:
    """Minimise Σ‖A_g β − y_g‖², all groups weighted alike.

    The covariance is that of unweighted least squares under the noise of each group,
    G⁻¹ (Σ σ_g² η_g G_g) G⁻¹.
    """
    setting = _Setting(problem, options)
    ones = np.ones(len(problem.groups))
    gram, moment = setting.coordinates.reduce(*weighted_sums(problem.statistics, ones))
    inverse = _pseudo_inverse(gram, options.rank_tolerance)
    beta = setting.solution(gram, moment, inverse)
    degrees = fitted_degrees(problem.statistics, ones, setting.coordinates.lifted(inverse.matrix))
    noise = setting.noise(problem.statistics, beta, degrees)
    variances = 1.0 / row_weights(noise, problem.correlation)
    spread, _ = setting.coordinates.reduce(*weighted_sums(problem.statistics, variances))
    covariance = inverse.matrix @ spread @ inverse.matrix
    return setting.estimate("ols", gram, moment, inverse, beta, covariance, noise, 1, True)


def solve_wls(problem: Problem, options: EstimatorConfig) -> Estimate:
    """Minimise Σ‖A_g β − y_g‖²/(σ_g² η_g), with σ_g from the residuals, iterated (Han et al.).

    With `EstimatorConfig.huber`, rows whose residual exceeds that many σ_g get the weight that
    makes them count linearly (iteratively reweighted least squares).

    Raises
    ------
    ParameterError
        If Huber's loss is wanted and the problem has no rows.
    """
    if options.huber is not None and problem.rows is None:
        raise ParameterError("Huber's loss needs single residuals; give the problem its rows")
    setting = _Setting(problem, options)
    c, statistics = setting.coordinates, problem.statistics
    noise = np.ones(len(problem.groups)) if problem.noise_std is None else problem.noise_std
    converged = problem.noise_std is not None and options.huber is None
    iterations = 0
    while iterations < options.max_iterations:
        iterations += 1
        sums = weighted_sums(statistics, row_weights(noise, problem.correlation))
        gram, moment = c.reduce(*sums)
        inverse = _pseudo_inverse(gram, options.rank_tolerance)
        beta = setting.solution(gram, moment, inverse)
        if converged:
            break
        degrees = fitted_degrees(statistics, noise, c.lifted(inverse.matrix))
        updated, weighted = _reweighted(setting, beta, degrees)
        rounding = rounding_std(problem.statistics, c.base_vector(beta), degrees)
        ratio = np.maximum(updated, rounding) / np.maximum(noise, rounding)
        change = np.abs(np.log(ratio)).max(initial=0.0)
        moved = float(np.abs(weighted.count - statistics.count).max(initial=0.0))
        enough = _SETTLED * float(statistics.count.max(initial=0.0))
        converged = bool(change < _SETTLED and moved <= enough)
        noise, statistics = updated, weighted
    return setting.estimate(
        "wls", gram, moment, inverse, beta, inverse.matrix, noise, iterations, converged
    )


class _Setting:
    """What the unconstrained estimators share: coordinates, prior and the way to an estimate."""

    def __init__(self, problem: Problem, options: EstimatorConfig) -> None:
        self.problem, self.options = problem, options
        self.coordinates = Coordinates.of(
            problem.base, problem.constraints.fixed, problem.prior.mean
        )
        divergence = Divergence.of(problem, self.coordinates)
        self.prior = Gaussian(divergence.mean, prior_covariance(divergence))
        self.centre = self.coordinates.mapping @ divergence.mean
        self.floor = believable_floor(
            problem.statistics,
            problem.correlation,
            self.coordinates,
            self.prior,
            options.noise_floor,
        )

    def solution(self, gram: FloatArray, moment: FloatArray, inverse: _Inverse) -> FloatArray:
        """Return β (r,); what the data leave open stays at the prior."""
        beta = self.centre + inverse.matrix @ (moment - gram @ self.centre)
        return beta + inverse.matrix @ (moment - gram @ beta)

    def noise(self, statistics: Statistics, beta: FloatArray, degrees: FloatArray) -> FloatArray:
        """Return the noise (G,): as given, or from the residuals."""
        if self.problem.noise_std is not None:
            return self.problem.noise_std
        base_vector = self.coordinates.base_vector(beta)
        return residual_std(statistics, base_vector, self.floor, degrees)

    def estimate(
        self,
        method: str,
        gram: FloatArray,
        moment: FloatArray,
        inverse: _Inverse,
        beta: FloatArray,
        covariance: FloatArray,
        noise: FloatArray,
        iterations: int,
        converged: bool,
    ) -> Estimate:
        """Return the estimate with the full vector closest to the prior."""
        c, B = self.coordinates, self.coordinates.mapping
        prior_base = B @ self.prior.covariance @ B.T
        open_part = inverse.left_out @ prior_base @ inverse.left_out.T
        free = spread_over_prior(c, self.prior, Gaussian(beta, covariance + open_part))
        rest = moment - gram @ beta
        square = float(rest @ inverse.matrix @ rest)
        base = c.lifted(covariance + open_part)
        determined = determined_share(np.diagonal(base), np.diagonal(c.lifted(prior_base)))
        wanted = self.options.covariance
        certainty = Certainty(
            np.diagonal(free.covariance),
            free.covariance if wanted == "full" else None,
            base,
            determined,
        )
        finding = Optimum(
            method=method,
            free=free.mean,
            certainty=None if wanted == "none" else certainty,
            information=gram,
            noise_std=noise,
            optimality=max(0.0, square) ** 0.5,
            iterations=iterations,
            converged=converged,
        )
        return certified(self.problem, c, self.problem.statistics, finding)


def _pseudo_inverse(gram: FloatArray, tolerance: float) -> _Inverse:
    """Return the pseudo-inverse of a Gram matrix scaled to a unit diagonal."""
    diagonal = np.diagonal(gram)
    scale = np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(gram * scale[:, None] * scale)
    keep = values > tolerance * max(float(values.max(initial=0.0)), 1e-300)
    kept = scale[:, None] * vectors[:, keep]
    inverse = (kept / values[keep]) @ kept.T
    left_out = np.eye(len(gram)) - (kept @ vectors[:, keep].T) / np.where(scale > 0.0, scale, 1.0)
    return _Inverse(inverse, left_out)


def _reweighted(
    setting: _Setting, beta: FloatArray, degrees: FloatArray
) -> tuple[FloatArray, Statistics]:
    """Return the noise that the residuals show, and the statistics under Huber's weights."""
    problem, options = setting.problem, setting.options
    if options.huber is None or problem.rows is None:
        return setting.noise(problem.statistics, beta, degrees), problem.statistics
    residuals = problem.rows.residuals(setting.coordinates.base_vector(beta))
    noise, blocks, counts = [], [], []
    for group, (block, residual) in enumerate(zip(problem.rows.blocks, residuals, strict=True)):
        # the median is blind to the outliers that Huber's loss is there to bound
        robust = 1.4826 * float(np.median(np.abs(residual))) if len(residual) else 1.0
        dof = max(len(residual) - degrees[group], 0.01 * len(residual))
        robust *= np.sqrt(len(residual) / dof) if len(residual) else 1.0
        given = problem.noise_std
        sigma = max(robust, setting.floor[group]) if given is None else float(given[group])
        limit = options.huber * sigma
        root = np.sqrt(np.minimum(1.0, limit / np.maximum(np.abs(residual), 1e-300)))
        noise.append(sigma)
        counts.append(float((root**2).sum()))
        blocks.append(RowBlock(block.matrix * root[:, None], block.target * root, block.sample))
    weighted = Statistics.of(Rows(tuple(blocks)))
    return np.array(noise), Statistics(
        weighted.gram, weighted.moment, weighted.square, np.array(counts)
    )
