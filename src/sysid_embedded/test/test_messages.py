# SPDX-License-Identifier: Apache-2.0
"""Message classes: fields hold what rclpy's hold, and refuse what rclpy's refuse."""

from __future__ import annotations

import copy
from array import array
from typing import Any

import numpy as np
import pytest

from sysid_embedded.messages import message_class, service_class


@pytest.fixture
def joint_state() -> Any:
    return message_class("sensor_msgs/msg/JointState")


def test_sequences_of_numbers_are_arrays_and_fixed_ones_numpy(joint_state: Any) -> None:
    message = joint_state(position=[1, 2.5])
    assert message.position == array("d", [1.0, 2.5])
    message.position = np.array([3.0, 4.0])
    assert message.position == array("d", [3.0, 4.0])
    payload = message_class("sysid_msgs/msg/Payload")(inertia=[1.0] * 6)
    assert isinstance(payload.inertia, np.ndarray)
    assert payload.inertia.dtype == np.float64


def test_an_assigned_sequence_is_copied(joint_state: Any) -> None:
    values = array("d", [1.0])
    message = joint_state(position=values)
    values[0] = 2.0
    assert message.position[0] == 1.0


def test_defaults_of_the_definition_hold() -> None:
    quaternion = message_class("geometry_msgs/msg/Quaternion")()
    assert (quaternion.x, quaternion.y, quaternion.z, quaternion.w) == (0.0, 0.0, 0.0, 1.0)


def test_two_messages_share_nothing(joint_state: Any) -> None:
    first, second = joint_state(), joint_state()
    first.header.frame_id = "x"
    first.name.append("j")
    assert second.header.frame_id == ""
    assert second.name == []


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("std_msgs/msg/Float64", "data", 1),
        ("std_msgs/msg/Float64", "data", "1.0"),
        ("std_msgs/msg/Float64", "data", np.float32(1)),
        ("std_msgs/msg/Int32", "data", 1.0),
        ("std_msgs/msg/Int32", "data", 2**31),
        ("std_msgs/msg/UInt8", "data", -1),
        ("std_msgs/msg/Bool", "data", 1),
        ("std_msgs/msg/Bool", "data", np.bool_(True)),
        ("std_msgs/msg/String", "data", b"x"),
        ("sensor_msgs/msg/JointState", "header", None),
        ("sensor_msgs/msg/JointState", "name", "joint"),
        ("sensor_msgs/msg/JointState", "position", 1.0),
        ("sensor_msgs/msg/JointState", "position", ["a"]),
        ("sensor_msgs/msg/JointState", "position", np.zeros((2, 2))),
        ("sysid_msgs/msg/Payload", "inertia", [1.0, 2.0]),
    ],
)
def test_wrong_values_are_refused(name: str, field: str, value: Any) -> None:
    message = message_class(name)()
    with pytest.raises(AssertionError):
        setattr(message, field, value)


def test_unknown_fields_are_refused(joint_state: Any) -> None:
    with pytest.raises(AssertionError, match="positions"):
        joint_state(positions=[1.0])
    with pytest.raises(AttributeError):
        joint_state().positions = [1.0]


def test_equality_compares_contents(joint_state: Any) -> None:
    assert joint_state(name=["a"]) == joint_state(name=["a"])
    assert joint_state(name=["a"]) != joint_state(name=["b"])
    payload = message_class("sysid_msgs/msg/Payload")
    assert payload(inertia=[1.0] * 6) == payload(inertia=[1.0] * 6)
    assert payload(inertia=[1.0] * 6) != payload()


def test_copies_are_deep_where_asked(joint_state: Any) -> None:
    message = joint_state(position=[1.0])
    deep, shallow = copy.deepcopy(message), copy.copy(message)
    message.position[0] = 2.0
    message.header.frame_id = "x"
    assert deep == joint_state(position=[1.0])
    assert shallow.header.frame_id == "x"


def test_a_byte_is_bytes_of_length_one() -> None:
    cls = message_class("diagnostic_msgs/msg/DiagnosticStatus")
    assert cls.WARN == b"\x01"
    assert cls().level == b"\x00"


@pytest.mark.embedded
def test_modules_offer_the_classes() -> None:
    import sensor_msgs.msg
    from std_srvs.srv import Trigger

    from sysid_msgs.msg import IdentificationStatus

    assert sensor_msgs.msg.JointState is message_class("sensor_msgs/msg/JointState")
    assert Trigger is service_class("std_srvs/srv/Trigger")
    assert Trigger.Response(success=True).success is True
    assert IdentificationStatus.HOLDING == 3
    with pytest.raises(ImportError):
        exec("from sensor_msgs.msg import NoSuchMessage")


def test_field_types_have_ros_s_names(joint_state: Any) -> None:
    types = joint_state.get_fields_and_field_types()
    assert types["header"] == "std_msgs/Header"
    assert types["name"] == "sequence<string>"
    assert types["position"] == "sequence<double>"
