# SPDX-License-Identifier: Apache-2.0
"""``sdp``: semidefinite programs with physically consistent bodies, by CVXPY."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.estimation.certificate import Optimum, certified
from sysid_core.estimation.conic import cvxpy, run
from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.estimator import SHARE, Solver
from sysid_core.estimation.gaussian import prior_precision
from sysid_core.estimation.interior import is_inside, repaired
from sysid_core.estimation.methods.entropic import Entropic, EntropicSolver
from sysid_core.estimation.problem import Problem
from sysid_core.estimation.quadratic import Quadratic
from sysid_core.estimation.regularised import certainty_of
from sysid_core.inertia import pseudo_inertia_basis
from sysid_core.parameters import INERTIAL_TERMS
from sysid_core.settings import parameter

__all__ = ["ESTIMATOR", "REGULARISERS", "Sdp"]

REGULARISERS = ("none", "euclidean", "geodesic", "entropic")
"""What may hold the parameters near the prior."""

_WIDTH = len(INERTIAL_TERMS)
_TIE_BREAK = 1e-4  # share of the prior that makes the unregularised program's optimum unique
_OPTIMAL = 0.01  # residual, in posterior standard deviations, that is as good as none
_ACTIVE = 1e-4  # multiplier, in posterior standard deviations, that marks a constraint active


class _Cone(NamedTuple):
    """One constraint ``map @ v + offset`` in a cone (a flat 4×4 matrix ⪰ 0, or entries ≥ 0)."""

    label: str
    map: FloatArray
    offset: FloatArray
    semidefinite: bool


@dataclass(frozen=True, kw_only=True)
class Sdp(Entropic):
    """Minimise weighted residuals plus a regulariser over physically consistent parameters.

    The programs of Zhang et al. (32) and Khorshidi et al. (14): pseudo-inertias J ⪰ ε J₀ with ε
    the `margin`, friction not negative, realizable density tr(JQ) ≥ 0 (13) and with it the
    centre of mass in the ellipsoid (9; see `Inequalities`), bounds. Without given noise the
    weights are those of ``entropic``. The result counts as converged by its own optimality
    residual, whatever the solver says.
    """

    name = "sdp"
    margin: float = parameter(
        1e-6,
        "Pseudo-inertias and friction stay above this fraction of the prior's [-]",
        range=SHARE,
    )
    regulariser: str = parameter(
        "geodesic",
        "'none' (the prior at a ten-thousandth of its weight, for uniqueness), 'euclidean' "
        "(diagonal), 'geodesic' (the constant pull-back metric of Lee et al. at the prior) or "
        "'entropic' (the program that EntropicSolver solves)",
        choices=REGULARISERS,
    )
    solver: str = parameter("CLARABEL", "Name under which CVXPY knows the conic solver")

    def prepare(self, problem: Problem) -> Solver:
        """Return a solver; nothing is kept between solves."""
        return self.solve

    def solve(self, problem: Problem, start: FloatArray | None = None) -> Estimate:
        """Return the estimate.

        Raises
        ------
        ParameterError
            If CVXPY has no such solver.
        EstimationError
            If the solver fails or the constraints contradict each other.
        """
        base = EntropicSolver(problem, replace(self, covariance="none"))
        noise = problem.noise_std
        if noise is None:
            noise = base.solve(
                problem.statistics, correlation=problem.correlation, start=start
            ).noise_std
        data = base.data(problem.statistics, noise, problem.correlation, problem.anchor)
        precision = _precision(base, self.regulariser)
        measured = base.objective.measured
        quadratic = Quadratic(base.coordinates, base.divergence.mean, precision, data, measured)
        program = _Program(base, quadratic, self)
        x, optimality, active = program.solve()
        optimum = Optimum(
            method=self.name,
            free=x,
            certainty=certainty_of(quadratic, self.covariance),
            information=data.information,
            noise_std=noise,
            optimality=optimality,
            iterations=program.iterations,
            converged=optimality < _OPTIMAL,
            active=active,
        )
        return certified(problem, base.coordinates, optimum)


ESTIMATOR = Sdp


def _precision(base: EntropicSolver, regulariser: str) -> FloatArray:
    """Return the prior's precision (n, n)."""
    if regulariser == "euclidean":
        return np.diag(1.0 / np.diagonal(base.gaussian.covariance))
    precision = prior_precision(base.divergence)
    return precision * _TIE_BREAK if regulariser == "none" else precision


class _Program:
    """The program in whitened coordinates v, where its quadratic part is ½‖v‖²."""

    def __init__(self, base: EntropicSolver, quadratic: Quadratic, config: Sdp) -> None:
        self.cp = cvxpy()
        self.base, self.quadratic, self.config = base, quadratic, config
        self.v = self.cp.Variable(base.coordinates.size)
        self.iterations = 0

    def solve(self) -> tuple[FloatArray, float, tuple[str, ...]]:
        """Return the free parameters (n,), optimality residual and active constraints."""
        if self.config.regulariser == "entropic":
            self._run(self._entropic(), [])
            x = self._feasible()
            return x, self._decrement(x), ()
        cones = self._cones()
        constraints = [self._constraint(cone) for cone in cones]
        self._run(0.5 * self.cp.sum_squares(self.v), constraints)
        x = self._feasible()
        return x, *self._kkt(x, cones, constraints)

    def _run(self, objective: Any, constraints: list[Any]) -> None:
        program = self.cp.Problem(self.cp.Minimize(objective), constraints)
        run(program, self.config.solver)
        self.iterations = int(program.solver_stats.num_iters or 0)

    def _feasible(self) -> FloatArray:
        """Return the solution, moved inside by as much as the solver's tolerance left it out."""
        base = self.base
        x = self.quadratic.centre + self.quadratic.white @ self.v.value
        if is_inside(base.divergence, base.inequalities, x):
            return np.asarray(x)
        room = 0.5 * self.config.margin
        return repaired(base.divergence, base.inequalities, x, base.inside, room)

    def _bodies(self) -> list[tuple[str, FloatArray, FloatArray]]:
        """Return per body the affine map from v to the flat J₀^-½ J J₀^-½."""
        divergence, E = self.base.divergence, pseudo_inertia_basis()
        names = self.base.problem.layout.bodies
        result = []
        for k, L in enumerate(np.linalg.cholesky(divergence.inverse)):
            whitened = (L.T @ E @ L).reshape(_WIDTH, 16)
            part = slice(_WIDTH * k, _WIDTH * (k + 1))
            matrix = whitened.T @ self.quadratic.white[part]
            offset = whitened.T @ self.quadratic.centre[part]
            result.append((names[divergence.bodies[k]], matrix, offset))
        return result

    def _cones(self) -> list[_Cone]:
        base, quadratic, margin = self.base, self.quadratic, self.config.margin
        divergence, inequalities = base.divergence, base.inequalities
        cones = [
            _Cone(f"body {name}", matrix, offset - margin * np.eye(4).ravel(), True)
            for name, matrix, offset in self._bodies()
        ]
        index = divergence.split + divergence.positive
        scale = 1.0 / divergence.mean[index]
        labels = [base.problem.layout.labels[base.coordinates.free[i]] for i in index]
        linear = np.vstack(
            [scale[:, None] * quadratic.white[index], inequalities.matrix @ quadratic.white]
        )
        offset = np.concatenate(
            [
                scale * quadratic.centre[index] - margin,
                inequalities.slack(quadratic.centre) - margin,
            ]
        )
        names = [f"{label} > 0" for label in labels] + list(inequalities.labels)
        for name, row, constant in zip(names, linear, offset, strict=True):
            cones.append(_Cone(name, row[None], np.array([constant]), False))
        return cones

    def _constraint(self, cone: _Cone) -> Any:
        value = cone.map @ self.v + cone.offset
        if not cone.semidefinite:
            return value >= 0
        matrix = self.cp.reshape(value, (4, 4), order="C")
        return 0.5 * (matrix + matrix.T) >> 0

    def _kkt(
        self, x: FloatArray, cones: list[_Cone], constraints: list[Any]
    ) -> tuple[float, tuple[str, ...]]:
        """Return the residual of stationarity and complementarity, in standard deviations."""
        v = self.quadratic.whitened(x)
        residual, gap, active = self.quadratic.white_gradient(x), 0.0, []
        for cone, constraint in zip(cones, constraints, strict=True):
            dual = np.asarray(constraint.dual_value, dtype=float).ravel()
            pull = dual @ cone.map
            residual = residual - pull
            gap += abs(float(dual @ (cone.map @ v + cone.offset)))
            if np.linalg.norm(pull) > _ACTIVE:
                active.append(cone.label)
        return float(np.linalg.norm(residual) + np.sqrt(2.0 * gap)), tuple(active)

    def _entropic(self) -> Any:
        """Return the objective of `EntropicSolver` as a disciplined convex expression."""
        cp, base, quadratic = self.cp, self.base, self.quadratic
        divergence, measured = base.divergence, base.objective.measured
        x = quadratic.centre + quadratic.white @ self.v
        split, columns = len(base.coordinates.others), base.coordinates
        values, vectors = np.linalg.eigh(quadratic.data.information)
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        beta = columns.mapping @ quadratic.centre
        white_beta = np.linalg.solve(quadratic.factor, np.eye(columns.size))[split:]
        slope = (quadratic.data.information @ beta - quadratic.data.moment) @ white_beta
        terms = [0.5 * cp.sum_squares((root @ white_beta) @ self.v), slope @ self.v]
        for weight, (_, matrix, offset) in zip(divergence.weight, self._bodies(), strict=True):
            J = cp.reshape(matrix @ self.v + offset, (4, 4), order="C")
            terms.append(weight * (cp.trace(J) - cp.log_det(0.5 * (J + J.T))))
        scalars, centre = x[divergence.split :], divergence.mean[divergence.split :]
        log = divergence.positive
        if len(log):
            ratio = cp.multiply(1.0 / centre[log], scalars[log])
            terms.append(divergence.logarithmic[log] @ (ratio - cp.log(ratio)))
        terms.append(0.5 * divergence.quadratic @ cp.square(scalars - centre))
        if base.inequalities.size:
            slack = base.inequalities.matrix @ x - base.inequalities.bound
            terms.append(-self.config.barrier_weight * cp.sum(cp.log(slack)))
        if len(measured.rows):
            terms.append(0.5 * measured.weight @ cp.square(measured.rows @ x - measured.value))
        return sum(terms)

    def _decrement(self, x: FloatArray) -> float:
        """Return the Newton decrement of the entropic objective at x."""
        objective, data = self.base.objective, self.quadratic.data
        point = objective.at(x)
        hessian = objective.hessian(objective.prior_curvature(point), data)
        upper = np.triu(hessian)
        full = upper + np.triu(upper, 1).T
        gradient = objective.gradient(point, data)
        square = float(gradient @ np.linalg.solve(full, gradient))
        return max(0.0, square) ** 0.5
