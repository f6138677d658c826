# SPDX-License-Identifier: Apache-2.0
"""Fourier motions are smooth, at rest at their ends, and fit into limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sysid_core.errors import ParameterError
from sysid_core.excitation.fourier import FourierMotion, random_motion, rest_basis
from sysid_core.excitation.limits import MotionLimits, fit_into


@pytest.fixture
def motion() -> FourierMotion:
    return random_motion(4, 7.3, 6, np.random.default_rng(5))


@pytest.fixture
def limits() -> MotionLimits:
    return MotionLimits(
        lower=np.array([-1.0, 0.2, -3.0, 1.0]),
        upper=np.array([0.5, 0.9, 2.0, 1.1]),
        velocity=np.array([1.0, 0.3, 2.0, 5.0]),
        acceleration=np.array([2.0, 5.0, 0.5, 5.0]),
        effort=np.full(4, np.inf),
    )


def test_velocity_and_acceleration_are_the_derivatives(motion: FourierMotion) -> None:
    time, step = np.linspace(0.0, motion.period, 50), 1e-5
    before, here, after = (motion.states(time + k * step) for k in (-1, 0, 1))
    velocity = (after.position - before.position) / (2.0 * step)
    acceleration = (after.velocity - before.velocity) / (2.0 * step)
    # central differences: O(h²) of the third derivative, some (6·2π/7)³·h²
    np.testing.assert_allclose(velocity, here.velocity, atol=1e-6)
    np.testing.assert_allclose(acceleration, here.acceleration, atol=1e-6)


def test_a_motion_starts_and_ends_at_rest_in_the_same_place(motion: FourierMotion) -> None:
    ends = motion.states(motion.times(33.0)[[0, -1]])
    np.testing.assert_allclose(ends.velocity, 0.0, atol=1e-12)
    np.testing.assert_allclose(ends.acceleration, 0.0, atol=1e-11)
    np.testing.assert_allclose(ends.position[0], ends.position[1], atol=1e-12)


@pytest.mark.parametrize("fill", [False, True])
@pytest.mark.parametrize("size", [0.01, 30.0])
def test_a_fitted_motion_keeps_its_limits_between_samples(
    motion: FourierMotion, limits: MotionLimits, fill: bool, size: float
) -> None:
    wild = replace(motion.scaled(size), centre=np.array([5.0, -5.0, 0.0, 1.05]))
    fitted = fit_into(wild, limits, fill=fill, rate=20.0)
    states = fitted.states(np.linspace(0.0, motion.period, 20001))
    assert (states.position >= limits.lower - 1e-12).all()
    assert (states.position <= limits.upper + 1e-12).all()
    assert (np.abs(states.velocity) <= limits.velocity).all()
    assert (np.abs(states.acceleration) <= limits.acceleration).all()


def test_filling_uses_the_tightest_limit(motion: FourierMotion, limits: MotionLimits) -> None:
    states = fit_into(motion, limits, fill=True).states(np.linspace(0.0, motion.period, 5001))
    used = np.stack(
        [
            np.ptp(states.position, axis=0) / (limits.upper - limits.lower),
            np.abs(states.velocity).max(axis=0) / limits.velocity,
            np.abs(states.acceleration).max(axis=0) / limits.acceleration,
        ]
    )
    np.testing.assert_allclose(used.max(axis=0), 1.0, atol=1e-3)


def test_what_cannot_be_a_motion_is_refused() -> None:
    with pytest.raises(ParameterError, match="2 harmonics"):
        rest_basis(1)
    with pytest.raises(ParameterError, match="period"):
        FourierMotion(0.0, np.zeros(1), np.zeros((1, 2)), np.zeros((1, 2)))
    with pytest.raises(ParameterError, match="do not fit"):
        FourierMotion(1.0, np.zeros(2), np.zeros((1, 2)), np.zeros((1, 2)))
    with pytest.raises(ParameterError, match="no lower above its upper"):
        MotionLimits(np.ones(1), np.zeros(1), np.ones(1), np.ones(1), np.ones(1))
