# SPDX-License-Identifier: Apache-2.0
"""Goals for the controller in Gazebo are passed on, cancelled, and end as it ends them."""
# ruff: noqa: E402 - these imports need the ROS that is looked for first

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")
pytest.importorskip("control_msgs.action", reason="control_msgs is not installed")

from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.executors import SingleThreadedExecutor
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from sysid_sim.gazebo_world import TRAJECTORIES
from sysid_sim.trajectory_relay import GoalRelay

LIMIT = 60.0  # Time limit of every wait [s]; reached only where something is broken
SUCCEEDED, CANCELED, ABORTED = 4, 5, 6
REST = {"a": 0.5, "b": -1.0}
Result = FollowJointTrajectory.Result


class Gazebo:
    """A trajectory controller that holds its goals until it is told how they end."""

    def __init__(self, node: Any) -> None:
        self.goals: list[Any] = []
        self.how, self.accepts = "succeed", True
        self.server = ActionServer(
            node,
            FollowJointTrajectory,
            f"{TRAJECTORIES}/follow_joint_trajectory",
            self.end,
            goal_callback=lambda _: GoalResponse.ACCEPT if self.accepts else GoalResponse.REJECT,
            handle_accepted_callback=self.goals.append,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
        )

    def end(self, goal: Any) -> Any:
        getattr(goal, self.how)()
        code = 0 if self.how == "succeed" else Result.PATH_TOLERANCE_VIOLATED
        return Result(error_code=code, error_string=self.how)


class World:
    """A client, the relay, and what stands for Gazebo, in a namespace of their own."""

    def __init__(self) -> None:
        rclpy.init(args=["--ros-args", "-r", f"__ns:=/t{uuid.uuid4().hex}"])
        self.nodes = [rclpy.create_node(name) for name in ("client", "relay", "gazebo")]
        self.executor = SingleThreadedExecutor()
        for node in self.nodes:
            self.executor.add_node(node)
        client, relay, _ = self.nodes
        self.relay = GoalRelay(relay, REST)
        self.client = ActionClient(
            client, FollowJointTrajectory, "joint_trajectory_controller/follow_joint_trajectory"
        )
        self.until(self.client.server_is_ready)
        self.feedback: list[Any] = []

    def until(self, condition: Callable[[], Any]) -> None:
        end = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < end, "the condition did not come about in time"
            self.executor.spin_once(timeout_sec=0.01)

    def send(self) -> Any:
        points = [JointTrajectoryPoint(positions=[0.0, 1.0]), JointTrajectoryPoint()]
        goal = FollowJointTrajectory.Goal(
            trajectory=JointTrajectory(joint_names=["b", "a"], points=points)
        )
        sent = self.client.send_goal_async(goal, feedback_callback=self.feedback.append)
        self.until(sent.done)
        return sent.result()

    def gazebo(self) -> Gazebo:
        made = Gazebo(self.nodes[2])
        self.until(self.relay._client.server_is_ready)
        return made

    def close(self) -> None:
        for node in self.nodes:
            node.destroy_node()
        rclpy.try_shutdown()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    made = World()
    yield made
    made.close()


@pytest.mark.parametrize(("how", "status"), [("succeed", SUCCEEDED), ("abort", ABORTED)])
def test_a_goal_ends_as_the_controller_ends_it(how: str, status: int, world: World) -> None:
    gazebo = world.gazebo()
    handle = world.send()
    assert handle.accepted
    asked = handle.get_result_async()
    world.until(lambda: gazebo.goals)
    first, second = gazebo.goals[0].request.trajectory.points
    np.testing.assert_allclose(first.positions, [1.0, 0.5])
    assert not list(second.positions)
    world.until(lambda: world.relay._passed[0].handle)
    zero = JointTrajectoryPoint(positions=[0.0, 0.0])
    told = FollowJointTrajectory.Feedback(
        joint_names=["a", "b"], desired=zero, actual=zero, error=zero
    )
    gazebo.goals[0].publish_feedback(told)
    world.until(lambda: world.feedback)
    heard = world.feedback[0].feedback
    for point in (heard.desired, heard.actual):
        np.testing.assert_allclose(point.positions, [0.5, -1.0])
    np.testing.assert_allclose(heard.error.positions, [0.0, 0.0])
    gazebo.how = how
    gazebo.goals[0].execute(gazebo.end)
    world.until(asked.done)
    answer = asked.result()
    assert (answer.status, answer.result.error_string) == (status, how)
    assert (answer.result.error_code == 0) == (how == "succeed")


def test_a_goal_that_is_cancelled_is_cancelled_in_gazebo(world: World) -> None:
    gazebo = world.gazebo()
    handle = world.send()
    asked = handle.get_result_async()
    world.until(lambda: gazebo.goals)
    handle.cancel_goal_async()
    world.until(lambda: gazebo.goals[0].is_cancel_requested)
    gazebo.how = "canceled"
    gazebo.goals[0].execute(gazebo.end)
    world.until(asked.done)
    assert asked.result().status == CANCELED


def test_what_the_controller_rejects_is_rejected(world: World) -> None:
    assert not world.send().accepted  # nobody is there
    gazebo = world.gazebo()
    gazebo.accepts = False
    assert not world.send().accepted
    assert not gazebo.goals
    gazebo.accepts = True
    assert world.send().accepted
    world.until(lambda: gazebo.goals and world.relay._passed[0].handle)
