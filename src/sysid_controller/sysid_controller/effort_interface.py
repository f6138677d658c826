# SPDX-License-Identifier: Apache-2.0
"""Asks whoever takes the torques for the order of its joints: a wrong one drives wrong joints."""

from __future__ import annotations

from typing import Any

from rcl_interfaces.srv import GetParameters
from rclpy.node import Node

from sysid_core.robot import Robot

__all__ = ["EffortInterface"]


class EffortInterface:
    """The controller of ros2_control behind a topic of commands, where there is one.

    Parameters
    ----------
    topic : str
        Full name of the topic; its parent is the name of the controller.
    robot : Robot
        Its actuated joints are in the order of the commands.
    """

    def __init__(self, node: Node, topic: str, robot: Robot) -> None:
        self._name = topic.rpartition("/")[0]
        self._client = node.create_client(GetParameters, f"{self._name}/get_parameters")
        self._names, self._aliases = robot.actuated_names, robot.description.names
        self._asked: Any = None
        self.fault = ""  # How its joints differ; empty if they do not, or it never told

    def look(self) -> str:
        """Ask once it is there; return its fault."""
        if self._asked is None and self._client.service_is_ready():
            self._asked = self._client.call_async(GetParameters.Request(names=["joints"]))
        elif self._asked is not None and self._asked.done():
            values = self._asked.result().values
            joints = list(values[0].string_array_value) if values else []
            if joints and tuple(self._aliases.get(n, n) for n in joints) != self._names:
                self.fault = (
                    f"'{self._name}' takes torques in the order {', '.join(joints)}, the robot "
                    f"description has {', '.join(self._names)}: give one of them the other's order"
                )
        return self.fault
