# SPDX-License-Identifier: Apache-2.0
"""A driver's joint values and the model's: what is published comes back, and work is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sysid_core.dynamics.tree import TreeDynamics
from sysid_core.errors import ParameterError, RobotError
from sysid_core.recording import Recording
from sysid_core.robot import Robot, load_robot, parse_description
from sysid_core.robot.conversion import JointConversion
from sysid_core.robot.interpretation import interpret

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


def test_gravity_that_a_driver_compensates_is_put_back() -> None:
    """Published efforts are τ − g; commands are too, unless they are said to hold gravity."""
    usual = load_robot("ur10")
    described = replace(usual.description, effort_excludes=("gravity",))
    robot = load_robot(replace(described, command_excludes=("gravity",)))
    q = np.random.default_rng(3).uniform(-2.0, 2.0, (4, 6))
    gravity = TreeDynamics(robot).torques(q, 0.0 * q, 0.0 * q)
    driver = JointConversion(robot)
    np.testing.assert_allclose(
        driver.convert(q, TORQUE - gravity)[1], TORQUE + 0.0 * q, atol=1e-12
    )
    np.testing.assert_allclose(driver.uncommanded(q[0]), gravity[0], atol=1e-12)
    assert not JointConversion(load_robot(described)).uncommanded(q).any()
    assert not JointConversion(usual).unpublished(q).any()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"excludes": ["weight"]}, "must be one of"),
        ({"excludes": "gravity"}, "list of names"),
        ({"excludes": 5}, "list of names"),
        ({"command_excludes": ["friction"]}, "must be one of"),
    ],
)
def test_other_exclusions_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(RobotError, match=message):
        parse_description({"name": "a", "urdf": "a.urdf", "effort": keys})


def test_gravity_is_excluded_of_arms_only() -> None:
    data = {"name": "a", "urdf": "a.urdf", "base": "floating", "effort": {"excludes": ["gravity"]}}
    with pytest.raises(RobotError, match="fixed base"):
        parse_description(data)


def test_compensated_friction_leaves_armature_and_offset() -> None:
    effort = {"effort": {"excludes": ["friction"]}}
    found = parse_description({"name": "a", "urdf": "a.urdf", **effort})
    assert found.friction_terms == ("armature", "offset")
    assert found.command_excludes == ()
    with pytest.raises(RobotError, match=r"friction\.terms"):
        parse_description(
            {"name": "a", "urdf": "a.urdf", **effort, "friction": {"terms": ["viscous"]}}
        )


@pytest.mark.parametrize("said", [True, False])
@pytest.mark.parametrize("excluded", [True, False])
def test_standstill_tells_whether_efforts_hold_gravity(said: bool, excluded: bool) -> None:
    usual = load_robot("ur10")
    robot = load_robot(replace(usual.description, effort_excludes=("gravity",) if said else ()))
    time = np.arange(500) / 100.0
    sway = np.maximum(time - 3.0, 0.0)[:, None]
    q = np.array([0.1, -1.2, 0.9, 0.4, 0.3, 0.0]) + 0.5 * np.sin(sway)
    gravity = TreeDynamics(usual).torques(q, 0.0 * q, 0.0 * q)
    friction = np.full_like(q, 2.0)
    effort = friction + (0.0 if excluded else gravity)
    recording = Recording(time, robot.joint_names, q, effort=effort, source="standing")
    found = [text for text in interpret(robot, recording).warnings if "standstill" in text]
    assert len(found) == int(said is not excluded)
    assert all(("take it out" if said else "lack gravity") in text for text in found)
