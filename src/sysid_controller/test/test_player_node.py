# SPDX-License-Identifier: Apache-2.0
"""The player gives its motion to a `FollowJointTrajectory` server, and heeds what that says."""

# ruff: noqa: E402 - these imports need the ROS that is looked for first
from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")
pytest.importorskip("control_msgs.action", reason="control_msgs is not installed")

from action_msgs.srv import CancelGoal
from control_msgs.action import FollowJointTrajectory
from node_graph import HOME
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from sysid_controller.planning import Quintics, rest
from sysid_controller.player import Phase
from sysid_controller.player_config import PlayerConfig
from sysid_controller.player_node import PlayerNode
from sysid_core.data import read_recording
from sysid_core.dynamics.tree import TreeDynamics
from sysid_core.robot import Robot
from sysid_ros.control import trajectory_points
from sysid_ros.fields import stamp

LIMIT = 60.0
"""Time limit [s]; reached only where something is broken."""
PERIOD = 0.01
"""Time [s] of the robot between its joint states, however fast they come."""


class Driver:
    """joint_trajectory_controller with a robot that follows exactly, at the pace of the test."""

    def __init__(self, robot: Robot, motion: Path, **config: Any) -> None:
        rclpy.init(args=["--ros-args", "-r", f"__ns:=/t{uuid.uuid4().hex}"])
        self.robot, self.dynamics, self.time = robot, TreeDynamics(robot, 0.01), 1.0
        self.accepts, self.cancelled, self.gripper = True, False, False
        self.goal: Any = None
        self.path: Quintics | None = None
        self.began = 0.0
        name = config.get("trajectory_controller", "joint_trajectory_controller")
        self.probe = rclpy.create_node(name)
        topic = config.get("joint_states", "joint_states")
        self.states = self.probe.create_publisher(JointState, topic, 10)
        self.server = ActionServer(
            self.probe,
            FollowJointTrajectory,
            "~/follow_joint_trajectory",
            self.close,
            goal_callback=lambda _: GoalResponse.ACCEPT if self.accepts else GoalResponse.REJECT,
            handle_accepted_callback=self.accept,
            cancel_callback=self.cancel,
        )
        self.stop = self.probe.create_client(Trigger, "player/stop")
        self.node = PlayerNode(
            PlayerConfig(motion=str(motion), target="action", robot="panda", wait=30.0, **config)
        )
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.probe)
        self.executor.add_node(self.node)

    def accept(self, goal: Any) -> None:
        points = trajectory_points(goal.request.trajectory, 0)
        assert points.velocity is not None
        assert points.acceleration is not None
        self.path = Quintics(points.time, points.position, points.velocity, points.acceleration)
        self.goal, self.began = goal, self.time

    def cancel(self, _: Any) -> CancelResponse:
        self.cancelled = True
        return CancelResponse.ACCEPT

    def close(self, goal: Any, code: int = 0, reason: str = "") -> Any:
        if code:
            goal.abort()
        else:
            goal.succeed()
        return FollowJointTrajectory.Result(error_code=code, error_string=reason)

    def end_cancelled(self, goal: Any) -> Any:
        goal.canceled()
        return FollowJointTrajectory.Result()

    def tick(self) -> None:
        """Publish a joint state and run what is due."""
        self.time += PERIOD
        motion = rest(HOME)
        if self.path is not None and not self.cancelled:
            motion = self.path.at(min(self.time - self.began, self.path.end))
        message = JointState(name=list(self.robot.joint_names))
        message.header.stamp = stamp(self.time)
        message.position, message.velocity = motion.position.tolist(), motion.velocity.tolist()
        message.effort = self.dynamics.torque(*motion).tolist()
        self.states.publish(message)
        if self.gripper:
            message.name, message.position = ["finger"], [0.04]
            message.velocity, message.effort = [0.0], [0.0]
            self.states.publish(message)
        for _ in range(5):
            self.executor.spin_once(timeout_sec=0.0005)

    def until(self, condition: Callable[[], Any]) -> None:
        end = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < end, self.node.player.phase
            self.tick()

    def close_all(self) -> None:
        self.executor.shutdown()
        for node in (self.node, self.probe):
            node.destroy_node()
        rclpy.try_shutdown()


@pytest.fixture
def motion(tmp_path: Path, panda: Robot) -> Path:
    """Return the file of a motion near the robot's home."""
    time, shift = np.linspace(0.0, 2.0, 21), np.pi * np.linspace(0.0, 2.0, 21)
    rows = np.array([1 - np.cos(shift), np.pi * np.sin(shift), np.pi**2 * np.cos(shift)]) * 0.05
    kinds = ("positions", "velocities", "accelerations")
    points = [
        {
            kind: (row[k] + (HOME if kind == "positions" else 0.0 * HOME)).tolist()
            for kind, row in zip(kinds, rows, strict=True)
        }
        | {"time_from_start": {"sec": int(t), "nanosec": int(1e9 * (t % 1))}}
        for k, t in enumerate(time)
    ]
    file = tmp_path / "motion.yaml"
    file.write_text(json.dumps({"joint_names": list(panda.joint_names), "points": points}))
    return file


@pytest.fixture
def make(
    panda: Robot, motion: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Driver]]:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    made: list[Driver] = []

    def start(**config: Any) -> Driver:
        made.append(Driver(panda, motion, **config))
        return made[0]

    yield start
    made[0].close_all()


def test_a_motion_is_played_as_a_goal_and_recorded(
    make: Callable[..., Driver], tmp_path: Path
) -> None:
    driver = make(out=str(tmp_path / "bag"))
    driver.until(lambda: driver.node.player.phase is Phase.DONE)
    driver.until(lambda: driver.node.finished)
    assert driver.node.status == 0
    assert (tmp_path / "bag").is_dir()


def test_a_driver_with_names_of_its_own_plays_a_motion(make: Callable[..., Driver]) -> None:
    driver = make(trajectory_controller="xarm_traj_controller", joint_states="arm/joint_states")
    driver.until(lambda: driver.node.finished)
    assert driver.node.status == 0
    assert driver.goal is not None


def test_a_gripper_that_shares_the_topic_does_not_cut_the_bag(
    make: Callable[..., Driver], tmp_path: Path
) -> None:
    driver = make(out=str(tmp_path / "bag"))
    driver.gripper = True
    driver.until(lambda: driver.node.finished)
    recording = read_recording(tmp_path / "bag")
    names, own = recording.joint_names, driver.robot.joint_names
    assert set(own) < set(names)
    arm = np.isfinite(recording.position[:, [names.index(name) for name in own]]).all(axis=1)
    assert np.ptp(recording.time[arm]) > 3.0  # the approach, and the motion's two seconds


@pytest.mark.parametrize("when", ["at once", "later"])
def test_a_goal_that_is_not_followed_stops_the_player(
    when: str, make: Callable[..., Driver]
) -> None:
    driver = make()
    driver.accepts = when == "later"
    if driver.accepts:
        driver.until(lambda: driver.goal is not None)
        driver.goal.execute(lambda goal: driver.close(goal, -4, "too far off"))
    driver.until(lambda: driver.node.finished)
    says = "code -4: too far off" if driver.accepts else "goal was rejected"
    assert says in driver.node.player.reason
    assert driver.node.status == (1 if driver.accepts else 2)


def test_a_stop_cancels_the_goal(make: Callable[..., Driver]) -> None:
    driver = make()
    driver.until(lambda: driver.goal is not None and driver.stop.service_is_ready())
    driver.stop.call_async(Trigger.Request())
    driver.until(lambda: driver.node.finished)
    assert driver.cancelled
    assert driver.node.player.reason == "~/stop was called"


def test_a_goal_that_another_client_cancels_ends_the_player(make: Callable[..., Driver]) -> None:
    driver = make()
    driver.until(lambda: driver.goal is not None)
    cancel = driver.probe.create_client(
        CancelGoal, "~/follow_joint_trajectory/_action/cancel_goal"
    )
    driver.until(cancel.service_is_ready)
    cancel.call_async(CancelGoal.Request())
    driver.until(lambda: driver.cancelled)
    driver.goal.execute(driver.end_cancelled)
    driver.until(lambda: driver.node.finished)
    assert "cancelled by another" in driver.node.player.reason
    assert driver.node.status == 1


@pytest.mark.parametrize(
    ("joints", "partial", "same"), [(5, False, False), (8, False, False), (8, True, True)]
)
@pytest.mark.parametrize("prefix", ["panda", "fer"])
def test_a_controller_of_other_joints_gets_no_motion(
    joints: int, partial: bool, same: bool, prefix: str, make: Callable[..., Driver]
) -> None:
    driver = make()
    names = [f"{prefix}_joint{k + 1}" for k in range(joints)]
    driver.probe.declare_parameter("joints", names[::-1])
    driver.probe.declare_parameter("allow_partial_joints_goal", partial)
    driver.until(lambda: driver.goal is not None or driver.node.finished)
    assert (driver.goal is not None) is same
    if not same:
        assert "moves the joints" in driver.node.player.reason
        assert driver.node.status == 2
