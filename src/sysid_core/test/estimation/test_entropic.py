# SPDX-License-Identifier: Apache-2.0
"""The log-det estimator: derivatives, feasibility, optimality, cone programs, covariance."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.linalg import lapack
from scipy.stats import gamma

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.rows import Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import EstimationError, ParameterError
from sysid_core.estimation import Entropic, EntropicSolver, Estimate, Problem, estimator
from sysid_core.estimation import newton as newton_module
from sysid_core.estimation.gaussian import likely_spread, prior_covariance
from sysid_core.estimation.interior import is_inside
from sysid_core.estimation.objective import Data, Objective, Point, exact_step
from sysid_core.estimation.setting import Setting
from sysid_core.inertia import Ellipsoid, from_pseudo_inertia, pseudo_inertia

if TYPE_CHECKING:
    from test.estimation.conftest import Synthetic


def crowded(panda: Synthetic, noise: float = 0.5, count: int = 60) -> Problem:
    """Return a problem with every kind of constraint, some of them in the way."""
    problem = panda.problem(count=count, noise=noise)
    layout = panda.layout
    lower, upper = problem.constraints.lower.copy(), problem.constraints.upper.copy()
    lower[layout.term("viscous")] = 0.05
    upper[layout.masses] = 1.02 * problem.prior.mean[layout.masses]
    rows = np.zeros((1, layout.size))
    rows[0, layout.masses[:2]] = 1.0, -1.0
    balls = tuple(
        Ellipsoid(phi[1:4] / phi[0], 0.2**2 * np.eye(3))
        for phi in layout.inertias(problem.prior.mean)
    )
    return replace(
        problem,
        constraints=replace(
            problem.constraints,
            lower=lower,
            upper=upper,
            ellipsoids=balls,
            linear_matrix=rows,
            linear_bound=np.array([-0.5]),
            total_mass=(17.0, 0.2),
        ),
    )


def unexplained(problem: Problem, result: Estimate) -> float:
    """Return the largest share of a group's squared torque that is left."""
    data = problem.statistics
    return float((data.residual_square(result.base_parameters) / data.square).max())


def cost(solver: EntropicSolver, x: FloatArray, data: Data) -> float:
    """Return what is minimised, from its definition."""
    objective, beta = solver.objective, solver.coordinates.mapping @ x
    error = solver.measured.rows @ x - solver.measured.value
    barrier = np.log(solver.inequalities.slack(x)).sum()
    return float(
        0.5 * beta @ data.information @ beta
        - data.moment @ beta
        + solver.divergence.value(x)
        - objective.barrier_weight * barrier
        + 0.5 * solver.measured.weight @ error**2
    )


def test_gradient_and_hessian_match_finite_differences(panda: Synthetic) -> None:
    solver = EntropicSolver(crowded(panda))
    problem, objective, c = solver.problem, solver.objective, solver.coordinates
    data = solver.data(problem.statistics, np.full(7, 3.0), None)
    rng = np.random.default_rng(5)
    x = solver.inside
    point = objective.at(x)
    gradient = objective.gradient(point, data)
    upper = np.triu(objective.hessian(objective.prior_curvature(point), data))
    hessian = upper + np.triu(upper, 1).T
    scale = 1.0 / np.sqrt(np.diagonal(hessian))
    for _ in range(20):
        direction = scale * rng.standard_normal(c.size)
        step = 1e-4 * c.step(direction)
        slope = (cost(solver, x + step, data) - cost(solver, x - step, data)) / 2e-4
        assert slope == pytest.approx(gradient @ direction, rel=1e-4, abs=1e-4)
        ahead = objective.gradient(objective.at(x + step), data)
        behind = objective.gradient(objective.at(x - step), data)
        change = scale * (ahead - behind) / 2e-4
        np.testing.assert_allclose(change, scale * (hessian @ direction), rtol=1e-3, atol=1e-3)


def test_the_optimum_is_that_of_the_cone_program(panda: Synthetic) -> None:
    for problem, noise in (
        (panda.problem(count=100, noise=0.1), 0.1),
        (panda.problem(count=300, noise=10.0), 10.0),
        (panda.problem(count=300, noise=0.0), 1e-3),
        (crowded(panda), 0.5),
    ):
        given = replace(problem, noise_std=np.full(7, noise))
        newton = Entropic(tolerance=1e-9).solve(given)
        cone = estimator("sdp", regulariser="entropic").solve(given)
        assert np.max(np.abs(newton.parameters - cone.parameters) / newton.std) < 1e-5
        size = np.linalg.norm(newton.parameters)
        assert np.linalg.norm(newton.parameters - cone.parameters) < 1e-6 * size
        assert cone.optimality < 1e-5


def test_the_gradient_vanishes_at_the_result(panda: Synthetic) -> None:
    problem = replace(crowded(panda), noise_std=np.full(7, 0.5))
    result = Entropic(tolerance=1e-9).solve(problem)
    solver = EntropicSolver(problem)
    data = solver.data(problem.statistics, np.full(7, 0.5), None)
    point = solver.objective.at(result.parameters)
    gradient = solver.objective.prior_gradient(point.x, point.inverse, point.slack)
    mapping = panda.base.mapping
    gradient += mapping.T @ (data.information @ result.base_parameters - data.moment)
    assert np.max(np.abs(gradient) * result.std) < 1e-7
    assert result.optimality < 1e-7


def test_every_iterate_is_strictly_feasible(
    panda: Synthetic, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = crowded(panda, noise=30.0)
    solver = EntropicSolver(problem)
    seen: list[FloatArray] = []
    original = Objective.at

    def watched(self: Objective, x: FloatArray) -> Point:
        seen.append(x.copy())
        return original(self, x)

    monkeypatch.setattr(Objective, "at", watched)
    for noise in (30.0, 0.3):
        result = solver.solve(problem.statistics, noise_std=np.full(7, noise))
        assert result.converged
    assert len(seen) > 10
    assert all(is_inside(solver.divergence, solver.inequalities, x) for x in seen)


def test_exact_data_against_wrong_bounds_end_in_a_compromise(panda: Synthetic) -> None:
    problem = panda.problem(noise=0.0)
    layout = panda.layout
    upper = problem.constraints.upper.copy()
    upper[layout.masses] = 0.6 * panda.truth[layout.masses]
    mean = problem.prior.mean.copy()
    mean[layout.inertial] *= 0.5
    problem = replace(
        problem,
        prior=replace(problem.prior, mean=mean),
        constraints=replace(problem.constraints, upper=upper),
    )
    result = Entropic().solve(problem)
    assert result.converged
    assert result.consistency.min() > 0.0
    assert unexplained(problem, result) < 0.1
    assert (result.parameters[layout.masses] < upper[layout.masses]).all()
    assert any("held back by constraints" in warning for warning in result.warnings)


def test_a_warm_start_needs_few_steps_and_ends_at_the_same_optimum(panda: Synthetic) -> None:
    problem = panda.problem(noise=0.2)
    moved = panda.problem(count=310, noise=0.2)
    solver = EntropicSolver(problem, Entropic(tolerance=1e-8))
    noise = np.full(7, 0.2)
    first = solver.solve(problem.statistics, noise_std=noise)
    cold = solver.solve(moved.statistics, noise_std=noise)
    warm = solver.solve(moved.statistics, noise_std=noise, start=first.parameters)
    assert warm.iterations <= cold.iterations
    assert np.max(np.abs(warm.parameters - cold.parameters) / cold.std) < 1e-6


def test_a_window_that_moved_costs_one_factorisation(
    panda: Synthetic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Covariance included: the Hessian of the last solve leads to where the next one is made."""
    problem, noise = panda.problem(count=1020, noise=0.2), np.full(7, 0.2)
    assert problem.rows is not None
    windows = [
        Statistics.of(Rows(tuple(b.select(slice(n, n + 1000)) for b in problem.rows.blocks)))
        for n in range(0, 21, 4)
    ]
    setting = Entropic(tolerance=1e-3, covariance="diagonal")
    solver = EntropicSolver(problem, setting)
    last = solver.solve(windows[0], noise_std=noise)
    made: list[FloatArray] = []
    original = lapack.dpotrf

    def counted(matrix: FloatArray, **options: object) -> object:
        if len(matrix) == solver.coordinates.size:
            made.append(matrix)
        return original(matrix, **options)

    monkeypatch.setattr(lapack, "dpotrf", counted)
    for moved in windows[1:]:
        made.clear()
        last = solver.solve(moved, noise_std=noise, start=last.parameters)
        assert len(made) <= 1
        fresh = Entropic(tolerance=1e-9).solve(replace(problem, statistics=moved, noise_std=noise))
        assert np.max(np.abs(last.parameters - fresh.parameters) / fresh.std) < 1e-2
        np.testing.assert_allclose(last.std, fresh.std, rtol=0.05)


def test_an_infeasible_start_is_repaired(panda: Synthetic) -> None:
    problem = panda.problem(noise=0.2)
    solver = EntropicSolver(problem)
    noise = np.full(7, 0.2)
    reference = solver.solve(problem.statistics, noise_std=noise)
    for start in (-problem.prior.mean, np.zeros(panda.layout.size), reference.parameters * 50.0):
        result = solver.solve(problem.statistics, noise_std=noise, start=start)
        assert result.converged
        assert np.max(np.abs(result.parameters - reference.parameters) / reference.std) < 1e-3
    with pytest.raises(ParameterError):
        solver.solve(problem.statistics, start=np.full(panda.layout.size, np.nan))


@pytest.mark.parametrize("share", [1e-6, 1e-9, 1e-12])
def test_a_start_at_the_edge_of_what_bodies_can_be_ends_like_others(
    panda: Synthetic, share: float
) -> None:
    """Their Hessians are lost to rounding where inverses are not made with care."""
    problem = panda.problem(noise=0.2)
    solver, noise = EntropicSolver(problem), np.full(7, 0.2)
    reference = solver.solve(problem.statistics, noise_std=noise)
    start = reference.parameters.copy()
    for body in map(panda.layout.body, panda.layout.bodies):
        values, vectors = np.linalg.eigh(pseudo_inertia(start[body]))
        values[:2] = share * values[2:].mean()
        start[body] = from_pseudo_inertia((vectors * values) @ vectors.T)
    result = solver.solve(problem.statistics, noise_std=noise, start=start)
    assert result.converged
    assert np.max(np.abs(result.parameters - reference.parameters) / reference.std) < 1e-3


def test_a_prior_outside_the_constraints_is_no_obstacle(panda: Synthetic) -> None:
    problem = panda.problem(noise=0.2)
    layout = panda.layout
    balls = tuple(
        Ellipsoid(phi[1:4] / phi[0] + 0.02, 0.1**2 * np.eye(3))
        for phi in layout.inertias(problem.prior.mean)
    )
    lower = problem.constraints.lower.copy()
    lower[layout.masses] = 1.5 * problem.prior.mean[layout.masses]
    constraints = replace(problem.constraints, ellipsoids=balls, lower=lower)
    result = Entropic().solve(replace(problem, constraints=constraints))
    assert result.converged
    assert (result.parameters[layout.masses] > lower[layout.masses]).all()
    for phi, ball in zip(layout.inertias(result.parameters), balls, strict=True):
        assert np.trace(pseudo_inertia(phi) @ ball.quadric) > 0.0


def test_contradicting_constraints_are_named(panda: Synthetic) -> None:
    problem = panda.problem(count=20)
    rows = np.zeros((2, panda.layout.size))
    rows[:, 0] = 1.0, -1.0
    constraints = replace(
        problem.constraints, linear_matrix=rows, linear_bound=np.array([9.0, -8.0])
    )
    with pytest.raises(EstimationError, match="inequality 0"):
        Entropic().solve(replace(problem, constraints=constraints))


def test_active_constraints_are_told(panda: Synthetic) -> None:
    problem = panda.problem(noise=0.2)
    upper = problem.constraints.upper.copy()
    friction = panda.layout.term("coulomb").start
    upper[friction] = 0.8 * panda.truth[friction]
    mean = problem.prior.mean.copy()
    mean[friction] = 0.5 * panda.truth[friction]
    result = Entropic().solve(
        replace(
            problem,
            prior=replace(problem.prior, mean=mean),
            constraints=replace(problem.constraints, upper=upper),
        )
    )
    label = panda.layout.labels[friction]
    assert any(f"{label} ≤" in warning for warning in result.warnings)


def test_posterior_deviations_cover_the_truth_as_often_as_they_say(panda: Synthetic) -> None:
    """Truths are drawn from the prior, data from the truths."""
    layout, template = panda.layout, panda.problem(count=40)
    prior = replace(
        template.prior,
        mean=panda.truth,
        body_std=np.full(7, 0.05),
        scalar_std=np.full(layout.size, 0.1),
    )
    solver = EntropicSolver(replace(template, prior=prior))
    rng = np.random.default_rng(12)
    root = np.linalg.cholesky(solver.gaussian.covariance)
    A = panda.matrices(40, seed=9)[:, :, panda.base.columns]
    gram = np.einsum("njb,njc->jbc", A, A)
    scores = []
    for _ in range(60):
        truth = panda.truth + root @ rng.standard_normal(layout.size)
        torque = A @ panda.base.project(truth)
        torque += 0.3 * rng.standard_normal(torque.shape)
        statistics = replace(
            template.statistics,
            gram=gram,
            moment=np.einsum("njb,nj->jb", A, torque),
            square=(torque**2).sum(axis=0),
        )
        result = solver.solve(statistics, noise_std=np.full(7, 0.3))
        scores.append((result.parameters - truth) / result.std)
    # 60 draws of 98 parameters, the posterior is Gaussian only nearly
    assert np.std(scores) == pytest.approx(1.0, abs=0.1)
    assert np.mean(np.abs(scores) < 2.0) == pytest.approx(0.954, abs=0.02)


def test_diagonal_and_no_covariance_agree_with_the_full_one(panda: Synthetic) -> None:
    problem = crowded(panda)
    full = Entropic().solve(problem)
    diagonal = Entropic(covariance="diagonal").solve(problem)
    none = Entropic(covariance="none").solve(problem)
    np.testing.assert_allclose(diagonal.std, full.std, rtol=1e-9)
    np.testing.assert_allclose(np.diagonal(full.covariance), full.std**2)
    np.testing.assert_allclose(diagonal.covariance, np.diag(diagonal.std**2))
    assert np.isnan(none.std).all()
    np.testing.assert_array_equal(none.parameters, full.parameters)


def test_the_covariance_is_the_inverse_hessian(panda: Synthetic) -> None:
    problem = replace(panda.problem(noise=0.3), noise_std=np.full(7, 0.3))
    solver = EntropicSolver(problem, Entropic(tolerance=1e-12))
    noise = np.full(7, 0.3)
    result = solver.solve(problem.statistics, noise_std=noise)
    # the Hessian is made anew where a solve from the optimum ends
    result = solver.solve(problem.statistics, noise_std=noise, start=result.parameters)
    data = solver.data(problem.statistics, noise, None)
    point = solver.objective.at(result.parameters)
    blocks, diagonal, _ = solver.objective.prior_curvature(point)
    hessian = panda.base.mapping.T @ data.information @ panda.base.mapping
    for k, block in enumerate(blocks):
        hessian[panda.layout.body(k), panda.layout.body(k)] += block
    hessian[panda.layout.friction, panda.layout.friction] += np.diag(diagonal)
    root = np.linalg.cholesky(result.covariance)
    # scales differ by up to 1e6, whose square times the rounding is the tolerance
    np.testing.assert_allclose(root.T @ hessian @ root, np.eye(panda.layout.size), atol=1e-3)


def test_the_divergence_does_not_depend_on_the_frame(panda: Synthetic) -> None:
    """Prior and body moved alike cost the same, the property that gives the prior its sense."""
    solver = EntropicSolver(panda.problem(count=5))
    rng = np.random.default_rng(2)
    H = np.eye(4)
    H[:3] += 0.3 * rng.standard_normal((3, 4))
    moved = from_pseudo_inertia(H @ pseudo_inertia(panda.layout.inertias(panda.truth)) @ H.T)
    centre = from_pseudo_inertia(
        H @ pseudo_inertia(panda.layout.inertias(solver.problem.prior.mean)) @ H.T
    )
    other = panda.truth.copy()
    other[panda.layout.inertial] = moved.ravel()
    mean = solver.problem.prior.mean.copy()
    mean[panda.layout.inertial] = centre.ravel()
    twin = EntropicSolver(replace(solver.problem, prior=replace(solver.problem.prior, mean=mean)))
    assert twin.divergence.value(other) == pytest.approx(
        solver.divergence.value(panda.truth), rel=1e-6
    )


def test_too_few_iterations_are_told(panda: Synthetic) -> None:
    result = Entropic(max_iterations=1).solve(panda.problem(noise=0.2))
    assert not result.converged
    assert any("before it converged" in warning for warning in result.warnings)
    assert result.consistency.min() > 0.0


def test_the_line_search_finds_the_minimum_of_the_section() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        rates, weights = rng.normal(0.0, 2.0, 30), rng.uniform(0.1, 3.0, 30)
        square = float(weights @ rates**2) + rng.uniform(0.0, 10.0)
        parabola = square - float(weights @ rates**2)
        pull = float(weights @ rates)

        def slope(t: float) -> float:
            left = 1.0 + t * rates  # noqa: B023
            return -square + pull + parabola * t - float(weights @ (rates / left))  # noqa: B023

        t = exact_step(square, rates, weights)
        assert 0.0 < t < 1.0 / max(-rates.min(), 1e-9)
        assert slope(0.99 * t) < 0.0 < slope(1.01 * t) or t == pytest.approx(
            0.99 / -rates.min(), rel=0.02
        )


def test_a_motionless_robot_leaves_the_prior_where_it_is(panda: Synthetic) -> None:
    """One pose, no noise: a few combinations are seen exactly, the rest must not drift."""
    problem = panda.problem(count=1)
    statistics = problem.statistics.scaled(500.0)
    result = Entropic().solve(replace(problem, statistics=statistics, rows=None))
    assert result.converged
    assert result.consistency.min() > 0.0
    assert np.median(result.determined) < 0.5
    assert unexplained(replace(problem, statistics=statistics), result) < 0.02


def test_the_first_data_of_a_parameter_start_from_the_minimum_without_them(
    panda: Synthetic,
) -> None:
    problem, noise = panda.problem(noise=0.2), np.full(7, 0.2)
    solver = EntropicSolver(problem, Entropic(tolerance=1e-8))
    before = solver.solve(problem.statistics.scaled(0.0), noise_std=noise)
    warm = solver.solve(problem.statistics, noise_std=noise, start=before.parameters)
    cold = EntropicSolver(problem, Entropic(tolerance=1e-8)).solve(
        problem.statistics, noise_std=noise
    )
    assert np.max(np.abs(warm.parameters - cold.parameters) / cold.std) < 1e-6


def test_newton_refuses_what_rounding_has_spoilt(panda: Synthetic) -> None:
    solver = EntropicSolver(panda.problem(count=20))
    rank = solver.coordinates.rank
    data = Data(-1e12 * np.eye(rank), np.zeros(rank), np.eye(rank))
    with pytest.raises(EstimationError, match="rounding"):
        newton_module.minimise(
            solver.objective, data, solver.objective.at(solver.inside), 1e-6, 50
        )


def test_frictions_are_likely_to_be_as_far_off_as_their_prior_says(panda: Synthetic) -> None:
    """A gamma distribution, of which the curvature at the mode shows the near side alone."""
    setting = Setting(panda.problem(), 0.0)
    divergence = setting.divergence
    spread, place = likely_spread(divergence), divergence.split + divergence.positive
    mode, relative = divergence.mean[place], divergence.logarithmic[divergence.positive] ** -0.5
    prior = gamma(1.0 + relative**-2, scale=relative**2 * mode)
    expected = prior.var() + (prior.mean() - mode) ** 2
    np.testing.assert_allclose(np.diagonal(spread)[place], expected)
    near = prior_covariance(divergence)
    near[place, place] = np.diagonal(spread)[place]
    np.testing.assert_array_equal(spread, near)


def test_what_is_known_of_parameters_is_likely_without_data(panda: Synthetic) -> None:
    problem = panda.problem()
    mass = float(panda.truth[problem.layout.masses].sum())
    constraints = replace(problem.constraints, total_mass=(mass, 1e-3))
    known = replace(problem, constraints=constraints)
    before, after = (Setting(p, 0.0).likely_spread() for p in (problem, known))
    assert np.linalg.eigvalsh(before - after).min() > -1e-9 * np.abs(before).max()
    assert np.trace(before - after) > 0.0
