# SPDX-License-Identifier: Apache-2.0
"""Unconstrained least squares: against the textbook, with outliers, and its covariance."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sysid_core.dynamics.rows import RowBlock, Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import ParameterError
from sysid_core.estimation import Estimator, estimator
from sysid_core.estimation.coordinates import Coordinates
from sysid_core.estimation.divergence import Divergence
from sysid_core.estimation.gaussian import prior_covariance

if TYPE_CHECKING:
    from test.estimation.conftest import Synthetic

OLS, WLS = estimator("ols"), estimator("wls")


def test_ols_is_what_a_direct_solver_finds(panda: Synthetic) -> None:
    problem = panda.problem(noise=0.5)
    assert problem.rows is not None
    A = np.vstack([block.matrix for block in problem.rows.blocks])
    y = np.concatenate([block.target for block in problem.rows.blocks])
    expected = np.linalg.lstsq(A, y, rcond=None)[0]
    result = OLS.solve(problem)
    np.testing.assert_allclose(result.base_parameters, expected, rtol=1e-8, atol=1e-10)


def test_wls_with_known_noise_is_whitened_ols(panda: Synthetic) -> None:
    noise = np.geomspace(0.02, 2.0, 7)
    problem = replace(panda.problem(noise=noise), noise_std=noise)
    assert problem.rows is not None
    A = np.vstack([b.matrix / s for b, s in zip(problem.rows.blocks, noise, strict=True)])
    y = np.concatenate([b.target / s for b, s in zip(problem.rows.blocks, noise, strict=True)])
    result = WLS.solve(problem)
    np.testing.assert_allclose(
        result.base_parameters, np.linalg.lstsq(A, y, rcond=None)[0], rtol=1e-8, atol=1e-10
    )
    B = panda.base.mapping
    expected = np.linalg.inv(A.T @ A)
    np.testing.assert_allclose(
        np.diagonal(B @ result.covariance @ B.T), np.diagonal(expected), rtol=1e-6
    )


def test_weights_found_from_residuals_beat_equal_ones(panda: Synthetic) -> None:
    noise = np.geomspace(5.0, 0.01, 7)
    truth = panda.base.project(panda.truth)
    problem = panda.problem(noise=noise)
    scale = np.sqrt(np.einsum("gii->i", problem.statistics.gram))
    # the median, because parameters that only the noisiest joint sees cannot gain
    errors = [
        np.median(np.abs(method.solve(problem).base_parameters - truth) * scale)
        for method in (OLS, WLS)
    ]
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize("seed", range(6))
def test_weights_settle_where_only_rounding_is_left(panda: Synthetic, seed: int) -> None:
    result = WLS.solve(panda.problem(noise=0.0, seed=seed))
    assert result.converged
    assert result.iterations <= 4


def test_the_full_vector_is_the_closest_to_the_prior(panda: Synthetic) -> None:
    problem = panda.problem(noise=0.5)
    result = WLS.solve(problem)
    c = Coordinates.of(panda.base, problem.constraints.fixed, problem.prior.mean)
    W = prior_covariance(Divergence.of(problem, c))
    change = result.parameters - problem.prior.mean
    np.testing.assert_allclose(
        panda.base.project(result.parameters), result.base_parameters, rtol=1e-9
    )
    # stationarity: in the metric of the prior the change is orthogonal to the null space
    root = np.linalg.cholesky(W)
    null = np.linalg.solve(root, c.spread)
    null /= np.linalg.norm(null, axis=0)
    white = np.linalg.solve(root, change)
    # the prior's covariance has a condition number of 1e12, which leaves so many digits
    assert np.max(np.abs(null.T @ white)) < 1e-4 * np.linalg.norm(white)


@pytest.mark.parametrize("method", [OLS, WLS])
def test_deviations_match_repeated_experiments(panda: Synthetic, method: Estimator) -> None:
    noise = np.geomspace(0.5, 0.05, 7)
    A = panda.matrices(80, seed=21)[:, :, panda.base.columns]
    truth = panda.base.project(panda.truth)
    clean, template = A @ truth, panda.problem(count=5)
    gram = np.einsum("njb,njc->jbc", A, A)
    rng = np.random.default_rng(8)
    scores = []
    for _ in range(100):
        torque = clean + noise * rng.standard_normal(clean.shape)
        statistics = Statistics(
            gram,
            np.einsum("njb,nj->jb", A, torque),
            (torque**2).sum(axis=0),
            np.full(7, 80.0),
        )
        result = method.solve(replace(template, statistics=statistics, rows=None, noise_std=noise))
        spread = panda.base.mapping @ result.covariance @ panda.base.mapping.T
        scores.append((result.base_parameters - truth) / np.sqrt(np.diagonal(spread)))
    assert np.std(scores) == pytest.approx(1.0, abs=0.06)


def test_huber_shrugs_off_outliers(panda: Synthetic) -> None:
    problem = panda.problem(count=400, noise=0.1)
    assert problem.rows is not None
    rng = np.random.default_rng(3)
    blocks = []
    for block in problem.rows.blocks:
        target = block.target.copy()
        target[rng.choice(len(target), 20, replace=False)] += 60.0
        blocks.append(RowBlock(block.matrix, target, block.sample))
    rows = Rows(tuple(blocks))
    spoilt = replace(problem, rows=rows, statistics=Statistics.of(rows))
    truth = panda.base.project(panda.truth)
    scale = np.sqrt(np.einsum("gii->i", problem.statistics.gram))

    def error(method: Estimator) -> float:
        return float(np.linalg.norm((method.solve(spoilt).base_parameters - truth) * scale))

    robust = estimator("wls", huber=1.345)
    assert error(robust) < 0.1 * error(WLS)
    np.testing.assert_allclose(robust.solve(spoilt).noise_std, 0.1, rtol=0.2)


def test_huber_with_a_far_limit_changes_nothing(panda: Synthetic) -> None:
    problem = replace(panda.problem(noise=0.3), noise_std=np.full(7, 0.3))
    far = estimator("wls", huber=1e6).solve(problem)
    np.testing.assert_allclose(
        far.base_parameters, WLS.solve(problem).base_parameters, rtol=1e-8, atol=1e-10
    )


def test_huber_without_rows_is_refused(panda: Synthetic) -> None:
    with pytest.raises(ParameterError, match="rows"):
        estimator("wls", huber=1.345).solve(replace(panda.problem(count=20), rows=None))


def test_inconsistent_bodies_are_named(panda: Synthetic) -> None:
    result = WLS.solve(panda.problem(noise=5.0))
    assert result.consistency.min() < 0.0
    assert any("not physically consistent" in warning for warning in result.warnings)
