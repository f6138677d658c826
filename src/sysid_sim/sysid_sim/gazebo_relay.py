# SPDX-License-Identifier: Apache-2.0
"""The Gazebo relay: joint states with the torques that caused them, commands joint by joint.

Gazebo's joint states carry no torque, and gz_ros2_control's the wrench that a joint transmits, in
which its friction does not show. What was commanded stands in for both.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray

from sysid_core.errors import ParameterError
from sysid_core.robot.conversion import JointConversion
from sysid_msgs.msg import Contacts
from sysid_ros.control import command_array
from sysid_ros.fields import nanoseconds
from sysid_ros.node_main import run_node
from sysid_ros.parameters import NodeParameters
from sysid_ros.robot_config import RobotConfig
from sysid_ros.sensors import (
    contacts_message,
    joint_arrays,
    joint_state_message,
    odometry_message,
)
from sysid_sim.gazebo_world import WORLD, start_configuration

__all__ = ["GazeboRelay", "main"]

_DEPTH = 100
_TOUCH = 10_000_000
"""Time [ns] since a foot's last touch was reported, within which it counts as on the ground."""


class GazeboRelay(Node):
    """Stands between Gazebo, bridged to ROS, and the nodes of one robot.

    The world starts paused, for a robot that no controller holds would fall; the first command
    lets it run. While Gazebo waits it tells nothing of a floating base: it stands at rest.

    Raises
    ------
    SysidError
        If the robot cannot be loaded or ros_gz_interfaces is not installed.
    """

    def __init__(self) -> None:
        super().__init__("gazebo_relay")
        self.robot = NodeParameters(self, RobotConfig()).config.load_robot(self)
        names, feet = self.robot.actuated_names, self.robot.description.contacts
        self._start = start_configuration(self.robot)
        joints = self._start[len(self._start) - len(self.robot.joint_names) :]
        self._rest = joints[self.robot.actuated]
        self._driver = JointConversion.described(self.robot)
        self._effort = np.zeros(len(names))
        self._waits, self._asked = True, None
        self._newest, self._order, self._index = -1, [""], np.zeros(0, dtype=int)
        self._touched = {contact.name: -_TOUCH - 1 for contact in feet}
        self._states = self.create_publisher(JointState, "joint_states", _DEPTH)
        self._forces = [self.create_publisher(Float64, f"gazebo/force/{n}", 1) for n in names]
        contacts, control = _interfaces()
        if self.robot.floating:
            self._odometry = self.create_publisher(Odometry, "odom", _DEPTH)
            self._contacts = self.create_publisher(Contacts, "contacts", _DEPTH)
        for contact in feet:
            take = partial(self._on_touch, contact.name)
            self.create_subscription(contacts, f"gazebo/contacts/{contact.name}", take, _DEPTH)
        self._run = control.Request()  # whose default is not to pause
        self._control = self.create_client(control, f"/world/{WORLD}/control")
        self.create_subscription(JointState, "gazebo/joint_states", self._on_states, _DEPTH)
        topic = "effort_controller/commands"
        self.create_subscription(Float64MultiArray, topic, self._on_command, 1)

    def _on_command(self, message: Float64MultiArray) -> None:
        effort = command_array(message)
        if len(effort) != len(self._forces) or not np.isfinite(effort).all():
            return
        self._effort = effort
        for publisher, value in zip(self._forces, effort.tolist(), strict=True):
            publisher.publish(Float64(data=value))
        answered = self._asked is None or self._asked.done()
        if self._waits and answered and self._control.service_is_ready():
            self.get_logger().info("commands arrive: the world may run")
            self._asked = self._control.call_async(self._run)

    def _on_touch(self, name: str, message: Any) -> None:
        self._touched[name] = nanoseconds(message.header.stamp)

    def _on_states(self, message: JointState) -> None:
        newest = nanoseconds(message.header.stamp)
        if self._newest >= 0 and newest != self._newest:
            self._waits = False
        elif not self._waits:
            return  # paused later on: nobody needs the state again
        if newest < self._newest:
            self._touched = dict.fromkeys(self._touched, -_TOUCH - 1)
        self._newest = newest
        if list(message.name) != self._order:
            known = {name: at for at, name in enumerate(message.name)}
            if not set(self.robot.actuated_names) <= set(known):
                return
            self._index = np.array([known[name] for name in self.robot.actuated_names])
            self._order = list(message.name)
        if self.robot.floating:
            self._publish_base(message.header.stamp, newest)
        position, velocity = joint_arrays(message)
        position = self._rest + position[self._index]
        driver = self._driver
        self._states.publish(
            joint_state_message(
                self.robot.actuated_names,
                message.header.stamp,
                driver.published_position(position),
                driver.published_velocity(velocity[self._index]),
                driver.command(self._effort - driver.unpublished(position)),
            )
        )

    def _publish_base(self, when: Time, newest: int) -> None:
        """Publish the feet's contacts, and the base's rest while the world waits."""
        if self._waits:
            self._touched = dict.fromkeys(self._touched, newest)
            pose, frame = self._start[:7], self.robot.layout.bodies[0]
            at_rest = odometry_message(when, pose, np.zeros(6), frame="odom", child_frame=frame)
            self._odometry.publish(at_rest)
        active = np.array([newest - touched <= _TOUCH for touched in self._touched.values()])
        self._contacts.publish(contacts_message(when, list(self._touched), active, None))


def _interfaces() -> tuple[Any, Any]:
    """Return the message of contacts and the service that pauses a world."""
    try:
        from ros_gz_interfaces.msg import Contacts as GazeboContacts
        from ros_gz_interfaces.srv import ControlWorld
    except ModuleNotFoundError as error:
        raise ParameterError(
            "ros_gz_interfaces is not installed: install ros-$ROS_DISTRO-ros-gz-bridge"
        ) from error
    return GazeboContacts, ControlWorld


def main(args: Sequence[str] | None = None) -> int:
    """Run the relay."""
    return run_node("gazebo_relay", GazeboRelay, args)


if __name__ == "__main__":
    sys.exit(main())
