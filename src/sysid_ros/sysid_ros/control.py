# SPDX-License-Identifier: Apache-2.0
"""Messages around a controller: trajectories, commands, tracking, payloads to attach."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.errors import ParameterError
from sysid_core.exchange import TrajectoryPoints, check_point_count
from sysid_msgs.msg import TrackingStatus
from sysid_msgs.srv import AttachPayload
from sysid_ros.fields import doubles, duration, nanoseconds, seconds, vector_array

__all__ = [
    "command_array",
    "command_message",
    "payload_arrays",
    "tracking_message",
    "trajectory_message",
    "trajectory_points",
]


def command_message(output: FloatArray) -> Float64MultiArray:
    """Return a command (na,) as ros2_control's effort controllers take it."""
    return Float64MultiArray(data=doubles(output))


def command_array(message: Float64MultiArray) -> FloatArray:
    """Return a command (na,) [N·m]."""
    return np.asarray(message.data, dtype=float)


def trajectory_message(
    names: Sequence[str], start: Time, time: FloatArray, motion: Sequence[FloatArray]
) -> JointTrajectory:
    """Return a motion at times (n,) [s] after `start` as a joint trajectory.

    It is positions, velocities and accelerations, each (n, na).
    """
    message = JointTrajectory()
    message.header.stamp = start
    message.joint_names = list(names)
    for after, *row in zip(time.tolist(), *motion, strict=True):
        point = JointTrajectoryPoint(time_from_start=duration(after))
        point.positions, point.velocities, point.accelerations = map(doubles, row)
        message.points.append(point)
    return message


def trajectory_points(message: JointTrajectory, origin: int) -> TrajectoryPoints:
    """Return a trajectory's points, in time from `origin` [ns]; a stamp of zero means from now.

    Raises
    ------
    ParameterError
        If there are too many points, or a point's arrays do not have a number per joint.
    """
    check_point_count(len(message.points))
    start = nanoseconds(message.header.stamp)
    position = _point_arrays(message, "positions")
    return TrajectoryPoints(
        tuple(message.joint_names),
        None if start == 0 else 1e-9 * (start - origin),
        np.array([seconds(point.time_from_start) for point in message.points]),
        np.zeros((0, len(message.joint_names))) if position is None else position,
        _point_arrays(message, "velocities"),
        _point_arrays(message, "accelerations"),
    )


def _point_arrays(message: JointTrajectory, kind: str) -> FloatArray | None:
    """Return what the points have of a kind (n, na); None: none of them has any."""
    rows = [getattr(point, kind) for point in message.points]
    if kind != "positions" and not all(len(row) for row in rows):
        if any(len(row) for row in rows):
            raise ParameterError(f"has {kind} at some points only; give all or none")
        return None
    count = len(message.joint_names)
    if any(len(row) != count for row in rows):
        raise ParameterError(f"needs {count} {kind} at every point, one per joint")
    return np.array(rows, dtype=float).reshape(len(rows), count)


def payload_arrays(request: AttachPayload.Request) -> tuple[str, float, FloatArray, FloatArray]:
    """Return frame, mass [kg], centre of mass (3,) [m] and inertia (3, 3) [kg·m²] of a request."""
    xx, xy, yy, xz, yz, zz = (float(value) for value in request.inertia)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return request.frame, float(request.mass), vector_array(request.com), inertia


def tracking_message(
    time: Time,
    joint_names: Sequence[str],
    *,
    position_error: FloatArray,
    velocity_error: FloatArray,
    effort: FloatArray,
    effort_model: FloatArray,
    limited: BoolArray,
    **values: Any,
) -> TrackingStatus:
    """Return what a tick did, arrays (na,); `values` are other fields of the message."""
    message = TrackingStatus(joint_names=list(joint_names), **values)
    message.header.stamp = time
    message.position_error = doubles(position_error)
    message.velocity_error = doubles(velocity_error)
    message.effort = doubles(effort)
    message.effort_model = doubles(effort_model)
    message.limited = limited.tolist()
    return message
