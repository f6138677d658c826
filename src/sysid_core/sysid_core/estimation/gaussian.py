# SPDX-License-Identifier: Apache-2.0
"""The prior's Gaussian approximation, and what follows from it in closed form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation.coordinates import Coordinates
from sysid_core.estimation.divergence import Divergence
from sysid_core.estimation.noise import (
    fitted_degrees,
    residual_std,
    row_weights,
    target_size,
    weighted_sums,
)

_EVIDENCE_ROUNDS = 40
_SEEN = 1e-12  # relative eigenvalue of the information above which it is more than rounding
_CAUTIOUS = 0.01  # noise relative to the targets where residuals cannot tell it
_SETTLED = 0.01  # relative change of the noise that no longer moves the estimate

__all__ = [
    "Gaussian",
    "believable_floor",
    "estimate_noise",
    "prior_covariance",
    "prior_precision",
    "spread_over_prior",
]


class Gaussian(NamedTuple):
    """A normal distribution.

    Attributes
    ----------
    mean : (n,)
    covariance : (n, n)
    """

    mean: FloatArray
    covariance: FloatArray


def prior_precision(divergence: Divergence) -> FloatArray:
    """Return the divergence's Hessian (n, n) at the prior's mean."""
    blocks, diagonal = divergence.curvature(divergence.mean, divergence.inverse)
    return scipy.linalg.block_diag(*blocks, np.diag(diagonal))


def prior_covariance(divergence: Divergence) -> FloatArray:
    """Return the inverse (n, n) of the divergence's Hessian at the prior's mean."""
    blocks, diagonal = divergence.curvature(divergence.mean, divergence.inverse)
    return scipy.linalg.block_diag(*np.linalg.inv(blocks), np.diag(1.0 / diagonal))


def spread_over_prior(coordinates: Coordinates, prior: Gaussian, base: Gaussian) -> Gaussian:
    """Return the free parameters given their base parameters.

    Of all vectors with these base parameters the mean is the one that lies closest to the
    prior's in the metric of the prior's covariance W, x = x₀ + W Bᵀ(B W Bᵀ)⁻¹(β − B x₀); the
    covariance keeps the prior's in the directions that the base parameters leave open.
    """
    B = coordinates.mapping
    cross = prior.covariance @ B.T
    factor = scipy.linalg.cho_factor(B @ cross)
    gain = scipy.linalg.cho_solve(factor, cross.T).T
    change = base.mean - B @ prior.mean
    mean = prior.mean + gain @ change
    # rounding in the gain must not reach the base parameters
    mean[coordinates.columns] += base.mean - B @ mean
    covariance = prior.covariance - gain @ cross.T + gain @ base.covariance @ gain.T
    return Gaussian(mean, 0.5 * (covariance + covariance.T))


def believable_floor(
    statistics: Statistics,
    correlation: FloatArray | None,
    coordinates: Coordinates,
    prior: Gaussian,
    relative: float,
) -> FloatArray:
    """Return the smallest noise (G,) [N·m] that residuals can be trusted to show.

    In general that is `relative` times the size of the targets. Where least squares would leave
    a group no more than a tenth of its rows as degrees of freedom, vanishing residuals say
    nothing, and 1 % of the targets is assumed. Where the data leave some base parameters open,
    the noise stays so large that rounding in the Gram matrix cannot pass for information.
    """
    size = target_size(statistics)
    fit = _LeastSquares.of(statistics, correlation, coordinates, prior)
    if fit.open:
        relative = max(relative, (1e4 * float(np.finfo(float).eps) * fit.largest) ** 0.5)
    return size * np.where(fit.uncertain, max(relative, _CAUTIOUS), relative)


class _LeastSquares(NamedTuple):
    """What the data say without the prior, rows weighted by the size of their targets.

    Attributes
    ----------
    base_vector : (b,)
        Directions that the data leave open stay at the prior.
    degrees : (G,)
        Degrees of freedom that it took from each group.
    uncertain : (G,) bool
        Groups that it left hardly any.
    open : bool
        Whether some directions are left open.
    largest : float
        Largest information on a direction in units of the prior's.
    """

    base_vector: FloatArray
    degrees: FloatArray
    uncertain: BoolArray
    open: bool
    largest: float

    @classmethod
    def of(
        cls,
        statistics: Statistics,
        correlation: FloatArray | None,
        coordinates: Coordinates,
        prior: Gaussian,
    ) -> _LeastSquares:
        """Solve in the directions that the data show at all."""
        size = target_size(statistics)
        sums = weighted_sums(statistics, row_weights(size, correlation))
        H, moment = coordinates.reduce(*sums)
        centre = coordinates.mapping @ prior.mean
        spread = coordinates.mapping @ prior.covariance @ coordinates.mapping.T
        root = np.linalg.cholesky(spread)
        values, vectors = np.linalg.eigh(root.T @ H @ root)
        largest = float(values.max(initial=0.0))
        kept = values > _SEEN * largest
        axes = root @ vectors[:, kept]
        beta = centre + (axes / values[kept]) @ (axes.T @ (moment - H @ centre))
        covariance = coordinates.lifted((axes / values[kept]) @ axes.T)
        degrees = fitted_degrees(statistics, size, covariance)
        left = statistics.count - degrees
        uncertain = left < np.maximum(5.0, 0.1 * statistics.count)
        return cls(coordinates.base_vector(beta), degrees, uncertain, not kept.all(), largest)


def estimate_noise(
    statistics: Statistics,
    correlation: FloatArray | None,
    coordinates: Coordinates,
    prior: Gaussian,
    floor: FloatArray,
) -> FloatArray:
    """Return the rows' noise (G,) [N·m] from the evidence of a Gaussian model.

    σ² = Σe²/(n − ην) is iterated with ν = tr(G_g Cov)/(σ²η), the number of parameters that a
    group determines (MacKay 1992, Bayesian interpolation), with the Gaussian posterior of the base
    parameters. It starts from what least squares leave, so that data that contradict the prior
    are not taken for noise; where they leave too few rows to tell, from the prior's residuals.
    """
    centre = coordinates.mapping @ prior.mean
    spread = coordinates.mapping @ prior.covariance @ coordinates.mapping.T
    identity = np.eye(len(centre))
    precision = scipy.linalg.cho_solve(scipy.linalg.cho_factor(spread), identity)
    fit = _LeastSquares.of(statistics, correlation, coordinates, prior)
    noise = np.where(
        fit.uncertain,
        residual_std(statistics, coordinates.base_vector(centre), floor),
        residual_std(statistics, fit.base_vector, floor, fit.degrees),
    )
    for _ in range(_EVIDENCE_ROUNDS):
        sums = weighted_sums(statistics, row_weights(noise, correlation))
        H, moment = coordinates.reduce(*sums)
        factor = scipy.linalg.cho_factor(precision + H, check_finite=False)
        beta = centre + scipy.linalg.cho_solve(factor, moment - H @ centre)
        covariance = coordinates.lifted(scipy.linalg.cho_solve(factor, identity))
        degrees = fitted_degrees(statistics, noise, covariance)
        updated = residual_std(statistics, coordinates.base_vector(beta), floor, degrees)
        change = np.abs(np.log(updated / noise)).max(initial=0.0)
        noise = updated
        if change < _SETTLED:
            break
    return noise
