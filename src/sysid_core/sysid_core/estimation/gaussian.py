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
_RANGE = 1e-3  # of weights relative to the targets: more would hide what noisy groups show
_CAUTIOUS = 0.01  # noise relative to the targets where residuals cannot tell it
_SETTLED = 0.01  # relative change of the noise that no longer moves the estimate

__all__ = [
    "Gaussian",
    "believable_floor",
    "estimate_noise",
    "likely_spread",
    "prior_covariance",
    "prior_precision",
    "spread_over_prior",
]


class Gaussian(NamedTuple):
    """A normal distribution."""

    mean: FloatArray  # (n,)
    covariance: FloatArray  # (n, n)


def prior_precision(divergence: Divergence) -> FloatArray:
    """Return the divergence's Hessian (n, n) at the prior's mean."""
    blocks, diagonal = divergence.curvature(divergence.mean, divergence.inverse)
    return scipy.linalg.block_diag(*blocks, np.diag(diagonal))


def prior_covariance(divergence: Divergence) -> FloatArray:
    """Return the inverse (n, n) of the divergence's Hessian at the prior's mean."""
    blocks, diagonal = divergence.curvature(divergence.mean, divergence.inverse)
    return scipy.linalg.block_diag(*np.linalg.inv(blocks), np.diag(1.0 / diagonal))


def likely_spread(divergence: Divergence) -> FloatArray:
    """Return the mean square distance (n, n) of parameters from the prior's mode.

    That of a friction with the mode f₀ and the relative deviation ρ, whose prior is a gamma
    distribution of the shape 1 + 1/ρ² and the scale ρ²f₀, is (1 + 2ρ²) ρ²f₀²: the approximation
    at the mode has ρ²f₀² of it.
    """
    spread = prior_covariance(divergence)
    place = divergence.split + divergence.positive
    square = 1.0 / divergence.logarithmic[divergence.positive]
    spread[place, place] *= 1.0 + 2.0 * square
    return spread


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
    fit = _Fit.of(statistics, correlation, coordinates, prior, size)
    if fit.open:
        relative = max(relative, (1e4 * float(np.finfo(float).eps) * fit.largest) ** 0.5)
    return size * np.where(fit.uncertain, max(relative, _CAUTIOUS), relative)


class _Fit(NamedTuple):
    """What the data say of the base parameters, without the prior or with it."""

    base_vector: FloatArray  # (b,) directions that the data leave open stay at the prior
    degrees: FloatArray  # (G,) degrees of freedom that it took from each group
    uncertain: BoolArray  # (G,) groups that it left hardly any
    open: bool  # Whether some directions are left open
    largest: float  # Largest information on a direction in units of the prior's

    @classmethod
    def of(
        cls,
        statistics: Statistics,
        correlation: FloatArray | None,
        coordinates: Coordinates,
        prior: Gaussian,
        noise: FloatArray,
        *,
        with_prior: bool = False,
    ) -> _Fit:
        """Solve for rows of this noise (G,), in the directions that the data show at all."""
        sums = weighted_sums(statistics, row_weights(noise, correlation))
        H, moment = coordinates.reduce(*sums)
        centre = coordinates.mapping @ prior.mean
        spread = coordinates.mapping @ prior.covariance @ coordinates.mapping.T
        root = np.linalg.cholesky(spread)
        values, vectors = np.linalg.eigh(root.T @ H @ root)
        largest = float(values.max(initial=0.0))
        kept = values > _SEEN * largest
        axes, known = root @ vectors[:, kept], values[kept] + with_prior
        beta = centre + (axes / known) @ (axes.T @ (moment - H @ centre))
        covariance = coordinates.lifted((axes / known) @ axes.T)
        degrees = fitted_degrees(statistics, noise, covariance)
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
    """Return the rows' noise (G,) [N·m] as the residuals of a Gaussian model show it.

    It is what least squares leave, weighted by it, so that data that contradict the prior are not
    taken for noise. Where they leave a group too few rows to tell, the prior counts, too:
    σ² = Σe²/(n − ην) with ν = tr(G_g Cov)/(σ²η), the number of parameters that a group determines
    (MacKay 1992, Bayesian interpolation), from the prior's residuals on.
    """
    sources = statistics, correlation, coordinates, prior
    fit = _Fit.of(*sources, target_size(statistics))
    noise = residual_std(statistics, fit.base_vector, floor, fit.degrees)
    lacking = bool(fit.uncertain.any())
    if lacking:
        centre = coordinates.base_vector(coordinates.mapping @ prior.mean)
        noise = np.where(fit.uncertain, residual_std(statistics, centre, floor), noise)
    least = 0.0 if lacking else _RANGE * target_size(statistics)
    for _ in range(_EVIDENCE_ROUNDS):
        fit = _Fit.of(*sources, np.maximum(noise, least), with_prior=lacking)
        updated = residual_std(statistics, fit.base_vector, floor, fit.degrees)
        change = np.abs(np.log(updated / noise)).max(initial=0.0)
        noise = updated
        if change < _SETTLED:
            break
    return noise
