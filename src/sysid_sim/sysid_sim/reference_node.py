# SPDX-License-Identifier: Apache-2.0
"""The reference node: publishes an exciting trajectory, or a sway over the feet, without end."""

from dataclasses import dataclass

import numpy as np
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from sysid_core.excitation.fourier import FadedMotion
from sysid_core.robot import Robot
from sysid_core.settings import parameter
from sysid_ros.control import trajectory_message
from sysid_ros.fields import stamp
from sysid_ros.node_main import run_node
from sysid_ros.parameters import NodeParameters
from sysid_ros.robot_config import RobotConfig
from sysid_sim.trajectories import ExcitationConfig, StanceTrajectory, exciting_trajectory

__all__ = ["ReferenceConfig", "ReferenceNode", "main"]

_PERIOD = 1.0  # [s] between messages, which overlap by half their length
_LEAD = 2.0  # [s] in the future at which each message begins, so that a robot elsewhere gets there
_SPACING = 0.02  # [s] between points: a controller's quintics need few
_FADE = 2.0  # [s] in which the motion grows from rest
_LOOK = 0.1  # [s] between looks at whether a message is due


@dataclass(frozen=True)
class ReferenceConfig(RobotConfig):
    """Parameters of the reference node."""

    seed: int = parameter(1, "Seed of the trajectory [-]", range=(0, 2**31 - 1), read_only=True)
    duration: float = parameter(
        10.0, "After which the trajectory repeats [s]", range=(0.5, 1000.0), read_only=True
    )
    amplitude: float = parameter(
        0.7,
        "Share of each joint's way from the middle to its limit; of a quadruped's usual sway "
        "[-]. Less for a first try",
        range=(0.01, 1.0),
        read_only=True,
    )
    speed: float = parameter(
        0.5, "Share of the velocity limits [-]", range=(0.01, 1.0), read_only=True
    )
    start_delay: float = parameter(
        0.0, "Before the first message [s]", range=(0.0, 3600.0), read_only=True
    )

    def trajectory(self, robot: Robot) -> FadedMotion | StanceTrajectory:
        """Return the motion of a robot's joints: exciting, or over standing feet.

        Raises
        ------
        SysidError
            If the robot cannot move like this within its limits.
        """
        if not robot.floating:
            excitation = ExcitationConfig(
                period=self.duration, amplitude=self.amplitude, speed=self.speed, fade=_FADE
            )
            return exciting_trajectory(robot, self.seed, excitation)
        return StanceTrajectory(
            robot, self.seed, amplitude=self.amplitude, speed=self.speed, fade=_FADE
        )


class ReferenceNode(Node):
    """Publishes pieces of a trajectory, each before its forerunner ends.

    That of an arm or leg is periodic and excites all its joints; a quadruped sways over its feet.

    A piece begins `lead` after it is published, so that a controller that was away meanwhile,
    or starts late, has time to get to where it begins; pieces overlap by half their length.
    """

    def __init__(self) -> None:
        super().__init__("reference")
        config = NodeParameters(self, ReferenceConfig()).config
        self.robot = config.load_robot(self)
        self._trajectory = config.trajectory(self.robot)
        self._start_delay = config.start_delay
        self._publisher = self.create_publisher(JointTrajectory, "reference", 10)
        self._points = int(np.ceil(2.0 * _PERIOD / _SPACING)) + 1
        self._begin: float | None = None
        self._last = -np.inf
        self.create_timer(_LOOK, self._publish)
        self.get_logger().info(
            f"robot '{self.robot.name}' is to sway over its feet"
            if self.robot.floating
            else f"exciting robot '{self.robot.name}' with a period of {config.duration:g} s"
        )

    def _publish(self) -> None:
        now = 1e-9 * float(self.get_clock().now().nanoseconds)
        if now == 0.0:  # simulated time has not begun
            return
        if self._begin is None or now < self._last:  # the first call, or time jumped back
            self._begin = now + self._start_delay
            self._last = -np.inf
        if now < self._begin or now - self._last < _PERIOD - 1e-3:
            return
        self._last = now
        # Pieces share their points, so that they agree to the last digit where they overlap.
        first = np.ceil((now - self._begin) / _SPACING)
        phase = _SPACING * (first + np.arange(self._points))
        # Stamped with now: the time until the first point is what there is to get there.
        after = self._begin + _LEAD + phase - now
        message = trajectory_message(
            self.robot.actuated_names, stamp(now), after, self._trajectory.at(phase)
        )
        self._publisher.publish(message)


def main() -> int:
    """Run the reference node."""
    return run_node("reference", ReferenceNode)
