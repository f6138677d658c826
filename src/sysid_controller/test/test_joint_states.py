# SPDX-License-Identifier: Apache-2.0
"""Joint states are put in order, checked, and given velocities where they have none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sysid_controller.joint_states import JointStates
from sysid_core.arrays import FloatArray
from sysid_core.robot import Robot, load_robot
from sysid_core.robot.conversion import JointConversion
from sysid_core.robot.limits import Limits

NONE = np.zeros(0)


def make(robot: Robot) -> JointStates:
    limits = Limits(*(bounds[robot.actuated] for bounds in robot.limits))
    conversion, aliases = JointConversion.described(robot), robot.description.names
    return JointStates(robot.actuated_names, conversion, aliases, limits)


@pytest.fixture
def states(panda: Robot) -> JointStates:
    return make(panda)


VALUES = np.linspace(0.1, 0.7, 7)


def test_any_order_and_extra_joints_give_the_same(states: JointStates, panda: Robot) -> None:
    rng = np.random.default_rng(1)
    names = [*panda.joint_names, "finger_1", "finger_2"]
    values = np.append(VALUES, [9.0, np.nan])
    for stamp in range(5):
        order = rng.permutation(len(names))
        shuffled = [names[i] for i in order]
        assert states.update(shuffled, values[order], -values[order], float(stamp)) is None
        np.testing.assert_array_equal(states.position, VALUES)
        np.testing.assert_array_equal(states.velocity, -VALUES)
        assert states.velocity_measured


def test_other_names_of_the_description_are_known(states: JointStates) -> None:
    names = [f"fer_joint{i}" for i in range(1, 8)]
    assert states.update(names, VALUES, VALUES, 0.0) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_positions_that_are_not_finite_are_refused_by_name(
    states: JointStates, panda: Robot, bad: float
) -> None:
    states.update(panda.joint_names, VALUES, VALUES, 0.0)
    position = VALUES.copy()
    position[3] = bad
    refusal = states.update(panda.joint_names, position, VALUES, 0.1)
    assert refusal is not None
    assert "panda_joint4" in str(refusal)
    np.testing.assert_array_equal(states.position, VALUES)


def test_positions_of_a_second_node_do_not_leap_in_between(
    states: JointStates, panda: Robot
) -> None:
    names = panda.joint_names
    states.update(names, VALUES, NONE, 0.0)
    refusal = states.update(names, np.zeros(7), NONE, 0.0001)
    assert refusal is not None
    assert "'panda_joint1' leaps from 0.1 to 0 rad" in str(refusal)
    np.testing.assert_array_equal(states.position, VALUES)
    assert states.update(names, VALUES, NONE, 0.002) is None
    np.testing.assert_array_equal(states.velocity, 0.0)
    # after a silence in which the joints can have come there, they have
    assert states.update(names, np.zeros(7), NONE, 0.2) is None


def test_joints_that_turn_without_end_may_jump_by_turns(panda: Robot) -> None:
    free = panda.limits._replace(lower=np.full(7, -np.inf), upper=np.full(7, np.inf))
    states = JointStates(
        panda.actuated_names, JointConversion.described(panda), panda.description.names, free
    )
    states.update(panda.joint_names, np.full(7, 3.14), NONE, 0.0)
    assert states.update(panda.joint_names, np.full(7, -3.14), NONE, 0.002) is None


def test_missing_joints_and_wrong_lengths_are_refused(states: JointStates, panda: Robot) -> None:
    names = list(panda.joint_names)
    assert "panda_joint7" in str(states.update(names[:6], VALUES[:6], NONE, 0.0))
    assert "6 positions for 7" in str(states.update(names, VALUES[:6], NONE, 0.0))
    assert states.update([], NONE, NONE, 0.0) is not None
    assert not states.known
    assert states.update(names, VALUES, NONE, 0.0) is None


def test_missing_velocities_come_from_the_positions(states: JointStates, panda: Robot) -> None:
    speed = np.linspace(-1.0, 1.0, 7)
    for i in range(200):
        states.update(panda.joint_names, VALUES + speed * 0.002 * i, NONE, 0.002 * i)
    np.testing.assert_allclose(states.velocity, speed, atol=1e-9)
    assert not states.velocity_measured


def test_a_velocity_that_is_not_finite_is_replaced_alone(
    states: JointStates, panda: Robot
) -> None:
    velocity = np.full(7, 0.5)
    velocity[2] = np.nan
    for i in range(200):
        states.update(panda.joint_names, VALUES + 0.5 * 0.002 * i, velocity, 0.002 * i)
    np.testing.assert_allclose(states.velocity, 0.5, atol=1e-9)


def test_the_filter_lets_slow_motion_through_and_noise_not(panda: Robot) -> None:
    rng = np.random.default_rng(2)
    time = 0.002 * np.arange(2000)

    def velocities(noise: float) -> FloatArray:
        states = make(panda)
        found = []
        for t in time:
            position = np.sin(2.0 * t) + noise * rng.normal(size=7)
            states.update(panda.joint_names, position, NONE, t)
            found.append(states.velocity)
        return np.array(found)

    truth = 2.0 * np.cos(2.0 * time)[:, None]
    assert np.abs(velocities(0.0) - truth)[50:].max() < 0.05
    differences = np.sqrt(2.0) * 1e-4 / 0.002
    assert np.std(velocities(1e-4) - velocities(0.0)) < 0.5 * differences


def test_repeated_stamps_and_clocks_set_back_do_not_disturb(
    states: JointStates, panda: Robot
) -> None:
    for i in range(100):
        for _ in range(2):
            states.update(panda.joint_names, VALUES + 0.002 * i, NONE, 0.002 * i)
    np.testing.assert_allclose(states.velocity, 1.0, atol=1e-6)
    states.update(panda.joint_names, VALUES, NONE, 0.0)
    np.testing.assert_array_equal(states.velocity, 0.0)


def test_motor_side_data_are_turned_into_joints(tx40: Robot) -> None:
    transmission = tx40.description.transmission
    assert transmission is not None
    robot = load_robot(replace(tx40.description, transmission=replace(transmission, side="motor")))
    matrix = np.array(transmission.matrix)
    joints = np.linspace(-0.5, 0.5, 6)
    offset = np.array([robot.description.position_offset.get(n, 0.0) for n in robot.joint_names])
    states = make(robot)
    states.update(robot.joint_names, matrix @ (joints - offset), matrix @ joints, 0.0)
    np.testing.assert_allclose(states.position, joints, atol=1e-12)
    np.testing.assert_allclose(states.velocity, joints, atol=1e-12)


@pytest.mark.parametrize("far", [7.0, -1e7, 1e9, 1e200])
def test_positions_far_out_of_range_are_refused_by_name(
    states: JointStates, panda: Robot, far: float
) -> None:
    position = VALUES.copy()
    position[2] = far
    refusal = states.update(panda.joint_names, position, VALUES, 0.0)
    assert refusal is not None
    assert refusal.kind == "implausible"
    assert "panda_joint3" in str(refusal)
    assert "2.897" in str(refusal)
    assert not states.known
    position[2] = 3.0  # a joint past its stop is still driven back
    assert states.update(panda.joint_names, position, VALUES, 0.0) is None


def test_velocities_far_beyond_the_limit_are_refused_by_name(
    states: JointStates, panda: Robot
) -> None:
    velocity = VALUES.copy()
    velocity[6] = 30.0
    refusal = states.update(panda.joint_names, VALUES, velocity, 0.0)
    assert refusal is not None
    assert refusal.kind == "implausible"
    assert "panda_joint7" in str(refusal)


def test_a_joint_that_moves_as_fast_as_it_says_is_believed(
    states: JointStates, panda: Robot
) -> None:
    velocity, position = VALUES.copy(), VALUES.copy()
    assert states.update(panda.joint_names, position, VALUES, 0.0) is None
    velocity[6], position[6] = 30.0, VALUES[6] + 0.06
    assert states.update(panda.joint_names, position, velocity, 0.002) is None
    assert states.velocity[6] == 30.0
    velocity[6] = -30.0
    position[6] += 0.06
    assert states.update(panda.joint_names, position, velocity, 0.004) is not None
