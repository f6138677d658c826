# SPDX-License-Identifier: Apache-2.0
"""What a sensor shows comes back from its message as it was."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")

from builtin_interfaces.msg import Time

from sysid_core.errors import DataError
from sysid_core.recording import Samples
from sysid_core.robot import load_robot
from sysid_core.signals.senders import Senders
from sysid_msgs.msg import Contacts
from sysid_ros.samples import samples_from_message, samples_message
from sysid_ros.sensors import (
    SENSOR_TOPICS,
    contacts_message,
    imu_message,
    joint_batches,
    joint_state_message,
    odometry_arrays,
    odometry_message,
)

NOW = Time(sec=3, nanosec=500_000_000)


def test_joint_states_become_batches_and_bad_ones_counts() -> None:
    good = joint_state_message(["a", "b"], NOW, np.ones(2), np.zeros(2), 2.0 * np.ones(2))
    later = Time(sec=5)  # else it would be a second node's
    slow = joint_state_message(["a", "b"], later, np.ones(2), effort=np.ones(2))
    other = joint_state_message(["c"], NOW, np.ones(1), effort=np.ones(1))
    blind = joint_state_message(["a", "b"], NOW, np.ones(2))
    odd = joint_state_message(["a", "b"], NOW, np.ones(2), np.ones(1), np.ones(2))
    batches, faults = joint_batches([good, slow, blind, odd, other], Senders())
    assert [batch.joint_names for batch in batches] == [("a", "b"), ("c",)]
    np.testing.assert_array_equal(batches[0].time, [3.5, 5.0])
    np.testing.assert_array_equal(batches[0].velocity, [[0.0, 0.0], [np.nan, np.nan]])
    np.testing.assert_array_equal(batches[0].effort, [[2.0, 2.0], [1.0, 1.0]])
    assert faults == {
        "joint states without position or effort": 1,
        "joint states with arrays of odd length": 1,
    }


def test_odometry_comes_back() -> None:
    pose, twist = np.arange(7.0), np.arange(6.0)
    message = odometry_message(NOW, pose, twist, frame="odom", child_frame="base")
    assert (message.header.frame_id, message.child_frame_id) == ("odom", "base")
    for expected, given in zip((pose, twist), odometry_arrays(message), strict=True):
        np.testing.assert_array_equal(given, expected)


def test_inertial_readings_come_back_and_what_is_not_measured_is_unknown() -> None:
    message = imu_message(NOW, np.arange(3.0), np.ones(3), None, frame="imu")
    assert message.orientation_covariance[0] == -1.0
    unknown = imu_message(NOW, np.arange(3.0), np.ones(3), None, frame="imu")
    unknown.angular_velocity_covariance[0] = -1.0
    unknown.linear_acceleration_covariance[0] = -1.0
    topic = next(topic for topic in SENSOR_TOPICS if topic.name == "imu/data")
    (recording,), malformed = topic.recordings([message, unknown])
    assert malformed == 0
    imu = recording.imu
    assert imu is not None
    np.testing.assert_array_equal(imu.angular_velocity[0], np.arange(3.0))
    np.testing.assert_array_equal(imu.linear_acceleration[0], np.ones(3))
    assert np.isnan(imu.angular_velocity[1]).all()
    assert np.isnan(imu.linear_acceleration[1]).all()
    assert imu.orientation is None


def test_contacts_come_back_with_their_wrenches() -> None:
    wrenches = np.arange(12.0).reshape(2, 6)
    message = contacts_message(NOW, ("left", "right"), np.array([True, False]), wrenches)
    plain = contacts_message(NOW, ("left", "right"), np.array([True, True]), None)
    torn = Contacts(names=["left", "right"], active=[True])
    topic = next(topic for topic in SENSOR_TOPICS if topic.name == "contacts")
    recordings, malformed = topic.recordings([message, torn, message, plain])
    assert malformed == 1
    measured, flagged = (recording.contacts for recording in recordings)
    assert measured is not None
    assert flagged is not None
    assert measured.names == ("left", "right")
    np.testing.assert_array_equal(measured.time, [3.5, 3.5])
    np.testing.assert_array_equal(measured.active, [[True, False], [True, False]])
    np.testing.assert_array_equal(measured.wrenches, [wrenches, wrenches])
    np.testing.assert_array_equal(flagged.active, [[True, True]])
    assert flagged.wrenches is None


def test_samples_come_back_in_the_robots_order() -> None:
    dog = load_robot("solo12")
    rng = np.random.default_rng(3)
    time, joints = np.array([7.0, 7.01, 7.02]), len(dog.joint_names)
    samples = Samples(
        time,
        position=rng.standard_normal((3, joints)),
        velocity=rng.standard_normal((3, joints)),
        acceleration=rng.standard_normal((3, joints)),
        effort=rng.standard_normal((3, joints)),
        base_pose=rng.standard_normal((3, 7)),
        base_twist=rng.standard_normal((3, 6)),
        base_acceleration=rng.standard_normal((3, 6)),
        contacts=rng.random((3, 4)) > 0.5,
        wrenches=rng.standard_normal((3, 4, 6)),
        cut_off=rng.integers(0, 3, (3, joints)),
    )
    message = samples_message(dog, samples, 5, cutoff=50.0)
    assert (message.sequence, message.cutoff) == (5, 50.0)
    again = samples_from_message(dog, message)
    np.testing.assert_allclose(again.time, time, atol=1e-9)
    for name in Samples.__dataclass_fields__:
        np.testing.assert_allclose(getattr(again, name), getattr(samples, name), atol=1e-9)
    message.base_twist = message.base_twist[:-1]
    with pytest.raises(DataError, match="base_twist has 17 numbers instead of 3 × 6"):
        samples_from_message(dog, message)
    with pytest.raises(DataError, match="robot 'solo12' came"):
        samples_from_message(load_robot("spot"), message)


def test_samples_of_a_leg_with_loops_are_those_of_its_motors() -> None:
    leg = load_robot("digit_left_leg")
    values = np.ones((2, len(leg.joint_names)))
    message = samples_message(leg, Samples(np.arange(2.0), values, values, values, values), 0)
    assert tuple(message.joint_names) == leg.actuated_names
    again = samples_from_message(leg, message)
    assert np.isnan(again.position[:, leg.passive]).all()
    np.testing.assert_array_equal(again.position[:, leg.actuated], 1.0)
