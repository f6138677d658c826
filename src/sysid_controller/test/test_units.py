# SPDX-License-Identifier: Apache-2.0
"""Commands in driver units do the work that the joint torques do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sysid_controller.units import DriverUnits
from sysid_core.errors import ParameterError
from sysid_core.robot import Robot, load_robot

TORQUE = np.linspace(-3.0, 4.0, 6)


def on_side(robot: Robot, side: str) -> Robot:
    transmission = robot.description.transmission
    assert transmission is not None
    return load_robot(replace(robot.description, transmission=replace(transmission, side=side)))


def test_joint_torques_are_sent_as_they_are(tx40: Robot) -> None:
    np.testing.assert_array_equal(DriverUnits(tx40, "joint").command(TORQUE), TORQUE)


def test_motor_torques_do_the_joints_work(tx40: Robot) -> None:
    """Power is the same on both sides: u·q̇_motor = τ·q̇."""
    robot = on_side(tx40, "motor")
    units = DriverUnits(robot, "driver")
    motor_speed = np.random.default_rng(1).normal(size=6)
    power = units.command(TORQUE) @ motor_speed
    assert power == pytest.approx(TORQUE @ units.velocity(motor_speed), rel=1e-12)


def test_gains_are_divided_out(tx40: Robot) -> None:
    robot = on_side(tx40, "joint")
    gains = {name: 2.0 + i for i, name in enumerate(robot.joint_names)}
    robot = load_robot(replace(robot.description, effort_gain=gains))
    sent = DriverUnits(robot, "driver").command(TORQUE)
    np.testing.assert_allclose(sent * np.array(list(gains.values())), TORQUE)


def test_an_open_side_or_a_zero_gain_is_refused(tx40: Robot, panda: Robot) -> None:
    with pytest.raises(ParameterError, match=r"effort\.transmission\.side"):
        DriverUnits(tx40, "driver")
    with pytest.raises(ParameterError, match="gain is zero"):
        DriverUnits(load_robot(replace(panda.description, effort_gain=0.0)), "driver")
