# SPDX-License-Identifier: Apache-2.0
"""Passes goals of `FollowJointTrajectory` on to ros2_control's trajectory controller in Gazebo."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node

from sysid_ros.plain import installed_type
from sysid_sim.gazebo_world import TRAJECTORIES

__all__ = ["GoalRelay", "shift"]

_ACTION = "follow_joint_trajectory"
_OURS = "joint_trajectory_controller"


@dataclass
class _Passed:
    """A goal that was passed on: what the controller answered, and whom its client asked."""

    goal: Any
    sent: Any
    handle: Any = None


class GoalRelay:
    """Stands between clients of an action, as MoveIt is one, and the controller in Gazebo.

    A goal is accepted if the controller accepts it, and ends as the controller ends it. The joints
    show the positions `rest` [rad], by name, where the controller's show zero.

    Raises
    ------
    ParameterError
        If control_msgs is not installed.
    """

    def __init__(self, node: Node, rest: Mapping[str, float]) -> None:
        self._node, self._rest = node, rest
        self._kind = installed_type("control_msgs/action/FollowJointTrajectory", "control-msgs")
        self._passed: list[_Passed] = []
        self._client = ActionClient(node, self._kind, f"{TRAJECTORIES}/{_ACTION}")
        self._server = ActionServer(
            node,
            self._kind,
            f"{_OURS}/{_ACTION}",
            self._follow,
            callback_group=MutuallyExclusiveCallbackGroup(),  # joint states go on while it waits
            goal_callback=self._on_goal,
            cancel_callback=self._on_cancel,
        )

    async def _on_goal(self, goal: Any) -> GoalResponse:
        log = self._node.get_logger()
        if not self._client.server_is_ready():
            log.warning(f"goal rejected: '{TRAJECTORIES}' is not there; did its spawner end?")
            return GoalResponse.REJECT
        for point in goal.trajectory.points:
            shift(goal.trajectory.joint_names, point, self._rest, -1.0)
        passed = _Passed(goal, None)
        passed.sent = await self._client.send_goal_async(
            goal, feedback_callback=partial(self._tell, passed)
        )
        if not passed.sent.accepted:
            log.warning(f"goal rejected by '{TRAJECTORIES}', whose log in Gazebo says why")
            return GoalResponse.REJECT
        self._passed.append(passed)
        return GoalResponse.ACCEPT

    def _of(self, handle: Any) -> _Passed:
        return next(passed for passed in self._passed if passed.goal is handle.request)

    def _on_cancel(self, handle: Any) -> CancelResponse:
        self._of(handle).sent.cancel_goal_async()
        return CancelResponse.ACCEPT

    async def _follow(self, handle: Any) -> Any:
        """Await the end that the controller gives a goal, and return its result."""
        passed = self._of(handle)
        passed.handle = handle
        answer = await passed.sent.get_result_async()
        self._passed.remove(passed)
        if answer.status == GoalStatus.STATUS_SUCCEEDED:
            handle.succeed()
        elif answer.status == GoalStatus.STATUS_CANCELED and handle.is_cancel_requested:
            handle.canceled()
        else:
            handle.abort()
        return answer.result

    def _tell(self, passed: _Passed, message: Any) -> None:
        """Pass feedback on, with the robot's own zero; its error is the same."""
        told = message.feedback
        for point in (told.desired, told.actual):
            shift(told.joint_names, point, self._rest, 1.0)
        if passed.handle is not None and passed.handle.is_active:
            passed.handle.publish_feedback(told)


def shift(names: list[str], point: Any, rest: Mapping[str, float], way: float) -> None:
    """Add what joints show at rest [rad] to the positions of a trajectory's point, or take it."""
    told = zip(names, point.positions, strict=False)
    point.positions = [position + way * rest.get(name, 0.0) for name, position in told]
