# SPDX-License-Identifier: Apache-2.0
"""A client of `FollowJointTrajectory`, as MoveIt is one, moves the robot and lets go of it."""

# ruff: noqa: E402 - these imports need the ROS that is looked for first
from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")
pytest.importorskip("control_msgs.action", reason="control_msgs is not installed")

from action_msgs.msg import GoalStatusArray
from builtin_interfaces.msg import Duration, Time
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance
from node_graph import HOME, Graph
from rclpy.action import ActionClient
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_srvs.srv import SetBool

from sysid_core.robot import Robot
from sysid_msgs.msg import TrackingStatus

EXECUTING, SUCCEEDED, CANCELED, ABORTED = 2, 4, 5, 6
Result = FollowJointTrajectory.Result


class Arm(Graph):
    """A robot that follows its reference up to a lag, and a client of its action."""

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot, stale_timeout="10.0")  # however busy the computer is
        self.lag = 0.0
        self.feedback: list[Any] = []
        self.before_state = self.follow
        self.start()
        self.client = ActionClient(
            self.probe, FollowJointTrajectory, "controller/follow_joint_trajectory"
        )
        self.until(self.client.server_is_ready)
        self.until(self.state(TrackingStatus.HOLDING))

    def follow(self) -> None:
        reference = self.node.controller.reference
        if reference.known and self.message is not None:
            desired = reference.sample(self.node._now())
            self.message.position = (desired.position - self.lag).tolist()
            self.message.velocity = desired.velocity.tolist()

    @property
    def position(self) -> Any:
        return np.array(self.node.controller.joint_states.position)

    def make(self, offset: float = 0.1, seconds: int = 1, **fields: Any) -> Any:
        return FollowJointTrajectory.Goal(trajectory=self.goal(offset, seconds), **fields)

    def send(self, goal: Any) -> Any:
        sent = self.client.send_goal_async(goal, feedback_callback=self.feedback.append)
        self.until(sent.done)
        return sent.result()

    def result(self, handle: Any) -> Any:
        """Return status, code and reason of a goal that ends."""
        asked = handle.get_result_async()
        self.until(asked.done)
        answer = asked.result()
        return answer.status, answer.result.error_code, answer.result.error_string

    def assert_held(self) -> None:
        self.until(self.state(TrackingStatus.HOLDING))
        self.tracking.clear()
        self.until(lambda: len(self.tracking) > 5)  # joint states may still be on the way
        where = self.position
        self.tracking.clear()
        self.until(lambda: len(self.tracking) > 5)
        np.testing.assert_allclose(self.position, where, atol=1e-4)


@pytest.fixture
def arm(panda: Robot, monkeypatch: pytest.MonkeyPatch) -> Iterator[Arm]:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    made = Arm(panda)
    yield made
    made.close()


def tolerances(*names: str, position: float) -> list[Any]:
    return [JointTolerance(name=name, position=position) for name in names]


def test_a_goal_is_reached_whatever_the_order_of_its_joints(arm: Arm) -> None:
    goal = arm.make(goal_tolerance=tolerances("panda_joint2", position=0.01))
    goal.trajectory.joint_names.reverse()
    goal.trajectory.points[0].positions = goal.trajectory.points[0].positions[::-1]
    handle = arm.send(goal)
    assert handle.accepted
    assert arm.result(handle) == (SUCCEEDED, Result.SUCCESSFUL, "")
    np.testing.assert_allclose(arm.position, HOME + 0.1, atol=1e-6)
    arm.until(lambda: arm.feedback)
    told = arm.feedback[-1].feedback
    assert list(told.joint_names) == list(arm.robot.joint_names)
    for kind in ("positions", "velocities"):
        parts = (getattr(part, kind) for part in (told.desired, told.actual, told.error))
        desired, actual, error = map(np.array, parts)
        np.testing.assert_allclose(desired - actual, error, atol=1e-12)
    arm.assert_held()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"joint_names": [f"other_{i}" for i in range(7)]}, "lacks the joints"),
        ({"points": []}, "has no points"),
        ({"offset": 9.0}, "outside its limits"),
        ({"old": True}, "check the clocks"),
        ({"seconds": 0}, "from where joint"),
        ({"path_tolerance": tolerances("elbow", position=0.1)}, "'elbow', which is not a joint"),
        ({"goal_tolerance": tolerances("panda_joint1", position=np.nan)}, "is not a number"),
    ],
)
def test_a_goal_that_cannot_be_followed_is_rejected(
    change: dict[str, Any], says: str, arm: Arm, capfd: pytest.CaptureFixture[str]
) -> None:
    options = {key: change.pop(key) for key in ("offset", "seconds") if key in change}
    options = {"offset": 0.5, **options} if "seconds" in options else options
    old = change.pop("old", False)
    trajectory = {key: change.pop(key) for key in ("joint_names", "points") if key in change}
    goal = arm.make(**options, **change)
    for key, value in trajectory.items():
        setattr(goal.trajectory, key, value)
    if old:
        goal.trajectory.header.stamp = Time(sec=5)
    assert not arm.send(goal).accepted
    assert says in capfd.readouterr().err
    arm.assert_held()


@pytest.mark.parametrize("when", ["path", "goal"])
def test_a_robot_out_of_tolerance_ends_the_goal_and_is_held(when: str, arm: Arm) -> None:
    given: Any = {f"{when}_tolerance": tolerances("panda_joint3", position=0.01)}
    handle = arm.send(arm.make(**given, goal_time_tolerance=Duration(nanosec=10_000_000)))
    arm.lag = 0.05
    status, code, reason = arm.result(handle)
    expected = f"{when.upper()}_TOLERANCE_VIOLATED"
    assert (status, code) == (ABORTED, getattr(Result, expected))
    assert "joint 'panda_joint3' is" in reason
    arm.lag = 0.0
    arm.assert_held()
    if when == "path":
        assert np.abs(arm.position - HOME).max() < 0.1


def test_a_goal_that_is_followed_shows_as_executing(arm: Arm) -> None:
    told: list[Any] = []
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    topic = "controller/follow_joint_trajectory/_action/status"
    arm.probe.create_subscription(GoalStatusArray, topic, told.append, latched)
    handle = arm.send(arm.make(0.5, 30))
    arm.until(lambda: told and told[-1].status_list[-1].status == EXECUTING)
    asked = handle.cancel_goal_async()
    arm.until(asked.done)
    assert arm.result(handle)[0] == CANCELED
    arm.until(lambda: told[-1].status_list[-1].status == CANCELED)


def test_a_cancelled_goal_leaves_the_robot_held(arm: Arm) -> None:
    handle = arm.send(arm.make(0.5, 5))
    arm.until(lambda: np.abs(arm.position - HOME).max() > 0.02)
    cancelled = handle.cancel_goal_async()
    arm.until(cancelled.done)
    assert len(cancelled.result().goals_canceling) == 1
    assert arm.result(handle)[0] == CANCELED
    arm.assert_held()
    assert np.abs(arm.position - HOME).max() < 0.4


def test_a_newer_trajectory_replaces_a_goal(arm: Arm) -> None:
    first = arm.send(arm.make(0.5, 5))
    second = arm.send(arm.make(0.1, 5))
    assert arm.result(first)[:2] == (ABORTED, Result.INVALID_GOAL)
    arm.refer(arm.goal(-0.05, 1))
    status, _, reason = arm.result(second)
    assert status == ABORTED
    assert "'reference'" in reason
    arm.assert_held()
    np.testing.assert_allclose(arm.position, HOME - 0.05, atol=1e-6)


def test_a_client_that_is_gone_leaves_the_robot_held(arm: Arm) -> None:
    assert arm.send(arm.make(0.5, 5)).accepted
    arm.until(lambda: arm.node._action._heard)
    arm.client.destroy()
    arm.assert_held()
    assert np.abs(arm.position - HOME).max() < 0.4


def test_a_disabled_controller_ends_its_goal_and_takes_none(arm: Arm) -> None:
    handle = arm.send(arm.make(0.5, 5))
    client = arm.probe.create_client(SetBool, "controller/enable")
    arm.until(client.service_is_ready)
    asked = client.call_async(SetBool.Request(data=False))
    arm.until(asked.done)
    status, _, reason = arm.result(handle)
    assert (status, reason) == (ABORTED, "the controller is DISABLED")
    assert not arm.send(arm.make()).accepted
