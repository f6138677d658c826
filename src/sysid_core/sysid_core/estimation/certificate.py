# SPDX-License-Identifier: Apache-2.0
"""From a solution to an `Estimate` that carries its own evidence and warnings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.estimation.coordinates import Coordinates
from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.posterior import Certainty
from sysid_core.estimation.problem import Problem
from sysid_core.inertia import smallest_eigenvalue

__all__ = ["Optimum", "certified", "scaled_condition"]

_ILL_CONDITIONED = 1e8  # of the Gram matrix, so 1e4 of the scaled regressor
_LISTED = 6  # names that a warning lists before it counts the rest


class Optimum(NamedTuple):
    """What an estimator found."""

    method: str
    free: FloatArray  # (n,) the free parameters
    certainty: Certainty | None
    information: FloatArray  # (r, r) weighted Gram matrix of the free base parameters
    noise_std: FloatArray  # (G,) [N·m]
    # optimality, iterations, converged: as in `Estimate`.
    optimality: float
    iterations: int
    converged: bool
    active: tuple[str, ...] = ()  # Constraints that hold the estimate back


def certified(problem: Problem, coordinates: Coordinates, optimum: Optimum) -> Estimate:
    """Return the estimate of an optimum, with all figures recomputed from its parameters."""
    x = coordinates.full(optimum.free)
    std, covariance, base_covariance, determined = _spread(problem, coordinates, optimum.certainty)
    consistency = smallest_eigenvalue(problem.layout.inertias(x))
    condition = scaled_condition(optimum.information)
    return Estimate(
        method=optimum.method,
        parameters=x,
        base_parameters=problem.base.project(x),
        covariance=covariance,
        base_covariance=base_covariance,
        std=std,
        determined=determined,
        noise_std=optimum.noise_std,
        consistency=consistency,
        optimality=optimum.optimality,
        iterations=optimum.iterations,
        converged=optimum.converged,
        condition=condition,
        diagnostics=_diagnostics(problem, x, optimum, consistency, determined, condition),
    )


def scaled_condition(information: FloatArray) -> float:
    """Return the 1-norm condition number of a matrix scaled to a unit diagonal; inf if singular.

    LAPACK estimates it from the Cholesky factor, in a small part of the time of eigenvalues.
    """
    diagonal = np.diagonal(information)
    if not len(diagonal):
        return 1.0
    if not (diagonal > 0.0).all():
        return float("inf")
    factor, failed = lapack.dpotrf(information.T, lower=1, clean=0)
    if failed:
        return float("inf")
    scale = 1.0 / np.sqrt(diagonal)
    norm = float((np.abs(information) @ scale * scale).max())
    factor *= scale[:, None]
    reciprocal, _ = lapack.dpocon(factor, norm, uplo="L")
    return 1.0 / reciprocal if reciprocal > 0.0 else float("inf")


def _spread(
    problem: Problem, coordinates: Coordinates, certainty: Certainty | None
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    p, free, b = problem.layout.size, coordinates.free, problem.base.size
    if certainty is None:
        std, determined = np.full(p, np.nan), np.full(b, np.nan)
        return std, np.full((p, p), np.nan), np.full((b, b), np.nan), determined
    variance = np.zeros(p)
    variance[free] = np.maximum(certainty.variance, 0.0)
    if certainty.covariance is None:
        covariance = np.diag(variance)
    elif len(free) == p:
        covariance = certainty.covariance
    else:
        covariance = np.zeros((p, p))
        covariance[np.ix_(free, free)] = certainty.covariance
    return np.sqrt(variance), covariance, certainty.base, certainty.determined


def _diagnostics(
    problem: Problem,
    x: FloatArray,
    optimum: Optimum,
    consistency: FloatArray,
    determined: FloatArray,
    condition: float,
) -> tuple[Diagnostic, ...]:
    layout, found = problem.layout, []

    def note(kind: str, message: str, hint: str = "") -> None:
        found.append(Diagnostic(kind, message, hint=hint))

    if not optimum.converged:
        note(
            "not_converged",
            f"{optimum.method} stopped after {optimum.iterations} iterations before it converged "
            f"(optimality residual {optimum.optimality:.2g})",
            "raise max_iterations",
        )
    if not condition < _ILL_CONDITIONED:
        note(
            "ill_conditioned",
            f"ill-conditioned data: condition {condition:.2g}",
            "a more exciting motion is needed",
        )
    weak = np.flatnonzero(determined < 0.5)
    names: list[str] = []
    if len(weak):
        asked = (problem.base.mapping[weak] != 0.0) @ ~problem.constraints.fixed
        names = [problem.base.labels[column] for column in problem.base.columns[weak[asked]]]
    if names:
        note("undetermined", f"the data did not determine {_list(names)}", "the prior did")
    impossible = [layout.bodies[i] for i in np.flatnonzero(~(consistency > 0.0))]
    if impossible:
        note(
            "inconsistent",
            f"not physically consistent: {_list(impossible)}",
            "use entropic or sdp for a model that can be simulated",
        )
    negative = [layout.labels[i] for i in layout.nonnegative[x[layout.nonnegative] < 0.0]]
    if negative:
        note("negative_friction", f"negative friction: {_list(negative)}")
    if optimum.active:
        note("constrained", f"held back by constraints: {_list(list(optimum.active))}")
    return tuple(found)


def _list(names: list[str]) -> str:
    shown = ", ".join(names[:_LISTED])
    more = len(names) - _LISTED
    return f"{shown} and {more} more" if more > 0 else shown
