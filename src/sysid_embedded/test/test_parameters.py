# SPDX-License-Identifier: Apache-2.0
"""Parameters: declared, typed, ranged, refused and told of as in rclpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Until = Callable[..., bool]


@pytest.fixture
def described() -> Any:
    from rcl_interfaces.msg import ParameterDescriptor

    return ParameterDescriptor


def test_a_declared_parameter_has_its_default_until_it_is_set(node: Any, ros: Any) -> None:
    assert node.declare_parameter("a", 1.5).value == 1.5
    (result,) = node.set_parameters([ros.Parameter("a", value=2.5)])
    assert result.successful
    assert node.get_parameter("a").value == 2.5


def test_overrides_beat_defaults_and_need_the_declared_type(ros: Any) -> None:
    from rclpy.exceptions import ParameterException

    overrides = [ros.Parameter("a", value=2), ros.Parameter("b", value=3)]
    node = ros.create_node("n", parameter_overrides=overrides)
    assert node.declare_parameter("a", 1).value == 2
    with pytest.raises(ParameterException, match="INTEGER"):
        node.declare_parameter("b", 1.0)


def test_the_command_line_and_files_override(ros: Any, tmp_path: Any) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        "/**:\n  ros__parameters: {a: 1.0, x: {y: [1, 2]}}\n/n:\n  ros__parameters: {a: 2.0}\n"
    )
    arguments = ["--ros-args", "--params-file", str(file)]
    assert ros.create_node("m", cli_args=arguments).declare_parameter("a", 0.0).value == 1.0
    node = ros.create_node("n", cli_args=arguments)
    assert node.declare_parameter("a", 0.0).value == 2.0
    assert node.declare_parameter("x.y", [0]).value == [1, 2]
    constructed = ros.create_node(
        "n", cli_args=arguments, parameter_overrides=[ros.Parameter("a", value=3.0)]
    )
    assert constructed.declare_parameter("a", 0.0).value == 3.0


def test_undeclared_parameters_are_refused(node: Any, ros: Any) -> None:
    from rclpy.exceptions import ParameterException

    with pytest.raises(ParameterException):
        node.get_parameter("a")
    with pytest.raises(ParameterException):
        node.set_parameters([ros.Parameter("a", value=1)])


def test_declaring_twice_is_refused(node: Any) -> None:
    from rclpy.exceptions import ParameterException

    node.declare_parameter("a", 1)
    with pytest.raises(ParameterException):
        node.declare_parameter("a", 1)


def test_types_are_fixed(node: Any, ros: Any) -> None:
    node.declare_parameter("fixed", 1)
    (fixed,) = node.set_parameters([ros.Parameter("fixed", value=1.0)])
    assert not fixed.successful
    assert "Wrong parameter type" in fixed.reason
    assert not node.set_parameters([ros.Parameter("fixed")])[0].successful


def test_read_only_parameters_stay(node: Any, ros: Any, described: Any) -> None:
    node.declare_parameter("a", 1, described(read_only=True))
    (result,) = node.set_parameters([ros.Parameter("a", value=2)])
    assert not result.successful
    assert "read-only" in result.reason
    assert node.get_parameter("a").value == 1


@pytest.mark.parametrize(
    ("value", "fits"),
    [(0.0, True), (1.0, True), (0.5, True), (1.1, False), (-0.1, False)]
    + [(float("nan"), False), (float("inf"), False)],
)
def test_ranges_of_numbers(node: Any, ros: Any, described: Any, value: float, fits: bool) -> None:
    from rcl_interfaces.msg import FloatingPointRange

    limits = FloatingPointRange(from_value=0.0, to_value=1.0)
    node.declare_parameter("a", 0.25, described(floating_point_range=[limits]))
    (result,) = node.set_parameters([ros.Parameter("a", value=value)])
    assert result.successful is fits
    assert node.get_parameter("a").value == (value if fits else 0.25)


def test_ranges_hold_for_defaults_and_integers(node: Any, ros: Any, described: Any) -> None:
    from rcl_interfaces.msg import IntegerRange
    from rclpy.exceptions import ParameterException

    limits = IntegerRange(from_value=0, to_value=10, step=1)
    with pytest.raises(ParameterException):
        node.declare_parameter("a", 11, described(integer_range=[limits]))
    node.declare_parameter("b", 5, described(integer_range=[limits]))
    results = node.set_parameters([ros.Parameter("b", value=v) for v in (0, 10, 14)])
    assert [result.successful for result in results] == [True, True, False]


def test_callbacks_refuse_change_and_follow(node: Any, ros: Any) -> None:
    from rcl_interfaces.msg import SetParametersResult

    node.declare_parameter("a", 1)
    node.declare_parameter("b", 1)
    seen: list[Any] = []

    def refuse(parameters: list[Any]) -> Any:
        return SetParametersResult(successful=all(p.value < 5 for p in parameters), reason="big")

    node.add_on_set_parameters_callback(refuse)
    node.add_post_set_parameters_callback(lambda ps: seen.extend((p.name, p.value) for p in ps))
    result = node.set_parameters_atomically(
        [ros.Parameter("a", value=2), ros.Parameter("b", value=9)]
    )
    assert (result.successful, result.reason) == (False, "big")
    assert node.get_parameter("a").value == 1
    node.set_parameters([ros.Parameter("a", value=2), ros.Parameter("b", value=9)])
    assert seen == [("a", 2)]


def test_events_tell_what_changed(node: Any, ros: Any, until: Until) -> None:
    from rcl_interfaces.msg import ParameterEvent

    events: list[Any] = []
    listener = ros.create_node("listener")
    listener.create_subscription(ParameterEvent, "/parameter_events", events.append, 100)
    assert until(lambda: node.count_subscribers("/parameter_events") == 1, listener)
    assert until(lambda: node._parameter_event_publisher.get_subscription_count() == 1)
    node.declare_parameter("a", 1)
    node.set_parameters([ros.Parameter("a", value=2)])
    assert until(lambda: len([e for e in events if e.node == "/node"]) == 2)
    new, changed = (event for event in events if event.node == "/node")
    assert [p.name for p in new.new_parameters] == ["a"]
    assert [p.value.integer_value for p in changed.changed_parameters] == [2]


def _call(node: Any, ros: Any, kind: str, **fields: Any) -> Any:
    import rcl_interfaces.srv

    service = getattr(rcl_interfaces.srv, kind)
    name = "".join(f"_{c.lower()}" if c.isupper() else c for c in kind)[1:]
    client = node.create_client(service, f"/node/{name}")
    executor = ros.get_global_executor()
    executor.add_node(node)
    assert client.wait_for_service(timeout_sec=10.0)
    future = client.call_async(service.Request(**fields))
    executor.spin_until_future_complete(future, timeout_sec=10.0)
    return future.result()


def test_services_read_and_describe(node: Any, ros: Any, described: Any) -> None:
    node.declare_parameter("g.a", 1.5, described(description="what it is"))
    node.declare_parameter("g.b", ["x"])
    assert _call(node, ros, "ListParameters", prefixes=["g"]).result.names == ["g.a", "g.b"]
    values = _call(node, ros, "GetParameters", names=["g.a", "g.b"]).values
    assert (values[0].double_value, values[1].string_array_value) == (1.5, ["x"])
    assert list(_call(node, ros, "GetParameterTypes", names=["g.a", "g.b"]).types) == [3, 9]
    (descriptor,) = _call(node, ros, "DescribeParameters", names=["g.a"]).descriptors
    assert descriptor.description == "what it is"
    assert _call(node, ros, "GetParameters", names=["g.a", "absent"]).values == []


def test_services_set(node: Any, ros: Any) -> None:
    node.declare_parameter("a", 1)
    node.declare_parameter("b", 2)

    def message(name: str, value: Any) -> Any:
        return ros.Parameter(name, value=value).to_parameter_msg()

    good, bad, absent = _call(
        node,
        ros,
        "SetParameters",
        parameters=[message("a", 5), message("b", "text"), message("c", 1)],
    ).results
    assert (good.successful, bad.successful, absent.successful) == (True, False, False)
    both = [message("a", 6), message("b", "text")]
    assert not _call(node, ros, "SetParametersAtomically", parameters=both).result.successful
    assert (node.get_parameter("a").value, node.get_parameter("b").value) == (5, 2)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "BOOL"),
        (1, "INTEGER"),
        (1.0, "DOUBLE"),
        ("x", "STRING"),
        ([b"x"], "BYTE_ARRAY"),
        ([True], "BOOL_ARRAY"),
        ([1], "INTEGER_ARRAY"),
        ([1.0], "DOUBLE_ARRAY"),
        (["x"], "STRING_ARRAY"),
        (None, "NOT_SET"),
    ],
)
def test_values_survive_messages(ros: Any, value: Any, kind: str) -> None:
    parameter = ros.Parameter("p", value=value)
    assert parameter.type_.name == kind
    back = ros.Parameter.from_parameter_msg(parameter.to_parameter_msg())
    assert back.type_ is parameter.type_
    assert (
        (back.value is None)
        if value is None
        else (list(back.value) == value if isinstance(value, list) else back.value == value)
    )


@pytest.mark.parametrize("value", [[1, 2.0], {"a": 1}, object()])
def test_values_that_no_parameter_holds_are_refused(ros: Any, value: Any) -> None:
    with pytest.raises(TypeError):
        ros.Parameter("p", value=value)
