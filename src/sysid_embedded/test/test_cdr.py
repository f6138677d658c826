# SPDX-License-Identifier: Apache-2.0
"""CDR: byte for byte what an independent implementation writes, and read back without loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from sysid_embedded.cdr import DECODE_ERRORS, HEADER, codec
from sysid_embedded.interfaces import FieldType, find
from sysid_embedded.messages import NUMPY_TYPES, message_class

STORE = get_typestore(Stores.ROS2_JAZZY)
STANDARD = sorted(name for name in STORE.fielddefs if "/msg/" in name)
OWN = [f"sysid_msgs/msg/{name}" for name in ("Contacts", "JointSamples", "Payload")]


def _encode(message: Any) -> bytes:
    data = bytearray(HEADER)
    codec(message.definition).encode(message, data)
    return bytes(data)


def _decode(cls: Any, data: bytes) -> Any:
    return codec(cls.definition).decode(data, len(HEADER))[0]


def _scalar(kind: FieldType, rng: np.random.Generator) -> Any:
    if kind.is_message:
        return _random(kind.base, rng)
    if kind.base == "string":
        return "".join(rng.choice(list("abcö_7"), int(rng.integers(0, 7))))
    if kind.base == "bool":
        return bool(rng.integers(2))
    if kind.base == "byte":
        return bytes([int(rng.integers(100))])
    if kind.base.startswith("float"):
        return float(np.float32(rng.normal()))
    return int(rng.integers(0, 100))


def _random(name: str, rng: np.random.Generator) -> Any:
    """Return a message with random contents; lists have all lengths from none on."""
    message = message_class(name)()
    for field in message.definition.fields:
        kind = field.type
        if kind.kind == "scalar":
            value = _scalar(kind, rng)
        else:
            longest = min(3, kind.size or 3)
            count = kind.size if kind.kind == "array" else int(rng.integers(0, longest + 1))
            value = [_scalar(kind, rng) for _ in range(count)]
        setattr(message, field.name, value)
    return message


def _convert(message: Any) -> Any:
    """Return the message as an object of rosbags."""
    values = {}
    for field in message.definition.fields:
        value, kind = getattr(message, field.name), field.type
        if kind.is_message:
            many = kind.kind != "scalar"
            value = [_convert(item) for item in value] if many else _convert(value)
        elif kind.base == "byte":
            value = (
                value[0] if kind.kind == "scalar" else np.array([v[0] for v in value], np.uint8)
            )
        elif kind.kind != "scalar" and kind.base != "string":
            value = np.array(value, bool if kind.base == "bool" else NUMPY_TYPES[kind.base])
        values[field.name] = value
    return STORE.types[message.definition.name](**values)


@pytest.mark.parametrize("name", STANDARD)
def test_bytes_equal_those_of_rosbags_and_are_read_back(name: str) -> None:
    rng = np.random.default_rng(len(name))
    for _ in range(5):
        message = _random(name, rng)
        data = _encode(message)
        expected = bytes(STORE.serialize_cdr(_convert(message), name))
        assert data == expected.ljust(-(-len(expected) // 4) * 4, b"\x00")
        assert repr(_decode(type(message), data)) == repr(message)


@pytest.mark.parametrize("name", OWN)
def test_the_project_s_own_messages_are_read_back(name: str) -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        message = _random(name, rng)
        assert _decode(type(message), _encode(message)) == message


def test_the_layout_of_a_message_written_out_by_hand() -> None:
    message = message_class("sensor_msgs/msg/JointState")(name=["ab"], position=[1.0])
    message.header.stamp.sec = 1
    assert _encode(message).hex(" ", 4) == (
        "00010000 01000000 00000000 01000000 00000000 01000000 03000000 61620000 "
        "01000000 00000000 0000f03f 00000000 00000000"
    )


def test_lists_of_strings_are_not_shared_between_messages() -> None:
    cls = message_class("sensor_msgs/msg/JointState")
    data = _encode(cls(name=["a", "b"]))
    first, second = _decode(cls, data), _decode(cls, data)
    first.name.append("c")
    assert second.name == ["a", "b"]
    names = ["x"]
    message = cls(name=names)
    before = _encode(message)
    message.name[0] = "y"
    assert _decode(cls, before).name == ["x"]
    assert _decode(cls, _encode(message)).name == ["y"]


def test_a_list_of_too_many_messages_or_texts_is_not_read() -> None:
    cls = message_class("trajectory_msgs/msg/JointTrajectory")
    point = message_class("trajectory_msgs/msg/JointTrajectoryPoint")()
    assert len(_decode(cls, _encode(cls(points=[point] * 2000))).points) == 2000
    for message in (cls(points=[point] * 2001), cls(joint_names=["x"] * 2001)):
        with pytest.raises(DECODE_ERRORS, match="more than 2000"):
            _decode(cls, _encode(message))


def test_requests_carry_a_header_before_the_fields() -> None:
    cls = message_class("std_srvs/srv/SetBool_Request")
    data = bytearray(HEADER + bytes(range(16)))
    codec(cls.definition).encode(cls(data=True), data)
    assert codec(find("std_srvs/srv/SetBool_Request")).decode(bytes(data), 20)[0].data is True


def test_lists_of_more_messages_than_a_node_has_time_for_are_not_decoded() -> None:
    point = message_class("trajectory_msgs/msg/JointTrajectoryPoint")(positions=[0.0] * 7)
    cls = message_class("trajectory_msgs/msg/JointTrajectory")
    data = bytearray(HEADER)
    codec(cls.definition).encode(cls(joint_names=["a"], points=[point] * 50_000), data)
    with pytest.raises(DECODE_ERRORS, match="more than 2000"):
        codec(cls.definition).decode(bytes(data), len(HEADER))
