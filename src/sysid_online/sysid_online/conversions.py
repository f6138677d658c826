# SPDX-License-Identifier: Apache-2.0
"""Converts between ROS messages and the core's arrays: the only place that knows both."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import Vector3
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.errors import DataError
from sysid_core.online.payload import PayloadEstimate
from sysid_core.online.update import Update
from sysid_core.parameters import COUPLING_TERMS, FRICTION_TERMS
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_msgs.msg import (
    Contacts,
    DynamicParameters,
    IdentificationStatus,
    JointSamples,
    Payload,
)
from sysid_ros.fields import doubles, seconds, stamp

__all__ = [
    "contact_flags",
    "imu_arrays",
    "odometry_arrays",
    "parameters_message",
    "payload_message",
    "samples_from_message",
    "samples_message",
    "status_message",
]


def _finite(values: FloatArray) -> array[float]:
    """Return numbers for a message; nothing at all if one of them is unknown."""
    return doubles(values) if np.isfinite(values).all() else array("d")


def odometry_arrays(message: Odometry) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return position (3,) [m], quaternion xyzw (4,) and twist (6,) [m/s, rad/s]."""
    p, q = message.pose.pose.position, message.pose.pose.orientation
    v, w = message.twist.twist.linear, message.twist.twist.angular
    return (
        np.array([p.x, p.y, p.z]),
        np.array([q.x, q.y, q.z, q.w]),
        np.array([v.x, v.y, v.z, w.x, w.y, w.z]),
    )


def imu_arrays(message: Imu) -> tuple[FloatArray, FloatArray]:
    """Return angular velocity (3,) [rad/s] and specific force (3,) [m/s²].

    Where a covariance starts with −1 the sensor lacks the quantity, as `sensor_msgs/Imu` says;
    it is NaN then.
    """
    w, f = message.angular_velocity, message.linear_acceleration
    angular, linear = np.array([w.x, w.y, w.z]), np.array([f.x, f.y, f.z])
    if message.angular_velocity_covariance[0] == -1.0:
        angular = np.full(3, np.nan)
    if message.linear_acceleration_covariance[0] == -1.0:
        linear = np.full(3, np.nan)
    return angular, linear


def contact_flags(
    message: Contacts,
) -> tuple[dict[str, bool], dict[str, FloatArray] | None]:
    """Return contact flags by name, and wrenches (6,) [N, N·m] by name where measured."""
    if len(message.active) != len(message.names):
        raise DataError(f"contacts name {len(message.names)} feet but flag {len(message.active)}")
    flags = dict(zip(message.names, map(bool, message.active), strict=True))
    if len(message.wrenches) != len(message.names):
        return flags, None
    wrenches = {}
    for name, wrench in zip(message.names, message.wrenches, strict=True):
        f, t = wrench.force, wrench.torque
        wrenches[name] = np.array([f.x, f.y, f.z, t.x, t.y, t.z])
    return flags, wrenches


def samples_message(robot: Robot, samples: Samples, sequence: int) -> JointSamples:
    """Return samples (at least one) as a message."""
    message = JointSamples()
    end = float(samples.time[-1])
    message.header.stamp = stamp(end)
    message.robot = robot.name
    message.sequence = sequence
    message.joint_names = list(robot.joint_names)
    message.time = doubles(samples.time - end)
    for name in ("position", "velocity", "acceleration", "effort"):
        values = getattr(samples, name)
        if robot.passive.any():
            message.joint_names = list(robot.actuated_names)
            values = values[:, robot.actuated]
        setattr(message, name, doubles(values))
    for name in ("base_pose", "base_twist", "base_acceleration"):
        values = getattr(samples, name)
        if values is not None:
            setattr(message, name, doubles(values))
    if samples.contacts is not None:
        message.contact_names = [contact.name for contact in robot.description.contacts]
        message.contacts = samples.contacts.ravel().tolist()
    if samples.wrenches is not None:
        message.wrenches = doubles(samples.wrenches)
    return message


def _table(values: Sequence[float], rows: int, what: str) -> FloatArray:
    flat = np.asarray(values, dtype=np.float64)
    if rows == 0 or len(flat) % rows:
        raise DataError(f"{what} has {len(flat)} numbers, which do not divide into {rows} samples")
    return flat.reshape(rows, -1)


def _contacts(robot: Robot, message: JointSamples, n: int) -> tuple[BoolArray, FloatArray | None]:
    """Return contact flags (n, nc) and, if measured, wrenches (n, nc, 6) in the robot's order."""
    names = list(message.contact_names)
    order = [contact.name for contact in robot.description.contacts]
    missing = sorted(set(order) - set(names))
    if missing:
        raise DataError(f"samples lack the contacts {missing}")
    columns = [names.index(name) for name in order]
    flags = _table(message.contacts, n, "contacts")
    if flags.shape[1] != len(names):
        raise DataError(f"contacts has {flags.shape[1]} columns for {len(names)} contacts")
    if not len(message.wrenches):
        return flags[:, columns] > 0.5, None
    wrenches = _table(message.wrenches, n, "wrenches")
    if wrenches.shape[1] != 6 * len(names):
        raise DataError(f"wrenches has {wrenches.shape[1]} columns for {len(names)} contacts")
    return flags[:, columns] > 0.5, wrenches.reshape(n, len(names), 6)[:, columns]


def samples_from_message(robot: Robot, message: JointSamples) -> Samples:
    """Return the samples of a message in the robot's joint order.

    Raises
    ------
    DataError
        If the message is another robot's, or its arrays do not fit each other.
    """
    if message.robot != robot.name:
        raise DataError(
            f"samples of robot '{message.robot}' came, but this node identifies '{robot.name}'"
        )
    names = list(message.joint_names)
    missing = sorted(set(robot.actuated_names) - set(names))
    if missing:
        raise DataError(f"samples lack the joints {missing}")
    time = seconds(message.header.stamp) + np.asarray(message.time, dtype=np.float64)
    n = len(time)
    source = [names.index(name) if name in names else -1 for name in robot.joint_names]
    given = np.array(source) >= 0
    arrays = {}
    for name in ("position", "velocity", "acceleration", "effort"):
        table = _table(getattr(message, name), n, name)
        if table.shape[1] != len(names):
            raise DataError(f"{name} has {table.shape[1]} columns for {len(names)} joints")
        full = np.full((n, len(robot.joint_names)), np.nan)
        full[:, given] = table[:, [c for c in source if c >= 0]]
        arrays[name] = full
    base: dict[str, FloatArray] = {}
    if robot.floating:
        for name, width in (("base_pose", 7), ("base_twist", 6), ("base_acceleration", 6)):
            table = _table(getattr(message, name), n, name)
            if table.shape[1] != width:
                raise DataError(f"{name} needs {width} numbers per sample; is odometry missing?")
            base[name] = table
    contacts, wrenches = _contacts(robot, message, n) if message.contact_names else (None, None)
    return Samples(time, **arrays, **base, contacts=contacts, wrenches=wrenches)


def parameters_message(robot: Robot, update: Update) -> DynamicParameters:
    """Return the parameters in use as a message."""
    layout = robot.layout
    message = DynamicParameters()
    message.header.stamp = stamp(update.time)
    message.robot = robot.name
    message.model_hash = robot.model_hash
    message.revision = update.revision
    message.identified = update.identified
    message.r2 = update.scores.r2 if np.isfinite(update.scores.r2) else 0.0
    message.bodies = list(layout.bodies)
    message.inertial = doubles(update.parameters[layout.inertial])
    message.inertial_std = _finite(update.std[layout.inertial])
    message.consistency = doubles(update.consistency_bodies)
    message.joints = list(layout.joints)
    message.couplings = list(layout.couplings)
    for term in FRICTION_TERMS:
        setattr(message, term, doubles(update.parameters[layout.term(term)]))
        setattr(message, f"{term}_std", _finite(update.std[layout.term(term)]))
    for term in COUPLING_TERMS:
        values = update.parameters[layout.coupling_term(term)]
        setattr(message, f"coupling_{term}", doubles(values))
    return message


def status_message(
    robot: Robot,
    groups: Sequence[str],
    update: Update,
    *,
    frozen: bool,
    lost: int,
    solve_time: float,
) -> IdentificationStatus:
    """Return what the identifier knows as a message; unknown numbers are 0."""
    message = IdentificationStatus()
    message.header.stamp = stamp(update.time)
    message.robot = robot.name
    message.state = int(update.state)
    message.reasons = list(update.reasons)
    message.warnings = list(update.warnings)
    message.revision = update.revision
    message.frozen = frozen
    scores = update.scores
    message.r2 = scores.r2 if np.isfinite(scores.r2) else 0.0
    message.joints = list(groups)
    message.r2_joints = doubles(scores.candidate.r2)
    message.rmse_joints = doubles(scores.candidate.rmse)
    message.rmse_nominal_joints = doubles(scores.nominal.rmse)
    message.samples = update.samples
    message.window_samples = update.window_samples
    message.window_duration = update.window_duration
    message.window_fill = update.fill
    message.condition = update.condition if np.isfinite(update.condition) else 0.0
    message.determined = update.determined
    message.consistency = update.consistency if np.isfinite(update.consistency) else 0.0
    if update.estimate is not None:
        message.optimality = float(update.estimate.optimality)
        message.iterations = update.estimate.iterations
    message.solve_time = solve_time
    message.rejected_samples = update.rejected
    message.lost_samples = lost
    return message


def payload_message(
    robot: Robot, frame: str, estimate: PayloadEstimate, update: Update
) -> Payload:
    """Return a payload estimate as a message."""
    message = Payload()
    message.header.stamp = stamp(update.time)
    message.header.frame_id = frame
    message.robot = robot.name
    message.attached = update.payload_attached
    message.detected_after = update.detected_after
    message.mass = estimate.mass
    message.mass_std = estimate.mass_std
    message.com = Vector3(**dict(zip("xyz", estimate.com.tolist(), strict=True)))
    message.com_std = Vector3(**dict(zip("xyz", estimate.com_std.tolist(), strict=True)))
    message.inertia = estimate.inertia
    message.inertia_std = estimate.inertia_std
    message.parameters = estimate.parameters
    return message
