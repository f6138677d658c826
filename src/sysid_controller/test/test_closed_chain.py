# SPDX-License-Identifier: Apache-2.0
"""Control laws on a closed-chain leg: u = Gᵀ W(q_d, q̇_d, q̈_d) θ + K_p e + K_d ė."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sysid_controller.dynamics import make_dynamics
from sysid_controller.laws import ComputedTorque, FeedForward, Gains, Motion
from sysid_core.recording import FloatArray, Samples
from sysid_core.regression.closed_chain import ClosedChainRegression
from sysid_core.robot import Robot, load_robot

ROBOTS = Path(__file__).resolve().parents[3] / "config" / "robots"
WIDTH = 0.02  # [rad/s]


@pytest.fixture(scope="module")
def leg() -> Robot:
    return load_robot(ROBOTS / "digit_left_leg.yaml")


def _regressed(leg: Robot, motion: Motion, x: FloatArray) -> FloatArray:
    """Return Gᵀ W θ (na,) by the regression, whose Coulomb sign is exact."""
    arrays = [np.full((1, len(leg.joint_names)), np.nan) for _ in range(4)]
    for array, values in zip(arrays, (*motion, np.zeros(6)), strict=True):
        array[0, leg.actuated] = values
    regression = ClosedChainRegression(leg)
    rows = regression.rows(Samples(np.zeros(1), *arrays))
    return np.array([block.matrix[0] @ regression.base.project(x) for block in rows.blocks])


def test_feed_forward_is_the_papers_law(leg: Robot) -> None:
    """Zhang et al. eq. (34), at speeds far above the smoothed sign's width."""
    dynamics = make_dynamics(leg, WIDTH)
    x = leg.consistent_nominal * np.random.default_rng(0).uniform(0.9, 1.1, leg.layout.size)
    dynamics.set_parameters(x)
    desired = Motion(
        np.array([0.1, -0.1, 0.3, 0.2, 0.15, -0.2]),
        np.array([1.0, -0.8, 1.5, -1.2, 0.9, -1.1]),
        np.array([3.0, 2.0, -4.0, 5.0, -6.0, 4.0]),
    )
    gains = Gains(np.full(6, 50.0), np.full(6, 2.0))
    position, velocity = desired.position - 0.01, desired.velocity + 0.1
    out = FeedForward(gains, measured_sign=False)(dynamics, desired, position, velocity)
    np.testing.assert_allclose(out.model, _regressed(leg, desired, x), atol=1e-9)
    np.testing.assert_allclose(out.effort - out.model, 50.0 * 0.01 - 2.0 * 0.1, atol=1e-12)


def test_computed_torque_needs_no_feedback_on_the_reference(leg: Robot) -> None:
    dynamics = make_dynamics(leg, WIDTH)
    law = ComputedTorque(Gains(np.full(6, 400.0), np.full(6, 40.0)), measured_sign=False)
    rest = Motion(np.zeros(6), np.zeros(6), np.zeros(6))
    out = law(dynamics, rest, rest.position, rest.velocity)
    np.testing.assert_allclose(out.effort, dynamics.gravity(rest.position), atol=1e-12)


def test_an_unreachable_reference_gives_no_torque_but_nan(leg: Robot) -> None:
    """The limiter turns NaN into zero and tells; a wrong torque it could not tell."""
    dynamics = make_dynamics(leg, WIDTH)
    beyond = np.array([0.0, 0.0, 0.0, 0.0, 0.75, 0.75])
    out = FeedForward(Gains(np.ones(6), np.ones(6)), measured_sign=False)(
        dynamics, Motion(beyond, np.zeros(6), np.zeros(6)), np.zeros(6), np.zeros(6)
    )
    assert np.isnan(out.model).all()
