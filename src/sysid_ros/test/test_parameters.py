# SPDX-License-Identifier: Apache-2.0
"""A node declares its parameters from one table, and takes all of a change or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")

import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter

from sysid_core.errors import ParameterError
from sysid_core.settings import Setting
from sysid_ros.parameters import declare, watch

SETTINGS = (
    Setting("rate", 10.0, "Rate [Hz]", (1.0, 100.0), read_only=True),
    Setting("gain", 1.0, "Gain [-]"),
    Setting("count", 3, "Count [-]", (0, 5)),
    Setting("law", "soft", "Law", choices=("soft", "hard")),
    Setting("stiffness", (0.0,), "Stiffness [N·m/rad]"),
)

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


def test_values_and_descriptions_are_those_of_the_table(make: Make) -> None:
    node = make(count=4)
    values = declare(node, SETTINGS)
    assert (values["rate"], values["count"], values["law"]) == (10.0, 4, "soft")
    assert list(values["stiffness"]) == [0.0]
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
        declare(make(**given), SETTINGS)


def test_a_change_is_taken_whole_or_not_at_all(make: Make) -> None:
    node = make()
    values = declare(node, SETTINGS)
    heard: list[Mapping[str, Any]] = []

    def apply(wanted: Mapping[str, Any]) -> None:
        if wanted["count"] == 0 and wanted["law"] == "hard":
            raise ParameterError("a hard law counts")
        heard.append(wanted)

    watch(node, SETTINGS, values, apply)

    def change(**wanted: Any) -> Any:
        return node.set_parameters_atomically(
            [Parameter(name, value=value) for name, value in wanted.items()]
        )

    assert change(gain=2.0, law="hard").successful
    assert heard[-1] == {**values, "gain": 2.0, "law": "hard"}
    before = dict(values)
    for wanted, reason in (
        ({"gain": 3.0, "count": 0}, "a hard law counts"),
        ({"gain": 3.0, "law": "odd"}, "one of soft, hard"),
        ({"count": 1, "gain": float("nan")}, "gain must be finite"),
        ({"gain": 3.0, "rate": 20.0}, "read-only"),
    ):
        result = change(**wanted)
        assert not result.successful
        assert reason in result.reason
        assert values == before
    assert node.get_parameter("gain").value == 2.0
