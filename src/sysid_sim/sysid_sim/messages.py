# SPDX-License-Identifier: Apache-2.0
"""Converts between ROS messages and the simulation's arrays: the only place that knows both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point, Quaternion, Vector3, Wrench
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu, JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from sysid_core.arrays import FloatArray
from sysid_core.excitation import States
from sysid_core.robot import Robot
from sysid_msgs.msg import Contacts
from sysid_msgs.srv import AttachPayload
from sysid_ros.fields import NANO, doubles
from sysid_sim.driver import Driver
from sysid_sim.sensors import BaseReading, Reading

__all__ = [
    "contacts_message",
    "imu_message",
    "joint_state_message",
    "odometry_message",
    "payload_of",
    "trajectory_message",
]


def _vector(values: FloatArray) -> Vector3:
    x, y, z = values.tolist()
    return Vector3(x=x, y=y, z=z)


def _quaternion(values: FloatArray) -> Quaternion:
    x, y, z, w = values.tolist()
    return Quaternion(x=x, y=y, z=z, w=w)


def joint_state_message(driver: Driver, reading: Reading, time: Time) -> JointState:
    """Return a reading as the robot's driver publishes it."""
    position, velocity, effort = driver.publish(reading)
    message = JointState()
    message.header.stamp = time
    message.name = list(driver.names)
    message.position = doubles(position)
    message.velocity = doubles(velocity)
    message.effort = doubles(effort)
    return message


def odometry_message(robot: Robot, base: BaseReading, time: Time) -> Odometry:
    """Return pose and twist of the base; the twist is in the base frame, as REP-105 asks."""
    message = Odometry()
    message.header.stamp = time
    message.header.frame_id = "odom"
    message.child_frame_id = robot.layout.bodies[0]
    x, y, z = base.pose[:3].tolist()
    message.pose.pose.position = Point(x=x, y=y, z=z)
    message.pose.pose.orientation = _quaternion(base.pose[3:])
    message.twist.twist.linear = _vector(base.twist[:3])
    message.twist.twist.angular = _vector(base.twist[3:])
    return message


def imu_message(robot: Robot, base: BaseReading, time: Time) -> Imu:
    """Return what the inertial unit at the base frame's origin shows."""
    message = Imu()
    message.header.stamp = time
    message.header.frame_id = robot.layout.bodies[0]
    message.orientation = _quaternion(base.pose[3:])
    message.angular_velocity = _vector(base.angular_velocity)
    message.linear_acceleration = _vector(base.specific_force)
    return message


def contacts_message(robot: Robot, base: BaseReading, time: Time) -> Contacts:
    """Return contact flags, and wrenches where they are measured."""
    message = Contacts()
    message.header.stamp = time
    message.names = [contact.name for contact in robot.description.contacts]
    message.active = base.contacts.tolist()
    if base.wrenches is not None:
        message.wrenches = [
            Wrench(force=_vector(row[:3]), torque=_vector(row[3:])) for row in base.wrenches
        ]
    return message


def payload_of(
    request: AttachPayload.Request,
) -> tuple[str, float, FloatArray, FloatArray]:
    """Return frame, mass [kg], centre of mass (3,) [m] and inertia (3, 3) [kg·m²] of a request."""
    xx, xy, yy, xz, yz, zz = (float(value) for value in request.inertia)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    com = np.array([request.com.x, request.com.y, request.com.z])
    return request.frame, float(request.mass), com, inertia


def trajectory_message(
    names: Sequence[str], start: Time, time: FloatArray, motion: States
) -> JointTrajectory:
    """Return a motion (n, na) at times (n,) [s] after `start` as a joint trajectory."""
    message = JointTrajectory()
    message.header.stamp = start
    message.joint_names = list(names)
    for i, after in enumerate(time.tolist()):
        point = JointTrajectoryPoint()
        point.positions = doubles(motion.position[i])
        point.velocities = doubles(motion.velocity[i])
        point.accelerations = doubles(motion.acceleration[i])
        seconds, nanoseconds = divmod(round(after * NANO), NANO)
        point.time_from_start = Duration(sec=seconds, nanosec=nanoseconds)
        message.points.append(point)
    return message
