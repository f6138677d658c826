# SPDX-License-Identifier: Apache-2.0
"""Coordinates that part data and prior."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from sysid_core.estimation.coordinates import Coordinates
from sysid_core.estimation.posterior import Posterior

if TYPE_CHECKING:
    from test.estimation.conftest import Synthetic


@pytest.fixture(params=["all free", "some fixed", "base alone"])
def coordinates(panda: Synthetic, request: pytest.FixtureRequest) -> Coordinates:
    fixed = np.zeros(panda.layout.size, dtype=bool)
    if request.param == "some fixed":
        fixed[panda.layout.body(0)] = fixed[panda.layout.body(6)] = True
        fixed[panda.layout.term("viscous")] = True
    if request.param == "base alone":  # as the parameters of a load that moves every way
        fixed[:] = True
        fixed[panda.base.columns] = False
    return Coordinates.of(panda.base, fixed, panda.truth)


def test_base_parameters_survive_the_way_through_the_free_ones(
    panda: Synthetic, coordinates: Coordinates
) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(coordinates.size)
    expected = panda.base.project(coordinates.full(x))
    np.testing.assert_allclose(
        coordinates.base_vector(coordinates.mapping @ x), expected, atol=1e-10
    )


def test_null_space_coordinates_leave_the_base_parameters_alone(
    coordinates: Coordinates,
) -> None:
    np.testing.assert_allclose(coordinates.mapping @ coordinates.spread, 0.0, atol=1e-12)
    np.testing.assert_allclose(
        coordinates.mapping[:, coordinates.columns], np.eye(coordinates.rank), atol=1e-12
    )


def test_step_and_gradient_are_adjoint(coordinates: Coordinates) -> None:
    rng = np.random.default_rng(1)
    change, gradient = rng.standard_normal((2, coordinates.size))
    assert gradient @ coordinates.step(change) == pytest.approx(
        coordinates.gradient(gradient) @ change
    )


def test_the_posterior_is_the_inverse_of_the_information(coordinates: Coordinates) -> None:
    rng, size = np.random.default_rng(2), coordinates.size
    factor = np.tril(rng.standard_normal((size, size)), -1) / size + np.eye(size)
    posterior = Posterior.of(coordinates, factor)
    joint = np.linalg.inv(factor @ factor.T)
    turn = np.array([coordinates.step(axis) for axis in np.eye(size)]).T
    split = len(coordinates.others)
    learned = np.eye(len(coordinates.shift))
    found = posterior.certainty(learned, "full")
    assert found is not None
    assert found.covariance is not None
    np.testing.assert_allclose(found.base, coordinates.lifted(joint[split:, split:]), atol=1e-12)
    np.testing.assert_allclose(found.covariance, turn @ joint @ turn.T, atol=1e-9)
    np.testing.assert_allclose(found.variance, np.diagonal(found.covariance))
    rows = rng.standard_normal((3, size))
    wanted = np.diagonal(rows @ turn @ joint @ turn.T @ rows.T)
    np.testing.assert_allclose(posterior.variance_of(rows), wanted)


def test_reduced_statistics_give_the_same_residuals(
    panda: Synthetic, coordinates: Coordinates
) -> None:
    statistics = panda.problem(count=50, noise=1.0).statistics
    gram, moment = statistics.gram.sum(axis=0), statistics.moment.sum(axis=0)
    H, m = coordinates.reduce(gram, moment)
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((2, coordinates.size))

    def cost(free: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        beta = panda.base.project(coordinates.full(free))
        return float(0.5 * beta @ gram @ beta - moment @ beta)

    def reduced(free: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        beta = coordinates.mapping @ free
        return float(0.5 * beta @ H @ beta - m @ beta)

    assert cost(x) - cost(y) == pytest.approx(reduced(x) - reduced(y), rel=1e-9)
