# SPDX-License-Identifier: Apache-2.0
"""The regularised, quadratic and semidefinite programs against independent solutions."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from sysid_core.errors import EstimationError, ParameterError
from sysid_core.estimation import Entropic, Problem, estimator
from sysid_core.estimation.methods.qp import project
from sysid_core.estimation.methods.sdp import REGULARISERS
from sysid_core.estimation.regularised import Regularised

if TYPE_CHECKING:
    from test.estimation.conftest import Synthetic


def pressed(panda: Synthetic) -> Problem:
    """Return a problem whose bounds forbid the optimum."""
    problem = replace(panda.problem(noise=0.2), noise_std=np.full(7, 0.2))
    layout = panda.layout
    lower, upper = problem.constraints.lower.copy(), problem.constraints.upper.copy()
    lower[layout.term("coulomb")] = 1.2 * panda.truth[layout.term("coulomb")]
    upper[layout.masses[3:]] = 0.9 * panda.truth[layout.masses[3:]]
    mean = problem.prior.mean.copy()
    mean[layout.term("coulomb")] = 1.5 * panda.truth[layout.term("coulomb")]
    for body in range(3, 7):
        mean[layout.body(body)] *= (
            0.8 * panda.truth[layout.masses[body]] / mean[layout.masses[body]]
        )
    return replace(
        problem,
        prior=replace(problem.prior, mean=mean),
        constraints=replace(problem.constraints, lower=lower, upper=upper),
    )


def cost(problem: Problem, x: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    variance = Regularised(problem, estimator("prior")).variance
    assert problem.noise_std is not None
    square = problem.statistics.residual_square(problem.base.project(x))
    change = x - problem.prior.mean
    return float(0.5 * (square / problem.noise_std**2).sum() + 0.5 * (change**2 / variance).sum())


def test_prior_is_stationary_for_its_cost(panda: Synthetic) -> None:
    problem = replace(panda.problem(noise=0.2), noise_std=np.full(7, 0.2))
    result = estimator("prior").solve(problem)
    best = cost(problem, result.parameters)
    rng = np.random.default_rng(1)
    for _ in range(20):
        step = result.std * rng.standard_normal(panda.layout.size)
        assert cost(problem, result.parameters + 0.01 * step) > best
    assert result.optimality < 1e-6


def test_qp_is_what_a_cone_solver_finds(panda: Synthetic) -> None:
    cp: Any = import_module("cvxpy")
    problem = pressed(panda)
    result = estimator("qp").solve(problem)
    setting = Regularised(problem, estimator("qp"))
    assert problem.noise_std is not None
    quadratic = setting.quadratic(problem.noise_std)
    v = cp.Variable(panda.layout.size)
    x = quadratic.centre + quadratic.white @ v
    lower, upper = problem.constraints.lower, problem.constraints.upper
    below, above = np.isfinite(lower), np.isfinite(upper)
    reference = cp.Problem(
        cp.Minimize(0.5 * cp.sum_squares(v)), [x[below] >= lower[below], x[above] <= upper[above]]
    )
    reference.solve(solver="CLARABEL", tol_gap_rel=1e-11, tol_gap_abs=1e-11, tol_feas=1e-11)
    assert np.max(np.abs(result.parameters - x.value) / result.std) < 1e-4
    assert result.optimality < 1e-6
    assert (result.parameters[above] <= upper[above] + 1e-9).all()
    assert (result.parameters[below] >= lower[below] - 1e-9).all()
    assert any("held back by constraints" in warning for warning in result.warnings)


def test_qp_does_not_depend_on_its_start(panda: Synthetic) -> None:
    problem = pressed(panda)
    cold = estimator("qp").solve(problem)
    warm = estimator("qp").solve(problem, cold.parameters)
    np.testing.assert_allclose(warm.parameters, cold.parameters, rtol=1e-9, atol=1e-12)


def test_projections_satisfy_their_optimality_conditions() -> None:
    rng = np.random.default_rng(4)
    for _ in range(30):
        G = rng.standard_normal((25, 15))
        G /= np.linalg.norm(G, axis=1)[:, None]
        h = G @ rng.standard_normal(15) - rng.uniform(0.0, 0.5, 25)
        point, multipliers, _, converged = project(G, h, None, 50000)
        assert converged
        np.testing.assert_allclose(point, G.T @ multipliers, atol=1e-7)
        assert (G @ point >= h - 1e-7).all()
        assert multipliers.min() >= 0.0
        assert abs(multipliers @ (G @ point - h)) < 1e-6


def test_contradicting_linear_constraints_are_told(panda: Synthetic) -> None:
    problem = panda.problem(count=20)
    rows = np.zeros((2, panda.layout.size))
    rows[:, 0] = 1.0, -1.0
    constraints = replace(
        problem.constraints, linear_matrix=rows, linear_bound=np.array([9.0, -8.0])
    )
    for method in ("qp", "sdp"):
        with pytest.raises(EstimationError):
            estimator(method).solve(replace(problem, constraints=constraints))


@pytest.mark.parametrize("regulariser", REGULARISERS)
def test_sdp_satisfies_its_optimality_conditions(panda: Synthetic, regulariser: str) -> None:
    for problem in (pressed(panda), replace(panda.problem(noise=5.0), noise_std=np.full(7, 5.0))):
        result = estimator("sdp", regulariser=regulariser).solve(problem)
        assert result.converged
        assert result.optimality < 1e-2
        assert result.consistency.min() > 0.0


def test_geodesic_sdp_is_prior_where_no_constraint_is_active(panda: Synthetic) -> None:
    """Far inside the cone the program is a quadratic one, with a known minimum."""
    problem = replace(panda.problem(noise=1e-3), noise_std=np.full(7, 1e-3))
    mean = panda.truth.copy()
    problem = replace(problem, prior=replace(problem.prior, mean=mean))
    geodesic = estimator("sdp").solve(problem)
    entropic = Entropic().solve(problem)
    assert np.max(np.abs(geodesic.parameters - entropic.parameters) / entropic.std) < 0.2


def test_other_cone_solvers_can_be_named(panda: Synthetic) -> None:
    problem = replace(panda.problem(noise=1.0), noise_std=np.ones(7))
    clarabel = estimator("sdp").solve(problem)
    scs = estimator("sdp", solver="SCS").solve(problem)
    assert np.max(np.abs(clarabel.parameters - scs.parameters) / clarabel.std) < 0.1
    with pytest.raises(ParameterError, match="CLARABEL"):
        estimator("sdp", solver="NONE").solve(problem)
