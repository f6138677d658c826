# SPDX-License-Identifier: Apache-2.0
"""Two processes: topics, services and latched messages cross over, and signals end a node."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

Until = Callable[..., bool]
Script = Callable[..., "subprocess.Popen[str]"]
LIMIT_S = 20.0

ECHO = """
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool

def answer(request, response):
    response.success = not request.data
    return response

rclpy.init()
node = rclpy.create_node("echo")
latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
back = node.create_publisher(JointState, "back", 10)
node.create_subscription(JointState, "there", back.publish, 10)
node.create_service(SetBool, "negate", answer)
ready = node.create_publisher(String, "ready", latched)
node.create_timer(0.01, lambda: ready.publish(String(data="ready")))
try:
    rclpy.spin(node)
    print("ExternalShutdownException")  # a signal between two callbacks ends it without one
except (KeyboardInterrupt, ExternalShutdownException) as error:
    print(type(error).__name__)
node.destroy_node()
rclpy.try_shutdown()
"""


@pytest.fixture
def echo(node: Any, until: Until, script: Script) -> subprocess.Popen[str]:
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from std_msgs.msg import String

    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    ready: list[str] = []
    child = script(ECHO)
    node.create_subscription(String, "ready", lambda m: ready.append(m.data), latched)
    assert until(lambda: ready, node, limit_s=LIMIT_S)
    return child


def test_messages_cross_both_ways(node: Any, until: Until, echo: Any) -> None:
    from sensor_msgs.msg import JointState

    got: list[Any] = []
    node.create_subscription(JointState, "back", got.append, 10)
    publisher = node.create_publisher(JointState, "there", 10)
    assert until(lambda: publisher.get_subscription_count() == 1, node)
    assert until(
        lambda: node.count_subscribers("back") == 1 and node.count_publishers("back") == 1
    )
    sent = JointState(
        name=[f"joint_{i}" for i in range(12)], position=[0.1 * i for i in range(12)]
    )

    def arrived() -> bool:
        # The way back may be matched a little later on the other side.
        publisher.publish(sent)
        return bool(until(lambda: got, limit_s=0.1))

    assert until(arrived, node)
    assert got[0] == sent


def test_services_cross(node: Any, ros: Any, echo: Any) -> None:
    from std_srvs.srv import SetBool

    client = node.create_client(SetBool, "negate")
    assert client.wait_for_service(timeout_sec=LIMIT_S)
    future = client.call_async(SetBool.Request(data=False))
    ros.spin_until_future_complete(node, future, timeout_sec=LIMIT_S)
    assert future.result().success


@pytest.mark.parametrize(
    ("number", "name"),
    [(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGTERM, "ExternalShutdownException")],
)
def test_signals_end_a_node_at_once_and_in_order(
    node: Any, until: Until, echo: Any, number: signal.Signals, name: str
) -> None:
    assert until(lambda: node.count_publishers("back") == 1)
    echo.send_signal(number)
    output, _ = echo.communicate(timeout=LIMIT_S)
    assert output.splitlines()[-1] == name
    assert echo.returncode == 0
    # It said goodbye, so that nobody has to wait for its lease to run out.
    assert until(lambda: node.count_publishers("back") == 0, limit_s=5.0)
