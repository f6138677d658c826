# SPDX-License-Identifier: Apache-2.0
"""Noise from residuals, and how many independent rows coloured residuals are worth."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.signal import lfilter

from sysid_core.dynamics.rows import effective_sample_factor
from sysid_core.errors import ParameterError
from sysid_core.estimation import Entropic, estimator

if TYPE_CHECKING:
    from test.estimation.conftest import Synthetic


@pytest.mark.parametrize("pole", [0.0, 0.5, 0.9, 0.98])
def test_the_factor_of_a_first_order_process_is_known(pole: float) -> None:
    rng = np.random.default_rng(4)
    e = lfilter([1.0], [1.0, -pole], rng.standard_normal(40000))
    expected = (1.0 + pole) / (1.0 - pole)
    assert effective_sample_factor(e) == pytest.approx(expected, rel=0.2)


def test_the_sum_of_the_autocorrelation_ends_where_only_noise_is_left() -> None:
    rng = np.random.default_rng(6)
    series = lfilter([1.0], [1.0, -0.9], rng.standard_normal((20, 20000)), axis=1)
    factors = np.array([effective_sample_factor(e) for e in series])
    # sooner, a seventh is missing; later, the scatter doubles
    assert factors.mean() == pytest.approx(19.0, rel=0.08)
    assert factors.std() < 0.2 * 19.0


def test_the_sum_ends_at_sokals_window() -> None:
    rng = np.random.default_rng(8)
    slow, fast = (lfilter([1.0], [1.0, -pole], rng.standard_normal(4000)) for pole in (0.99, 0.5))
    e = slow / slow.std() + 2.0 * fast / fast.std()
    e -= e.mean()
    time, lag = 1.0, 0
    while lag < 5.0 * time:  # Sokal 1997, section 3: the first lag beyond 5 τ
        lag += 1
        time += 2.0 * float(e[lag:] @ e[:-lag]) / float(e @ e)
    assert effective_sample_factor(e) == pytest.approx(time, rel=0.01)  # hardly any is clipped


def test_a_few_outliers_do_not_hide_the_colour() -> None:
    rng = np.random.default_rng(5)
    e = lfilter([1.0], [1.0, -0.9], rng.standard_normal(20000))
    clean = effective_sample_factor(e)
    e[rng.integers(0, len(e), 50)] += 500.0
    assert effective_sample_factor(e) == pytest.approx(clean, rel=0.2)


def test_the_factor_does_not_depend_on_scale_or_offset() -> None:
    rng = np.random.default_rng(6)
    e = lfilter([1.0], [1.0, -0.8], rng.standard_normal(5000))
    assert effective_sample_factor(3.0 + 1e-6 * e) == pytest.approx(effective_sample_factor(e))


def test_short_constant_and_alternating_series_count_in_full() -> None:
    assert effective_sample_factor(np.array([1.0, 2.0])) == 1.0
    assert effective_sample_factor(np.zeros(100)) == 1.0
    assert effective_sample_factor(np.resize([1.0, -1.0], 100)) == 1.0


def test_series_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ParameterError):
        effective_sample_factor(np.array([1.0, np.nan, 2.0, 3.0, 4.0]))


@pytest.mark.parametrize("method", ["wls", "prior", "qp", "entropic"])
def test_noise_of_each_joint_is_found(panda: Synthetic, method: str) -> None:
    truth = np.array([1.0, 0.5, 2.0, 0.1, 0.05, 0.02, 0.2])
    result = estimator(method).solve(panda.problem(count=600, noise=truth))
    # the relative deviation of a standard deviation from 600 rows is 3 %
    np.testing.assert_allclose(result.noise_std, truth, rtol=0.12)


@pytest.mark.parametrize("method", ["wls", "prior", "qp", "entropic"])
def test_few_rows_do_not_pass_for_exact_ones(panda: Synthetic, method: str) -> None:
    problem = panda.problem(count=4, noise=0.5)
    result = estimator(method).solve(problem)
    size = np.sqrt(problem.statistics.square / 4)
    assert (result.noise_std >= 0.009 * size).all()


def test_correlation_costs_degrees_of_freedom(panda: Synthetic) -> None:
    problem = panda.problem(count=100, noise=0.3)
    white = Entropic().solve(problem)
    coloured = Entropic().solve(replace(problem, correlation=np.full(7, 4.0)))
    assert (coloured.noise_std > white.noise_std).all()


@pytest.mark.parametrize("method", ["prior", "qp"])
def test_a_prior_that_the_data_contradict_makes_no_noise(panda: Synthetic, method: str) -> None:
    problem = replace(panda.problem(1000, noise=0.01), correlation=np.full(7, 5.0))
    mean = problem.prior.mean.copy()
    mean[panda.layout.term("viscous")] *= 1e-3
    other = replace(problem, prior=replace(problem.prior, mean=mean))
    noise, expected = (estimator(method).solve(p).noise_std for p in (other, problem))
    np.testing.assert_allclose(noise, expected, rtol=1e-5)
