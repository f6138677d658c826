# SPDX-License-Identifier: Apache-2.0
"""Who moves the robot for the player: the controller node or joint_trajectory_controller."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from sysid_controller.controller_joints import ControllerJoints
from sysid_controller.player_config import PlayerConfig
from sysid_core.robot import Robot
from sysid_ros.plain import installed_type

__all__ = ["MotionTarget", "make_target"]

Ended = Callable[[str, bool], None]  # Takes why a motion ended, and whether the robot moved


class MotionTarget(ABC):
    """Moves the robot; a controller of ros2_control is asked for its joints."""

    def __init__(self, joints: ControllerJoints | None) -> None:
        self._joints = joints

    def fault(self) -> str:
        """Say why it cannot move this robot; empty if it can, or did not tell yet."""
        return "" if self._joints is None else self._joints.look()

    @abstractmethod
    def is_there(self) -> bool:
        """Whether it listens."""

    @abstractmethod
    def follow(self, motion: JointTrajectory) -> None:
        """Have the robot follow a motion."""

    @abstractmethod
    def brake(self, here: JointTrajectory) -> None:
        """Have the robot come to rest; `here` is a point at which it can."""


class _Topic(MotionTarget):
    def __init__(self, node: Node, name: str, joints: ControllerJoints | None) -> None:
        super().__init__(joints)
        self._publisher = node.create_publisher(JointTrajectory, name, 10)

    def is_there(self) -> bool:
        return bool(self._publisher.get_subscription_count() > 0)

    def follow(self, motion: JointTrajectory) -> None:
        self._publisher.publish(motion)

    def brake(self, here: JointTrajectory) -> None:
        self._publisher.publish(JointTrajectory() if self._joints is None else here)


class _Goal(MotionTarget):
    """A goal of an action; its server holds the robot once the goal is cancelled."""

    def __init__(
        self, node: Node, kind: Any, name: str, joints: ControllerJoints, ended: Ended
    ) -> None:
        from rclpy.action import ActionClient

        super().__init__(joints)
        self._kind, self._ended = kind, ended
        self._client = ActionClient(node, kind, name)
        self._handle: Any = None
        self._unwanted = False

    def is_there(self) -> bool:
        return bool(self._client.server_is_ready())

    def follow(self, motion: JointTrajectory) -> None:
        sent = self._client.send_goal_async(self._kind.Goal(trajectory=motion))
        sent.add_done_callback(self._answered)

    def _answered(self, sent: Any) -> None:
        self._handle = sent.result()
        if not self._handle.accepted:
            self._ended("the goal was rejected; the controller's log says why", False)
        elif self._unwanted:
            self._handle.cancel_goal_async()
        else:
            self._handle.get_result_async().add_done_callback(self._resulted)

    def _resulted(self, asked: Any) -> None:
        from action_msgs.msg import GoalStatus

        status, result = asked.result().status, asked.result().result
        why = result.error_string or "no reason given"
        if result.error_code:
            self._ended(
                f"the controller ended the goal with code {result.error_code}: {why}", True
            )
        elif status != GoalStatus.STATUS_SUCCEEDED:
            self._ended(f"the goal was cancelled by another than the player: {why}", True)

    def brake(self, here: JointTrajectory) -> None:
        self._unwanted = True
        if self._handle is not None and self._handle.accepted:
            self._handle.cancel_goal_async()


def make_target(node: Node, config: PlayerConfig, robot: Robot, ended: Ended) -> MotionTarget:
    """Return who moves the robot; `ended` is told why its motion is ended.

    Raises
    ------
    ParameterError
        If the action's messages are not installed.
    """
    if config.target == "controller":
        return _Topic(node, "reference", None)
    name = config.trajectory_controller.rstrip("/")
    topic = f"{name}/joint_trajectory"
    joints = ControllerJoints(node, topic, robot, ordered=False)
    if config.target == "trajectory":
        return _Topic(node, topic, joints)
    otherwise = ", or play by topic with target 'trajectory'"
    kind = installed_type("control_msgs/action/FollowJointTrajectory", "control-msgs", otherwise)
    return _Goal(node, kind, f"{name}/follow_joint_trajectory", joints, ended)
