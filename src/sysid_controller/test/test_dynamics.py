# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics equal the regressor times the parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sysid_controller.contact_torque import ContactTorque
from sysid_controller.controller import Controller
from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.open_tree import random_states
from sysid_core.dynamics.select import make_dynamics
from sysid_core.dynamics.tree import TreeDynamics, TreeRegression
from sysid_core.errors import ModelError
from sysid_core.robot import Robot, load_robot

WIDTH = 0.05
Perturbed = Callable[[Robot, int], FloatArray]


def smooth(robot: Robot) -> Robot:
    """Return the robot with the regressor's sign smoothed like the controller's."""
    return load_robot(replace(robot.description, coulomb_velocity=WIDTH))


@pytest.mark.parametrize("name", ["panda", "tx40", "ur10", "kuka_lwr", "valkyrie_arm"])
def test_torque_is_the_regressor_times_the_parameters(name: str, perturbed: Perturbed) -> None:
    robot = smooth(load_robot(name))
    dynamics = TreeDynamics(robot, WIDTH)
    q, v, a = random_states(robot, 20, seed=1)
    A = TreeRegression(robot).full(q, v, a)
    for seed in (1, 2):
        x = perturbed(robot, seed)
        dynamics.set_parameters(x)
        for i in range(len(q)):
            torque = dynamics.torque(q[i], v[i], a[i], v[i])
            np.testing.assert_allclose(torque, A[i] @ x, rtol=1e-10, atol=1e-9)


def test_gravity_is_the_torque_at_rest(tx40: Robot, perturbed: Perturbed) -> None:
    dynamics = TreeDynamics(tx40, WIDTH)
    dynamics.set_parameters(perturbed(tx40, 3))
    q, _, _ = random_states(tx40, 5, seed=2)
    zero = np.zeros(len(tx40.joint_names))
    for position in q:
        np.testing.assert_allclose(
            dynamics.gravity(position), dynamics.torque(position, zero, zero, zero), atol=1e-10
        )


def test_inertia_is_the_slope_of_torque_over_acceleration(
    tx40: Robot, perturbed: Perturbed
) -> None:
    dynamics = TreeDynamics(tx40, WIDTH)
    dynamics.set_parameters(perturbed(tx40, 4))
    q, v, _ = random_states(tx40, 3, seed=3)
    zero = np.zeros(len(tx40.joint_names))
    for i in range(len(q)):
        still = dynamics.torque(q[i], v[i], zero, v[i])
        M = dynamics.inertia(q[i])
        np.testing.assert_allclose(M, M.T, atol=1e-12)
        for j, unit in enumerate(np.eye(len(zero))):
            slope = dynamics.torque(q[i], v[i], unit, v[i]) - still
            np.testing.assert_allclose(slope, M[:, j], atol=1e-9)


def test_parameters_can_be_exchanged_and_do_not_touch_the_robot(
    panda: Robot, perturbed: Perturbed
) -> None:
    dynamics = make_dynamics(panda, WIDTH)
    q, v, a = (s[0] for s in random_states(panda, 1, seed=5))
    before = dynamics.torque(q, v, a, v)
    dynamics.set_parameters(perturbed(panda, 5))
    assert np.abs(dynamics.torque(q, v, a, v) - before).max() > 0.1
    dynamics.set_parameters(panda.consistent_nominal)
    np.testing.assert_array_equal(dynamics.torque(q, v, a, v), before)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_parameters_that_are_not_finite_leave_the_old_ones(panda: Robot, bad: float) -> None:
    dynamics = TreeDynamics(panda, WIDTH)
    q, v, a = (s[0] for s in random_states(panda, 1, seed=6))
    before = dynamics.torque(q, v, a, v)
    x = panda.consistent_nominal.copy()
    x[12] = bad
    with pytest.raises(ModelError):
        dynamics.set_parameters(x)
    with pytest.raises(ModelError):
        dynamics.set_parameters(x[:-1])
    np.testing.assert_array_equal(dynamics.torque(q, v, a, v), before)


def test_a_floating_base_gets_dynamics_in_contact() -> None:
    assert isinstance(Controller(load_robot("solo12"), ControllerConfig()).dynamics, ContactTorque)
    with pytest.raises(ModelError, match="fixed base"):
        TreeDynamics(load_robot("solo12"), 0.05)


def test_a_closed_chain_is_driven_by_its_actuated_joints() -> None:
    robot = load_robot("digit_left_leg")
    dynamics = make_dynamics(robot, WIDTH)
    assert dynamics.joint_names == robot.actuated_names
    assert dynamics.gravity(np.zeros(len(robot.actuated_names))).shape == (6,)
