# SPDX-License-Identifier: Apache-2.0
"""The description says where a floating base carries its inertial sensor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.errors import RobotError
from sysid_core.robot import Robot, load_robot, parse_description

HEAD = """
<robot name="dog">
  <link name="trunk">
    <inertial><mass value="5"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="mount" type="fixed">
    <parent link="trunk"/><child link="sensor"/><origin xyz="0.1 0 0.2" rpy="0 0 1.5707963267948966"/>
  </joint>
  <link name="sensor"/>
  <joint name="hip" type="revolute">
    <parent link="trunk"/><child link="leg"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/>
  </joint>
  <link name="leg">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="knee" type="revolute">
    <parent link="leg"/><child link="shank"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/>
  </joint>
  <link name="shank">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
</robot>
"""  # noqa: E501 - XML


@pytest.fixture
def dog(tmp_path: Any) -> Any:
    """Return a maker of robots with a sensor as described."""
    path = tmp_path / "dog.urdf"
    path.write_text(HEAD)

    def make(imu: Any, **more: Any) -> Robot:
        data = {"name": "dog", "urdf": str(path), "base": "floating", "imu": imu, **more}
        return load_robot(parse_description(data))

    return make


def test_without_a_word_the_sensor_sits_at_the_bases_origin() -> None:
    robot = load_robot("solo12")
    assert robot.description.imu is None
    np.testing.assert_array_equal(robot.imu_rotation, np.eye(3))
    np.testing.assert_array_equal(robot.imu_position, np.zeros(3))


def test_a_mounting_adds_to_that_of_its_link(dog: Any) -> None:
    robot = dog({"link": "sensor", "xyz": [0.01, 0.0, 0.0], "rpy": [np.pi, 0.0, 0.0]})
    turn = pin.rpy.rpyToMatrix(0.0, 0.0, np.pi / 2.0)
    expected = turn @ pin.rpy.rpyToMatrix(np.pi, 0.0, 0.0)
    np.testing.assert_allclose(robot.imu_rotation, expected, atol=1e-12)
    # 1 cm along the link's x axis, which is the base's y axis
    np.testing.assert_allclose(robot.imu_position, [0.1, 0.01, 0.2], atol=1e-12)
    assert not robot.imu_rotation.flags.writeable


def test_a_link_behind_a_locked_joint_belongs_to_the_base(dog: Any) -> None:
    robot = dog({"link": "leg"}, joints={"locked": {"hip": 0.5}})
    expected = pin.rpy.rpyToMatrix(0.0, 0.5, 0.0)
    np.testing.assert_allclose(robot.imu_rotation, expected, atol=1e-12)


def test_the_sensor_does_not_change_the_model(dog: Any) -> None:
    assert dog({"link": "sensor"}).model_hash == dog(None).model_hash


@pytest.mark.parametrize(
    ("imu", "words"),
    [
        ({"link": "leg"}, "moves against the base; give a link that is fixed to 'trunk'"),
        ({"link": "tail"}, "link 'tail' is not in the URDF"),
        ({"xyz": [0.0, 0.0, 0.0]}, "'imu' must have a 'link'"),
        ({"link": "trunk", "xyz": [0.0, float("nan"), 0.0]}, "'imu.xyz' must be finite"),
        ({"link": "trunk", "rpy": [0.0]}, "'imu.rpy' must be a list of 3"),
        ({"link": "trunk", "position": [0.0, 0.0, 0.0]}, "unknown key .'position'. in imu"),
        ("trunk", "'imu' must be a mapping"),
    ],
)
def test_a_wrong_mounting_is_refused_by_name(dog: Any, imu: Any, words: str) -> None:
    with pytest.raises(RobotError, match=words):
        dog(imu)


def test_a_fixed_base_has_no_sensor() -> None:
    arm = load_robot("panda").description
    description = replace(
        arm, imu=parse_description({"name": "a", "urdf": "b", "imu": {"link": "panda_link0"}}).imu
    )
    with pytest.raises(RobotError, match="this base is fixed"):
        load_robot(description)
