# SPDX-License-Identifier: Apache-2.0
"""Passes trajectories to ros2_control's trajectory controller in Gazebo, and tells its efforts."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_ros.fields import nanoseconds
from sysid_sim.gazebo_world import PERIOD, TRAJECTORIES
from sysid_sim.goal_relay import GoalRelay, shift

__all__ = ["WAITING", "TrajectoryRelay"]

_OURS = "joint_trajectory_controller/joint_trajectory"
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
        state = _state_message()
        self._motions = node.create_publisher(
            JointTrajectory, f"{TRAJECTORIES}/joint_trajectory", 10
        )
        node.create_subscription(JointTrajectory, _OURS, self._on_trajectory, 10)
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
            shift(message.joint_names, point, self._rest, -1.0)
        self._motions.publish(message)

    def _on_state(self, message: Any) -> None:
        """Keep the efforts that it commands from the message's time on."""
        told = dict(zip(message.joint_names, message.output.effort, strict=False))
        if set(self._names) <= set(told):
            when = nanoseconds(message.header.stamp)
            self._outputs.append((when, np.array([told[name] for name in self._names])))
            self._told()


def _state_message() -> Any:
    try:
        from control_msgs.msg import JointTrajectoryControllerState
    except ImportError as error:
        raise ParameterError(
            "control_msgs is not installed: install ros-$ROS_DISTRO-control-msgs"
        ) from error
    return JointTrajectoryControllerState
