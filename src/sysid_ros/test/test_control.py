# SPDX-License-Identifier: Apache-2.0
"""Trajectories, commands and payloads become arrays and back."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")

from builtin_interfaces.msg import Duration, Time
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from sysid_core.errors import ParameterError
from sysid_msgs.msg import TrackingStatus
from sysid_msgs.srv import AttachPayload
from sysid_ros.control import (
    command_array,
    command_message,
    payload_arrays,
    tracking_message,
    trajectory_message,
    trajectory_points,
)
from sysid_ros.fields import nanoseconds


def trajectory(count: int = 2, velocities: bool = True) -> JointTrajectory:
    message = JointTrajectory(joint_names=["a", "b"])
    for i in range(count):
        point = JointTrajectoryPoint(positions=[0.1 * i, -0.1 * i])
        point.time_from_start = Duration(sec=i, nanosec=250_000_000)
        if velocities:
            point.velocities = [1.0, 2.0]
        message.points.append(point)
    return message


def test_trajectories_start_now_or_when_stamped() -> None:
    points = trajectory_points(trajectory(), 0)
    assert points.start is None
    np.testing.assert_allclose(points.time, [0.25, 1.25])
    np.testing.assert_allclose(points.position, [[0.0, 0.0], [0.1, -0.1]])
    assert points.velocity is not None
    np.testing.assert_allclose(points.velocity, [[1.0, 2.0], [1.0, 2.0]])
    assert points.acceleration is None
    message = trajectory()
    message.header.stamp = Time(sec=1_700_000_003, nanosec=5)
    assert trajectory_points(message, 1_700_000_000 * 10**9).start == pytest.approx(3.000000005)


def test_trajectories_with_holes_are_refused() -> None:
    message = trajectory()
    message.points[0].velocities = []
    with pytest.raises(ParameterError, match="velocities at some points only"):
        trajectory_points(message, 0)
    message = trajectory()
    message.points[1].positions = [0.0]
    with pytest.raises(ParameterError, match="needs 2 positions"):
        trajectory_points(message, 0)
    assert trajectory_points(trajectory(0), 0).position.shape == (0, 2)


def test_a_motion_comes_back_from_its_message() -> None:
    time, motion = np.array([0.0, 0.25]), np.arange(12.0).reshape(3, 2, 2)
    points = trajectory_points(trajectory_message(["a", "b"], Time(sec=3), time, [*motion]), 0)
    assert points.start == 3.0
    np.testing.assert_array_equal(points.time, time)
    for name, values in zip(("position", "velocity", "acceleration"), motion, strict=True):
        np.testing.assert_array_equal(getattr(points, name), values)


def test_commands_and_what_became_of_them() -> None:
    effort = np.array([1.0, -2.0])
    np.testing.assert_array_equal(command_array(command_message(effort)), effort)
    status = tracking_message(
        Time(sec=3),
        ["a", "b"],
        position_error=0.1 * effort,
        velocity_error=0.2 * effort,
        effort=effort,
        effort_model=0.5 * effort,
        limited=effort > 0.0,
        state=TrackingStatus.HOLDING,
        warnings=["careful"],
    )
    assert list(status.joint_names) == ["a", "b"]
    np.testing.assert_array_equal(status.effort, effort)
    assert list(status.limited) == [True, False]
    assert (status.state, list(status.warnings)) == (2, ["careful"])
    assert nanoseconds(status.header.stamp) == 3 * 10**9


def test_a_payloads_inertia_is_symmetric() -> None:
    request = AttachPayload.Request(frame="tool", mass=2.0, inertia=[1.0, 0.1, 2.0, 0.2, 0.3, 3.0])
    request.com.z = 0.5
    frame, mass, com, inertia = payload_arrays(request)
    assert (frame, mass) == ("tool", 2.0)
    np.testing.assert_array_equal(com, [0.0, 0.0, 0.5])
    np.testing.assert_array_equal(inertia, [[1.0, 0.1, 0.2], [0.1, 2.0, 0.3], [0.2, 0.3, 3.0]])
