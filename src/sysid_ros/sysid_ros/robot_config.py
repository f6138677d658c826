# SPDX-License-Identifier: Apache-2.0
"""Which robot a node works with: a description, its URDF from a file or from a topic."""

from __future__ import annotations

import time
import weakref
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sysid_core.errors import ParameterError
from sysid_core.settings import check_config, parameter

if TYPE_CHECKING:
    from rclpy.node import Node

    from sysid_core.robot import Robot

__all__ = ["RobotConfig"]

_PATIENCE = 10.0
"""Time [s] in which the publisher of a URDF has to show itself: launch files start all at once."""


@dataclass(frozen=True)
class RobotConfig:
    """What every node that works with one robot is told."""

    robot: str = parameter(
        "", "Name of a robot in config/robots, or path of its description", read_only=True
    )
    urdf_topic: str = parameter(
        "",
        "Topic of a URDF that is used instead of the description's, such as robot_description; "
        "empty: none. Without a description one is guessed, as by 'sysid init'",
        read_only=True,
    )

    def __post_init__(self) -> None:
        check_config(self)

    def load_robot(self, node: Node) -> Robot:
        """Load the robot that is named, for a node that is not yet spun.

        Raises
        ------
        SysidError
            If none is named, it cannot be loaded, or no URDF comes in time.
        """
        # late: the command line reads the settings, and these take seconds
        from sysid_core.robot import known_robots, load_robot, read_description
        from sysid_core.robot.initialise import initialise

        if not (self.robot or self.urdf_topic):
            raise ParameterError(
                "parameter 'robot' is empty: give a robot's name or description, "
                "e.g. -p robot:=panda, or the URDF's topic, -p urdf_topic:=robot_description"
            )
        if not self.urdf_topic:
            return load_robot(self.robot)
        text = _receive(node, self.urdf_topic)
        folder = TemporaryDirectory(prefix="sysid_urdf_")
        weakref.finalize(node, folder.cleanup)
        path = Path(folder.name) / "robot.urdf"
        path.write_text(text, encoding="utf-8")
        if not self.robot:
            guessed = initialise(path, path.with_suffix(".yaml"))
            for note in guessed.notes:
                node.get_logger().warning(note)
            return guessed.robot
        described = known_robots().get(self.robot) or Path(self.robot).expanduser()
        return load_robot(replace(read_description(described), urdf=str(path)))


def _receive(node: Node, topic: str) -> str:
    """Return the text of the latched message on a topic."""
    import rclpy
    from std_msgs.msg import String

    from sysid_ros.qos import latched

    found: list[str] = []
    subscription = node.create_subscription(
        String, topic, lambda message: found.append(message.data), latched()
    )
    end = time.monotonic() + _PATIENCE
    while not found and time.monotonic() < end:
        rclpy.spin_once(node, timeout_sec=0.1)
    node.destroy_subscription(subscription)
    if not found:
        raise ParameterError(
            f"no URDF on '{topic}' in {_PATIENCE:g} s: is robot_state_publisher running?"
        )
    return found[0]
