# SPDX-License-Identifier: Apache-2.0
"""Messages of a robot's sensors to arrays and back: joints, odometry, IMU, contacts."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Wrench
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu, JointState

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.data.decode import SENSOR_READERS, SensorReader, Stream
from sysid_core.recording import Recording
from sysid_core.signals.senders import Senders
from sysid_msgs.msg import Contacts
from sysid_ros.fields import doubles, quaternion, seconds, vector, vector_array
from sysid_ros.plain import import_type

__all__ = [
    "SENSOR_TOPICS",
    "SensorTopic",
    "contacts_message",
    "imu_message",
    "joint_arrays",
    "joint_batches",
    "joint_state_message",
    "odometry_arrays",
    "odometry_message",
]

_UNKNOWN = -1.0
"""What a covariance begins with if its quantity is not measured, as ``sensor_msgs/Imu`` says."""


def joint_state_message(
    names: Sequence[str],
    time: Time,
    position: FloatArray,
    velocity: FloatArray | None = None,
    effort: FloatArray | None = None,
) -> JointState:
    """Return positions, and velocities and efforts (n,) where there are any, as a message."""
    message = JointState()
    message.header.stamp = time
    message.name = list(names)
    message.position = doubles(position)
    if velocity is not None:
        message.velocity = doubles(velocity)
    if effort is not None:
        message.effort = doubles(effort)
    return message


def joint_arrays(message: JointState) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return positions, velocities and efforts, each (n,) or empty, as published."""
    position, velocity, effort = message.position, message.velocity, message.effort
    return np.array(position, float), np.array(velocity, float), np.array(effort, float)


def joint_batches(
    messages: Sequence[JointState], senders: Senders
) -> tuple[list[Recording], dict[str, int]]:
    """Return joint states as recordings, and how many had to be left out, by their fault.

    Messages that follow each other with the same joints share one; velocities that a message lacks
    are NaN.
    """
    faults = {
        "joint states without position or effort": 0,
        "joint states with arrays of odd length": 0,
        "joint states of a second node": 0,
    }
    groups: list[tuple[tuple[str, ...], list[JointState]]] = []
    for message in messages:
        names, n = tuple(message.name), len(message.name)
        if len(message.position) != n or len(message.effort) != n:
            faults["joint states without position or effort"] += 1
        elif len(message.velocity) not in (0, n):
            faults["joint states with arrays of odd length"] += 1
        elif senders.foreign(
            names, seconds(message.header.stamp), message.velocity, message.effort
        ):
            faults["joint states of a second node"] += 1
        elif groups and groups[-1][0] == names:
            groups[-1][1].append(message)
        else:
            groups.append((names, [message]))
    found = {fault: count for fault, count in faults.items() if count}
    return [_joint_batch(names, group) for names, group in groups], found


def _joint_batch(names: tuple[str, ...], messages: list[JointState]) -> Recording:
    unknown = np.full(len(names), np.nan)
    return Recording(
        np.array([seconds(message.header.stamp) for message in messages]),
        names,
        np.array([message.position for message in messages]),
        np.array([m.velocity if len(m.velocity) else unknown for m in messages]),
        np.array([message.effort for message in messages]),
    )


def odometry_message(
    time: Time, pose: FloatArray, twist: FloatArray, *, frame: str, child_frame: str
) -> Odometry:
    """Return a base's pose (7,) and twist (6,) in its own frame, as REP-105 asks."""
    message = Odometry()
    message.header.stamp = time
    message.header.frame_id = frame
    message.child_frame_id = child_frame
    x, y, z = pose[:3].tolist()
    message.pose.pose.position = Point(x=x, y=y, z=z)
    message.pose.pose.orientation = quaternion(pose[3:])
    message.twist.twist.linear = vector(twist[:3])
    message.twist.twist.angular = vector(twist[3:])
    return message


def odometry_arrays(message: Odometry) -> tuple[FloatArray, FloatArray]:
    """Return pose (7,) [m, quaternion xyzw] and twist (6,) [m/s, rad/s] of a base."""
    q, twist = message.pose.pose.orientation, message.twist.twist
    pose = np.append(vector_array(message.pose.pose.position), [q.x, q.y, q.z, q.w])
    return pose, vector_array(twist.linear, twist.angular)


def imu_message(
    time: Time,
    angular_velocity: FloatArray,
    specific_force: FloatArray,
    orientation: FloatArray | None,
    *,
    frame: str,
) -> Imu:
    """Return inertial readings (3,) [rad/s, m/s²]; the orientation xyzw may be unknown."""
    message = Imu()
    message.header.stamp = time
    message.header.frame_id = frame
    message.angular_velocity = vector(angular_velocity)
    message.linear_acceleration = vector(specific_force)
    if orientation is None or not np.isfinite(orientation).all():
        message.orientation_covariance[0] = _UNKNOWN
    else:
        message.orientation = quaternion(orientation)
    return message


def contacts_message(
    time: Time, names: Sequence[str], active: BoolArray, wrenches: FloatArray | None
) -> Contacts:
    """Return contact flags (nc,), and wrenches (nc, 6) [N, N·m] where they are measured."""
    message = Contacts(names=list(names), active=active.tolist())
    message.header.stamp = time
    if wrenches is not None:
        message.wrenches = [
            Wrench(force=vector(row[:3]), torque=vector(row[3:])) for row in wrenches
        ]
    return message


class SensorTopic(NamedTuple):
    """A topic of a sensor beside the joints'."""

    name: str
    message: type
    reader: SensorReader

    def recordings(self, messages: Sequence[Any]) -> tuple[list[Recording], int]:
        """Return recordings without joints, and how many messages are malformed.

        Messages of contacts share a recording while they follow each other with the same ones.
        """
        whole = [message for message in messages if _is_whole(message)]
        found = []
        for _, group in groupby(whole, _form):
            part = list(group)
            times = np.array([seconds(message.header.stamp) for message in part])
            stamps = np.zeros(0, dtype=np.int64)
            read = self.reader.read(Stream(self.name, part, stamps, stamps), times)
            found.append(Recording.of_sensors(**{self.reader.field: read}))
        return found, len(messages) - len(whole)


def _is_whole(message: Any) -> bool:
    return not isinstance(message, Contacts) or len(message.active) == len(message.names)


def _form(message: Any) -> tuple[tuple[str, ...], bool]:
    """Return the names of contacts, and whether each of them has a wrench."""
    if not isinstance(message, Contacts):
        return (), False
    count = len(message.names)
    return tuple(message.names), 0 < count == len(message.wrenches)


SENSOR_TOPICS = tuple(
    SensorTopic(reader.topic, import_type(reader.type, "msg"), reader) for reader in SENSOR_READERS
)
"""What the recorder listens to beside joint states, for a floating base."""
