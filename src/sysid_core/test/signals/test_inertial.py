# SPDX-License-Identifier: Apache-2.0
"""An inertial sensor anywhere on the base tells the base's motion, or is left alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.recording import (
    BaseRecording,
    ContactRecording,
    ImuMounting,
    ImuRecording,
    Recording,
    Samples,
)
from sysid_core.signals.align import align
from sysid_core.signals.options import SignalConfig
from sysid_core.signals.prepare import filter_aligned
from sysid_core.signals.rotation import rotate_into_body

RATE = 500.0
BIAS = 0.1  # [m/s²] of the sensor along each axis
MOUNTING = ImuMounting(
    pin.rpy.rpyToMatrix(0.3, -0.2, 2.0), np.array([0.1, -0.05, 0.08]), np.array([0.0, 0.0, -9.81])
)


def motion(time: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return positions (n, 3) and roll, pitch, yaw (n, 3) of a swaying base."""
    w = 2.0 * np.pi * np.array([0.7, 1.1, 1.6])
    position = 0.05 * np.sin(w * time[:, None] + [0.0, 1.0, 2.0])
    return position, 0.2 * np.sin(0.9 * w * time[:, None] + [2.0, 0.5, 1.0])


def truth(time: FloatArray) -> tuple[list[pin.SE3], FloatArray, FloatArray, FloatArray]:
    """Return poses, twists in the base, their derivatives, and sensor readings; by differences."""
    h = 1e-4

    def poses(t: FloatArray) -> list[pin.SE3]:
        p, rpy = motion(t)
        return [pin.SE3(pin.rpy.rpyToMatrix(*r), x) for r, x in zip(rpy, p, strict=True)]

    def twists(t: FloatArray) -> FloatArray:
        before, after = poses(t - h), poses(t + h)
        linear = (motion(t + h)[0] - motion(t - h)[0]) / (2.0 * h)
        here = poses(t)
        return np.array(
            [
                np.concatenate([m.rotation.T @ v, pin.log3(a.rotation.T @ b.rotation) / (2.0 * h)])
                for m, v, a, b in zip(here, linear, before, after, strict=True)
            ]
        )

    def sensor(t: FloatArray) -> FloatArray:
        return np.array([m.act(MOUNTING.position) for m in poses(t)])

    here, twist = poses(time), twists(time)
    rate = (twists(time + h) - twists(time - h)) / (2.0 * h)
    lifted = (sensor(time + h) - 2.0 * sensor(time) + sensor(time - h)) / h**2
    proper = lifted - MOUNTING.gravity
    readings = np.array(
        [
            np.concatenate([MOUNTING.rotation.T @ v[3:], MOUNTING.rotation.T @ m.rotation.T @ f])
            for m, v, f in zip(here, twist, proper, strict=True)
        ]
    )
    return here, twist, rate, readings


@pytest.fixture(scope="module")
def moving() -> tuple[Recording, FloatArray, FloatArray]:
    """Return a recording with noisy odometry and a biased sensor, and the true motion."""
    time = np.arange(0.0, 6.0, 1.0 / RATE)
    poses, twist, rate, readings = truth(time)
    rng = np.random.default_rng(1)
    base = BaseRecording(
        time,
        np.array([m.translation for m in poses]),
        np.array([pin.Quaternion(m.rotation).coeffs() for m in poses]),
        twist + 0.01 * rng.normal(size=twist.shape),
    )
    biased = readings + np.repeat([0.01, BIAS], 3)
    imu = ImuRecording(time, biased[:, :3], biased[:, 3:], mounting=MOUNTING)
    joints = np.sin(2.0 * time)[:, None]
    recording = Recording(time, ("joint",), joints, None, 0.0 * joints, base=base, imu=imu)
    return recording, twist, rate


def samples_of(recording: Recording, *, inertial: bool = True) -> tuple[Samples, tuple[str, ...]]:
    aligned = align(recording, SignalConfig(cutoff=20.0, inertial=inertial))
    found = filter_aligned(aligned, aligned.choice)
    return found.samples(), found.report.warnings


def errors(recording: Recording, samples: Samples, rate: FloatArray) -> tuple[float, float]:
    """Return RMS errors of linear [m/s²] and angular acceleration [rad/s²]."""
    assert samples.base_acceleration is not None
    row = np.round((samples.time - recording.time[0]) * RATE).astype(int)
    error = samples.base_acceleration - rate[row]
    return float(np.sqrt(np.mean(error[:, :3] ** 2))), float(np.sqrt(np.mean(error[:, 3:] ** 2)))


def test_the_sensor_beats_differentiated_odometry_wherever_it_sits(
    moving: tuple[Recording, FloatArray, FloatArray],
) -> None:
    recording, twist, rate = moving
    with_sensor, warnings = samples_of(recording)
    without, _ = samples_of(recording, inertial=False)
    assert not warnings
    linear, angular = errors(recording, with_sensor, rate)
    noisy_linear, noisy_angular = errors(recording, without, rate)
    assert linear < 0.02 < 0.2 * noisy_linear
    assert angular < 0.02 < 0.2 * noisy_angular
    row = np.round(with_sensor.time * RATE).astype(int)
    assert with_sensor.base_twist is not None
    np.testing.assert_allclose(with_sensor.base_twist[:, 3:], twist[row, 3:], atol=2e-3)


def test_a_slower_sensor_with_its_own_clock_serves_as_well(
    moving: tuple[Recording, FloatArray, FloatArray],
) -> None:
    recording, _, rate = moving
    imu = recording.imu
    assert imu is not None
    slow = slice(3, None, 3)
    part = replace(
        imu,
        time=imu.time[slow],
        angular_velocity=imu.angular_velocity[slow],
        linear_acceleration=imu.linear_acceleration[slow],
    )
    samples, warnings = samples_of(replace(recording, imu=part))
    assert not warnings
    assert max(errors(recording, samples, rate)) < 0.05


def slowed(recording: Recording) -> Recording:
    """Return a recording with odometry at a tenth of its rate."""
    assert recording.base is not None
    return replace(recording, base=recording.base.select(slice(None, None, 10)))


@pytest.mark.parametrize(("inertial", "bound"), [(True, RATE), (False, 50.0)])
def test_slow_odometry_bounds_the_cut_off_only_where_accelerations_rest_on_it(
    moving: tuple[Recording, FloatArray, FloatArray], inertial: bool, bound: float
) -> None:
    recording = slowed(moving[0])
    base = recording.base
    assert base is not None
    flags = ContactRecording(base.time[::3], ("foot",), np.ones((len(base.time[::3]), 1), bool))
    given = replace(recording, contacts=flags)
    aligned = align(given, SignalConfig(inertial=inertial))
    assert aligned.sensor_rate == pytest.approx(bound, rel=1e-3)


def test_slow_odometry_bounds_the_cut_off_where_the_sensor_tells_of_little(
    moving: tuple[Recording, FloatArray, FloatArray],
) -> None:
    recording = slowed(moving[0])
    given = heard(recording, recording.time < 1.0)
    assert align(given, SignalConfig()).sensor_rate == pytest.approx(50.0, rel=1e-3)


def heard(recording: Recording, kept: BoolArray) -> Recording:
    """Return a recording with some of its inertial readings."""
    assert recording.imu is not None
    return replace(recording, imu=recording.imu.select(kept))


def test_where_the_sensor_is_silent_is_left_out(
    moving: tuple[Recording, FloatArray, FloatArray],
) -> None:
    recording, _, rate = moving
    time = recording.time
    samples, warnings = samples_of(heard(recording, (time < 2.0) | (time > 3.0)))
    assert warnings == ("the IMU is silent or frozen for 1 s: left out",)
    assert not ((samples.time > 2.0) & (samples.time < 3.0)).any()
    assert len(samples) > 4.5 * RATE
    linear, _ = errors(recording, samples, rate)
    assert linear < 0.02


def test_a_sensor_that_tells_of_little_costs_no_samples(
    moving: tuple[Recording, FloatArray, FloatArray],
) -> None:
    recording, _, _ = moving
    samples, warnings = samples_of(heard(recording, recording.time < 1.5))
    assert any("silent for a part" in text for text in warnings)
    assert samples.time[-1] > 5.5


def turned_by(recording: Recording, **degrees: FloatArray) -> Recording:
    """Turn what the odometry, or the sensor, takes for its axes."""
    base, imu = recording.base, recording.imu
    assert base is not None
    assert imu is not None
    if (turn := degrees.get("odometry")) is not None:
        tilt = pin.exp3(np.radians(turn))
        quaternions = [
            pin.Quaternion(tilt @ pin.Quaternion(*q[[3, 0, 1, 2]]).matrix()).coeffs()
            for q in base.orientation
        ]
        return replace(recording, base=replace(base, orientation=np.array(quaternions)))
    turn = pin.exp3(MOUNTING.rotation.T @ np.radians(degrees["sensor"]))
    return replace(
        recording,
        imu=replace(
            imu,
            angular_velocity=imu.angular_velocity @ turn.T,
            linear_acceleration=imu.linear_acceleration @ turn.T,
        ),
    )


def off_vertical(recording: Recording, samples: Samples) -> FloatArray:
    """Return the angles (n,) [°] between gravity in the samples and in truth, in the base."""
    assert recording.base is not None
    assert samples.base_pose is not None
    row = np.round((samples.time - recording.time[0]) * RATE).astype(int)
    down = np.tile(MOUNTING.gravity, (len(row), 1))
    true = rotate_into_body(recording.base.orientation[row], down)
    found = rotate_into_body(samples.base_pose[:, 3:], down)
    across = np.linalg.norm(np.cross(true, found), axis=1)
    return np.degrees(np.arctan2(across, np.sum(true * found, axis=1)))


@pytest.mark.parametrize("turn", [[3.0, 0.0, 0.0], [-2.0, 4.0, 0.0]])
def test_gravity_is_where_the_sensor_feels_it_if_the_odometry_is_tilted(
    moving: tuple[Recording, FloatArray, FloatArray], turn: list[float]
) -> None:
    recording, _, rate = moving
    assert recording.imu is not None
    imu = replace(recording.imu, linear_acceleration=recording.imu.linear_acceleration - BIAS)
    tilted = turned_by(replace(recording, imu=imu), odometry=np.array(turn))
    samples, warnings = samples_of(tilted)
    assert any("° off where the odometry has it" in warning for warning in warnings)
    # the base yaws by up to a fifth, and in its axes so does a tilt of the world
    assert off_vertical(recording, samples).max() < np.linalg.norm(turn) / 3.0
    tilt = 9.81 * np.radians(np.linalg.norm(turn))
    assert max(errors(recording, samples, rate)) < 0.2 * tilt


def test_a_sensor_whose_axes_are_off_does_not_turn_the_base(
    moving: tuple[Recording, FloatArray, FloatArray],
) -> None:
    recording, _, _ = moving
    straight, warnings = samples_of(recording)
    assert not warnings
    askew, warnings = samples_of(turned_by(recording, sensor=np.array([3.0, -2.0, 0.0])))
    assert any("off each other: turn the odometry's body frame" in w for w in warnings)
    assert off_vertical(recording, straight).max() < 0.6
    assert off_vertical(recording, askew).max() < 0.6


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda imu: replace(imu, mounting=None), "'imu' in the robot's description"),
        (lambda imu: replace(imu, linear_acceleration=imu.linear_acceleration / 9.81), "m/s²"),
        (lambda imu: replace(imu, angular_velocity=np.degrees(imu.angular_velocity)), "rad/s"),
        (lambda imu: replace(imu, time=imu.time[::-1]), "clock goes back"),
        (lambda imu: replace(imu, angular_velocity=np.nan * imu.angular_velocity), "no numbers"),
        (lambda imu: replace(imu, time=20.0 * imu.time), "too slow"),
        (lambda imu: replace(imu, time=imu.time + 4.5), "silent"),
    ],
    ids=["place", "unit of g", "degrees", "time", "nan", "rate", "gap"],
)
def test_a_sensor_that_cannot_be_the_bases_is_left_alone_and_named(
    moving: tuple[Recording, FloatArray, FloatArray], change: object, expected: str
) -> None:
    recording, _, _ = moving
    assert callable(change)
    samples, warnings = samples_of(replace(recording, imu=change(recording.imu)))
    plain, _ = samples_of(recording, inertial=False)
    assert any(expected in warning for warning in warnings), warnings
    assert samples.base_acceleration is not None
    np.testing.assert_array_equal(samples.base_acceleration, plain.base_acceleration)
