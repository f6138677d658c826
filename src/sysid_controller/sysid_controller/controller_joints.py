# SPDX-License-Identifier: Apache-2.0
"""Asks a controller of ros2_control for its joints: wrong ones would be driven."""

from typing import Any

from rcl_interfaces.srv import GetParameters
from rclpy.node import Node

from sysid_core.robot import Robot

__all__ = ["ControllerJoints"]


class ControllerJoints:
    """The joints of the controller of ros2_control behind a topic, whose parent is its name.

    An `ordered` one goes by the order of the robot's actuated joints, as those of torques do, the
    others by names.
    """

    def __init__(self, node: Node, topic: str, robot: Robot, *, ordered: bool) -> None:
        self._name, self._ordered = topic.rpartition("/")[0], ordered
        self._client = node.create_client(GetParameters, f"{self._name}/get_parameters")
        self._names, self._aliases = robot.actuated_names, robot.description.names
        self._asked: Any = None
        self.fault = ""
        """How its joints differ; empty if they do not, or it never told."""

    def look(self) -> str:
        """Ask once it is there; return its fault."""
        if self._asked is None and self._client.service_is_ready():
            names = ["joints"] if self._ordered else ["joints", "allow_partial_joints_goal"]
            self._asked = self._client.call_async(GetParameters.Request(names=names))
        elif self._asked is not None and self._asked.done():
            values = self._asked.result().values
            joints = list(values[0].string_array_value) if values else []
            if joints:
                partial = not self._ordered and values[1].bool_value
                self.fault = self._differ(joints, partial)
        return self.fault

    def waits(self) -> bool:
        """Whether it is there and will tell its joints, which it is asked for."""
        self.look()
        told = self._asked is not None and self._asked.done()
        return bool(not told and self._client.service_is_ready())

    def _differ(self, joints: list[str], partial: bool) -> str:
        known = tuple(self._aliases.get(name, name) for name in joints)
        ours, theirs = ", ".join(self._names), ", ".join(joints)
        if self._ordered:
            same = known == self._names
            why = f"takes torques in the order {theirs}, the robot description has {ours}"
            mend = "give one of them the other's order"
        else:
            same = set(self._names) <= set(known) and (partial or len(known) == len(self._names))
            why, mend = f"moves the joints {theirs}, the motion {ours}", "give it the same joints"
        return "" if same else f"'{self._name}' {why}: {mend}"
