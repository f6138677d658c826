# SPDX-License-Identifier: Apache-2.0
"""The node on a ROS graph: topics, services, parameters, and what may go wrong there."""

# ruff: noqa: E402 - these imports need the ROS that is looked for first
from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from sysid_core.arrays import FloatArray

rclpy = pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")

from builtin_interfaces.msg import Time
from lifecycle_msgs.msg import Transition, TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetAvailableTransitions, GetState
from node_graph import HOME, Graph
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

from sysid_controller.command import Publishers
from sysid_controller.controller_node import main
from sysid_core.diagnostics import Diagnostic
from sysid_core.parameters import FRICTION_TERMS
from sysid_core.robot import Robot
from sysid_msgs.msg import DynamicParameters, TrackingStatus


@pytest.fixture
def graph(
    panda: Robot, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Graph]:
    # /clock is one for a whole domain: keep out of other programs' and they out of ours
    monkeypatch.setenv("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    made = Graph(panda, **getattr(request, "param", {}))
    yield made
    made.close()


def parameters_message(robot: Robot, vector: FloatArray, revision: int) -> DynamicParameters:
    layout = robot.layout
    message = DynamicParameters(robot=robot.name, model_hash=robot.model_hash, revision=revision)
    message.header.stamp = Time(sec=revision)
    message.identified = True
    message.bodies = list(layout.bodies)
    message.inertial = layout.inertias(vector).ravel().tolist()
    message.joints = list(layout.joints)
    for term in FRICTION_TERMS:
        setattr(message, term, vector[layout.term(term)].tolist())
    return message


def test_holds_against_gravity_and_tells_of_it(graph: Graph) -> None:
    graph.start()
    graph.until(graph.state(TrackingStatus.HOLDING))
    expected = graph.node.controller.dynamics.gravity(HOME)
    graph.until(
        lambda: graph.commands and np.allclose(graph.commands[-1].data, expected, atol=1e-9)
    )
    status = graph.tracking[-1]
    assert status.robot == "panda"
    assert list(status.joint_names) == list(graph.robot.joint_names)
    assert status.tick_time > 0.0
    graph.until(graph.diagnosed("state", "holds"))
    graph.until(graph.diagnosed("parameters", "nominal"))


def test_follows_references_and_refuses_bad_ones_by_name(graph: Graph) -> None:
    graph.start()
    graph.until(graph.state(TrackingStatus.HOLDING))
    graph.refer(graph.goal(0.1, 1))
    graph.until(graph.state(TrackingStatus.TRACKING))
    graph.refer(graph.goal(0.1, 1, joint_names=[f"other_{i}" for i in range(7)]))
    graph.until(lambda: any("lacks the joints" in w for w in graph.tracking[-1].warnings))
    graph.refer(graph.goal(9.0, 1))
    graph.until(graph.diagnosed("reference", "outside its limits"))
    late = graph.goal(0.1, 1)
    late.header.stamp = Time(sec=5)
    graph.refer(late)
    graph.until(graph.diagnosed("reference", "check the clocks"))
    graph.until(graph.state(TrackingStatus.HOLDING))


@pytest.mark.parametrize("graph", [{"blend_time": "0.2"}], indirect=True)
def test_latched_parameters_are_adopted_and_others_refused(
    graph: Graph, panda: Robot, tx40: Robot, perturbed: Callable[[Robot, int], FloatArray]
) -> None:
    vector = perturbed(panda, 2)
    graph.parameters.publish(parameters_message(panda, vector, 4))
    graph.start()
    graph.until(lambda: graph.tracking and graph.tracking[-1].identified)
    graph.until(lambda: graph.tracking[-1].blend == 1.0)
    assert graph.tracking[-1].revision == 4
    np.testing.assert_allclose(graph.node.controller.blend.parameters, vector)
    graph.parameters.publish(parameters_message(tx40, tx40.nominal, 5))
    graph.until(graph.diagnosed("parameters", "robot 'tx40'"))
    bad = parameters_message(panda, vector, 6)
    bad.inertial[0] = float("nan")
    graph.parameters.publish(bad)
    graph.until(graph.diagnosed("parameters", "not finite"))
    graph.parameters.publish(parameters_message(panda, vector, 3))
    graph.until(graph.diagnosed("parameters", "older than 4"))
    np.testing.assert_allclose(graph.node.controller.blend.parameters, vector)
    back = DynamicParameters(robot="panda", model_hash=panda.model_hash, revision=7)
    graph.parameters.publish(back)
    graph.until(lambda: not graph.tracking[-1].identified and graph.tracking[-1].blend == 1.0)
    np.testing.assert_array_equal(graph.node.controller.blend.parameters, panda.consistent_nominal)


def test_a_gripper_on_the_same_topic_is_no_fault(graph: Graph) -> None:
    graph.start()
    graph.until(graph.state(TrackingStatus.HOLDING))
    finger = JointState(name=["finger"], position=[0.1], velocity=[], effort=[])

    def gripped() -> None:
        graph.states.publish(finger)
        for _ in range(5):  # before the next state takes its place
            graph.executor.spin_once(timeout_sec=0.001)

    graph.before_state = gripped
    for _ in range(3):
        graph.diagnostics.clear()
        graph.until(graph.diagnosed("joint states", ""))
    values = {value.key: value.value for value in graph.diagnostics["joint states"].values}
    assert int(values["accepted"]) > 0
    assert values["refused"] == "0"
    graph.until(graph.state(TrackingStatus.HOLDING))


def test_a_second_node_on_the_topic_is_told_and_moves_nothing(graph: Graph) -> None:
    rng = np.random.default_rng(0)
    message = graph.message = graph.joint_state()
    slider = JointState(name=list(graph.robot.joint_names), position=[0.0] * 7)

    def measured() -> None:
        message.effort = rng.normal(size=7).tolist()

    graph.before_state = measured
    graph.start()
    graph.until(graph.state(TrackingStatus.HOLDING))

    def published_before() -> None:
        measured()
        slider.header.stamp = graph.probe.get_clock().now().to_msg()
        graph.states.publish(slider)

    graph.before_state = published_before
    graph.until(graph.diagnosed("joint states", "a second node publishes them"))
    np.testing.assert_array_equal(graph.node.controller.joint_states.position, HOME)
    graph.until(graph.state(TrackingStatus.HOLDING))


def test_joint_states_of_two_drivers_make_one(graph: Graph) -> None:
    graph.start()
    names = list(graph.robot.joint_names)
    other = JointState(name=names[:3], position=HOME[:3].tolist(), velocity=[0.0] * 3)

    def published_before() -> None:
        other.header.stamp = graph.probe.get_clock().now().to_msg()
        graph.states.publish(other)

    graph.before_state = published_before
    graph.message = graph.joint_state(
        name=names[3:], position=HOME[3:].tolist(), velocity=[0.0] * 4
    )
    graph.until(graph.state(TrackingStatus.HOLDING))
    np.testing.assert_allclose(graph.node.controller.joint_states.position, HOME)
    graph.before_state = lambda: None  # its driver has died
    graph.until(graph.state(TrackingStatus.STALE))


def test_joint_states_may_stop_turn_around_or_break(graph: Graph) -> None:
    graph.start()
    graph.until(graph.state(TrackingStatus.HOLDING))
    graph.message = None
    graph.until(graph.state(TrackingStatus.STALE))
    graph.until(graph.diagnosed("state", "no valid joint states"))
    order = np.arange(9)[::-1]
    names = [*graph.robot.joint_names, "left_finger", "right_finger"]
    values = np.append(HOME, [0.0, 0.0])
    graph.message = graph.joint_state(
        name=[names[i] for i in order], position=values[order].tolist(), velocity=[]
    )
    graph.until(graph.state(TrackingStatus.HOLDING))
    np.testing.assert_allclose(graph.tracking[-1].position_error, 0.0, atol=1e-9)
    graph.message = graph.joint_state(position=[float("nan"), *HOME[1:].tolist()])
    graph.until(graph.state(TrackingStatus.STALE))
    graph.until(graph.diagnosed("joint states", "'panda_joint1' is not finite"))
    graph.message = graph.joint_state(name=list(graph.robot.joint_names[:6]))
    graph.until(graph.diagnosed("joint states", "without the joints panda_joint7"))
    graph.message = graph.joint_state()
    graph.until(graph.state(TrackingStatus.HOLDING))
    assert all(np.isfinite(command.data).all() for command in graph.commands)


def test_the_service_stops_and_starts_it(graph: Graph) -> None:
    graph.start()
    graph.until(graph.state(TrackingStatus.HOLDING))
    client = graph.probe.create_client(SetBool, "controller/enable")
    graph.until(client.service_is_ready)
    for enabled, state in ((False, TrackingStatus.DISABLED), (True, TrackingStatus.HOLDING)):
        answer = client.call_async(SetBool.Request(data=enabled))
        graph.until(answer.done)
        assert answer.result().success
        graph.until(graph.state(state))


def test_another_clock_is_refused_while_torques_are_sent(graph: Graph) -> None:
    graph.start()
    clock = Parameter("use_sim_time", value=True)
    graph.until(graph.state(TrackingStatus.HOLDING))
    result = graph.node.set_parameters([clock])[0]
    assert not result.successful
    assert "use_sim_time" in result.reason
    assert graph.node.set_parameters([Parameter("use_sim_time", value=False)])[0].successful
    graph.node.controller.set_enabled(False)
    graph.until(graph.state(TrackingStatus.DISABLED))
    assert graph.node.set_parameters([clock])[0].successful


def test_parameters_can_be_set_and_bad_values_leave_the_old(graph: Graph) -> None:
    graph.start()

    def set_one(name: str, value: Any) -> Any:
        return graph.node.set_parameters([Parameter(name, value=value)])[0]

    assert set_one("mode", "feed_forward").successful
    assert graph.node.controller.config.mode == "feed_forward"
    for name, value, reason in (
        ("mode", "pid", "must be one of"),
        ("blend_time", float("nan"), "blend_time"),
        ("effort_scale", 1.5, "effort_scale"),
        ("kp", [1.0, 2.0], "1 or 7 numbers"),
        ("rate", 100.0, "read-only"),
    ):
        result = set_one(name, value)
        assert not result.successful
        assert reason in result.reason
    assert graph.node.get_parameter("mode").value == "feed_forward"
    assert graph.node.controller.config.mode == "feed_forward"
    description = graph.node.describe_parameter("blend_time")
    assert "[s]" in description.description
    assert description.floating_point_range[0].to_value == 60.0


def test_lost_late_and_overtaken_joint_states_are_borne_and_named(
    graph: Graph, panda: Robot
) -> None:
    """A tenth is lost, the rest comes up to 20 ms late, in any order, with NaN now and then."""
    rng = np.random.default_rng(7)
    under_way: list[tuple[float, JointState]] = []
    graph.start()
    graph.until(graph.state(TrackingStatus.HOLDING))
    graph.refer(graph.goal(0.1, 2))
    graph.until(graph.state(TrackingStatus.TRACKING))
    graph.message = None
    graph.commands.clear()
    end, next_state = time.monotonic() + 2.0, 0.0
    seen = set()
    while time.monotonic() < end:
        now = time.monotonic()
        if now >= next_state:
            next_state = now + 0.002
            message = graph.joint_state()
            if rng.random() < 0.02:
                message.position[int(rng.integers(7))] = float("nan")
            message.header.stamp = graph.probe.get_clock().now().to_msg()
            if rng.random() >= 0.1:
                under_way.append((now + float(rng.uniform(0.0, 0.02)), message))
        for arrives, message in sorted(under_way, key=lambda item: item[0]):
            if arrives <= now:
                graph.states.publish(message)
        under_way = [item for item in under_way if item[0] > now]
        graph.executor.spin_once(timeout_sec=0.0005)
        seen |= {status.state for status in graph.tracking}
    assert seen <= {TrackingStatus.HOLDING, TrackingStatus.TRACKING, TrackingStatus.STALE}
    assert "out of order" in graph.diagnostics["joint states"].message
    graph.message = graph.joint_state()
    graph.until(graph.state(TrackingStatus.HOLDING))
    assert graph.commands
    for command in graph.commands:
        assert np.isfinite(command.data).all()
        assert (np.abs(command.data) <= panda.limits.effort).all()


@pytest.mark.parametrize("graph", [{"trigger": "joint_states"}], indirect=True)
def test_joint_states_can_trigger_the_ticks(graph: Graph) -> None:
    graph.start()
    graph.until(graph.state(TrackingStatus.HOLDING))
    graph.message = None
    graph.until(graph.state(TrackingStatus.STALE))
    graph.message = graph.joint_state()
    graph.until(graph.state(TrackingStatus.HOLDING))


@pytest.mark.parametrize("graph", [{"use_sim_time": "true"}], indirect=True)
def test_a_simulated_clock_may_run_stop_and_jump_back(graph: Graph) -> None:
    graph.start()
    clock = graph.probe.create_publisher(Clock, "/clock", 10)
    simulated = 50_000_000_000

    def advance() -> None:
        nonlocal simulated
        simulated += 2_000_000
        clock.publish(Clock(clock=Time(sec=simulated // 10**9, nanosec=simulated % 10**9)))

    graph.before_state = advance
    graph.until(graph.state(TrackingStatus.HOLDING))
    graph.refer(graph.goal(0.2, 30))
    graph.until(graph.state(TrackingStatus.TRACKING))
    simulated = 0
    graph.until(graph.state(TrackingStatus.HOLDING))
    graph.until(graph.diagnosed("state", "clock was set back"))
    graph.message = None
    graph.until(graph.state(TrackingStatus.STALE))  # with the clock at a stand


@pytest.mark.parametrize("reverse", [False, True])
def test_torques_do_not_go_to_joints_in_another_order(graph: Graph, reverse: bool) -> None:
    other = rclpy.create_node("effort_controller", namespace=graph.probe.get_namespace())
    joints = list(graph.robot.joint_names)
    other.declare_parameter("joints", joints[::-1] if reverse else joints)
    graph.executor.add_node(other)
    graph.message = None
    graph.start()
    graph.until(graph.node._interface._client.service_is_ready)
    graph.message = graph.joint_state()
    graph.until(graph.diagnosed("state", "disabled" if reverse else "holds"))
    graph.until(lambda: len(graph.tracking) > 3)
    assert bool(graph.commands) is not reverse  # not one before the order is known
    client = graph.probe.create_client(SetBool, "controller/enable")
    graph.until(client.service_is_ready)
    answer = client.call_async(SetBool.Request(data=True))
    graph.until(answer.done)
    assert answer.result().success is not reverse
    assert ("takes torques in the order panda_joint7" in answer.result().message) is reverse
    other.destroy_node()


def test_stamps_of_another_clock_are_told(graph: Graph) -> None:
    """A simulation's stamps come to a node that goes by the wall's clock."""
    graph.start()
    graph.message = None
    state = graph.joint_state()
    state.header.stamp = Time(sec=5)

    def told() -> bool:
        graph.states.publish(state)
        return graph.diagnosed("joint states", "set use_sim_time")()

    graph.until(told)


@pytest.mark.parametrize("graph", [{"use_sim_time": "true"}], indirect=True)
def test_joint_states_tell_simulated_time_between_messages_on_the_clock(graph: Graph) -> None:
    graph.start()
    graph.message = None
    clock = graph.probe.create_publisher(Clock, "/clock", 10)
    node, state = graph.node, graph.joint_state()
    assert node is not None

    def time() -> float:
        clock.publish(Clock(clock=Time(sec=50)))
        graph.states.publish(state)
        return node._now()

    begin = 50.0 - 1e-9 * node._times.origin
    graph.until(lambda: time() == pytest.approx(begin, abs=1e-9))
    state.header.stamp = Time(sec=50, nanosec=8_000_000)
    graph.until(lambda: time() == pytest.approx(begin + 0.008, abs=1e-9))
    state.header.stamp = Time(sec=70)  # the time of another clock
    graph.until(lambda: time() == pytest.approx(begin, abs=1e-9))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "'robot' is empty"),
        (["-p", "robot:=no_such_robot"], "unknown robot"),
        (["-p", "robot:=panda", "-p", "rate:=0.0"], "rate"),
        (["-p", "robot:=panda", "-p", "kp:=[1.0, 2.0]"], "1 or 7 numbers"),
        (["-p", "robot:=panda", "-p", "mode:=pid"], "must be one of"),
        (["-p", "robot:=panda", "-p", "contact_control:=cones"], "must be one of"),
    ],
)
def test_bad_arguments_end_with_one_line(
    arguments: list[str], text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--ros-args", *arguments]) == 2
    lines = capfd.readouterr().err.strip().splitlines()
    assert lines[-1].startswith("controller: ")
    assert text in lines[-1]
    assert not any("Traceback" in line for line in lines)


class Manager:
    """Drives the controller's lifecycle as nav2's manager and ``ros2 lifecycle`` do."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.events: list[tuple[str, str, str]] = []
        graph.probe.create_subscription(
            TransitionEvent, "controller/transition_event", self._on_event, 10
        )

    def _on_event(self, event: TransitionEvent) -> None:
        parts = (event.transition, event.start_state, event.goal_state)
        self.events.append(tuple(part.label for part in parts))

    def ask(self, kind: Any, name: str, request: Any) -> Any:
        client = self.graph.probe.create_client(kind, f"controller/{name}")
        self.graph.until(client.service_is_ready)
        answer = client.call_async(request)
        self.graph.until(answer.done)
        return answer.result()

    def state(self) -> str:
        return str(self.ask(GetState, "get_state", GetState.Request()).current_state.label)

    def change(self, label: str) -> bool:
        """Make a transition by its number, as it is offered."""
        request = GetAvailableTransitions.Request()
        offered = self.ask(GetAvailableTransitions, "get_available_transitions", request)
        found = [
            o.transition for o in offered.available_transitions if o.transition.label == label
        ]
        asked = found[0] if found else Transition(label=label)
        request = ChangeState.Request(transition=asked)
        return bool(self.ask(ChangeState, "change_state", request).success)


@pytest.mark.parametrize("graph", [{"start_enabled": "false"}], indirect=True)
def test_a_manager_configures_activates_and_shuts_it_down(graph: Graph) -> None:
    graph.start()
    manager = Manager(graph)
    assert manager.state() == "unconfigured"
    assert not manager.change("activate")
    for label, state in (("configure", "inactive"), ("activate", "active")):
        assert manager.change(label)
        assert manager.state() == state
    graph.until(graph.state(TrackingStatus.HOLDING))
    graph.until(lambda: len(manager.events) >= 4)
    assert manager.events[-2:] == [
        ("activate", "inactive", "activating"),
        ("transition_success", "activating", "active"),
    ]
    assert manager.change("deactivate")
    graph.until(graph.state(TrackingStatus.DISABLED))
    for label, state in (("cleanup", "unconfigured"), ("shutdown", "finalized")):
        assert manager.change(label)
        assert manager.state() == state
    answer = manager.ask(SetBool, "enable", SetBool.Request(data=True))
    assert not answer.success
    assert "finalized" in answer.message


def test_enabling_and_disabling_show_in_the_lifecycle(graph: Graph) -> None:
    graph.start()
    manager = Manager(graph)
    assert manager.state() == "active"  # as a launch file without a manager wants it
    for enable, state in ((False, "inactive"), (True, "active")):
        assert manager.ask(SetBool, "enable", SetBool.Request(data=enable)).success
        assert manager.state() == state
    graph.node.controller.set_enabled(False)  # as after a fall
    graph.until(lambda: manager.state() == "inactive")
    graph.node.controller.publishers = Publishers(commands=2)
    graph.node.count_publishers = lambda _: 2
    assert not manager.change("activate")
    assert manager.state() == "inactive"
    assert manager.events[-1] == ("transition_failure", "activating", "inactive")


def test_enabling_ends_a_stop_that_stays(graph: Graph) -> None:
    """After three stops within a minute the node stays active and the robot stopped."""
    graph.start()
    manager = Manager(graph)
    graph.until(graph.state(TrackingStatus.HOLDING))
    stop, steady = graph.node.controller.stop, time.monotonic()
    for _ in range(3):
        stop.begin(Diagnostic("overspeed", "fast"), steady, np.eye(7), 0.001)
    graph.until(graph.state(TrackingStatus.STOPPED))
    assert stop.stays
    assert manager.ask(SetBool, "enable", SetBool.Request(data=True)).success
    graph.until(graph.state(TrackingStatus.HOLDING, TrackingStatus.TRACKING))
    assert not stop.stays
