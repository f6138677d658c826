# SPDX-License-Identifier: Apache-2.0
"""A node declares its parameters from a configuration, and takes all of a change or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")

import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import String

from sysid_core.errors import ParameterError
from sysid_core.robot import load_robot
from sysid_core.settings import check_config, parameter
from sysid_ros import robot_config
from sysid_ros.parameters import NodeParameters
from sysid_ros.qos import latched
from sysid_ros.robot_config import RobotConfig


@dataclass(frozen=True)
class Config:
    rate: float = parameter(10.0, "Rate [Hz]", range=(1.0, 100.0), read_only=True)
    gain: float = parameter(1.0, "Gain [-]")
    count: int = parameter(3, "Count [-]", range=(0, 5))
    law: str = parameter("soft", "Law", choices=("soft", "hard"))
    stiffness: tuple[float, ...] = parameter((0.0,), "Stiffness [N·m/rad]")

    def __post_init__(self) -> None:
        check_config(self)


Make = Callable[..., Node]


@pytest.fixture
def make() -> Iterator[Make]:
    """Return a maker of a node with values given on its command line."""
    context = Context()
    rclpy.init(args=[], context=context)
    nodes: list[Node] = []

    def start(**values: object) -> Node:
        words = [word for name, value in values.items() for word in ("-p", f"{name}:={value}")]
        given = ["--ros-args", *words] if words else []
        nodes.append(Node("settings", context=context, cli_args=given))
        return nodes[-1]

    yield start
    for node in nodes:
        node.destroy_node()
    rclpy.try_shutdown(context=context)


@pytest.fixture
def ros() -> Iterator[None]:
    rclpy.init(args=[])
    yield
    rclpy.shutdown()


def test_values_and_descriptions_are_those_of_the_configuration(make: Make) -> None:
    node = make(count=4)
    assert NodeParameters(node, Config()).config == Config(count=4)
    rate, law = node.describe_parameter("rate"), node.describe_parameter("law")
    assert rate.read_only
    assert rate.description == "Rate [Hz]"
    assert rate.floating_point_range[0].to_value == 100.0
    assert node.describe_parameter("count").integer_range[0].to_value == 5
    assert law.additional_constraints == "one of: soft, hard"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rate": 20}, "'rate' must be a float from 1 to 100"),
        ({"rate": 0.5}, "'rate' must be a float from 1 to 100"),
        ({"count": 6}, "'count' must be an int from 0 to 5"),
        ({"gain": ".nan"}, "gain must be finite"),
        ({"law": "odd"}, "law must be one of soft, hard"),
        ({"stiffness": "stiff"}, "'stiffness' must be a list"),
    ],
)
def test_a_bad_value_at_the_start_is_named(
    make: Make, given: dict[str, object], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        NodeParameters(make(**given), Config())


def test_a_change_is_taken_whole_or_not_at_all(make: Make) -> None:
    node = make()
    parameters = NodeParameters(node, Config())
    heard: list[Config] = []

    def apply(wanted: Config) -> None:
        if wanted.count == 0 and wanted.law == "hard":
            raise ParameterError("a hard law counts")
        heard.append(wanted)

    parameters.on_change(apply)

    def change(**wanted: Any) -> Any:
        return node.set_parameters_atomically(
            [Parameter(name, value=value) for name, value in wanted.items()]
        )

    assert change(gain=2.0, law="hard", stiffness=[1.0, 2.0]).successful
    before = Config(gain=2.0, law="hard", stiffness=(1.0, 2.0))
    assert heard[-1] == parameters.config == before
    for wanted, reason in (
        ({"gain": 3.0, "count": 0}, "a hard law counts"),
        ({"gain": 3.0, "law": "odd"}, "one of soft, hard"),
        ({"count": 1, "gain": float("nan")}, "gain must be finite"),
        ({"gain": 3.0, "rate": 20.0}, "read-only"),
    ):
        result = change(**wanted)
        assert not result.successful
        assert reason in result.reason
        assert parameters.config == before
    assert node.get_parameter("gain").value == 2.0


def test_a_robot_must_be_named(make: Make) -> None:
    with pytest.raises(ParameterError, match="'robot' is empty"):
        RobotConfig().load_robot(make())
    assert RobotConfig("panda").load_robot(make()).name == "panda"


@pytest.mark.parametrize("name", ["panda", ""])
def test_the_urdf_may_come_by_a_topic(name: str, ros: None) -> None:
    panda = load_robot("panda")
    text = panda.urdf.path.read_text(encoding="utf-8").replace("0.629769", "0.7")
    node, publisher = Node("user"), Node("robot_state_publisher")
    latch = publisher.create_publisher(String, "robot_description", latched())
    latch.publish(String(data=text))
    robot = RobotConfig(name, "robot_description").load_robot(node)
    assert robot.joint_names == panda.joint_names
    assert robot.urdf.path.read_text(encoding="utf-8") == text
    if name:
        assert robot.model_hash == panda.model_hash
        assert robot.description.source == panda.description.source
    for made in (node, publisher):
        made.destroy_node()


def test_a_urdf_that_does_not_come_is_named(ros: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robot_config, "_PATIENCE", 0.2)
    with pytest.raises(ParameterError, match="robot_state_publisher running"):
        RobotConfig("panda", "robot_description").load_robot(Node("user"))
