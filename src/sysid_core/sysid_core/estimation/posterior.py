# SPDX-License-Identifier: Apache-2.0
"""Posterior covariance: how far each parameter is known, and what of it came from the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from sysid_core.arrays import FloatArray
from sysid_core.errors import EstimationError
from sysid_core.estimation.coordinates import Coordinates

__all__ = [
    "Certainty",
    "Posterior",
    "determined_share",
]

_LEAF = 100
"""Size below which calls cost more than products save."""


class Certainty(NamedTuple):
    """How far the free parameters are known."""

    variance: FloatArray  # (n,)
    covariance: FloatArray | None  # (n, n): None where only the variances are wanted
    base: FloatArray  # (b, b) covariance of the base parameters
    determined: FloatArray  # (b,)


@dataclass(frozen=True)
class Posterior:
    """Covariance in (z, β) coordinates, read out in any other."""

    coordinates: Coordinates
    root: FloatArray  # (n, n) lower triangular W; the covariance of (z, β) is WᵀW

    @staticmethod
    def of(coordinates: Coordinates, factor: FloatArray) -> Posterior:
        """Return the posterior from the lower Cholesky factor (n, n) of its information.

        Raises
        ------
        EstimationError
            If the information is singular.
        """
        return Posterior(coordinates, _triangular_inverse(factor))

    @property
    def base(self) -> FloatArray:
        """Covariance (b, b) of all base parameters."""
        split = len(self.coordinates.others)
        own = self.root[split:, split:]
        return self.coordinates.lifted(own.T @ own)

    def certainty(self, learned: FloatArray, wanted: str) -> Certainty | None:
        """Return how far the parameters are known; None if that is not `wanted`.

        With the data's information H on the base parameters, `learned` (b, b), and their
        covariance P, the data's share is the diagonal of the resolution matrix P H.
        """
        if wanted == "none":
            return None
        base, c = self.base, self.coordinates
        split = len(c.others)
        z, beta = self.root[:, :split], self.root[:, split:]
        variance, covariance = np.empty(c.size), None
        if wanted == "full":
            turned = np.empty_like(self.root)
            turned[:, c.others], turned[:, c.columns] = z, beta + z @ c.tied.T
            covariance = turned.T @ turned
            variance = np.diagonal(covariance)
        else:
            own, cross = z.T @ z, beta[split:].T @ z[split:]
            variance[c.others] = np.diagonal(own)
            tied = ((c.tied @ own + 2.0 * cross) * c.tied).sum(axis=1)
            variance[c.columns] = tied + (beta[split:] ** 2).sum(axis=0)
        share = np.clip(np.einsum("ij,ij->i", base, learned), 0.0, 1.0)
        return Certainty(variance, covariance, base, share)

    def variance_of(self, rows: FloatArray) -> FloatArray:
        """Return the variances (q,) of ``rows @ x``."""
        c = self.coordinates
        split = len(c.others)
        free, tied = rows[:, c.others], rows[:, c.columns]
        z, beta = self.root[:, :split], self.root[:, split:]
        turned = z @ (free + tied @ c.tied).T + beta @ tied.T
        return np.asarray((turned * turned).sum(axis=0))


def _triangular_inverse(factor: FloatArray) -> FloatArray:
    """Return the inverse of a lower triangular matrix (n, n), of which the rest is not read.

    By halves, so that products do the work: LAPACK's own takes twice as long.
    """
    size = len(factor)
    if size <= _LEAF:
        inverse, failed = lapack.dtrtri(np.tril(factor), lower=1)
        if failed:
            raise EstimationError("the information matrix is singular; widen no prior to infinity")
        return np.asarray(inverse)
    half, result = size // 2, np.zeros((size, size))
    upper, lower = (
        _triangular_inverse(factor[:half, :half]),
        _triangular_inverse(factor[half:, half:]),
    )
    result[:half, :half], result[half:, half:] = upper, lower
    np.matmul(lower, -(factor[half:, :half] @ upper), out=result[half:, :half])
    return result


def determined_share(posterior_variance: FloatArray, prior_variance: FloatArray) -> FloatArray:
    """Return the share of information that is not the prior's, 0 to 1; 0 for what is fixed."""
    ratio = posterior_variance / np.where(prior_variance > 0.0, prior_variance, 1.0)
    return np.where(prior_variance > 0.0, np.clip(1.0 - ratio, 0.0, 1.0), 0.0)
