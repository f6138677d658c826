# SPDX-License-Identifier: Apache-2.0
"""Nodes: names, namespaces, remapping and the life of the context."""

from __future__ import annotations

from typing import Any

import pytest


def test_names_and_namespaces(ros: Any) -> None:
    node = ros.create_node("n", namespace="a/b")
    assert node.get_name() == "n"
    assert node.get_namespace() == "/a/b"
    assert node.get_fully_qualified_name() == "/a/b/n"
    assert node.get_logger().name == "a.b.n"
    assert ros.create_node("n").get_fully_qualified_name() == "/n"


@pytest.mark.parametrize(("name", "namespace"), [("a b", ""), ("", ""), ("n", "a//b")])
def test_invalid_names_are_refused(ros: Any, name: str, namespace: str) -> None:
    from rclpy.exceptions import NameValidationException

    with pytest.raises(NameValidationException):
        ros.create_node(name, namespace=namespace)


def test_invalid_topics_are_refused(node: Any) -> None:
    from rclpy.exceptions import NameValidationException
    from std_msgs.msg import Int32
    from std_srvs.srv import Trigger

    with pytest.raises(NameValidationException):
        node.create_publisher(Int32, "a topic", 1)
    with pytest.raises(NameValidationException):
        node.create_client(Trigger, "1")


def test_arguments_of_a_node_come_before_those_of_the_process() -> None:
    import rclpy
    from rclpy.context import Context
    from std_msgs.msg import Int32

    context = Context()
    rclpy.init(args=["--ros-args", "-r", "t:=global", "-r", "__ns:=/g"], context=context)
    arguments = ["--ros-args", "-r", "t:=local", "-r", "__node:=renamed"]
    node = rclpy.create_node("n", context=context, cli_args=arguments)
    assert node.get_fully_qualified_name() == "/g/renamed"
    assert node.create_publisher(Int32, "t", 1).topic_name == "/g/local"
    assert node.create_publisher(Int32, "~/t", 1).topic_name == "/g/renamed/t"
    context.destroy()


def test_remapped_topics_connect(ros: Any, until: Any) -> None:
    from std_msgs.msg import Int32

    talker = ros.create_node("talker", cli_args=["--ros-args", "-r", "out:=/shared"])
    listener = ros.create_node(
        "listener", namespace="x", cli_args=["--ros-args", "-r", "in:=/shared"]
    )
    got: list[int] = []
    listener.create_subscription(Int32, "in", lambda m: got.append(m.data), 1)
    publisher = talker.create_publisher(Int32, "out", 1)
    assert publisher.topic_name == "/shared"
    assert until(lambda: publisher.get_subscription_count() == 1, talker, listener)
    publisher.publish(Int32(data=4))
    assert until(lambda: got == [4])


def test_init_and_shutdown_have_an_order() -> None:
    import rclpy
    from rclpy.exceptions import NotInitializedException

    assert not rclpy.ok()
    with pytest.raises(NotInitializedException):
        rclpy.create_node("n")
    rclpy.init(args=[])
    assert rclpy.ok()
    with pytest.raises(RuntimeError):
        rclpy.init(args=[])
    rclpy.shutdown()
    assert not rclpy.ok()
    with pytest.raises(RuntimeError):
        rclpy.shutdown()
    rclpy.try_shutdown()
    rclpy.init(args=[])
    assert rclpy.ok()
    rclpy.try_shutdown()
    assert not rclpy.ok()


def test_nonsense_on_the_command_line_is_refused() -> None:
    import rclpy
    from rclpy.context import Context

    with pytest.raises(RuntimeError, match="--nonsense"):
        rclpy.init(args=["--ros-args", "--nonsense"], context=Context())


def test_shutdown_callbacks_are_called_once(ros: Any) -> None:
    calls: list[int] = []
    context = ros.get_default_context()
    context.on_shutdown(lambda: calls.append(1))
    ros.shutdown()
    context.try_shutdown()
    assert calls == [1]


def test_a_destroyed_node_leaves_the_graph_and_may_come_again(ros: Any, until: Any) -> None:
    from std_msgs.msg import Int32

    watcher = ros.create_node("watcher")
    for _ in range(2):
        node = ros.create_node("n")
        node.create_publisher(Int32, "t", 1)
        assert until(lambda: watcher.count_publishers("/t") == 1, watcher)
        node.destroy_node()
        assert until(lambda: watcher.count_publishers("/t") == 0, watcher)
