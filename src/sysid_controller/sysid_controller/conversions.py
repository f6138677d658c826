# SPDX-License-Identifier: Apache-2.0
"""Converts between ROS messages and the controller's arrays: the only place that knows both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from sysid_controller.controller import Command, Controller
from sysid_controller.parameter_blend import ParameterSet
from sysid_controller.planning import TrajectoryPoints
from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.errors import ParameterError
from sysid_core.parameters import COUPLING_TERMS, FRICTION_TERMS, INERTIAL_TERMS
from sysid_core.robot import Robot
from sysid_msgs.msg import DynamicParameters, TrackingStatus
from sysid_ros.fields import diagnostic_status, doubles, nanoseconds

__all__ = [
    "command_message",
    "diagnostics_message",
    "odometry_arrays",
    "parameter_set",
    "status_message",
    "trajectory_points",
]


def odometry_arrays(message: Odometry) -> tuple[FloatArray, FloatArray]:
    """Return pose (7,) [m, quaternion xyzw] and twist (6,) [m/s, rad/s] of odometry."""
    p, q = message.pose.pose.position, message.pose.pose.orientation
    v, w = message.twist.twist.linear, message.twist.twist.angular
    return (
        np.array([p.x, p.y, p.z, q.x, q.y, q.z, q.w]),
        np.array([v.x, v.y, v.z, w.x, w.y, w.z]),
    )


def trajectory_points(message: JointTrajectory, origin: int) -> TrajectoryPoints:
    """Return a trajectory's points; a stamp of zero means that it starts now.

    Parameters
    ----------
    message : JointTrajectory
    origin : int [ns]
        Time that the result's start counts from.

    Raises
    ------
    ParameterError
        If a point's arrays do not have a number per joint.
    """
    start = nanoseconds(message.header.stamp)
    time = [
        float(p.time_from_start.sec) + 1e-9 * float(p.time_from_start.nanosec)
        for p in message.points
    ]
    arrays: list[FloatArray | None] = []
    for kind in ("positions", "velocities", "accelerations"):
        rows = [getattr(point, kind) for point in message.points]
        required = kind == "positions"
        if not required and not all(len(row) for row in rows):
            if any(len(row) for row in rows):
                raise ParameterError(f"has {kind} at some points only; give all or none")
            arrays.append(None)
            continue
        if any(len(row) != len(message.joint_names) for row in rows):
            raise ParameterError(
                f"needs {len(message.joint_names)} {kind} at every point, one per joint"
            )
        arrays.append(np.array(rows, dtype=float).reshape(len(rows), len(message.joint_names)))
    position, velocity, acceleration = arrays
    if position is None:
        position = np.zeros((0, len(message.joint_names)))
    return TrajectoryPoints(
        tuple(message.joint_names),
        None if start == 0 else 1e-9 * (start - origin),
        np.array(time),
        position,
        velocity,
        acceleration,
    )


def _rows(names: Sequence[str], values: Sequence[float], width: int, what: str) -> FloatArray:
    flat = np.asarray(values, dtype=float)
    if flat.size != len(names) * width:
        raise ParameterError(f"{flat.size} {what} for {len(names)} names")
    return flat.reshape(len(names), width)


def parameter_set(message: DynamicParameters, robot: Robot) -> ParameterSet:
    """Return published parameters in the order of a robot's layout.

    Those of another robot or model come without their numbers: they are to be refused as such.

    Raises
    ------
    ParameterError
        If bodies or joints are missing or unknown, or numbers are missing or not finite.
    """
    stamp = 1e-9 * nanoseconds(message.header.stamp)
    identity = (message.robot, message.model_hash, int(message.revision), stamp)
    foreign = message.robot != robot.name or message.model_hash != robot.model_hash
    if foreign or not message.identified:
        return ParameterSet(*identity, bool(message.identified), np.zeros(0))
    inertial = _rows(message.bodies, message.inertial, len(INERTIAL_TERMS), "inertial parameters")
    friction = {
        term: _rows(message.joints, getattr(message, term), 1, f"{term} parameters")[:, 0]
        for term in FRICTION_TERMS
    }
    coupling = {
        term: _rows(
            message.couplings, getattr(message, f"coupling_{term}"), 1, f"{term} of couplings"
        )[:, 0]
        for term in COUPLING_TERMS
    }
    vector = robot.layout.assemble(
        dict(zip(message.bodies, inertial, strict=True)),
        {
            name: {term: float(friction[term][j]) for term in FRICTION_TERMS}
            for j, name in enumerate(message.joints)
        },
        {
            name: {term: float(coupling[term][c]) for term in COUPLING_TERMS}
            for c, name in enumerate(message.couplings)
        },
    )
    return ParameterSet(*identity, True, vector)


def command_message(output: FloatArray) -> Float64MultiArray:
    """Return a command as ros2_control's effort controllers take it."""
    return Float64MultiArray(data=doubles(output))


def status_message(
    controller: Controller,
    command: Command,
    stamp: Time,
    *,
    tick_time: float,
    rate: float,
    warnings: Sequence[str],
) -> TrackingStatus:
    """Return what a tick did as a message."""
    message = TrackingStatus()
    message.header.stamp = stamp
    message.robot = controller.robot.name
    message.state = int(command.state)
    message.mode = controller.settings.mode
    message.identified = controller.blend.identified
    message.revision = controller.blend.revision
    message.blend = float(controller.blend.share)
    message.joint_names = list(controller.joint_names)
    message.position_error = doubles(command.position_error)
    message.velocity_error = doubles(command.velocity_error)
    message.effort = doubles(command.effort)
    message.effort_model = doubles(command.effort_model)
    message.limited = command.limited.tolist()
    message.tick_time = tick_time
    message.rate = rate
    message.warnings = list(warnings)
    return message


def diagnostics_message(
    diagnostics: Sequence[Diagnostic], stamp: Time, node: str, hardware: str
) -> DiagnosticArray:
    """Return diagnostics as a message; their kinds follow the node's name."""
    message = DiagnosticArray()
    message.header.stamp = stamp
    message.status = [
        diagnostic_status(
            f"{node}: {found.kind}", hardware, found.severity, found.message, found.values
        )
        for found in diagnostics
    ]
    return message
