# SPDX-License-Identifier: Apache-2.0
"""The Spot relay: spot_ros2's joint states, odometry and feet in, the recorder's topics out."""

from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState

from sysid_core.diagnostics import Severity
from sysid_core.errors import DataError
from sysid_core.signals.rotation import normalised, rotate_into_body
from sysid_online.relay import Relay, RelayConfig, built_type
from sysid_ros.fields import NANO, nanoseconds, stamp
from sysid_ros.node_main import run_node
from sysid_ros.sensors import contacts_message, odometry_arrays

__all__ = ["SpotRelay", "main"]

_FEET = ("FL", "FR", "HL", "HR")
_UNKNOWN, _MADE = 0, 1
"""Constants of spot_msgs/FootState."""


class SpotRelay(Relay[RelayConfig]):
    """Takes the robot's name off the joints, turns the twist into the base, names the feet.

    The feet's messages have no stamp: they get the time of their arrival less the delay that the
    newest odometry came with, which is the clock of the joint states, too.

    Raises
    ------
    ParameterError
        If a parameter cannot be used, or spot_msgs is missing.
    """

    def __init__(self) -> None:
        super().__init__("spot_relay", RelayConfig())
        self._delay = 0  # [ns]
        feet = built_type("spot_msgs/msg/FootStateArray", "github.com/bdaiinstitute/spot_ros2")
        self.hear(feet, "spot/status/feet", self._on_feet, Severity.WARNING)
        self.hear(Odometry, "spot/odometry", self._on_odometry, Severity.ERROR)
        self.hear(JointState, "spot/joint_states", self._on_joint_states, Severity.ERROR)

    def _on_joint_states(self, message: JointState) -> None:
        rows = [message.position, message.velocity, message.effort]
        if not all(np.isfinite(np.array(row, dtype=float)).all() for row in rows):
            raise DataError("joint states with numbers that are not finite")
        message.name = [name.rpartition("/")[2] for name in message.name]
        self._joints.publish(message)

    def _on_odometry(self, message: Odometry) -> None:
        pose, twist = odometry_arrays(message)
        self._delay = self.get_clock().now().nanoseconds - nanoseconds(message.header.stamp)
        pose[3:] = normalised(pose[3:])
        if self.config.velocity_frame == "world":
            twist = rotate_into_body(pose[np.newaxis, 3:], twist.reshape(2, 3)).ravel()
        frames = message.header.frame_id, message.child_frame_id
        self.tell_base(message.header.stamp, pose, twist, *frames)

    def _on_feet(self, message: Any) -> None:
        told = np.array([foot.contact for foot in message.states])
        if len(told) != len(_FEET) or (told == _UNKNOWN).any():
            raise DataError("feet whose contact is unknown")
        when = stamp((self.get_clock().now().nanoseconds - self._delay) / NANO)
        self._contacts.publish(contacts_message(when, _FEET, told == _MADE, None))


def main() -> int:
    """Run the Spot relay."""
    return run_node("spot_relay", SpotRelay)
