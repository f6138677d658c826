# SPDX-License-Identifier: Apache-2.0
"""Weighted least squares with a quadratic prior, whitened: the core of ``prior, qp, sdp``."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack, solve_triangular

from sysid_core.arrays import FloatArray
from sysid_core.errors import EstimationError
from sysid_core.estimation.coordinates import Coordinates
from sysid_core.estimation.measured import Measured
from sysid_core.estimation.objective import Data

__all__ = ["Quadratic"]


class Quadratic:
    """½βᵀHβ − mᵀβ + ½(x − x₀)ᵀΛ(x − x₀) + ½ Σ (aᵀx − y)²/s².

    With M = UᵀU its Hessian in (z, β) and x_c its minimum, ``x = x_c + white @ v`` makes the
    function ½‖v‖² plus a constant, whatever the spread of scales: v counts posterior standard
    deviations. Constrained programs are posed in v.
    """

    def __init__(
        self,
        coordinates: Coordinates,
        mean: FloatArray,
        precision: FloatArray,
        data: Data,
        measured: Measured,
    ) -> None:
        self.coordinates, self.mean, self.precision = coordinates, mean, precision
        self.data, self.measured = data, measured
        split = len(coordinates.others)
        turn = np.zeros((coordinates.size, coordinates.size))
        turn[:, :split] = coordinates.spread
        turn[coordinates.columns, np.arange(split, coordinates.size)] = 1.0
        M = turn.T @ precision @ turn
        M[split:, split:] += data.information
        rows = measured.rows @ turn
        M += (rows.T * measured.weight) @ rows
        factor, failed = lapack.dpotrf(M, lower=0, clean=1)
        if failed:
            raise EstimationError(
                "the information matrix lost its positive definiteness to rounding; "
                "give the prior standard deviations of comparable size"
            )
        self.factor = factor  # (n, n): U, upper
        x = mean
        for _ in range(2):  # the second round removes the rounding of the first
            x = x - coordinates.step(lapack.dpotrs(factor, self.gradient(x), lower=0)[0])
        self.centre = x  # (n,) x_c
        self.white = turn @ solve_triangular(factor, np.eye(coordinates.size))  # (n, n)

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return the gradient (n,) in (z, β)."""
        c = self.coordinates
        in_x = self.precision @ (x - self.mean)
        if len(self.measured.rows):
            in_x = in_x + self.measured.gradient(x)
        gradient = c.gradient(in_x)
        beta = c.mapping @ x
        gradient[len(c.others) :] += self.data.information @ beta - self.data.moment
        return gradient

    def white_gradient(self, x: FloatArray) -> FloatArray:
        """Return the gradient (n,) in v."""
        return np.asarray(solve_triangular(self.factor, self.gradient(x), trans=1))

    def whitened(self, x: FloatArray) -> FloatArray:
        """Return v (n,) of x."""
        c, change = self.coordinates, x - self.centre
        return np.asarray(self.factor @ np.concatenate([change[c.others], c.mapping @ change]))
