# SPDX-License-Identifier: Apache-2.0
"""Whatever bytes others send, a node drops what it cannot decode and goes on."""

from __future__ import annotations

import contextlib
import random
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sysid_embedded.cdr import DECODE_ERRORS, HEADER, codec
from sysid_embedded.interfaces import FieldType, find, names
from sysid_embedded.messages import message_class

pytestmark = pytest.mark.embedded

Until = Callable[..., bool]
CASES = 300
LARGEST = struct.pack("<I", 0xFFFFFFFF)
SERVICES = (
    *(f"std_srvs/srv/{name}" for name in ("Empty", "SetBool", "Trigger")),
    *(f"rcl_interfaces/srv/{name}" for name in names("rcl_interfaces", "srv")),
    *(f"sysid_msgs/srv/{name}" for name in names("sysid_msgs", "srv")),
)
TYPES = (
    *(f"sysid_msgs/msg/{name}" for name in names("sysid_msgs", "msg")),
    *(f"{service}_{half}" for service in SERVICES for half in ("Request", "Response")),
    "diagnostic_msgs/msg/DiagnosticArray",
    "nav_msgs/msg/Odometry",
    "rcl_interfaces/msg/Log",
    "rcl_interfaces/msg/ParameterEvent",
    "rmw_dds_common/msg/ParticipantEntitiesInfo",
    "rosgraph_msgs/msg/Clock",
    "sensor_msgs/msg/Imu",
    "sensor_msgs/msg/JointState",
    "std_msgs/msg/Float64MultiArray",
    "std_msgs/msg/String",
    "trajectory_msgs/msg/JointTrajectory",
)


def _filled(name: str) -> Any:
    """Return a message whose lists have two elements and whose texts are not empty."""
    message = message_class(name)()
    for field in message.definition.fields:
        kind = field.type
        count = kind.size if kind.kind == "array" else min(2, kind.size or 2)
        many = [_value(kind) for _ in range(count)]
        setattr(message, field.name, many[0] if kind.kind == "scalar" else many)
    return message


def _value(kind: FieldType) -> Any:
    if kind.is_message:
        return _filled(kind.base)
    fixed: dict[str, Any] = {"string": "name", "bool": True, "byte": b"\x01"}
    return fixed.get(kind.base, 1.5 if kind.base.startswith("float") else 1)


def _fuzzed(name: str, start: bytes = HEADER) -> Iterator[bytes]:
    """Yield a message's bytes with seeded damage: random, cut, with absurd lengths, flipped."""
    rng = random.Random(name)
    whole = bytearray(start)
    codec(find(name)).encode(_filled(name), whole)
    for case in range(CASES):
        data = bytearray(whole)
        at = rng.randrange(len(start), len(data))
        if case % 4 == 0:
            data[at:] = rng.randbytes(rng.randrange(64))
        elif case % 4 == 1:
            del data[at:]
        elif case % 4 == 2:
            data[at & -4 : (at & -4) + 4] = rng.choice((LARGEST, b"\xff\xff\xff\x7f", b"\0" * 4))
        else:
            for _ in range(8):
                data[rng.randrange(len(start), len(data))] = rng.randrange(256)
        yield bytes(data)


@pytest.mark.parametrize("name", TYPES)
def test_damaged_bytes_give_a_message_or_one_kind_of_error(name: str) -> None:
    decode = codec(find(name)).decode
    tracemalloc.start()
    for data in _fuzzed(name):
        try:
            message = decode(data, len(HEADER))[0]
        except DECODE_ERRORS:
            continue
        assert isinstance(message, message_class(name))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10e6


@pytest.mark.parametrize("name", TYPES)
def test_bytes_that_end_too_early_are_never_a_message(name: str) -> None:
    whole = bytearray(HEADER)
    codec(find(name)).encode(_filled(name), whole)
    decode = codec(find(name)).decode
    for length in range(len(HEADER), len(whole) - 3):  # up to three bytes are padding
        with pytest.raises(DECODE_ERRORS):
            decode(bytes(whole[:length]), len(HEADER))


def test_text_that_is_not_utf_8_is_read_with_replacement_characters() -> None:
    for name, fill in (("std_msgs/msg/String", "data"), ("sensor_msgs/msg/JointState", "name")):
        cls = message_class(name)
        value = "nXme" if fill == "data" else ["nXme"]
        data = bytearray(HEADER)
        codec(cls.definition).encode(cls(**{fill: value}), data)
        read = codec(cls.definition).decode(bytes(data).replace(b"X", b"\xff"), len(HEADER))[0]
        assert getattr(read, fill) == ("n\ufffdme" if fill == "data" else ["n\ufffdme"])


def test_text_that_cannot_be_encoded_is_sent_with_replacement_characters() -> None:
    cls = message_class("std_msgs/msg/String")
    data = bytearray(HEADER)
    codec(cls.definition).encode(cls(data="a\udcff"), data)
    assert codec(cls.definition).decode(bytes(data), len(HEADER))[0].data == "a?"


def _raw_writer(ros: Any, topic: str, name: str, *, service: bool = False) -> Any:
    from sysid_embedded.qos_policies import QoSProfile, to_dds

    participant = ros.get_default_context().participant
    identity = f"clientid={participant.identity()}" if service else ""
    return participant.writer(topic, find(name), to_dds(QoSProfile(depth=1000)), identity=identity)


def _send(writer: Any, data: bytes) -> None:
    """Write bytes, padded; Cyclone DDS itself refuses many of those that are damaged."""
    from cyclonedds.core import DDSException

    with contextlib.suppress(DDSException):
        writer.write(data.ljust(-(-len(data) // 4) * 4, b"\0"))


def test_a_subscription_outlives_damaged_samples(node: Any, ros: Any, until: Until) -> None:
    from sensor_msgs.msg import JointState

    got: list[Any] = []
    node.create_subscription(JointState, "joint_states", got.append, 1000)
    writer = _raw_writer(ros, "rt/joint_states", "sensor_msgs/msg/JointState")
    assert until(writer.matched_count, node)
    for data in _fuzzed("sensor_msgs/msg/JointState"):
        _send(writer, data)
    node.create_publisher(JointState, "joint_states", 10).publish(JointState(name=["last"]))
    assert until(lambda: got and got[-1].name == ["last"])


def test_samples_that_cannot_be_decoded_are_dropped_with_one_warning(
    node: Any, ros: Any, until: Until, capfd: pytest.CaptureFixture[str]
) -> None:
    from std_msgs.msg import Int32

    got: list[Any] = []
    node.create_subscription(Int32, "number", got.append, 1000)
    writer = _raw_writer(ros, "rt/number", "std_msgs/msg/Int32")
    assert until(writer.matched_count, node)
    lines: list[str] = []

    def warned() -> bool:
        lines.extend(line for line in capfd.readouterr().err.splitlines() if "dropped" in line)
        return bool(lines)

    for _ in range(20):
        writer.write(b"\x00\x07\x00\x00" + bytes(4))  # XCDR2, an encoding that is not read here
    assert until(warned)
    writer.write(b"\x00\x07\x00\x00" + bytes(4))
    writer.write(HEADER + b"\x05\x00\x00\x00")
    assert until(lambda: got)
    until(lambda: warned() and False, limit_s=1.0)
    assert [message.data for message in got] == [5]
    assert len(lines) == 1
    assert "'/number' that cannot be decoded" in lines[0]


@pytest.mark.parametrize("service", ["set_parameters", "get_parameters", "list_parameters"])
def test_a_service_outlives_damaged_requests(
    node: Any, ros: Any, until: Until, service: str
) -> None:
    from rcl_interfaces.srv import ListParameters

    stem = "".join(part.capitalize() for part in service.split("_"))
    name = f"rcl_interfaces/srv/{stem}_Request"
    writer = _raw_writer(ros, f"rq/node/{service}Request", name, service=True)
    assert until(writer.matched_count, node)
    requests = list(_fuzzed(name, HEADER + bytes(16)))[:60]
    client = node.create_client(ListParameters, "/node/list_parameters")
    for data in requests:
        _send(writer, data)
    assert until(client.service_is_ready)
    future = client.call_async(ListParameters.Request())
    assert until(future.done)
    assert "use_sim_time" in future.result().result.names


def test_a_parameter_of_an_unknown_type_is_refused(node: Any, until: Until) -> None:
    from rcl_interfaces.msg import Parameter, ParameterValue
    from rcl_interfaces.srv import SetParameters

    client = node.create_client(SetParameters, "/node/set_parameters")
    assert until(client.service_is_ready, node)
    wrong = Parameter(name="use_sim_time", value=ParameterValue(type=77))
    future = client.call_async(SetParameters.Request(parameters=[wrong]))
    assert until(future.done)
    assert not future.result().results[0].successful


def test_a_clock_before_the_epoch_is_passed_over(node: Any, until: Until) -> None:
    from builtin_interfaces.msg import Time
    from rclpy.parameter import Parameter
    from rosgraph_msgs.msg import Clock

    node.set_parameters([Parameter("use_sim_time", value=True)])
    publisher = node.create_publisher(Clock, "/clock", 10)
    assert until(publisher.get_subscription_count, node)
    publisher.publish(Clock(clock=Time(sec=-1)))
    publisher.publish(Clock(clock=Time(sec=7)))
    assert until(lambda: node.get_clock().now().nanoseconds == 7 * 10**9)
