# SPDX-License-Identifier: Apache-2.0
"""``qp``: regularised least squares under linear constraints, by OSQP."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from sysid_core.arrays import FloatArray
from sysid_core.errors import EstimationError
from sysid_core.estimation.certificate import Optimum, certified
from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.estimator import SHARE, Estimator
from sysid_core.estimation.inequalities import Inequalities
from sysid_core.estimation.problem import Problem
from sysid_core.estimation.quadratic import Quadratic
from sysid_core.estimation.regularised import Regularised
from sysid_core.parameters import INERTIAL_TERMS
from sysid_core.settings import parameter

__all__ = ["ESTIMATOR", "Projection", "Qp", "project"]

_ACTIVE = 1e-7  # multiplier, in posterior standard deviations, that marks a constraint active


class Projection(NamedTuple):
    """The point nearest to the origin with ``rows @ v ≥ bound``."""

    point: FloatArray  # (n,)
    multipliers: FloatArray  # (q,)
    iterations: int
    converged: bool


@dataclass(frozen=True, kw_only=True)
class Qp(Estimator):
    """Minimise the objective of ``prior`` subject to linear constraints.

    Masses and friction stay above a small fraction of their prior values; bounds, realizability
    tr(JQ) ≥ 0 (Khorshidi et al. eq. 13) and further inequalities hold as given. In whitened
    coordinates this is a projection onto a polyhedron, which OSQP solves; the active set that it
    finds is then solved for exactly.
    """

    name = "qp"
    margin: float = parameter(
        1e-6, "Masses and friction stay above this fraction of the prior's [-]", range=SHARE
    )

    def solve(self, problem: Problem, start: FloatArray | None = None) -> Estimate:
        """Return the estimate.

        Raises
        ------
        EstimationError
            If the constraints contradict each other.
        """
        setting = Regularised(problem, self)
        rows, bound, labels = _constraints(setting, self.margin)
        solved: dict[str, Projection] = {}

        def solution(quadratic: Quadratic) -> FloatArray:
            warm = None if start is None else quadratic.whitened(start[setting.coordinates.free])
            G, h = _whitened(quadratic, rows, bound)
            solved["last"] = project(G, h, warm, 100 * self.max_iterations)
            return quadratic.centre + quadratic.white @ solved["last"].point

        quadratic, x, noise = setting.settled(solution)
        projection = solved["last"]
        G, h = _whitened(quadratic, rows, bound)
        residual = quadratic.white_gradient(x) - G.T @ projection.multipliers
        slack = (G @ quadratic.whitened(x)) - h
        optimality = (
            float(np.linalg.norm(residual))
            + float(np.maximum(-slack, 0.0).max(initial=0.0))
            + float(np.sqrt(np.abs(projection.multipliers * slack).sum()))
        )
        active = np.flatnonzero(projection.multipliers > _ACTIVE)
        optimum = Optimum(
            method=self.name,
            free=x,
            certainty=setting.certainty(quadratic),
            information=quadratic.data.information,
            noise_std=noise,
            optimality=optimality,
            iterations=projection.iterations,
            converged=projection.converged,
            active=tuple(labels[i] for i in active),
        )
        return certified(problem, setting.coordinates, optimum)


ESTIMATOR = Qp


def _constraints(
    setting: Regularised, margin: float
) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
    """Return all rows (q, n), bounds (q,) and labels over the free parameters."""
    c, divergence = setting.coordinates, setting.divergence
    inequalities = Inequalities.of(setting.problem, c, divergence)
    masses = np.arange(len(divergence.bodies)) * len(INERTIAL_TERMS)
    positive = np.concatenate([masses, divergence.split + divergence.positive])
    rows = np.eye(c.size)[positive]
    bound = margin * divergence.mean[positive]
    names = tuple(f"{setting.problem.layout.labels[c.free[i]]} > 0" for i in positive)
    return (
        np.vstack([rows, inequalities.matrix]),
        np.concatenate([bound, inequalities.bound]),
        names + inequalities.labels,
    )


def _whitened(
    quadratic: Quadratic, rows: FloatArray, bound: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return rows of unit length in v, so that slacks count posterior standard deviations."""
    G = rows @ quadratic.white
    length = np.linalg.norm(G, axis=1)
    return G / length[:, None], (bound - rows @ quadratic.centre) / length


def project(
    G: FloatArray, h: FloatArray, warm: FloatArray | None, max_iterations: int
) -> Projection:
    """Project the origin onto ``G v ≥ h``.

    Raises
    ------
    EstimationError
        If the inequalities contradict each other.
    """
    n = G.shape[1]
    if (h <= 0.0).all():
        return Projection(np.zeros(n), np.zeros(len(h)), 0, True)
    osqp: Any = import_module("osqp")
    solver = osqp.OSQP()
    solver.setup(
        P=scipy.sparse.identity(n, format="csc"),
        q=np.zeros(n),
        A=scipy.sparse.csc_matrix(G),
        l=h,
        u=np.full(len(h), np.inf),
        eps_abs=1e-9,
        eps_rel=1e-9,
        max_iter=max_iterations,
        verbose=False,
    )
    if warm is not None:
        solver.warm_start(x=warm)
    with warnings.catch_warnings():
        # OSQP 1 announces a default that older versions do not know
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        result = solver.solve()
    status = str(result.info.status)
    if "infeasible" in status:
        raise EstimationError("the linear constraints contradict each other; loosen some")
    multipliers = np.maximum(-np.asarray(result.y), 0.0)
    polished = _polished(G, h, multipliers > _ACTIVE)
    iterations = int(result.info.iter)
    if polished is not None:
        return Projection(*polished, iterations, True)
    return Projection(np.asarray(result.x), multipliers, iterations, status == "solved")


def _polished(
    G: FloatArray, h: FloatArray, active: np.ndarray[Any, np.dtype[np.bool_]]
) -> tuple[FloatArray, FloatArray] | None:
    """Solve exactly on an active set, correcting it where signs are wrong; None if that fails."""
    active = active.copy()
    for _ in range(len(h)):
        rows = G[active]
        multipliers = np.zeros(len(h))
        point = np.linalg.lstsq(rows, h[active], rcond=None)[0]  # of all the shortest
        multipliers[active] = np.linalg.lstsq(rows.T, point, rcond=None)[0]
        wrong = multipliers < 0.0
        broken = G @ point < h - 1e-9
        if not wrong.any() and not broken.any():
            return point, multipliers
        active = (active & ~wrong) | (broken & ~active)
    return None
