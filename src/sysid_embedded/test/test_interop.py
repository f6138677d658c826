# SPDX-License-Identifier: Apache-2.0
"""A real ROS 2 peer sees, hears and asks the embedded runtime, and the other way round.

`SYSID_ROS_SETUP` names the file to source for a ROS 2 installation with rmw_cyclonedds_cpp.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SETUP = os.environ.get("SYSID_ROS_SETUP", "")
LIMIT_S = 30.0
Until = Callable[..., bool]

pytestmark = [
    pytest.mark.embedded,
    pytest.mark.skipif(not Path(SETUP).is_file(), reason="SYSID_ROS_SETUP names no file"),
]

PEER = """
import rclpy
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionServer
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool

def answer(request, response):
    response.success = not request.data
    response.message = "from a real rclpy"
    return response

def execute(goal):
    goal.publish_feedback(FollowJointTrajectory.Feedback(joint_names=["a", "b"]))
    goal.succeed()
    return FollowJointTrajectory.Result(error_string="from a real rclpy")

rclpy.init()
node = rclpy.create_node("peer", namespace="real")
latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
node.create_publisher(String, "/latched", latched).publish(String(data="kept"))
back = node.create_publisher(JointState, "/back", 10)
node.create_subscription(JointState, "/there", back.publish, 10)
node.create_service(SetBool, "/negate", answer)
node.declare_parameter("gain", 1.5)
server = ActionServer(node, FollowJointTrajectory, "~/follow", execute)
rclpy.spin(node)
"""


def _ros(command: str) -> subprocess.Popen[str]:
    """Start a shell command in the environment of the ROS 2 installation."""
    keep = ("HOME", "PATH", "TMPDIR")
    own = ("ROS_DOMAIN_ID", "ROS_AUTOMATIC_DISCOVERY_RANGE", "CYCLONEDDS_URI")
    environment = {key: os.environ[key] for key in keep if key in os.environ}
    exports = "".join(f"export {key}='{os.environ[key]}'; " for key in own)
    return subprocess.Popen(
        ["bash", "-c", f"source {SETUP}; {exports} exec {command}"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture
def tool(node: Any, until: Until) -> Callable[[str], str]:
    """Return a function that runs a ros2 command while the node spins."""

    def run(command: str) -> str:
        child = _ros(f"ros2 {command}")
        assert until(lambda: child.poll() is not None, node, limit_s=LIMIT_S), command
        output, _ = child.communicate()
        return output

    return run


@pytest.fixture
def peer(node: Any, until: Until) -> Any:
    """Run a real node."""
    child = _ros(f"python3 -c '{PEER}'")
    assert until(lambda: node.count_publishers("/back") == 1, node, limit_s=LIMIT_S)
    yield child
    child.kill()
    # Shown where a test fails.
    print(child.communicate()[0])


def test_tools_see_the_node_and_what_it_has(node: Any, tool: Callable[[str], str]) -> None:
    from std_msgs.msg import Int32
    from std_srvs.srv import Trigger

    node.create_publisher(Int32, "out", 3)
    node.create_subscription(Int32, "in", print, 1)
    node.create_service(Trigger, "~/go", lambda _, response: response)
    assert "/node" in tool("node list --no-daemon --spin-time 2").split()
    info = tool("node info --no-daemon --spin-time 2 /node")
    for line in ("/out: std_msgs/msg/Int32", "/in: std_msgs", "/node/go: std_srvs/srv/Trigger"):
        assert line in info
    verbose = tool("topic info -v --no-daemon --spin-time 2 /out")
    assert "Node name: node" in verbose
    assert "KEEP_LAST (3)" in verbose
    assert "RIHS01_" in verbose


def test_tools_hear_and_speak(node: Any, until: Until, tool: Callable[[str], str]) -> None:
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray

    publisher = node.create_publisher(JointState, "joint_states", 10)
    node.create_timer(0.02, lambda: publisher.publish(JointState(name=["a"], position=[1.5])))
    assert "- 1.5" in tool("topic echo --once /joint_states sensor_msgs/msg/JointState")
    got: list[Any] = []
    node.create_subscription(Float64MultiArray, "cmd", got.append, 10)
    tool("topic pub --once /cmd std_msgs/msg/Float64MultiArray '{data: [1.5, -2.0]}'")
    assert until(lambda: got)
    assert list(got[0].data) == [1.5, -2.0]


def test_tools_ask_and_set(node: Any, ros: Any, tool: Callable[[str], str]) -> None:
    from std_srvs.srv import SetBool

    def answer(request: Any, response: Any) -> Any:
        response.success, response.message = request.data, "done"
        return response

    node.create_service(SetBool, "~/set", answer)
    node.declare_parameter("gain", 1.0)
    called = tool("service call /node/set std_srvs/srv/SetBool '{data: true}'")
    assert "success=True, message='done'" in called
    assert "gain" in tool("param list --no-daemon --spin-time 2 /node").split()
    assert "successful" in tool("param set --no-daemon --spin-time 2 /node gain 2.5")
    assert node.get_parameter("gain").value == 2.5
    assert "2.5" in tool("param get --no-daemon --spin-time 2 /node gain")


def test_messages_go_to_a_real_node_and_come_back(node: Any, until: Until, peer: Any) -> None:
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from sensor_msgs.msg import JointState
    from std_msgs.msg import String

    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    kept: list[str] = []
    node.create_subscription(String, "/latched", lambda m: kept.append(m.data), latched)
    assert until(lambda: kept == ["kept"], node)
    got: list[Any] = []
    node.create_subscription(JointState, "/back", got.append, 10)
    publisher = node.create_publisher(JointState, "/there", 10)
    sent = JointState(name=[f"j{i}" for i in range(12)], position=[0.1 * i for i in range(12)])
    sent.header.frame_id = "base"

    def arrived() -> bool:
        publisher.publish(sent)
        return bool(until(lambda: got, limit_s=0.1))

    assert until(arrived)
    assert got[0] == sent


def _ask(node: Any, ros: Any, client: Any, request: Any) -> Any:
    # rmw_cyclonedds drops an answer when it hasn't found the one who asks within 0.1 s.
    assert client.wait_for_service(timeout_sec=LIMIT_S)
    for _ in range(5):
        future = client.call_async(request)
        ros.spin_until_future_complete(node, future, timeout_sec=LIMIT_S / 5)
        if future.done():
            return future.result()
    raise TimeoutError


def test_a_real_service_answers(node: Any, ros: Any, peer: Any) -> None:
    from rcl_interfaces.srv import GetParameters
    from std_srvs.srv import SetBool

    client = node.create_client(SetBool, "/negate")
    answer = _ask(node, ros, client, SetBool.Request(data=False))
    assert (answer.success, answer.message) == (True, "from a real rclpy")
    parameters = node.create_client(GetParameters, "/real/peer/get_parameters")
    answer = _ask(node, ros, parameters, GetParameters.Request(names=["gain"]))
    assert answer.values[0].double_value == 1.5


def test_a_real_action_is_asked(node: Any, until: Until, peer: Any) -> None:
    from control_msgs.action import FollowJointTrajectory
    from rclpy.action import ActionClient

    client = ActionClient(node, FollowJointTrajectory, "/real/peer/follow")
    assert client.wait_for_server(timeout_sec=LIMIT_S)
    heard: list[Any] = []

    def asked() -> bool:
        sent = client.send_goal_async(FollowJointTrajectory.Goal(), heard.append)
        return bool(until(sent.done, node, limit_s=LIMIT_S / 5)) and sent.result().accepted

    assert until(asked, node, limit_s=LIMIT_S)
    assert until(lambda: heard, node)
    assert list(heard[0].feedback.joint_names) == ["a", "b"]


def test_tools_send_goals(node: Any, tool: Callable[[str], str]) -> None:
    from control_msgs.action import FollowJointTrajectory
    from rclpy.action import ActionServer

    def execute(goal: Any) -> Any:
        goal.publish_feedback(FollowJointTrajectory.Feedback(joint_names=["told"]))
        goal.succeed()
        return FollowJointTrajectory.Result(error_string=goal.request.trajectory.joint_names[0])

    ActionServer(node, FollowJointTrajectory, "~/follow", execute)
    kind = "control_msgs/action/FollowJointTrajectory"
    said = tool(f"action send_goal -f /node/follow {kind} '{{trajectory: {{joint_names: [x]}}}}'")
    for text in ("- told", "error_string: x", "SUCCEEDED"):
        assert text in said
