# SPDX-License-Identifier: Apache-2.0
"""The replay node: publishes a bag or table as the robot's driver would, with or without ROS 2."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from heapq import merge
from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import Imu, JointState

from sysid_core.arrays import FloatArray
from sysid_core.data import read_recording
from sysid_core.errors import DataError
from sysid_core.recording import Recording
from sysid_core.settings import Setting
from sysid_msgs.msg import Contacts
from sysid_ros.fields import stamp
from sysid_ros.node_main import run_node
from sysid_ros.parameters import declare

__all__ = ["SETTINGS", "ReplayNode", "main"]

SETTINGS = (
    Setting("data", "", "Bag folder, .mcap, .db3 or .csv to publish", read_only=True),
    Setting("speed", 1.0, "Speed of the replay over real time [-]", (0.01, 100.0), read_only=True),
    Setting("loop", False, "Start again at the end", read_only=True),
    Setting("start_delay", 1.0, "Wait before the first message [s]", (0.0, 600.0), read_only=True),
)

_TICK = 0.005

Event = tuple[float, int, Any]


def _joint_states(recording: Recording) -> Iterator[Event]:
    names = list(recording.joint_names)
    arrays: dict[str, FloatArray] = {"position": recording.position}
    for name in ("velocity", "effort"):
        values = getattr(recording, name)
        if values is not None:
            arrays[name] = values
    for i, time in enumerate(recording.time.tolist()):
        message = JointState(name=names)
        message.header.stamp = stamp(time)
        for name, values in arrays.items():
            setattr(message, name, values[i].tolist())
        yield time, 0, message


def _odometry(recording: Recording) -> Iterator[Event]:
    base = recording.base
    if base is None:
        return
    for i, time in enumerate(base.time.tolist()):
        message = Odometry(child_frame_id=base.child_frame)
        message.header.stamp = stamp(time)
        message.header.frame_id = base.frame
        pose, twist = message.pose.pose, message.twist.twist
        pose.position.x, pose.position.y, pose.position.z = base.position[i].tolist()
        q = pose.orientation
        q.x, q.y, q.z, q.w = base.orientation[i].tolist()
        twist.linear.x, twist.linear.y, twist.linear.z = base.twist[i, :3].tolist()
        twist.angular.x, twist.angular.y, twist.angular.z = base.twist[i, 3:].tolist()
        yield time, 1, message


def _imu(recording: Recording) -> Iterator[Event]:
    imu = recording.imu
    if imu is None:
        return
    for i, time in enumerate(imu.time.tolist()):
        message = Imu()
        message.header.stamp = stamp(time)
        message.header.frame_id = imu.frame
        w, f, q = message.angular_velocity, message.linear_acceleration, message.orientation
        w.x, w.y, w.z = imu.angular_velocity[i].tolist()
        f.x, f.y, f.z = imu.linear_acceleration[i].tolist()
        if imu.orientation is None or not np.isfinite(imu.orientation[i]).all():
            message.orientation_covariance[0] = -1.0  # sensor_msgs/Imu's word for none
        else:
            q.x, q.y, q.z, q.w = imu.orientation[i].tolist()
        yield time, 3, message


def _contacts(recording: Recording) -> Iterator[Event]:
    contacts = recording.contacts
    if contacts is None:
        return
    for i, time in enumerate(contacts.time.tolist()):
        message = Contacts(names=list(contacts.names), active=contacts.active[i].tolist())
        message.header.stamp = stamp(time)
        yield time, 2, message


class ReplayNode(Node):
    """Publishes the messages of a recording at their own pace, and the clock with them."""

    def __init__(self) -> None:
        super().__init__("replay")
        self._values = declare(self, SETTINGS)
        if not self._values["data"]:
            raise DataError("parameter 'data' is empty: give a bag or table to replay")
        self._recording = read_recording(self._values["data"])
        self._topics = [
            self.create_publisher(JointState, "joint_states", 1000),
            self.create_publisher(Odometry, "odom", 1000),
            self.create_publisher(Contacts, "contacts", 1000),
            self.create_publisher(Imu, "imu/data", 1000),
        ]
        self._time = self.create_publisher(ClockMessage, "clock", 10)
        self._first = float(np.nanmin(self._recording.time))
        self._wall = Clock(clock_type=ClockType.STEADY_TIME)
        self.done = False
        self._rewind(self._values["start_delay"])
        self.create_timer(_TICK, self._tick, clock=self._wall)
        self.get_logger().info(
            f"replaying {len(self._recording)} joint states of {self._values['data']}"
        )

    def _rewind(self, delay: float) -> None:
        recording = self._recording
        kinds = (_joint_states, _odometry, _contacts, _imu)
        self._events = merge(*(kind(recording) for kind in kinds), key=lambda event: event[:2])
        self._next = next(self._events, None)
        self._begin = 1e-9 * self._wall.now().nanoseconds + delay

    def _tick(self) -> None:
        elapsed = 1e-9 * self._wall.now().nanoseconds - self._begin
        if elapsed < 0.0:
            return
        now = self._first + elapsed * self._values["speed"]
        self._time.publish(ClockMessage(clock=stamp(now)))
        while self._next is not None and self._next[0] <= now:
            _, topic, message = self._next
            self._topics[topic].publish(message)
            self._next = next(self._events, None)
        if self._next is None and not self.done:
            if self._values["loop"]:
                self._rewind(0.0)
                return
            self.done = True
            self.get_logger().info("replay finished")


def main(args: Sequence[str] | None = None) -> int:
    """Run the replay node until the recording ends."""
    return run_node("replay", ReplayNode, args, done=lambda node: node.done)


if __name__ == "__main__":
    sys.exit(main())
