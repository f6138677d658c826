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
    "symmetric_inverse",
]


class Certainty(NamedTuple):
    """How far the free parameters are known.

    Attributes
    ----------
    variance : (n,)
    covariance : (n, n) or None
        None where only the variances are wanted.
    base : (b, b)
        Covariance of the base parameters.
    determined : (b,)
    """

    variance: FloatArray
    covariance: FloatArray | None
    base: FloatArray
    determined: FloatArray


@dataclass(frozen=True)
class Posterior:
    """Covariance in (z, β) coordinates, read out in any other.

    Attributes
    ----------
    coordinates : Coordinates
    joint : (n, n)
        Covariance of (z, β).
    """

    coordinates: Coordinates
    joint: FloatArray

    @staticmethod
    def of(coordinates: Coordinates, factor: FloatArray) -> Posterior:
        """Return the posterior from the lower Cholesky factor (n, n) of its information."""
        return Posterior(coordinates, symmetric_inverse(factor))

    @property
    def base(self) -> FloatArray:
        """Covariance (b, b) of all base parameters."""
        split = len(self.coordinates.others)
        return self.coordinates.lifted(self.joint[split:, split:])

    def covariance(self) -> FloatArray:
        """Return the covariance (n, n) of the free parameters."""
        return self.coordinates.covariance(self.joint)

    def variance(self) -> FloatArray:
        """Return the variances (n,) of the free parameters."""
        return self.coordinates.variance(self.joint)

    def certainty(self, learned: FloatArray, wanted: str) -> Certainty | None:
        """Return how far the parameters are known; None if that is not `wanted`.

        With the data's information H on the base parameters, `learned` (b, b), and their
        covariance P, the data's share is the diagonal of the resolution matrix P H.
        """
        if wanted == "none":
            return None
        base = self.base
        return Certainty(
            self.variance(),
            self.covariance() if wanted == "full" else None,
            base,
            np.clip(np.einsum("ij,ij->i", base, learned), 0.0, 1.0),
        )

    def variance_of(self, rows: FloatArray) -> FloatArray:
        """Return the variances (q,) of ``rows @ x``."""
        c = self.coordinates
        turned = np.hstack([rows @ c.spread, rows[:, c.columns]])
        return np.einsum("qi,qi->q", turned @ self.joint, turned)


def symmetric_inverse(factor: FloatArray) -> FloatArray:
    """Return the inverse of a symmetric matrix from its lower Cholesky factor (n, n)."""
    inverse, failed = lapack.dpotri(factor, lower=1)
    if failed:
        raise EstimationError("the information matrix is singular; widen no prior to infinity")
    lower = np.tril(inverse)
    full = lower + lower.T
    np.einsum("ii->i", full)[:] *= 0.5
    return full


def determined_share(posterior_variance: FloatArray, prior_variance: FloatArray) -> FloatArray:
    """Return the share of information that is not the prior's, 0 to 1; 0 for what is fixed."""
    ratio = posterior_variance / np.where(prior_variance > 0.0, prior_variance, 1.0)
    return np.where(prior_variance > 0.0, np.clip(1.0 - ratio, 0.0, 1.0), 0.0)
