# SPDX-License-Identifier: Apache-2.0
"""Passes trajectories and goals to ros2_control's controller in Gazebo, and tells its efforts."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from sysid_core.arrays import FloatArray
from sysid_ros.fields import nanoseconds
from sysid_ros.plain import installed_type
from sysid_sim.gazebo_world import PERIOD, TRAJECTORIES

__all__ = ["WAITING", "GoalRelay", "TrajectoryRelay"]

_OURS = "joint_trajectory_controller"
_ACTION = "follow_joint_trajectory"
_LATE = round(1.5e9 * PERIOD)
"""Time [ns] by which an effort may be older than the joint state it led to: a period, not two."""
WAITING = 20  # Messages that may wait: joint states of a world that runs by itself, and efforts


class TrajectoryRelay:
    """Stands between whoever asks for motions and a trajectory controller that commands efforts.

    The joints show the positions `rest` (na,) [rad] where the controller's show zero. It calls
    `told` whenever the controller says what it commands.

    Raises
    ------
    ParameterError
        If control_msgs is not installed.
    """

    def __init__(
        self, node: Node, names: tuple[str, ...], rest: FloatArray, told: Callable[[], None]
    ) -> None:
        self._names, self._rest = names, dict(zip(names, rest.tolist(), strict=True))
        self._outputs: deque[tuple[int, FloatArray]] = deque(maxlen=2 * WAITING)
        self._told = told
        state = installed_type("control_msgs/msg/JointTrajectoryControllerState", "control-msgs")
        self._motions = node.create_publisher(
            JointTrajectory, f"{TRAJECTORIES}/joint_trajectory", 10
        )
        node.create_subscription(
            JointTrajectory, f"{_OURS}/joint_trajectory", self._on_trajectory, 10
        )
        topic = f"{TRAJECTORIES}/controller_state"
        node.create_subscription(state, topic, self._on_state, WAITING)
        self._goals = GoalRelay(node, self._rest)

    def effort(self, when: int) -> FloatArray | None:
        """Return what drove the joints (na,) [N·m] until a time [ns]; None if nothing told."""
        return max(self._before(when), key=lambda told: told[0], default=(0, None))[1]

    def lags(self, when: int) -> bool:
        """Whether what drove the joints until a time [ns] was lost, or is still to come."""
        newest = max((since for since, _ in self._before(when)), default=when)
        return when - newest > _LATE

    def passed(self, when: int) -> bool:
        """Whether the controller has told of a time [ns] or a later one."""
        return any(since >= when for since, _ in self._outputs)

    def _before(self, when: int) -> list[tuple[int, FloatArray]]:
        return [told for told in self._outputs if told[0] < when]

    def _on_trajectory(self, message: JointTrajectory) -> None:
        for point in message.points:
            _shift(message.joint_names, point, self._rest, -1.0)
        self._motions.publish(message)

    def _on_state(self, message: Any) -> None:
        """Keep the efforts that it commands from the message's time on."""
        told = dict(zip(message.joint_names, message.output.effort, strict=False))
        if set(self._names) <= set(told):
            when = nanoseconds(message.header.stamp)
            self._outputs.append((when, np.array([told[name] for name in self._names])))
            self._told()


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
            _shift(goal.trajectory.joint_names, point, self._rest, -1.0)
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
            _shift(told.joint_names, point, self._rest, 1.0)
        if passed.handle is not None and passed.handle.is_active:
            passed.handle.publish_feedback(told)


def _shift(names: list[str], point: Any, rest: Mapping[str, float], way: float) -> None:
    """Add what joints show at rest [rad] to the positions of a trajectory's point, or take it."""
    told = zip(names, point.positions, strict=False)
    point.positions = [position + way * rest.get(name, 0.0) for name, position in told]
