# SPDX-License-Identifier: Apache-2.0
"""The Gazebo relay: commands joint by joint, states with the torques that were commanded."""
# ruff: noqa: E402 - these imports need the ROS that is looked for first

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")

from rosgraph_msgs.msg import Clock
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from sysid_msgs.msg import Contacts
from sysid_ros.fields import stamp
from sysid_ros.plain import installed_type
from sysid_ros.sensors import (
    contacts_message,
    joint_state_message,
    odometry_arrays,
    odometry_message,
)
from sysid_sim import effort_switch, gazebo_relay, trajectory_relay
from sysid_sim.simulator_config import start_configuration


class Log(list[Any]):
    """Stands in for a publisher."""

    publish = list.append


@pytest.fixture
def relay_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Return a maker of relays whose publishers and requests are kept."""
    made = []

    def make(robot: str, *more: str, manager: Any = None) -> Any:
        rclpy.init(args=["--ros-args", "-p", f"robot:={robot}", *more])
        control = SimpleNamespace(Request=lambda: SimpleNamespace(world_control=SimpleNamespace()))
        contacts = {"ros_gz_interfaces/msg/Contacts": Contacts}
        monkeypatch.setattr(
            gazebo_relay, "installed_type", lambda kind, _: contacts.get(kind, control)
        )
        client = manager.create_client if manager else lambda *_: None
        monkeypatch.setattr(gazebo_relay.GazeboRelay, "create_client", lambda *its: client(*its))
        wall = SimpleNamespace(time=0.0)
        monkeypatch.setattr(gazebo_relay, "monotonic", lambda: wall.time)
        made.append(node := gazebo_relay.GazeboRelay())
        node.wall = wall
        node._states, node._contacts, node._odometry, node._ticks = (Log() for _ in range(4))
        node._forces = [Log() for _ in node.robot.actuated_names]
        node.requests = []
        done = SimpleNamespace(done=lambda: True)
        node._control = SimpleNamespace(
            call_async=lambda asked: node.requests.append(asked) or done,
            service_is_ready=lambda: True,
        )
        return node

    yield make
    for node in made:
        node.destroy_node()
    rclpy.try_shutdown()


def _states(relay: Any, time: float, names: list[str] | None = None) -> Any:
    names = list(relay.robot.actuated_names) if names is None else names
    return joint_state_message(names, stamp(time), np.zeros(len(names)), np.ones(len(names)))


def test_states_carry_commanded_torques_and_positions_from_the_robots_zero(
    relay_of: Callable[[str], Any],
) -> None:
    relay = relay_of("panda")
    relay._on_states(_states(relay, 1.0))
    np.testing.assert_array_equal(relay._states[-1].effort, np.zeros(7))
    rest = start_configuration(relay.robot)
    np.testing.assert_allclose(relay._states[-1].position, rest)
    torque = np.arange(7.0)
    relay._on_command(Float64MultiArray(data=torque.tolist()))
    assert [log[-1].data for log in relay._forces] == torque.tolist()
    backwards = list(relay.robot.actuated_names)[::-1]
    relay._on_states(_states(relay, 1.002, ["other", *backwards]))
    assert tuple(relay._states[-1].name) == relay.robot.actuated_names
    np.testing.assert_array_equal(relay._states[-1].effort, torque)


def test_a_trajectory_controller_gets_motions_and_tells_what_drove_the_joints(
    relay_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:

    def known(kind: str, package: str) -> Any:
        return JointTrajectory if "/msg/" in kind else installed_type(kind, package)

    monkeypatch.setattr(trajectory_relay, "installed_type", known)
    relay = relay_of("panda", "-p", "trajectories:=true")
    way, names = relay._motions, list(relay.robot.actuated_names)
    way._motions = Log()
    rest = start_configuration(relay.robot)
    points = [JointTrajectoryPoint(positions=(rest + k).tolist()[::-1]) for k in (0.0, 1.0)]
    way._on_trajectory(JointTrajectory(joint_names=names[::-1], points=points))
    sent = [point.positions for point in way._motions[-1].points]
    np.testing.assert_allclose(sent, np.outer([0.0, 1.0], np.ones(7)), atol=1e-12)

    def tell(time: float, torque: Any) -> None:
        output = SimpleNamespace(effort=torque[::-1].tolist())
        header = SimpleNamespace(stamp=stamp(time))
        way._on_state(SimpleNamespace(header=header, joint_names=names[::-1], output=output))

    for step in range(3):
        tell(1.0 + 0.002 * step, step + np.arange(7.0))
        relay._on_states(_states(relay, 1.0 + 0.002 * step))  # which the same state led to
    first, second, third = (list(state.effort) for state in relay._states)
    assert (first, second, third) == ([], list(np.arange(7.0)), list(1.0 + np.arange(7.0)))
    for time in (1.008, 1.012):  # whose efforts are still to come
        relay._on_states(_states(relay, time))
    assert len(relay._states) == 3
    tell(1.008, np.zeros(7))  # so that the first one's was lost
    tell(1.010, np.ones(7))
    assert len(relay._states) == 4
    np.testing.assert_array_equal(relay._states[-1].effort, 1.0)
    assert not relay.requests


def test_each_good_command_lets_a_waiting_world_run_for_one_period(
    relay_of: Callable[[str], Any],
) -> None:
    relay = relay_of("panda")
    good = Float64MultiArray(data=[0.0] * 7)
    relay._on_states(_states(relay, 1.0))
    relay._on_command(good)
    assert not relay.requests  # it may be running
    relay._on_states(_states(relay, 1.0))
    for bad in ([1.0], [float("nan")] * 7):
        relay._on_command(Float64MultiArray(data=bad))
    assert not relay.requests
    for step in range(1, 4):
        for _ in range(2):  # which a controller may repeat
            relay._on_command(good)
        assert len(relay.requests) == step
        relay._on_states(_states(relay, 1.0 + 0.002 * step))
    asked = relay.requests[0].world_control
    assert (asked.pause, asked.multi_step) == (True, 2)
    relay._on_states(_states(relay, 0.5))  # the world was reset
    relay._on_command(good)
    assert len(relay.requests) == 4


def test_what_was_lost_is_said_again_after_a_while(relay_of: Callable[[str], Any]) -> None:
    relay = relay_of("panda")
    for _ in range(5):
        relay._on_states(_states(relay, 1.0))
    assert len(relay._states) == len(relay._ticks) == 1
    relay._on_command(Float64MultiArray(data=[0.0] * 7))
    relay.wall.time += 1.0
    relay._on_states(_states(relay, 1.0))
    assert len(relay._states) == 2
    relay._on_command(Float64MultiArray(data=[0.0] * 7))
    assert len(relay.requests) == 2


@pytest.mark.parametrize("stepped", [False, True])
def test_a_world_that_somebody_lets_run_is_left_alone(
    stepped: bool, relay_of: Callable[[str], Any]
) -> None:
    relay = relay_of("panda")
    good = Float64MultiArray(data=[0.0] * 7)
    for time in (1.0, 1.0, 1.01) if stepped else (1.0, 1.002, 1.004):
        relay._on_states(_states(relay, time))
    told = len(relay._states)
    relay.wall.time += 1.0
    relay._on_states(_states(relay, 1.01 if stepped else 1.004))  # and then pauses it
    relay._on_command(good)
    assert len(relay._states) == told
    assert not relay.requests


class Request(SimpleNamespace):
    """Stands in for what ros2_control's manager is asked."""

    STRICT = 2


class Manager:
    """Stands in for ros2_control's manager, with one controller in a state."""

    Request = Request

    def __init__(self, state: str) -> None:
        self.state, self.silent = state, False
        self.asked: list[str] = []

    def create_client(self, _: Any, __: Any, name: str) -> Any:
        answer = getattr(self, name.rpartition("/")[2], None)
        return SimpleNamespace(service_is_ready=lambda: self.state != "", call_async=answer)

    def _answered(self, result: Any) -> Any:
        self.asked.append("list" if hasattr(result, "controller") else "switch")
        told = not self.silent
        answer = SimpleNamespace(done=lambda: told, result=lambda: result)
        answer.add_done_callback = lambda take: take(answer) if told else None
        return answer

    def list_controllers(self, _: Any) -> Any:
        state = SimpleNamespace(name="effort_controller", state=self.state)
        return self._answered(SimpleNamespace(controller=[state]))

    def switch_controller(self, request: Any) -> Any:
        assert request.activate_controllers == ["effort_controller"]
        self.state = "active"
        return self._answered(SimpleNamespace(ok=True))


@pytest.fixture
def held_by(
    relay_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Callable[[Manager], Any]:
    """Return a maker of relays whose joints gz_ros2_control may hold, under a manager."""

    def make(manager: Manager) -> Any:
        monkeypatch.setattr(effort_switch, "installed_type", lambda *_: manager)
        relay = relay_of("panda", "-p", "ros2_control:=true", manager=manager)
        monkeypatch.setattr(effort_switch, "monotonic", lambda: relay.wall.time)
        return relay

    return make


def _wait(relay: Any) -> None:
    """Have a world wait at 1 s, then tell the first state after which joints may be driven."""
    for time in (0.998, 1.0):
        relay._on_states(_states(relay, time))
    relay._on_command(Float64MultiArray(data=[1.0] * 7))
    relay._keep_going()
    relay.wall.time += 0.3
    relay._keep_going()
    relay._allowed = round(1.2e9)
    relay._on_states(_states(relay, 1.2))


def test_commands_activate_a_controller_and_efforts_are_known_from_then_on(
    held_by: Callable[[Manager], Any],
) -> None:
    relay = held_by(manager := Manager("inactive"))
    _wait(relay)
    assert not manager.asked
    assert not relay._states[-1].effort
    relay._on_command(Float64MultiArray(data=[float("nan")] * 7))
    assert not manager.asked
    relay._on_command(Float64MultiArray(data=[1.0] * 7))
    assert manager.asked == ["list", "switch"]
    relay._on_states(_states(relay, 1.202))
    np.testing.assert_array_equal(relay._states[-1].effort, np.ones(7))
    relay._on_command(Float64MultiArray(data=[2.0] * 7))
    assert manager.asked == ["list", "switch"]
    assert not any(relay._forces)


def test_a_world_with_ros2_control_runs_until_the_first_command_and_then_waits_for_each(
    held_by: Callable[[Manager], Any],
) -> None:
    relay, good = held_by(Manager("inactive")), Float64MultiArray(data=[1.0] * 7)
    for time in (1.0, 1.002):
        relay._on_states(_states(relay, time))
        relay._keep_going()
    assert not relay.requests
    relay._on_command(good)
    relay._keep_going()
    assert [hasattr(r.world_control, "multi_step") for r in relay.requests] == [False]
    relay._on_states(_states(relay, 1.01))  # it is about to stop
    relay.wall.time += 0.1
    relay._keep_going()
    relay._on_command(good)
    assert len(relay.requests) == 1
    relay.wall.time += 0.2
    relay._keep_going()
    assert relay.requests[-1].world_control.multi_step == 2
    for step in range(1, 4):
        relay._on_states(_states(relay, 1.01 + 0.002 * step))
        relay._on_command(good)
        assert len(relay.requests) == 2 + step
    relay.wall.time += 0.1  # the last state, or the command for it, was lost
    told = len(relay._states)
    relay._keep_going()
    relay._on_command(good)
    assert (len(relay._states), len(relay.requests)) == (told + 1, 6)
    relay._on_states(_states(relay, 1.1))  # somebody lets it run
    relay._on_command(good)
    assert len(relay.requests) == 6


def test_a_world_that_waits_already_goes_on_for_a_relay_that_comes_later(
    held_by: Callable[[Manager], Any],
) -> None:
    relay, good = held_by(Manager("active")), Float64MultiArray(data=[1.0] * 7)
    for _ in range(3):  # nobody tells how Gazebo's clock goes
        relay.wall.time += 2.0
        relay._keep_going()
    for time in np.arange(3.0):  # its world starts, and its controllers are not there yet
        relay._on_world_clock(Clock(clock=stamp(time)))
        relay.wall.time += 0.8
        relay._keep_going()
    assert not relay.requests
    for _ in range(3):
        relay._on_world_clock(Clock(clock=stamp(2.0)))
        relay.wall.time += 0.5
        relay._keep_going()
    assert [r.world_control.multi_step for r in relay.requests] == [2]
    relay._on_states(_states(relay, 2.002))
    relay.wall.time += 0.3
    relay._keep_going()
    assert relay._world_clock is None
    told = len(relay._states)
    relay.wall.time += 0.1  # until there is a command, the same state is told again
    relay._keep_going()
    assert len(relay._states) == told + 1
    relay._on_states(_states(relay, 2.004))
    relay._on_command(good)
    assert len(relay.requests) == 3


def test_a_controller_that_is_active_already_is_left_alone(
    held_by: Callable[[Manager], Any],
) -> None:
    relay = held_by(manager := Manager("active"))
    _wait(relay)
    relay._on_command(Float64MultiArray(data=[1.0] * 7))
    relay._on_states(_states(relay, 1.202))
    assert manager.asked == ["list"]
    np.testing.assert_array_equal(relay._states[-1].effort, np.ones(7))


def test_it_is_asked_for_again_until_it_is_there(held_by: Callable[[Manager], Any]) -> None:
    relay = held_by(manager := Manager(""))
    _wait(relay)
    good = Float64MultiArray(data=[1.0] * 7)
    relay._on_command(good)
    assert not manager.asked
    manager.state = "unconfigured"
    for _ in range(3):
        relay._on_command(good)
    assert manager.asked == ["list"]
    manager.silent = True  # an answer is lost
    for since, asked in ((1.0, 2), (1.0, 2), (5.0, 3)):
        relay.wall.time += since
        relay._on_command(good)
        assert len(manager.asked) == asked
    manager.silent, manager.state = False, "inactive"
    relay.wall.time += 5.0
    relay._on_command(good)
    assert manager.state == "active"


def test_odometry_is_that_of_the_base_and_not_of_the_model_on_the_ground(
    relay_of: Callable[[str], Any],
) -> None:
    relay = relay_of("solo12")
    start = start_configuration(relay.robot)
    origin = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    twist = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    told = odometry_message(stamp(1.05), origin, twist, frame="odom", child_frame="model")
    relay._on_odometry(told)
    pose, moved = odometry_arrays(relay._odometry[-1])
    np.testing.assert_allclose(pose, start[:7], atol=1e-12)
    np.testing.assert_allclose(moved[:3], twist[:3] + np.cross(twist[3:], start[:3]))
    np.testing.assert_allclose(moved[3:], twist[3:])


def test_a_quadruped_stands_while_the_world_waits_and_then_where_it_touches(
    relay_of: Callable[[str], Any],
) -> None:
    relay = relay_of("solo12")
    relay._on_states(_states(relay, 1.0))
    assert list(relay._contacts[-1].names) == ["FL", "FR", "HL", "HR"]
    assert relay._contacts[-1].active == [True] * 4
    assert relay._odometry[-1].pose.pose.position.z == start_configuration(relay.robot)[2] > 0.1
    relay._on_touch("FR", contacts_message(stamp(1.05), [], np.zeros(0, bool), None))
    relay._on_states(_states(relay, 1.052))
    assert relay._contacts[-1].active == [False, True, False, False]
    assert len(relay._odometry) == 1  # from now on Gazebo's own
    relay._on_states(_states(relay, 1.102))
    assert relay._contacts[-1].active == [False] * 4
    relay._on_states(_states(relay, 0.5))  # the world was reset
    assert relay._contacts[-1].active == [False] * 4
