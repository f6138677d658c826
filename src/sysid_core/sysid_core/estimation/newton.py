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
_NEAR = 0.1  # relative change up to which a Cholesky factor serves further steps
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
    state = _Progress()
    for iteration in range(1, max_iterations + 1):
        if state.stale:
            curvature = objective.prior_curvature(point)
            factor = _factorised(objective.hessian(point, curvature, data, state.share))
            state.factored()
        gradient = objective.gradient(point, data, state.share)
        change, _ = lapack.dpotrs(factor, -gradient, lower=0)
        square = max(0.0, float(-gradient @ change))
        dx = objective.coordinates.step(change)
        rates = objective.rates(point, dx)
        length, largest = _length(objective, square, rates)
        if iteration == 1 and length < _BLOCKED:
            state.ease(objective.coordinates.size / square)
            continue
        if length < 1.0 and not state.fresh:
            state.stale = True  # only an exact Newton direction is worth a line search
            continue
        point = objective.at(point.x + length * dx)
        if state.advance(square, length, largest, tolerance):
            break
    gradient = objective.gradient(point, data)
    rest, _ = lapack.dpotrs(factor, gradient, lower=0)
    optimality = float(np.sqrt(max(0.0, gradient @ rest)))
    return Minimum(point, factor, curvature, optimality, iteration, state.converged)


class _Progress:
    """Decides when to factorise anew, when to raise the data's share, and when to stop.

    A factor is kept while iterates stay near the point where it was made: arguments of the
    logarithms that changed by a share s in all change the Hessian by about 2 s, so a step with
    the old factor leaves about 2 s of the error, at a tenth of the cost of a new factor.
    """

    def __init__(self) -> None:
        self.share = 1.0
        self.stale, self.fresh, self.converged = True, False, False
        self._growth, self._steps, self._moved = 10.0, 0, 0.0

    def factored(self) -> None:
        """Note that the factor belongs to the current point."""
        self.stale, self.fresh, self._moved = False, True, 0.0

    def ease(self, share: float) -> None:
        """Start with a share of the data's weight."""
        self.share, self.stale = min(0.1, share), True

    def advance(self, square: float, length: float, largest: float, tolerance: float) -> bool:
        """Take note of a step; return whether it was the last one needed."""
        self._steps += 1
        self._moved += length * largest
        self.fresh = False
        self.stale = length < 1.0 or self._moved > _NEAR
        if self.share < 1.0:
            if square < 1.0 and largest < _FREE_STEP:
                quick = self._steps <= 2
                self._growth = self._growth**2 if quick else max(3.0, self._growth**0.5)
                self.share, self._steps = min(1.0, self.share * self._growth), 0
            self.stale = True
            return False
        left = 2.0 * self._moved * np.sqrt(square)
        self.converged = bool(length == 1.0 and left <= tolerance)
        return self.converged


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
