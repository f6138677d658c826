# SPDX-License-Identifier: Apache-2.0
"""Odometry and inertial sensor of a walking robot that are late, tilted or biased."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.aligning import aligned_recording
from sysid_core.errors import DataError
from sysid_core.identification import identify
from sysid_core.online.replay import played, stream_settings_for
from sysid_core.online.stream import SampleStream
from sysid_core.recording import Recording, Samples
from sysid_core.robot import Robot
from sysid_core.signals.align import Aligned
from sysid_core.signals.options import SignalConfig
from sysid_core.signals.prepare import filter_aligned
from sysid_sim.run import run_scenario
from sysid_sim.scenarios import find_scenario

BRIEF = slice(5000)  # Rows that are enough to identify the robot
DOWN = np.array([0.0, 0.0, -9.81])
Spoil = Callable[[Recording], Recording]


@cache
def walked(seconds: float) -> tuple[Robot, Recording]:
    done = run_scenario(find_scenario("solo12_trot"), seed=3, duration=seconds)
    return done.robot, done.recording


@pytest.fixture
def walk() -> tuple[Robot, Recording]:
    return walked(6.0)


@pytest.fixture
def long_walk() -> tuple[Robot, Recording]:
    return walked(12.0)


def late(recording: Recording, odometry: float, imu: float) -> Recording:
    assert recording.base is not None
    assert recording.imu is not None
    return replace(
        recording,
        base=replace(recording.base, time=recording.base.time + odometry),
        imu=replace(recording.imu, time=recording.imu.time + imu),
    )


def motion(aligned: Aligned) -> Samples:
    return filter_aligned(aligned, aligned.choice).samples()


def difference(one: Samples, other: Samples) -> float:
    """Return the share of the base's acceleration by which two differ."""
    where = np.intersect1d(np.rint(one.time * 1e4), np.rint(other.time * 1e4), return_indices=True)
    a = np.asarray(one.base_acceleration)[where[1]]
    b = np.asarray(other.base_acceleration)[where[2]]
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


@pytest.mark.heavy
@pytest.mark.parametrize(("odometry", "imu"), [(0.6, 0.0), (0.0, 0.03)])
def test_a_recording_is_put_on_time(
    long_walk: tuple[Robot, Recording], odometry: float, imu: float
) -> None:
    robot, recording = long_walk
    expected = aligned_recording(robot, recording, SignalConfig())
    assert not any("late" in text or "early" in text for text in expected.warnings)
    given = late(recording, odometry, imu)
    found = aligned_recording(robot, given, SignalConfig())
    told = [text for text in found.warnings if "judged by the standing feet" in text]
    assert len(told) == bool(odometry) + bool(imu)
    assert difference(motion(found), motion(expected)) < 0.15


def test_odometry_that_fits_the_legs_at_no_time_is_refused(
    walk: tuple[Robot, Recording],
) -> None:
    robot, recording = walk
    given = late(recording, 3.3, 0.0)
    with pytest.raises(DataError, match="contradicts the legs"):
        aligned_recording(robot, given, SignalConfig())
    stream, _ = live(robot, given)
    assert "odometry_unfit" in {one.kind for one in stream.take_diagnostics()}
    assert stream.counts["samples with odometry that contradicts the legs"] > 0


def live(robot: Robot, recording: Recording) -> tuple[SampleStream, Samples]:
    stream = SampleStream(robot, stream_settings_for(recording, robot))
    return stream, Samples.concatenate(list(played(recording, stream, 0.02)))


@pytest.mark.heavy
def test_live_sensors_are_put_on_time_and_nothing_is_lost_of_those_that_are(
    long_walk: tuple[Robot, Recording],
) -> None:
    robot, recording = long_walk
    stream, expected = live(robot, recording)
    assert expected.time[0] < 1.0
    assert not list(stream.take_diagnostics())
    stream, found = live(robot, late(recording, 0.04, 0.02))
    said = " ".join(map(str, stream.take_diagnostics()))
    assert "odometry" in said
    assert "inertial sensor" in said
    assert stream.tally["samples before sensors were on time"] > 0
    assert difference(found.select(found.time > 9.0), expected) < 0.2


def test_an_inertial_sensor_along_other_axes_is_left_out(walk: tuple[Robot, Recording]) -> None:
    robot, recording = walk
    assert recording.imu is not None
    turn = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    imu = recording.imu
    turned = replace(
        imu,
        angular_velocity=imu.angular_velocity @ turn,
        linear_acceleration=imu.linear_acceleration @ turn,
    )
    found = aligned_recording(robot, replace(recording, imu=turned), SignalConfig())
    without = aligned_recording(robot, replace(recording, imu=None), SignalConfig())
    assert any("gyroscope and odometry differ" in text for text in found.warnings)
    assert found.choice.cutoff == without.choice.cutoff
    assert difference(motion(found), motion(without)) < 1e-6


@pytest.mark.parametrize("lag", [pytest.param(0.0, marks=pytest.mark.heavy), 0.006])
def test_late_efforts_are_moved(walk: tuple[Robot, Recording], lag: float) -> None:
    robot, recording = walk[0], walk[1].select(BRIEF)
    assert recording.effort is not None
    effort = np.stack(
        [np.interp(recording.time - lag, recording.time, own) for own in recording.effort.T],
        axis=1,
    )
    found = identify(robot, replace(recording, effort=effort))
    assert found.signals.lag == pytest.approx(lag, abs=5e-4)
    assert found.gravity is None


@pytest.mark.heavy
def test_torques_tell_that_the_odometrys_world_is_tilted(
    long_walk: tuple[Robot, Recording],
) -> None:
    robot, recording = long_walk
    base = recording.base
    assert base is not None
    rotation = pin.exp3(np.radians([2.0, -3.0, 0.0]))
    turned = [
        pin.Quaternion(rotation @ pin.Quaternion(*q[[3, 0, 1, 2]]).matrix()).coeffs()
        for q in base.orientation
    ]
    base = replace(base, position=base.position @ rotation.T, orientation=np.array(turned))
    found = identify(robot, replace(recording.select(BRIEF), base=base, imu=None))
    assert found.gravity is not None
    off = np.cross(found.gravity, rotation @ DOWN) / (DOWN @ DOWN)
    assert np.degrees(np.linalg.norm(off)) < 0.3
    assert any("the odometry's world is tilted" in text for text in found.warnings)


@pytest.mark.heavy
def test_torques_tell_that_it_is_the_accelerometer_which_is_off(
    long_walk: tuple[Robot, Recording],
) -> None:
    robot, recording = long_walk
    imu = recording.imu
    assert imu is not None
    biased = replace(imu, linear_acceleration=imu.linear_acceleration + [0.3, -0.3, 0.0])
    found = identify(robot, replace(recording.select(BRIEF), imu=biased))
    assert found.gravity is not None
    np.testing.assert_array_equal(found.gravity, DOWN)
    assert any("calibrate the sensor" in text for text in found.warnings)
    assert not any("gravity acts" in text for text in found.warnings)


def test_odometry_without_twists_is_differentiated(walk: tuple[Robot, Recording]) -> None:
    robot, recording = walk
    assert recording.base is not None
    base = replace(recording.base, twist=np.zeros_like(recording.base.twist))
    slow = SignalConfig(cutoff=8.0)  # twice differentiated poses are noisy
    given = replace(recording, base=base, imu=None)
    expected = motion(aligned_recording(robot, replace(recording, imu=None), slow))
    assert difference(motion(aligned_recording(robot, given, slow)), expected) < 0.1
