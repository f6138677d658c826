# SPDX-License-Identifier: Apache-2.0
"""A recording pushed through the live path gives the samples of the offline path."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.contacts.condition import condition_contacts
from sysid_core.contacts.late_watch import LateWatch
from sysid_core.contacts.lateness import Lateness
from sysid_core.online.replay import played, stream_settings_for
from sysid_core.online.stream import SampleStream
from sysid_core.recording import (
    BaseRecording,
    ContactRecording,
    ImuMounting,
    ImuRecording,
    Recording,
    Samples,
)
from sysid_core.robot import Robot, load_robot
from sysid_core.signals.align import align
from sysid_core.signals.chain import ChainConfig, Filtered, Grid, filter_grid
from sysid_core.signals.filters import smoothed_value
from sysid_core.signals.options import SignalConfig
from sysid_core.signals.prepare import filter_aligned
from sysid_core.signals.sensors import SENSORS, Rows, Sensor

RATE = 500.0
CUTOFF = 20.0
DURATION = 6.0
BATCH = 20
ROUNDING = 1e-9
"""Share of a signal's size that the two paths differ by: transforms of other lengths."""
LEARNED = 3.0
"""Time [s] after which both paths know the inertial sensor's biases alike."""
BIASES = 0.02
"""Share of the accelerations that biases learned from the past differ by from those learned from
the whole."""


def motion_of(robot: Robot) -> Recording:
    """Return joints that move in sines, wrapped to half a turn, with noise, losses and torques."""
    rng = np.random.default_rng(31)
    time = np.arange(0.0, DURATION, 1.0 / RATE)
    nj = len(robot.joint_names)
    phase = rng.uniform(0.0, 6.0, (2, nj))
    position = 0.4 * np.sin(2.0 * np.pi * 0.6 * time[:, None] + phase[0])
    position = position + 1e-5 * rng.standard_normal(position.shape)
    effort = np.cos(2.0 * np.pi * 0.9 * time[:, None] + phase[1])
    effort = effort + 0.05 * rng.standard_normal(effort.shape)
    kept = rng.random(len(time)) > 0.02
    return Recording(time[kept], robot.joint_names, position[kept], None, effort[kept])


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let samples out at once: the walker's feet slide, and must not judge its sensors."""
    monkeypatch.setattr("sysid_core.online.contact_feed._UNKNOWN", 0.0)
    monkeypatch.setattr(LateWatch, "look", lambda self: Lateness())


def live(robot: Robot, recording: Recording) -> Samples:
    config = replace(stream_settings_for(recording, robot, cutoff=CUTOFF), sample_rate=10.0 * RATE)
    stream = SampleStream(robot, config)
    return Samples.concatenate(list(played(recording, stream, BATCH / RATE)))


def offline(recording: Recording) -> Samples:
    aligned = align(recording, SignalConfig(cutoff=CUTOFF, timing="stamped"))
    return filter_aligned(aligned, aligned.choice).samples()


def paired(first: Samples, second: Samples) -> tuple[Samples, Samples]:
    """Return the samples of two paths at their common times, which are nearly all."""
    origin = first.time[0]
    keys = [np.rint((samples.time - origin) * 10.0 * RATE) for samples in (first, second)]
    _, a, b = np.intersect1d(*keys, return_indices=True)
    assert len(a) > 0.9 * len(second)
    return first.select(a), second.select(b)


def assert_same(got: FloatArray | None, expected: FloatArray | None, share: float) -> None:
    assert got is not None
    assert expected is not None
    np.testing.assert_allclose(got, expected, atol=share * np.nanmax(np.abs(expected)), rtol=0.0)


def assert_joints_same(got: Samples, expected: Samples) -> None:
    np.testing.assert_allclose(got.time, expected.time, atol=1e-9)
    for name in ("position", "velocity", "acceleration", "effort"):
        assert_same(getattr(got, name), getattr(expected, name), ROUNDING)


def test_outliers_are_replaced_alike() -> None:
    robot = load_robot("panda")
    clean = motion_of(robot)
    assert clean.effort is not None
    rng = np.random.default_rng(5)
    # the live path knows the noise after a while
    hit = (rng.random(clean.position.shape) < 2e-3) & (clean.time[:, None] > LEARNED)
    spoiled = replace(clean, effort=np.where(hit, 12.0, clean.effort))
    assert_joints_same(*paired(live(robot, spoiled), offline(spoiled)))
    got, expected = paired(live(robot, spoiled), offline(clean))
    assert_same(got.effort, expected.effort, 0.03)


def test_an_arm_whose_joint_wraps() -> None:
    robot = load_robot("panda")
    recording = motion_of(robot)
    wrapped = recording.position + 3.0
    wrapped = (wrapped + np.pi) % (2.0 * np.pi) - np.pi
    recording = replace(recording, position=wrapped)
    assert np.abs(np.diff(wrapped, axis=0)).max() > 6.0
    assert_joints_same(*paired(live(robot, recording), offline(recording)))


def test_a_closed_chain() -> None:
    robot = load_robot("digit_left_leg")
    recording = motion_of(robot)
    blank = np.where(robot.actuated, 0.0, np.nan)
    recording = replace(
        recording, position=recording.position + blank, effort=np.asarray(recording.effort) + blank
    )
    assert_joints_same(*paired(live(robot, recording), offline(recording)))


@pytest.fixture(scope="module")
def dog() -> tuple[Robot, Recording]:
    """Return a quadruped that sways on its feet, with odometry, inertial sensor and contacts."""
    robot = load_robot("solo12")
    rng = np.random.default_rng(32)
    recording = motion_of(robot)
    time = np.arange(0.0, DURATION, 1.0 / RATE)
    n = len(time)
    sway = 2.0 * np.pi * np.array([0.7, 0.9, 1.1])
    place = 0.03 * np.sin(sway * time[:, None]) + [0.0, 0.0, 0.25]
    velocity = 0.03 * sway * np.cos(sway * time[:, None])
    noise = 0.01 * rng.standard_normal((n, 6))
    level = np.tile([0.0, 0.0, 0.0, 1.0], (n, 1)) * np.where(np.arange(n) % 3, 1.0, -1.0)[:, None]
    base = BaseRecording(time, place, level, np.hstack([velocity, np.zeros((n, 3))]) + noise)
    force = -0.03 * sway**2 * np.sin(sway * time[:, None]) + [0.1, -0.1, 9.9]
    gyroscope = 0.02 + 1e-3 * rng.standard_normal((n, 3))
    mounting = ImuMounting(np.eye(3), np.zeros(3))
    robot_imu = ImuRecording(time[::2], gyroscope[::2], force[::2], mounting=mounting)
    swing = np.stack(
        [np.sin(2.0 * np.pi * 1.5 * time + k * np.pi) > -0.2 for k in (0, 1, 1, 0)], 1
    )
    names = tuple(contact.name for contact in robot.description.contacts)
    contacts = ContactRecording(time, names, swing)
    return robot, replace(recording, base=base, imu=robot_imu, contacts=contacts)


def test_a_walker_with_odometry_imu_and_contacts(dog: tuple[Robot, Recording]) -> None:
    robot, recording = dog
    mounting = ImuMounting(robot.imu_rotation, robot.imu_position)
    assert recording.imu is not None
    recording = replace(recording, imu=replace(recording.imu, mounting=mounting))
    expected = condition_contacts(robot, offline(recording)).kept
    got, expected = paired(live(robot, recording), expected)
    assert_joints_same(got, expected)
    assert got.base_pose is not None
    assert expected.base_pose is not None
    assert_same(got.base_pose[:, :3], expected.base_pose[:, :3], ROUNDING)
    known = got.time > LEARNED
    got, expected = got.select(known), expected.select(known)
    # turned to where gravity is felt, which contacts are told by as well
    assert_same(got.base_pose, expected.base_pose, BIASES)
    np.testing.assert_array_equal(got.contacts, expected.contacts)
    assert_same(got.base_twist, expected.base_twist, BIASES)
    assert_same(got.base_acceleration, expected.base_acceleration, BIASES)


def test_flags_that_begin_later_than_inertial_readings_join_them(
    dog: tuple[Robot, Recording],
) -> None:
    robot, recording = dog
    assert recording.contacts is not None
    began = recording.contacts.time > 0.2  # within the time in which biases are learned
    later = replace(recording, contacts=recording.contacts.select(began))
    given = live(robot, later)
    expected = live(robot, recording).select(slice(-100, None))
    np.testing.assert_array_equal(given.select(slice(-100, None)).contacts, expected.contacts)


def test_a_walker_by_odometry_alone(dog: tuple[Robot, Recording]) -> None:
    robot, recording = dog
    recording = replace(recording, imu=None)
    got, expected = paired(
        live(robot, recording), condition_contacts(robot, offline(recording)).kept
    )
    assert_joints_same(got, expected)
    assert_same(got.base_twist, expected.base_twist, ROUNDING)
    assert_same(got.base_acceleration, expected.base_acceleration, ROUNDING)
    np.testing.assert_array_equal(got.contacts, expected.contacts)


def test_a_new_sensor_is_an_entry_of_the_table_and_a_step(
    dog: tuple[Robot, Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torque sensors behind the gears, say, that take the place of the drives' currents."""

    def rows(recording: Recording) -> Rows | None:
        imu = recording.imu
        return None if imu is None else Rows(imu.time, np.tile(imu.linear_acceleration, 4))

    def with_step(grid: Grid, config: ChainConfig, *, every: int = 1) -> Filtered:
        filtered = filter_grid(grid, config, every=every)
        torque = smoothed_value(grid.sensors["torque"], config.rate, config.cutoff, every=every)
        return filtered._replace(samples=replace(filtered.samples, effort=torque))

    table = (*SENSORS, Sensor("torque", rows, "imu", "torque sensors"))
    for module in ("signals.align", "online.sensor_feed"):
        monkeypatch.setattr(sys.modules[f"sysid_core.{module}"], "SENSORS", table)
    for module in ("signals.prepare", "online.stream"):
        monkeypatch.setattr(sys.modules[f"sysid_core.{module}"], "filter_grid", with_step)
    robot, recording = dog
    got, expected = paired(live(robot, recording), offline(recording))
    assert_same(got.effort, expected.effort, ROUNDING)
    assert np.nanmax(expected.effort) > 9.0  # the sensor's, where the joints' are about 1 N·m
