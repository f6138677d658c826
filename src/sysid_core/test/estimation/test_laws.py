# SPDX-License-Identifier: Apache-2.0
"""Laws that every estimator obeys."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import ParameterError
from sysid_core.estimation import METHODS, Estimate, Problem, estimator
from sysid_core.inertia import Ellipsoid, smallest_eigenvalue

if TYPE_CHECKING:
    from test.estimation.conftest import Synthetic

CONSISTENT = ("sdp", "entropic")


def estimate(problem: Problem, method: str) -> Estimate:
    return estimator(method).solve(problem)


def with_constraints(problem: Problem, **changes: Any) -> Problem:
    return replace(problem, constraints=replace(problem.constraints, **changes))


@pytest.mark.parametrize("method", METHODS)
def test_noise_free_data_give_the_true_base_parameters(panda: Synthetic, method: str) -> None:
    problem = panda.problem(noise=0.0)
    result = estimate(problem, method)
    truth = panda.base.project(panda.truth)
    assert np.linalg.norm(result.base_parameters - truth) <= 1e-9 * np.linalg.norm(truth)
    # parameters that hardly matter are held to their own scale in the torque instead
    scale = np.sqrt(np.einsum("gii->i", problem.statistics.gram))
    assert np.max(np.abs(result.base_parameters - truth) * scale) <= 1e-7 * np.max(
        np.abs(truth) * scale
    )
    assert result.converged
    rmse = problem.statistics.rmse(result.base_parameters)
    assert (rmse <= 1e-6 * np.sqrt(problem.statistics.square / 300)).all()
    assert result.determined.min() > 0.999


@pytest.mark.parametrize("method", ["ols", "wls", "prior", "qp"])
def test_a_prior_that_noise_free_data_contradict_is_not_taken_for_noise(
    panda: Synthetic, method: str
) -> None:
    # the prior is off by some 20 % and claims to know it to two per mille
    problem = panda.problem(noise=0.0)
    std = np.full(len(panda.layout.bodies), 0.002)
    problem = replace(problem, prior=replace(problem.prior, body_std=std))
    result = estimate(problem, method)
    truth = panda.base.project(panda.truth)
    assert np.linalg.norm(result.base_parameters - truth) <= 1e-9 * np.linalg.norm(truth)


@pytest.mark.parametrize("method", METHODS)
def test_no_data_give_the_prior(panda: Synthetic, method: str) -> None:
    problem = panda.problem(count=1)
    empty = Statistics.zero(len(problem.groups), problem.base.size)
    result = estimate(replace(problem, statistics=empty, rows=None), method)
    scale = np.sqrt(np.diagonal(result.covariance))
    assert np.max(np.abs(result.parameters - problem.prior.mean) / scale) < 1e-5
    assert result.determined.max() < 1e-4
    assert result.condition == np.inf
    assert any("did not determine" in warning for warning in result.warnings)


@pytest.mark.parametrize("method", CONSISTENT)
@pytest.mark.parametrize(("count", "noise"), [(3, 0.1), (20, 50.0), (300, 100.0)])
def test_bodies_can_exist_whatever_the_data(
    panda: Synthetic, method: str, count: int, noise: float
) -> None:
    result = estimate(panda.problem(count=count, noise=noise), method)
    layout = panda.layout
    assert smallest_eigenvalue(layout.inertias(result.parameters)).min() > 0.0
    assert result.parameters[layout.nonnegative].min() > 0.0
    assert result.consistency.min() > 0.0
    assert result.converged


@pytest.mark.parametrize("method", CONSISTENT)
@pytest.mark.parametrize("noise_std", [None, 1e-4])
def test_constraints_that_contradict_the_data_win(
    panda: Synthetic, method: str, noise_std: float | None
) -> None:
    problem = panda.problem(count=100, noise=0.0)
    layout = panda.layout
    upper = problem.constraints.upper.copy()
    upper[layout.body(6).start] = 0.5 * panda.truth[layout.body(6).start]
    prior = problem.prior.mean.copy()
    prior[layout.body(6)] *= 0.4
    if noise_std is not None:
        problem = replace(problem, noise_std=np.full(7, noise_std))
    problem = replace(problem, prior=replace(problem.prior, mean=prior))
    result = estimate(with_constraints(problem, upper=upper), method)
    assert result.parameters[layout.body(6).start] < upper[layout.body(6).start]
    assert result.consistency.min() > 0.0


def test_qp_obeys_linear_constraints_whatever_the_data(panda: Synthetic) -> None:
    layout = panda.layout
    for count, noise in ((3, 0.1), (20, 50.0), (300, 100.0)):
        result = estimate(panda.problem(count=count, noise=noise), "qp")
        assert result.parameters[layout.masses].min() > 0.0
        assert result.parameters[layout.nonnegative].min() >= 0.0
        assert result.optimality < 1e-5
        assert result.converged


@pytest.mark.parametrize("method", METHODS)
def test_fixed_parameters_stay_as_they_are(panda: Synthetic, method: str) -> None:
    layout = panda.layout
    problem = panda.problem(noise=0.0)
    fixed = np.zeros(layout.size, dtype=bool)
    fixed[layout.body(2)] = True
    fixed[layout.term("armature")] = True
    mean = problem.prior.mean.copy()
    mean[fixed] = panda.truth[fixed]
    prior = replace(problem.prior, mean=mean)
    result = estimate(with_constraints(replace(problem, prior=prior), fixed=fixed), method)
    assert np.array_equal(result.parameters[fixed], panda.truth[fixed])
    assert not result.std[fixed].any()
    truth = panda.base.project(panda.truth)
    assert np.linalg.norm(result.base_parameters - truth) <= 1e-9 * np.linalg.norm(truth)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_problem_gives_the_same_estimate(panda: Synthetic, method: str) -> None:
    problem = panda.problem(noise=0.5)
    first, second = estimate(problem, method), estimate(problem, method)
    assert np.array_equal(first.parameters, second.parameters)
    assert np.array_equal(first.covariance, second.covariance)


@pytest.mark.parametrize("method", METHODS)
def test_residuals_are_those_of_the_rows(panda: Synthetic, method: str) -> None:
    problem = panda.problem(noise=0.5)
    result = estimate(problem, method)
    assert problem.rows is not None
    residuals = problem.rows.residuals(result.base_parameters)
    rmse = [np.sqrt(np.mean(e**2)) for e in residuals]
    np.testing.assert_allclose(problem.statistics.rmse(result.base_parameters), rmse, rtol=1e-6)
    np.testing.assert_allclose(result.base_parameters, panda.base.project(result.parameters))
    np.testing.assert_allclose(result.noise_std, 0.5, rtol=0.15)
    assert result.optimality < 1e-3


@pytest.mark.parametrize("method", ["qp", *CONSISTENT])
def test_known_ellipsoids_hold_the_density(panda: Synthetic, method: str) -> None:
    problem = panda.problem(noise=20.0)
    balls = tuple(
        Ellipsoid(phi[1:4] / phi[0], 0.15**2 * np.eye(3))
        for phi in panda.layout.inertias(panda.truth)
    )
    result = estimate(with_constraints(problem, ellipsoids=balls), method)
    from sysid_core.inertia import pseudo_inertia

    for phi, ball in zip(panda.layout.inertias(result.parameters), balls, strict=True):
        assert np.trace(pseudo_inertia(phi) @ ball.quadric) > -1e-9
        if method in CONSISTENT:
            offset = phi[1:4] / phi[0] - ball.center
            assert offset @ np.linalg.solve(ball.shape, offset) < 1.0


@pytest.mark.parametrize("method", ["prior", "qp", *CONSISTENT])
def test_a_known_total_mass_is_a_measurement(panda: Synthetic, method: str) -> None:
    problem = with_constraints(panda.problem(count=30, noise=5.0), total_mass=(12.0, 1e-3))
    result = estimate(problem, method)
    assert result.parameters[panda.layout.masses].sum() == pytest.approx(12.0, abs=5e-3)


@pytest.mark.parametrize("method", METHODS)
def test_correlated_rows_widen_the_deviations(panda: Synthetic, method: str) -> None:
    problem = replace(panda.problem(noise=0.2), noise_std=np.full(7, 0.2))
    once = estimate(problem, method)
    coloured = estimate(replace(problem, correlation=np.full(7, 9.0)), method)
    strong = once.determined > 0.99
    ratio = np.sqrt(np.diagonal(panda.base.mapping @ coloured.covariance @ panda.base.mapping.T))
    ratio /= np.sqrt(np.diagonal(panda.base.mapping @ once.covariance @ panda.base.mapping.T))
    # nine times fewer independent rows: three times the deviation, less what the prior gives
    assert np.all((ratio[strong] > 2.5) & (ratio[strong] < 3.05))
    assert np.median(ratio[strong]) > 2.9


def test_unknown_methods_are_refused_by_name() -> None:
    with pytest.raises(ParameterError, match="entropic"):
        estimator("magic")


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("sdp", {"regulariser": "ridge"}),
        ("entropic", {"covariance": "some"}),
        ("qp", {"tolerance": 0.0}),
        ("qp", {"tolerance": float("nan")}),
        ("ols", {"noise_floor": 2.0}),
        ("ols", {"rank_tolerance": 0.0}),
        ("prior", {"max_iterations": 0}),
        ("prior", {"noise_updates": -1}),
        ("wls", {"huber": -1.0}),
        ("wls", {"huber": float("nan")}),
        ("entropic", {"barrier_weight": float("inf")}),
    ],
)
def test_impossible_settings_are_refused(method: str, settings: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        estimator(method, **settings)


@pytest.mark.parametrize(
    "changes",
    [
        {"noise_std": np.zeros(7)},
        {"noise_std": np.full(7, np.nan)},
        {"noise_std": np.ones(3)},
        {"correlation": np.full(7, 0.5)},
        {"correlation": np.full(7, np.inf)},
    ],
)
def test_impossible_noise_is_refused(panda: Synthetic, changes: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="per group"):
        replace(panda.problem(count=5), **changes)


def test_malformed_problems_are_refused(panda: Synthetic) -> None:
    problem = panda.problem(count=20)
    layout, constraints = panda.layout, problem.constraints
    half = np.zeros(layout.size, dtype=bool)
    half[3] = True
    zero = problem.prior.mean.copy()
    zero[layout.term("viscous").start] = 0.0
    crossed = constraints.lower.copy()
    crossed[0] = 3.0
    broken = [
        with_constraints(problem, fixed=half),
        replace(problem, prior=replace(problem.prior, mean=zero)),
        with_constraints(problem, lower=crossed, upper=np.full(layout.size, 2.0)),
        with_constraints(problem, ellipsoids=()),
        with_constraints(problem, lower=np.zeros(3)),
        with_constraints(problem, linear_matrix=np.ones((1, 3)), linear_bound=np.ones(1)),
        with_constraints(problem, total_mass=(-1.0, 0.1)),
        replace(problem, prior=replace(problem.prior, body_std=np.zeros(len(layout.bodies)))),
    ]
    for wrong in broken:
        with pytest.raises(ParameterError):
            estimate(wrong, "entropic")
