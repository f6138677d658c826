# SPDX-License-Identifier: Apache-2.0
"""Damped Newton with an exact line search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from sysid_core.arrays import FloatArray
from sysid_core.errors import EstimationError
from sysid_core.estimation.objective import Data, Objective, Point, exact_step

__all__ = ["Minimum", "minimise"]

_FREE_STEP = 0.3  # largest relative change at which a full Newton step needs no line search
_NEAR = 1.0  # relative error of a Hessian up to which its factor serves: its steps contract
_CLOSE = 0.05  # and up to which it serves the covariance: deviations are off by half of it
_FULL = 0.1  # difference from one up to which a step's length hardly matters
_BLOCKED = 0.25  # a shorter first step means that a boundary is in the way
_SLOWEST = 1.5  # smallest factor by which the data's share grows
_RIDGES = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)  # relative increases of a diagonal to try
_IDLE = 10  # full steps without progress after which only rounding is left
_ROUNDING = 1e-3  # posterior standard deviations that such rounding may amount to


class Minimum(NamedTuple):
    """Where Newton ended."""

    point: Point
    factor: FloatArray  # (n, n) lower Cholesky factor (Fortran order) of the Hessian in (z, β)
    error: float  # Relative error of that Hessian, which was made before the last steps
    optimality: float
    """Newton decrement at the result: its distance from the optimum in posterior standard
    deviations."""
    iterations: int
    converged: bool


def minimise(
    objective: Objective,
    data: Data,
    start: Point,
    tolerance: float,
    max_iterations: int,
    known: tuple[FloatArray, float] | None = None,
) -> Minimum:
    """Minimise the objective from a strictly feasible start; every iterate is feasible.

    A factor of the Hessian that is `known` with some relative error serves while that is small.

    Where the data press against a boundary, so that a step comes out short, they are eased in:
    they start with the share of their weight at which they balance the prior, and it grows to
    one as the iterates follow (a path of centres).
    """
    descent = _Descent(objective, data, start, tolerance)
    if known is not None:
        descent.know(*known)
    iterations = 0
    while iterations < max_iterations and not descent.finished:
        iterations += 1
        descent.step()
    descent.settle()
    return Minimum(
        descent.point,
        descent.factor,
        descent.error,
        descent.decrement(),
        iterations,
        descent.converged,
    )


class _Descent:
    """The state of one minimisation.

    A factor is kept while iterates stay near the point where it was made: arguments of the
    logarithms that changed by a share s in all change the Hessian by at most about 2 s, so a step
    with the old factor leaves at most 2 s of the error, at a fraction of the cost of a new
    factor. The covariance needs one at the end: it is made where the last steps are short.
    """

    factor: FloatArray

    def __init__(self, objective: Objective, data: Data, point: Point, tolerance: float) -> None:
        self.objective, self.data, self.point = objective, data, point
        self.tolerance = tolerance
        self.finished = self.converged = False
        self.error, self._own, self._change = 0.0, False, np.inf
        self._start, self._eased = point, False
        self._share, self._growth, self._corrections = 1.0, 10.0, 0
        self._stale, self._fresh = True, False
        self._least, self._idle = np.inf, 0
        self._slope: tuple[Point, float, FloatArray] | None = None

    def know(self, factor: FloatArray, error: float) -> None:
        """Begin with a factor whose Hessian has this relative error."""
        if error <= _NEAR:
            self.factor, self.error, self._stale = factor, error, False

    def step(self) -> None:
        """Take one Newton step."""
        if self._stale or self._settling(self.error * self._change):
            self._factorise()
        square, length, largest, dx = self._direction()
        # only an exact Newton direction is worth a line search
        if not self._fresh and (self._settling(largest) or length < 1.0 - _FULL):
            self._factorise()
            square, length, largest, dx = self._direction()
        if length < _BLOCKED and not self._eased:
            self._ease(square)
            return
        self.point = self.objective.at(self.point.x + length * dx)
        self._fresh, self._change = False, length * largest
        self.error += 2.0 * self._change
        full = abs(length - 1.0) <= _FULL
        self._stale = not full or self.error > _NEAR
        if self._share < 1.0:
            self._follow(largest)
        elif full:
            self._judge(square)

    def _settling(self, change: float) -> bool:
        """Whether a new factor would serve the covariance after a step of this change."""
        return self.error > _CLOSE >= 2.0 * (1.0 + self.error) * change

    def settle(self) -> None:
        """Make the factor anew if it is not, or not closely, that of the point and all data."""
        if self._stale or not self._own or self.error > _CLOSE:
            self._share = 1.0
            self._factorise()

    def decrement(self) -> float:
        """Return the Newton decrement at the current point."""
        return self._newton(1.0)[0] ** 0.5

    def _newton(self, share: float) -> tuple[float, FloatArray]:
        """Return squared decrement and change (n,) of (z, β) for this share of the data."""
        if self._slope is None or self._slope[0] is not self.point or self._slope[1] != share:
            gradient = self.objective.gradient(self.point, self.data, share)
            self._slope = self.point, share, gradient
        gradient = self._slope[2]
        change, _ = lapack.dpotrs(self.factor, gradient, lower=1)
        return max(0.0, float(gradient @ change)), -change

    def _direction(self) -> tuple[float, float, float, FloatArray]:
        """Return squared decrement, step length, largest relative change, and direction (n,)."""
        square, change = self._newton(self._share)
        dx = self.objective.coordinates.step(change)
        return square, *_length(self.objective, square, self.point, dx), dx

    def _factorise(self) -> None:
        self.factor = _factor(self.objective, self.point, self.data, self._share)
        self._stale, self._fresh, self.error, self._own = False, True, 0.0, True

    def _ease(self, square: float) -> None:
        """Go back to the start and begin with a share of the data's weight."""
        self.point, self._eased, self._stale = self._start, True, True
        self._share = min(0.1, self.objective.weight / square)

    def _follow(self, largest: float) -> None:
        """Raise the data's share once the iterate is close to the centre that belongs to it."""
        self._corrections += 1
        self._stale = True
        if largest < _FREE_STEP:
            quick = self._corrections <= 2
            self._growth = self._growth**2 if quick else max(_SLOWEST, self._growth**0.5)
            self._share, self._corrections = min(1.0, self._share * self._growth), 0

    def _judge(self, square: float) -> None:
        """Decide whether a full step with this squared decrement was the last one needed."""
        slow = square >= 0.5 * self._least
        self._idle = self._idle + 1 if slow else 0
        self._stale = self._stale or (slow and self.error > 0.0)
        self._least = min(square, self._least)
        if self._idle > _IDLE:
            self.finished, self.converged = True, square < _ROUNDING**2
        elif self.error * square**0.5 <= self.tolerance:
            self.finished = self.converged = True


def _factor(objective: Objective, point: Point, data: Data, share: float = 1.0) -> FloatArray:
    """Return the lower Cholesky factor of the Hessian.

    Cholesky's accuracy does not depend on the scaling of the unknowns (van der Sluis 1969), so
    none is applied. A matrix that rounding made indefinite gets inverses that suffer less from it,
    then a little more on its diagonal: the direction remains one of descent, and the decrement
    tells how good the end is.
    """
    curvature = objective.prior_curvature(point)
    for ridge in _RIDGES:
        hessian = objective.hessian(curvature, data, share)
        if ridge:
            hessian[np.diag_indices_from(hessian)] *= 1.0 + ridge
        factor, failed = lapack.dpotrf(hessian.T, lower=1, overwrite_a=1)
        if not failed:
            return np.asarray(factor)
        if not ridge:
            curvature = objective.prior_curvature(objective.steadied(point))
    raise EstimationError(
        "the information matrix lost its positive definiteness to rounding; give a larger "
        "noise_std, or none, so that it is estimated"
    )


def _length(
    objective: Objective, square: float, point: Point, dx: FloatArray
) -> tuple[float, float]:
    """Return the step length and a bound on the largest relative change of a full step."""
    bodies, ratios = objective.rates(point, dx)
    # the Frobenius norm of J^-½ ΔJ J^-½, squared
    squares = np.einsum("kij,kji->k", bodies, bodies).max(initial=0.0)
    largest = max(float(squares) ** 0.5, float(np.abs(ratios).max(initial=0.0)))
    if largest < _FREE_STEP:
        return 1.0, largest
    return exact_step(square, *objective.logarithms(bodies, ratios)), largest
