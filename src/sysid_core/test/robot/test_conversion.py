# SPDX-License-Identifier: Apache-2.0
"""A driver's joint values and the model's: what is published comes back, and work is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sysid_core.errors import ParameterError
from sysid_core.robot import Robot, load_robot
from sysid_core.robot.conversion import JointConversion

TORQUE = np.linspace(-3.0, 4.0, 6)


@pytest.fixture(scope="module")
def tx40() -> Robot:
    return load_robot("tx40")


def on_side(robot: Robot, side: str) -> Robot:
    transmission = robot.description.transmission
    assert transmission is not None
    return load_robot(replace(robot.description, transmission=replace(transmission, side=side)))


@pytest.mark.parametrize("side", ["motor", "joint", "auto"])
def test_what_a_driver_publishes_comes_back(tx40: Robot, side: str) -> None:
    robot = on_side(tx40, side)
    rng = np.random.default_rng(1)
    q, v, tau = rng.normal(size=(3, 5, 6))
    driver = JointConversion.described(robot)
    position, velocity = driver.published_position(q), driver.published_velocity(v)
    effort = driver.command(tau)
    found = JointConversion(robot)
    for actual, expected in zip(found.convert(position, effort), (q, tau), strict=True):
        np.testing.assert_allclose(actual, expected, atol=1e-12)
    np.testing.assert_allclose(found.velocity(velocity), v, atol=1e-12)
    np.testing.assert_allclose(driver.position(position[0]), q[0], atol=1e-12)


def test_motor_torques_do_the_joints_work(tx40: Robot) -> None:
    """Power is the same on both sides: u·q̇_motor = τ·q̇."""
    conversion = JointConversion(on_side(tx40, "motor"))
    motor_speed = np.random.default_rng(1).normal(size=6)
    power = conversion.command(TORQUE) @ motor_speed
    assert power == pytest.approx(TORQUE @ conversion.velocity(motor_speed), rel=1e-12)


def test_gains_are_divided_out(tx40: Robot) -> None:
    robot = on_side(tx40, "joint")
    gains = {name: 2.0 + i for i, name in enumerate(robot.joint_names)}
    robot = load_robot(replace(robot.description, effort_gain=gains))
    sent = JointConversion(robot).command(TORQUE)
    np.testing.assert_allclose(sent * np.array(list(gains.values())), TORQUE)


def test_an_open_side_or_a_zero_gain_bars_commands_in_driver_units(tx40: Robot) -> None:
    JointConversion(on_side(tx40, "joint")).check_commands()
    with pytest.raises(ParameterError, match=r"effort\.transmission\.side"):
        JointConversion(tx40).check_commands()
    idle = load_robot(replace(load_robot("panda").description, effort_gain=0.0))
    with pytest.raises(ParameterError, match="gain is zero"):
        JointConversion(idle).check_commands()
