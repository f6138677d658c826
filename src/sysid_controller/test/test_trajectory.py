# SPDX-License-Identifier: Apache-2.0
"""Trajectories go through their points exactly and smoothly."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_controller.planning import Quintics, derive_accelerations, derive_velocities
from sysid_core.arrays import FloatArray

TIME = np.array([0.0, 0.4, 1.0, 1.3, 2.0])
FINE = np.linspace(0.0, 2.0, 203)


def polynomial(degree: int, seed: int) -> list[FloatArray]:
    """Return position, velocity and acceleration coefficients of two joints' polynomials."""
    coefficients = np.random.default_rng(seed).normal(size=(degree + 1, 2))
    derivatives = [coefficients]
    for _ in range(2):
        derivatives.append(derivatives[-1][1:] * np.arange(1, len(derivatives[-1]))[:, None])
    return derivatives


def values(coefficients: FloatArray, time: FloatArray) -> FloatArray:
    return time[:, None] ** np.arange(len(coefficients)) @ coefficients


def test_a_quintic_given_with_all_derivatives_is_reproduced() -> None:
    derivatives = polynomial(5, 1)
    path = Quintics(TIME, *(values(c, TIME) for c in derivatives))
    for t in FINE[:-1]:
        for got, c in zip(path.at(t), derivatives, strict=True):
            np.testing.assert_allclose(got, values(c, np.array([t]))[0], atol=1e-9)


def test_a_cubic_given_with_velocities_is_reproduced() -> None:
    position, velocity, _ = polynomial(3, 2)
    p, v = values(position, TIME), values(velocity, TIME)
    path = Quintics(TIME, p, v, derive_accelerations(TIME, p, v))
    for t in FINE[:-1]:
        np.testing.assert_allclose(
            path.at(t).position, values(position, np.array([t]))[0], atol=1e-9
        )


def test_positions_alone_give_a_smooth_path_through_them() -> None:
    rng = np.random.default_rng(3)
    p = rng.normal(size=(len(TIME), 2))
    v = derive_velocities(TIME, p, np.zeros(2))
    path = Quintics(TIME, p, v, derive_accelerations(TIME, p, v))
    for t, point in zip(TIME, p, strict=True):
        np.testing.assert_allclose(path.at(t).position, point, atol=1e-12)
    np.testing.assert_array_equal(path.at(0.0).velocity, 0.0)
    np.testing.assert_allclose(path.at(2.0 - 1e-9).velocity, 0.0, atol=1e-6)


def test_derivatives_are_those_of_the_positions_and_continuous() -> None:
    rng = np.random.default_rng(4)
    p = rng.normal(size=(len(TIME), 2))
    v = derive_velocities(TIME, p, None)
    path = Quintics(TIME, p, v, derive_accelerations(TIME, p, v))
    h = 1e-5
    for t in rng.uniform(h, 2.0 - h, 50):
        before, at, after = path.at(t - h), path.at(t), path.at(t + h)
        slope = (after.position - before.position) / (2 * h)
        np.testing.assert_allclose(slope, at.velocity, atol=1e-5)
        slope = (after.velocity - before.velocity) / (2 * h)
        np.testing.assert_allclose(slope, at.acceleration, atol=1e-3)
    for knot in TIME[1:-1]:
        for left, right in zip(path.at(knot - 1e-9), path.at(knot + 1e-9), strict=True):
            np.testing.assert_allclose(left, right, atol=1e-5)


def test_before_and_after_it_stays_put() -> None:
    zero = np.zeros((2, 1))
    path = Quintics(np.array([1.0, 2.0]), np.array([[0.0], [3.0]]), zero, zero)
    assert path.at(0.0).position[0] == 0.0
    assert path.at(5.0).position[0] == 3.0
    assert path.at(5.0).velocity[0] == 0.0
    np.testing.assert_array_equal(path.at(path.end).position, [3.0])


def test_a_single_knot_is_a_place_to_rest() -> None:
    one = np.ones((1, 2))
    path = Quintics(np.zeros(1), one, 0 * one, 0 * one)
    np.testing.assert_array_equal(path.at(-1.0).position, 1.0)
    np.testing.assert_array_equal(path.at(1.0).position, 1.0)
    assert path.dense(4)[0].shape == (0, 2)


def test_dense_samples_lie_on_the_path() -> None:
    p, v, a = (values(c, TIME) for c in polynomial(5, 6))
    path = Quintics(TIME, p, v, a)
    position, velocity = path.dense(4)
    step = np.diff(TIME)
    times = np.concatenate([t + d * np.arange(1, 5) / 4 for t, d in zip(TIME, step, strict=False)])
    for t, got_p, got_v in zip(times[:-1], position[:-1], velocity[:-1], strict=True):
        np.testing.assert_allclose(path.at(t).position, got_p, atol=1e-9)
        np.testing.assert_allclose(path.at(t).velocity, got_v, atol=1e-8)


@pytest.mark.parametrize("count", [1, 2])
def test_few_points_are_enough(count: int) -> None:
    p = np.arange(float(count))[:, None]
    v = derive_velocities(TIME[:count], p, None)
    assert derive_accelerations(TIME[:count], p, v).shape == (count, 1)
