# SPDX-License-Identifier: Apache-2.0
"""Posterior covariance: how far each parameter is known, and what of it came from the data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from sysid_core.arrays import FloatArray
from sysid_core.errors import EstimationError
from sysid_core.estimation.coordinates import Coordinates

__all__ = [
    "Certainty",
    "Posterior",
    "determined_share",
]

_LEAF = 50
"""Size below which calls cost more than products save."""


class Certainty(NamedTuple):
    """How far the free parameters are known."""

    variance: FloatArray  # (n,)
    covariance: FloatArray | None  # (n, n): None where only the variances are wanted
    base: FloatArray  # (b, b) covariance of the base parameters
    determined: FloatArray  # (b,)


@dataclass(frozen=True)
class Posterior:
    """Covariance in (z, β) coordinates, read out in any other.

    With the information's factor [[L, 0], [B, M]] it is WᵀW, W = [[L⁻¹, 0], [−M⁻¹ K, M⁻¹]] and
    K = B L⁻¹, so that the covariance P of β leads to all the rest: −P K with z, and that of z is
    L⁻ᵀL⁻¹ + KᵀPK.
    """

    coordinates: Coordinates
    own: FloatArray  # (n − r, n − r): L⁻¹
    gain: FloatArray  # (r, n − r): K
    rest: FloatArray  # (r, r): M⁻¹

    @staticmethod
    def of(coordinates: Coordinates, factor: FloatArray) -> Posterior:
        """Return the posterior from the Cholesky factor (n, n) of its information, zero above.

        Raises
        ------
        EstimationError
            If the information is singular.
        """
        split = len(coordinates.others)
        own, rest = factor[:split, :split].copy(order="F"), factor[split:, split:].copy(order="F")
        _invert(own)
        _invert(rest)
        return Posterior(coordinates, own, factor[split:, :split] @ own, rest)

    @cached_property
    def _beta(self) -> FloatArray:
        """Covariance (r, r) of β."""
        lower, _ = lapack.dlauum(self.rest, lower=1)
        full = np.add(lower, lower.T, order="C")
        full.reshape(-1)[:: len(full) + 1] *= 0.5
        return full

    @property
    def base(self) -> FloatArray:
        """Covariance (b, b) of all base parameters."""
        return self.coordinates.lifted(self._beta)

    def certainty(self, learned: FloatArray, wanted: str) -> Certainty | None:
        """Return how far the parameters are known; None if that is not `wanted`.

        With the data's information H on the base parameters, `learned` (b, b), and their
        covariance P, the data's share is the diagonal of the resolution matrix P H.
        """
        if wanted == "none":
            return None
        base, c = self.base, self.coordinates
        variance, covariance = np.empty(c.size), None
        if wanted == "full":
            covariance = self._covariance()
            variance = np.diagonal(covariance)
        else:
            carried = blas.dtrmm(1.0, self.rest, self.gain, lower=1)
            own = self.own.T @ self.own + carried.T @ carried
            variance[c.others], variance[c.columns] = np.diagonal(own), np.diagonal(self._beta)
            moved, tied = c.moved, c.tied[c.moved]
            cross = self._beta[moved] @ self.gain
            variance[c.columns[moved]] += ((tied @ own - 2.0 * cross) * tied).sum(axis=1)
        share = np.clip(np.einsum("ij,ij->i", base, learned), 0.0, 1.0)
        return Certainty(variance, covariance, base, share)

    def _covariance(self) -> FloatArray:
        """Covariance (n, n) of x, as a square, so that rounding leaves it positive."""
        c, split = self.coordinates, len(self.coordinates.others)
        root = np.zeros((c.size, c.size))
        root[:split, c.others], root[split:, c.others] = self.own, -self.rest @ self.gain
        root[split:, c.columns] = self.rest
        root[:, c.columns] += root[:, c.others] @ c.tied.T
        return root.T @ root

    def variance_of(self, rows: FloatArray) -> FloatArray:
        """Return the variances (q,) of ``rows @ x``."""
        c = self.coordinates
        tied = rows[:, c.columns].T
        free = rows[:, c.others].T + c.tied.T @ tied
        of_z, of_beta = self.own @ free, self.rest @ (tied - self.gain @ free)
        return np.asarray((of_z * of_z).sum(axis=0) + (of_beta * of_beta).sum(axis=0))


def _invert(lower: FloatArray) -> None:
    """Invert a lower triangular matrix (n, n) in its place.

    By halves, so that products do the work: LAPACK's own takes twice as long.
    """
    half = len(lower) // 2
    if not len(lower):
        return
    if len(lower) <= _LEAF:
        lower[:], failed = lapack.dtrtri(lower, lower=1)
        if failed:
            raise EstimationError("the information matrix is singular; widen no prior to infinity")
        return
    first, second = lower[:half, :half], lower[half:, half:]
    _invert(first)
    _invert(second)
    lower[half:, :half] = -(second @ (lower[half:, :half] @ first))


def determined_share(posterior_variance: FloatArray, prior_variance: FloatArray) -> FloatArray:
    """Return the share of information that is not the prior's, 0 to 1; 0 for what is fixed."""
    ratio = posterior_variance / np.where(prior_variance > 0.0, prior_variance, 1.0)
    return np.where(prior_variance > 0.0, np.clip(1.0 - ratio, 0.0, 1.0), 0.0)
