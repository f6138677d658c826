# SPDX-License-Identifier: Apache-2.0
"""Damped Newton with exact line search, and data eased in where they block the way."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from sysid_core.errors import EstimationError
from sysid_core.estimation.objective import Data, Objective, Point, exact_step
from sysid_core.recording import FloatArray

__all__ = ["Minimum", "minimise"]

_FREE_STEP = 0.3  # largest relative change at which a full Newton step needs no line search
_BLOCKED = 0.25  # a shorter step means that the boundary is in the way


class Minimum(NamedTuple):
    """Where Newton ended.

    Attributes
    ----------
    point : Point
    factor : (n, n)
        Upper Cholesky factor (Fortran order) of the Hessian in (z, β) at the last step's start.
    curvature : tuple
        Blocks and diagonal of the prior's Hessian there.
    optimality : float
        Newton decrement at the result: its distance from the optimum in posterior standard
        deviations.
    iterations : int
    converged : bool
    """

    point: Point
    factor: FloatArray
    curvature: tuple[FloatArray, FloatArray]
    optimality: float
    iterations: int
    converged: bool


def minimise(
    objective: Objective, data: Data, start: FloatArray, tolerance: float, max_iterations: int
) -> Minimum:
    """Minimise the objective from a strictly feasible start (n,); every iterate is feasible.

    Where the data pull hard against a boundary, Newton's steps would become short; the data
    then start with a share of their weight at which they balance the prior, and this share
    grows to one as the iterates follow (a path of centres).
    """
    point = objective.at(start)
    share, growth, steps = 1.0, 10.0, 0
    converged = False
    for iteration in range(1, max_iterations + 1):
        curvature = objective.prior_curvature(point)
        factor = _factorised(objective.hessian(point, curvature, data, share))
        gradient = objective.gradient(point, data, share)
        change, _ = lapack.dpotrs(factor, -gradient, lower=0)
        square = max(0.0, float(-gradient @ change))
        dx = objective.coordinates.step(change)
        rates = objective.rates(point, dx)
        length, largest = _length(objective, square, rates)
        if share == 1.0 and length < _BLOCKED and iteration == 1:
            share = min(0.1, objective.coordinates.size / square)
            continue
        point = objective.at(point.x + length * dx)
        steps += 1
        left = np.sqrt(square) * largest if length == 1.0 else np.inf
        if share < 1.0:
            if square < 1.0 and largest < _FREE_STEP:
                growth = growth**2 if steps <= 2 else max(3.0, growth**0.5)
                share, steps = min(1.0, share * growth), 0
        elif left <= tolerance:
            converged = True
            break
    gradient = objective.gradient(point, data)
    rest, _ = lapack.dpotrs(factor, gradient, lower=0)
    optimality = float(np.sqrt(max(0.0, gradient @ rest)))
    return Minimum(point, factor, curvature, optimality, iteration, converged)


def _length(
    objective: Objective, square: float, rates: tuple[FloatArray, FloatArray]
) -> tuple[float, float]:
    """Return the step length and a bound on the largest relative change of a full step."""
    bodies, ratios = rates
    norms = np.sqrt(np.einsum("kij,kij->k", bodies, bodies)).max(initial=0.0)
    largest = float(max(norms, np.abs(ratios).max(initial=0.0)))
    if largest < _FREE_STEP:
        return 1.0, largest
    return exact_step(square, *objective.logarithms(rates)), largest


def _factorised(hessian: FloatArray) -> FloatArray:
    """Return the upper Cholesky factor of a matrix given by its lower triangle (overwritten).

    Cholesky's accuracy does not depend on the scaling of the unknowns (van der Sluis 1969), so
    none is applied.
    """
    diagonal = np.diagonal(hessian).copy()
    factor, failed = lapack.dpotrf(hessian.T, lower=0, clean=0, overwrite_a=1)
    if failed or not np.isfinite(diagonal).all():
        raise EstimationError(
            "the information matrix lost its positive definiteness to rounding; "
            "widen the prior of bodies whose parameters differ by many orders of magnitude"
        )
    return np.asarray(factor)
