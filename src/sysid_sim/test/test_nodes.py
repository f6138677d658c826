# SPDX-License-Identifier: Apache-2.0
"""The nodes on a ROS graph: topics, services, parameters, and what may go wrong there."""
# ruff: noqa: E402 - these imports need the ROS that is looked for first

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sysid_core.arrays import FloatArray

rclpy = pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Vector3
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from sysid_core.dynamics.stance import rest_configuration, stance_of
from sysid_core.robot import Robot, load_robot
from sysid_msgs.msg import Contacts
from sysid_msgs.srv import AttachPayload
from sysid_sim.reference_node import ReferenceNode
from sysid_sim.simulator_node import SimulatorNode, main
from sysid_sim.truth import draw_truth, read_truth

LIMIT = 60.0
"""Time limit of every wait [s]; reached only where something is broken."""


class Graph:
    """A probe in a namespace of its own, and the nodes that a test starts."""

    def __init__(self, **parameters: object) -> None:
        settings = [f"-p {name}:={value}" for name, value in parameters.items()]
        arguments = " ".join([f"-r __ns:=/t{uuid.uuid4().hex}", *settings])
        rclpy.init(args=["--ros-args", *arguments.split()])
        self.probe = rclpy.create_node("probe")
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.probe)
        self.nodes: list[Any] = []
        self.seen: dict[str, list[Any]] = {}
        self.commands = self.probe.create_publisher(
            Float64MultiArray, "effort_controller/commands", 10
        )

    def start(self, kind: Callable[[], Any]) -> Any:
        node = kind()
        self.nodes.append(node)
        self.executor.add_node(node)
        return node

    def listen(self, kind: Any, topic: str) -> list[Any]:
        messages = self.seen.setdefault(topic, [])
        self.probe.create_subscription(kind, topic, messages.append, 100)
        return messages

    def until(self, condition: Callable[[], Any]) -> None:
        end = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < end, "the condition did not come about in time"
            self.executor.spin_once(timeout_sec=0.01)

    def drive(self, torque: FloatArray, condition: Callable[[], Any]) -> None:
        """Send a command again and again until a condition holds."""
        message = Float64MultiArray(data=torque.tolist())
        timer = self.probe.create_timer(0.01, lambda: self.commands.publish(message))
        try:
            self.until(condition)
        finally:
            self.probe.destroy_timer(timer)

    def call(self, kind: Any, name: str, request: Any) -> Any:
        client = self.probe.create_client(kind, name)
        self.until(client.service_is_ready)
        future = client.call_async(request)
        self.until(future.done)
        return future.result()

    def close(self) -> None:
        self.executor.shutdown()
        for node in [*self.nodes, self.probe]:
            node.destroy_node()
        rclpy.try_shutdown()


@pytest.fixture
def graph() -> Iterator[Callable[..., Graph]]:
    graphs: list[Graph] = []

    def make(**parameters: object) -> Graph:
        graphs.append(Graph(**parameters))
        return graphs[-1]

    yield make
    for opened in graphs:
        opened.close()


def seconds(message: Any) -> float:
    return float(message.header.stamp.sec) + 1e-9 * float(message.header.stamp.nanosec)


def test_the_arm_waits_braked_obeys_and_is_held_again(
    graph: Callable[..., Graph], panda: Robot
) -> None:
    g = graph(robot="panda", truth="nominal", rate=250.0)
    states, diagnostics = (
        g.listen(JointState, "joint_states"),
        g.listen(DiagnosticArray, "diagnostics"),
    )
    g.start(SimulatorNode)
    g.until(lambda: len(states) > 50)
    rest = rest_configuration(panda)
    assert tuple(states[-1].name) == panda.actuated_names
    np.testing.assert_allclose(states[-1].position, rest, atol=1e-3)
    # gravity shows in the torques while brakes carry it
    assert np.abs(states[-1].effort).max() > 5.0
    steps = np.diff([seconds(s) for s in states])
    np.testing.assert_allclose(steps, 0.004, atol=1e-6)
    assert abs(seconds(states[-1]) - time.time()) < 5.0

    def fallen() -> bool:
        return bool(np.abs(np.array(states[-1].position) - rest).max() > 0.05)

    g.drive(np.zeros(7), fallen)
    # commands stop: brakes hold the arm again, and diagnostics say so
    g.until(lambda: any("commands stopped" in d.status[0].message for d in diagnostics))
    count = len(states)
    g.until(lambda: len(states) > count + 50)
    assert np.abs(states[-1].velocity).max() < 0.02


def standing(states: list[Any]) -> Callable[[], bool]:
    """Return the condition that no state comes, in real time in which 25 periods would pass."""
    count, since, looks = len(states), time.monotonic(), 0

    def still() -> bool:
        nonlocal count, since, looks
        looks += 1
        if len(states) != count:
            count, since, looks = len(states), time.monotonic(), 0
        # several looks, so that a computer that is held up does not count as a robot that stands
        return time.monotonic() - since > 0.05 and looks > 5

    return still


def test_in_lockstep_the_robot_waits_for_its_controller(graph: Callable[..., Graph]) -> None:
    g = graph(robot="valkyrie_arm", publish_clock=True, lockstep=0.004, rate=500.0)
    states = g.listen(JointState, "joint_states")
    g.start(SimulatorNode)
    g.until(lambda: len(states) > 10 and g.commands.get_subscription_count() == 1)
    command = Float64MultiArray(data=[0.0] * 4)
    times = []
    for _ in range(10):
        before = len(states)
        g.commands.publish(command)
        g.until(lambda: len(states) > before)  # noqa: B023 - called before the loop goes on
        g.until(standing(states))
        times.append(seconds(states[-1]))
    # a command lasts for two periods of 2 ms, whatever time its successor takes
    np.testing.assert_allclose(np.diff(times), 0.004, atol=1e-6)
    # the robot does not wait for ever: it is held, and time goes on
    last = len(states)
    g.until(lambda: len(states) > last + 100)


def test_the_clock_may_come_less_often_than_joint_states(graph: Callable[..., Graph]) -> None:
    g = graph(robot="valkyrie_arm", publish_clock=True, rate=500.0, clock_rate=100.0)
    states, clock = g.listen(JointState, "joint_states"), g.listen(Clock, "/clock")
    g.start(SimulatorNode)
    g.until(lambda: len(clock) > 20 and len(states) > 100)
    ticks = [message.clock.sec + 1e-9 * message.clock.nanosec for message in clock]
    for times, period in ((ticks, 0.01), ([seconds(s) for s in states], 0.002)):
        periods = np.diff(times) / period  # several where a busy computer lost messages
        np.testing.assert_allclose(periods, np.rint(periods), atol=1e-3)
        assert round(periods.min()) == 1


def test_malformed_commands_are_counted_and_do_nothing(
    graph: Callable[..., Graph], panda: Robot
) -> None:
    g = graph(robot="panda", truth="nominal")
    states, diagnostics = (
        g.listen(JointState, "joint_states"),
        g.listen(DiagnosticArray, "diagnostics"),
    )
    g.start(SimulatorNode)
    g.until(lambda: len(states) > 5)

    def refused() -> bool:
        return any("refused" in d.status[0].message for d in diagnostics)

    g.drive(np.array([0.0, np.nan, 0.0, 0.0, 0.0, 0.0, 0.0]), refused)
    diagnostics.clear()
    g.drive(np.zeros(3), refused)
    status = diagnostics[-1].status[0]
    assert status.hardware_id == "panda"
    assert bytes(status.level) == b"\x01"
    np.testing.assert_allclose(states[-1].position, rest_configuration(panda), atol=1e-3)


def test_a_payload_is_attached_refused_and_taken_off(graph: Callable[..., Graph]) -> None:
    g = graph(robot="panda", truth="nominal", sensors="ideal")
    states = g.listen(JointState, "joint_states")
    g.start(SimulatorNode)
    g.until(lambda: len(states) > 500)
    light = np.array(states[-1].effort)
    request = AttachPayload.Request(
        mass=2.0, com=Vector3(x=0.0, y=0.0, z=0.1), inertia=[0.01, 0.0, 0.01, 0.0, 0.0, 0.01]
    )
    answer = g.call(AttachPayload, "simulator/attach_payload", request)
    assert answer.success, answer.message
    assert "2 kg to 'panda_link8'" in answer.message
    g.until(lambda: np.abs(np.array(states[-1].effort) - light).max() > 3.0)
    request.mass = -1.0
    answer = g.call(AttachPayload, "simulator/attach_payload", request)
    assert not answer.success
    assert "at least zero" in answer.message
    request.mass = 5000.0
    answer = g.call(AttachPayload, "simulator/attach_payload", request)
    assert not answer.success
    assert "too much" in answer.message
    answer = g.call(AttachPayload, "simulator/attach_payload", AttachPayload.Request(frame="no"))
    assert not answer.success
    assert "no" in answer.message
    assert g.call(Trigger, "simulator/reset", Trigger.Request()).success
    g.until(lambda: np.abs(np.array(states[-1].effort) - light).max() < 0.5)


def test_a_quadruped_shows_its_base_and_feet(graph: Callable[..., Graph]) -> None:
    g = graph(robot="solo12", publish_clock=True, speed=2.0, rate=100.0)
    odometry, imu = g.listen(Odometry, "odom"), g.listen(Imu, "imu/data")
    contacts, clock = g.listen(Contacts, "contacts"), g.listen(Clock, "/clock")
    g.start(SimulatorNode)
    g.until(lambda: min(map(len, (odometry, imu, contacts, clock))) > 200)
    assert list(contacts[-1].active) == [True] * 4
    assert not contacts[-1].wrenches
    assert odometry[-1].child_frame_id == "base_link"
    # brakes hold it with bent knees, from which a controller can drive it
    height = stance_of(load_robot("solo12")).pose[2]
    assert odometry[-1].pose.pose.position.z == pytest.approx(height, abs=0.02)
    assert imu[-1].linear_acceleration.z == pytest.approx(9.81, abs=0.2)
    # simulated time from zero
    assert seconds(odometry[-1]) < 60.0


def test_running_parameters_are_checked_before_they_count(graph: Callable[..., Graph]) -> None:
    g = graph(robot="valkyrie_arm", publish_clock=True)
    node = g.start(SimulatorNode)

    def change(name: str, value: Any) -> Any:
        return node.set_parameters([Parameter(name, value=value)])[0]

    assert change("speed", 2.0).successful
    assert change("lockstep", 0.004).successful
    assert not change("lockstep", -1.0).successful
    assert not change("speed", float("nan")).successful
    assert not change("sensors", "ideal").successful  # fixed at the start
    assert not change("robot", "ur10").successful
    assert node.get_parameter("lockstep").value == 0.004


def test_the_ground_truth_is_written(
    graph: Callable[..., Graph], tmp_path: Path, robot_of: Callable[[str], Robot]
) -> None:
    path = tmp_path / "truth.json"
    g = graph(robot="valkyrie_arm", truth_seed=7, ground_truth_file=path)
    g.start(SimulatorNode)
    robot = robot_of("valkyrie_arm")
    np.testing.assert_array_equal(read_truth(robot, path)[1], draw_truth(robot, 7))
    assert json.loads(path.read_text())["robot"] == "valkyrie_arm"


@pytest.mark.parametrize(
    "parameters",
    [
        {"robot": "nosuch"},
        {},
        {"robot": "panda", "truth": "/none.json"},
        {"robot": "panda", "rate": 300.0},
        {"robot": "panda", "rate": 500},
        {"robot": "panda", "latency": -1},
        {"robot": "panda", "behaviour": "trot"},
        {"robot": "solo12", "behaviour": "fly"},
    ],
)
def test_a_simulator_that_cannot_start_says_why(
    parameters: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
    assert main(["--ros-args", *words] if words else []) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("simulator: ")


def test_references_overlap_and_stay_within_limits(
    graph: Callable[..., Graph], panda: Robot
) -> None:
    g = graph(robot="panda", duration=6.0)
    references = g.listen(JointTrajectory, "reference")
    g.start(ReferenceNode)
    g.until(lambda: len(references) >= 5)
    previous: dict[float, Any] = {}
    for message in references:
        assert tuple(message.joint_names) == panda.actuated_names
        begin = seconds(message)
        points = {}
        for point in message.points:
            after = point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec
            points[round(begin + after, 5)] = point
            assert after > 1.9  # time to get there
            position = np.array(point.positions)
            assert (position >= panda.limits.lower).all()
            assert (position <= panda.limits.upper).all()
            assert (np.abs(point.velocities) <= 0.52 * panda.limits.velocity).all()
        shared = sorted(set(previous) & set(points))
        if previous:
            assert len(shared) >= 3
        for when in shared:
            np.testing.assert_allclose(points[when].positions, previous[when].positions, atol=1e-9)
        previous = points


def test_a_quadruped_is_to_sway_over_its_feet(graph: Callable[..., Graph]) -> None:
    g = graph(robot="solo12")
    messages = g.listen(JointTrajectory, "reference")
    g.start(ReferenceNode)
    g.until(lambda: len(messages) >= 2)
    robot = load_robot("solo12")
    stance = stance_of(robot)
    assert tuple(messages[0].joint_names) == robot.actuated_names
    np.testing.assert_allclose(messages[0].points[0].positions, stance.joints, atol=1e-6)
    moved = np.array([point.positions for point in messages[1].points])
    assert np.abs(moved - stance.joints).max() > 0.02


def test_a_quadruped_trots_by_itself_and_begins_anew(graph: Callable[..., Graph]) -> None:
    g = graph(robot="solo12", behaviour="trot", publish_clock=True, rate=500.0, latency=1)
    odometry, contacts = g.listen(Odometry, "odom"), g.listen(Contacts, "contacts")
    g.start(SimulatorNode)

    def stepping() -> bool:
        feet = {tuple(message.active) for message in contacts}
        return {(True, False, False, True), (False, True, True, False)} <= feet

    g.until(stepping)
    assert odometry[-1].pose.pose.position.z > 0.15
    # it obeys nobody else, and gets away from where it started
    g.commands.publish(Float64MultiArray(data=[2.0] * 12))
    g.until(lambda: abs(odometry[-1].pose.pose.position.x) > 0.05)
    assert odometry[-1].pose.pose.position.z > 0.15
    assert g.call(Trigger, "simulator/reset", Trigger.Request()).success
    g.until(lambda: abs(odometry[-1].pose.pose.position.x) < 0.02)
    assert odometry[-1].pose.pose.position.z > 0.15
