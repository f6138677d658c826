# SPDX-License-Identifier: Apache-2.0
"""Recordings are read as a robot's own, or refused with what is wrong and how to mend it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.errors import DataError
from sysid_core.recording import Recording, TopicInfo
from sysid_core.robot import Robot, load_robot
from sysid_core.robot.interpretation import interpret


@pytest.fixture(scope="module")
def ur10() -> Robot:
    return load_robot("ur10")


@pytest.fixture(scope="module")
def recording(ur10: Robot, make_recording: Callable[..., Recording]) -> Recording:
    return make_recording(ur10, ur10.nominal, duration=6.0)


def test_order_of_joints_becomes_the_robots(ur10: Robot, recording: Recording) -> None:
    order = np.array([3, 1, 5, 0, 2, 4])
    assert recording.velocity is not None
    assert recording.effort is not None
    shuffled = replace(
        recording,
        joint_names=tuple(recording.joint_names[i] for i in order),
        position=recording.position[:, order],
        velocity=recording.velocity[:, order],
        effort=recording.effort[:, order],
    )
    read = interpret(ur10, shuffled)
    assert read.joint_names == ur10.joint_names
    np.testing.assert_array_equal(read.position, recording.position)
    np.testing.assert_array_equal(read.effort, recording.effort)
    assert read.warnings == ()


def test_names_are_mapped(ur10: Robot, recording: Recording) -> None:
    mapping = {f"axis_{i}": name for i, name in enumerate(ur10.joint_names)}
    robot = load_robot(replace(ur10.description, names=mapping))
    read = interpret(robot, replace(recording, joint_names=tuple(mapping)))
    np.testing.assert_array_equal(read.position, recording.position)


def test_missing_joints_point_to_other_topics(ur10: Robot, recording: Recording) -> None:
    kind = "sensor_msgs/msg/JointState"
    topics = (TopicInfo("/hand/joint_states", kind, 9), TopicInfo("/arm/joint_states", kind, 9))
    others = tuple(f"finger_{i}" for i in range(6))
    several = replace(recording, joint_names=others, topics=topics)
    with pytest.raises(DataError, match=r"/arm/joint_states\): choose with --topic A,B"):
        interpret(ur10, several)
    with pytest.raises(DataError) as caught:
        interpret(ur10, replace(several, topics=topics[:1]))
    assert "--topic" not in str(caught.value)


def test_missing_joints_are_named_with_a_guess(ur10: Robot, recording: Recording) -> None:
    renamed = tuple(name.replace("_joint", "_jnt") for name in recording.joint_names)
    with pytest.raises(DataError, match=r"shoulder_pan_joint.*names: \{shoulder_pan_jnt:"):
        interpret(ur10, replace(recording, joint_names=renamed))
    with pytest.raises(DataError, match=r"missing; the data have \[a, b\]"):
        interpret(
            ur10,
            replace(
                recording,
                joint_names=("a", "b"),
                position=recording.position[:, :2],
                velocity=None,
                effort=None,
            ),
        )


def test_extra_joints_are_left_out_with_a_warning(ur10: Robot, recording: Recording) -> None:
    assert recording.velocity is not None
    assert recording.effort is not None
    more = replace(
        recording,
        joint_names=(*recording.joint_names, "gripper"),
        position=np.hstack([recording.position, recording.position[:, :1]]),
        velocity=np.hstack([recording.velocity, recording.velocity[:, :1]]),
        effort=np.hstack([recording.effort, recording.effort[:, :1]]),
    )
    read = interpret(ur10, more)
    assert any("gripper" in warning for warning in read.warnings)
    np.testing.assert_array_equal(read.effort, recording.effort)


def test_a_locked_joint_elsewhere_is_refused_with_its_mend(
    ur10: Robot, recording: Recording
) -> None:
    held = {"shoulder_lift_joint": 2.0}
    locked = replace(ur10.description, locked=held, actuated=None)
    with pytest.raises(DataError, match=r"shoulder_lift_joint: is locked at 2, but .* torques by"):
        interpret(Robot(locked, ur10.urdf), recording)


def test_passive_joints_may_be_missing() -> None:
    robot = load_robot("digit_left_leg")
    t = 0.01 * np.arange(200, dtype=np.float64)
    q = 0.2 * np.sin(t)[:, None] * np.ones((1, len(robot.actuated_names)))
    read = interpret(robot, Recording(t, robot.actuated_names, q, None, q.copy()))
    assert np.isnan(read.position[:, robot.passive]).all()
    assert np.isfinite(read.position[:, robot.actuated]).all()


@pytest.mark.parametrize("quantity", ["position", "velocity", "effort"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_invalid_numbers_are_refused_by_place_and_left_out_if_lenient(
    ur10: Robot, recording: Recording, quantity: str, value: float
) -> None:
    values = getattr(recording, quantity).copy()
    values[40, 2] = value
    faulty = replace(recording, **{quantity: values})
    with pytest.raises(DataError, match=rf"{quantity} of joint 'elbow_joint' is (NaN|inf)"):
        interpret(ur10, faulty)
    read = interpret(ur10, faulty, lenient=True)
    assert np.isnan(read.position[40, 2])
    assert read.effort is not None
    assert np.isnan(read.effort[40, 2])
    assert any("left out" in warning for warning in read.warnings)


def test_rows_that_lack_a_joint_altogether_are_no_fault(ur10: Robot, recording: Recording) -> None:
    assert recording.velocity is not None
    assert recording.effort is not None
    lacking = [a.copy() for a in (recording.position, recording.velocity, recording.effort)]
    for array in lacking:
        array[10, 1] = np.nan
    position, velocity, effort = lacking
    read = interpret(ur10, replace(recording, position=position, velocity=velocity, effort=effort))
    assert read.warnings == ()


def test_a_clock_that_goes_back_is_refused_unless_lenient(
    ur10: Robot, recording: Recording
) -> None:
    time = recording.time.copy()
    time[300:] -= 2.0
    with pytest.raises(DataError, match="time goes back by"):
        interpret(ur10, replace(recording, time=time))
    assert len(interpret(ur10, replace(recording, time=time), lenient=True)) == len(time)


def test_jitter_of_single_rows_is_no_fault(ur10: Robot, recording: Recording) -> None:
    time = recording.time.copy()
    time[[100, 101]] = time[[101, 100]]
    assert interpret(ur10, replace(recording, time=time)).warnings == ()


def test_recordings_without_torque_are_refused(ur10: Robot, recording: Recording) -> None:
    with pytest.raises(DataError, match="holds no efforts"):
        interpret(ur10, replace(recording, effort=None))
    with pytest.raises(DataError, match="all efforts are zero"):
        interpret(ur10, replace(recording, effort=np.zeros_like(recording.position)))


def test_a_robot_that_stands_still_has_nothing_to_identify(
    ur10: Robot, recording: Recording
) -> None:
    still = np.tile(recording.position[:1], (len(recording), 1))
    with pytest.raises(DataError, match="nothing to identify"):
        interpret(ur10, replace(recording, position=still, velocity=0.0 * still))


def test_currents_without_a_gain_are_found_out(ur10: Robot, recording: Recording) -> None:
    assert recording.effort is not None
    read = interpret(ur10, replace(recording, effort=recording.effort / 13.0))
    assert any("scale implausible" in warning for warning in read.warnings)
    assert interpret(ur10, recording).warnings == ()


def test_degrees_are_found_out(ur10: Robot, recording: Recording) -> None:
    degrees = replace(recording, position=np.degrees(recording.position))
    with pytest.raises(DataError, match="look like degrees"):
        interpret(ur10, degrees)
    spikes = recording.position.copy()
    spikes[::100] += 100.0
    assert interpret(ur10, replace(recording, position=spikes)).warnings
    one = recording.position.copy()
    one[:, 5] = np.linspace(0.0, 40.0, len(one))  # a wrist may well turn on and on
    for changed, lenient in ((degrees.position, True), (one, False)):
        read = interpret(ur10, replace(recording, position=changed), lenient=lenient)
        assert any("degrees" in warning or "limits" in warning for warning in read.warnings)


def test_ranges_of_nothing_are_told_and_hold_nothing_against_positions(
    ur10: Robot, recording: Recording
) -> None:
    nothing = dict.fromkeys(ur10.joint_names, 0.0)
    given = replace(ur10.description, limits={"lower": nothing, "upper": nothing})
    (said,) = interpret(load_robot(given), recording).warnings
    assert "lower and upper limit are equal" in said
    assert ur10.joint_names[0] in said


@pytest.mark.parametrize(
    ("factor", "unit"), [(1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")]
)
def test_time_in_other_units_is_refused(
    ur10: Robot, recording: Recording, factor: float, unit: str
) -> None:
    with pytest.raises(DataError, match=f"if the time is in {unit}"):
        interpret(ur10, replace(recording, time=factor * recording.time))


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_torques_in_other_units_are_refused(
    ur10: Robot, recording: Recording, factor: float
) -> None:
    assert recording.effort is not None
    with pytest.raises(DataError, match=r"set 'effort\.gain'"):
        interpret(ur10, replace(recording, effort=factor * recording.effort))


def test_torques_of_opposite_sign_are_found_out(ur10: Robot, recording: Recording) -> None:
    assert recording.effort is not None
    read = interpret(ur10, replace(recording, effort=-recording.effort))
    assert any("opposite sign" in warning for warning in read.warnings)


def test_motor_side_data_come_out_as_joint_side_ones(
    make_recording: Callable[..., Recording],
) -> None:
    robot = load_robot("tx40")
    joints = make_recording(robot, robot.nominal, duration=6.0)
    transmission = robot.description.transmission
    assert transmission is not None
    assert joints.velocity is not None
    assert joints.effort is not None
    matrix = np.array(transmission.matrix)
    offset = np.array(
        [robot.description.position_offset.get(name, 0.0) for name in robot.joint_names]
    )
    motors = replace(
        joints,
        position=(joints.position - offset) @ matrix.T,
        velocity=joints.velocity @ matrix.T,
        effort=joints.effort @ np.linalg.inv(matrix),
    )
    read = interpret(robot, motors)
    assert read.velocity is not None
    assert read.effort is not None
    np.testing.assert_allclose(read.position, joints.position, atol=1e-12)
    np.testing.assert_allclose(read.velocity, joints.velocity, atol=1e-12)
    np.testing.assert_allclose(read.effort, joints.effort, atol=1e-10)
    same = interpret(robot, joints)
    np.testing.assert_array_equal(same.position, joints.position)
    # power does not depend on the side that it is reckoned on
    assert motors.effort is not None
    assert motors.velocity is not None
    np.testing.assert_allclose(
        (motors.effort * motors.velocity).sum(axis=1),
        (read.effort * read.velocity).sum(axis=1),
        atol=1e-9,
    )
