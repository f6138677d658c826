# SPDX-License-Identifier: Apache-2.0
"""A live base's motion comes from its inertial sensor while that agrees with the odometry."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.online.stream import SampleStream
from sysid_core.online.stream_config import StreamConfig
from sysid_core.recording import BaseRecording, ImuRecording, Recording, Samples
from sysid_core.robot import load_robot
from sysid_core.robot.description import FrameOnLink

RATE = 500.0
SETTINGS = StreamConfig(rate=RATE, cutoff=20.0, sample_rate=100.0)
GRAVITY = np.array([0.0, 0.0, -9.81])
MOUNTING = FrameOnLink("base_link", (0.2, -0.1, 0.15), (0.4, -0.3, 1.2))
AWAKE = 1.5
"""Time [s] after which the sensor has shown that it agrees."""


class Flight:
    """A base that sways and turns in closed form, its sensor off the origin and askew."""

    def __init__(self, duration: float = 4.0, *, noise: float = 0.0) -> None:
        description = replace(load_robot("solo12").description, contacts=(), imu=MOUNTING)
        self.robot = load_robot(description)
        rng = np.random.default_rng(21)
        self.time = np.arange(round(duration * RATE)) / RATE
        n = len(self.time)
        t = self.time[:, None]
        w = 2.0 * np.pi * np.array([0.9, 1.3, 0.7])
        phase = rng.uniform(0.0, 6.0, (2, 3))
        self.position = 0.05 * np.sin(w * t + phase[0])
        velocity, acceleration = (
            0.05 * w * np.cos(w * t + phase[0]),
            -0.05 * w**2 * np.sin(w * t + phase[0]),
        )
        # angular velocity in the base's axes; orientation by integration with small steps
        self.omega = 0.8 * np.cos(w[::-1] * t + phase[1])
        self.alpha = -0.8 * w[::-1] * np.sin(w[::-1] * t + phase[1])
        turns = [pin.rpy.rpyToMatrix(0.1, -0.2, 0.7)]
        fine = 10
        for k in range(n - 1):
            turn = turns[-1]
            for i in range(fine):
                at = self.time[k] + (i + 0.5) / (fine * RATE)
                rate = 0.8 * np.cos(w[::-1] * at + phase[1])
                turn = turn @ pin.exp3(rate / (fine * RATE))
            turns.append(turn)
        self.turns = np.array(turns)
        self.orientation = np.array([pin.Quaternion(turn).coeffs() for turn in turns])
        self.linear = np.einsum("nji,nj->ni", self.turns, velocity)
        proper = np.einsum("nji,nj->ni", self.turns, acceleration - GRAVITY)
        # d/dt (Rᵀ ṗ) = Rᵀ p̈ − ω × (Rᵀ ṗ)
        self.rate = np.einsum("nji,nj->ni", self.turns, acceleration) - np.cross(
            self.omega, self.linear
        )
        r = np.array(MOUNTING.xyz)
        at_sensor = (
            proper + np.cross(self.alpha, r) + np.cross(self.omega, np.cross(self.omega, r))
        )
        mounted = pin.rpy.rpyToMatrix(*MOUNTING.rpy)
        self.gyroscope, self.force = self.omega @ mounted, at_sensor @ mounted
        self.twist = np.hstack([self.linear, self.omega])
        self.twist = self.twist + noise * rng.normal(size=self.twist.shape)
        self.joints = np.zeros((n, len(self.robot.joint_names)))

    def messages(self, chosen: slice, *, until: float = np.inf, every: int = 1) -> Recording:
        """Return odometry, and `every` inertial reading before `until` [s]."""
        rows = np.arange(len(self.time))[chosen]
        base = BaseRecording(
            self.time[rows], self.position[rows], self.orientation[rows], self.twist[rows]
        )
        seen = rows[(rows % every == 0) & (self.time[rows] < until)]
        imu = ImuRecording(self.time[seen], self.gyroscope[seen], self.force[seen])
        return Recording.of_sensors(base=base, imu=imu)

    def play(self, stream: SampleStream, *, until: float = np.inf, every: int = 1) -> Samples:
        """Feed a stream; the sensor shows `every` reading, and falls silent at `until` [s]."""
        parts = []
        for start in range(0, len(self.time), 20):
            chosen = slice(start, start + 20)
            stream.push(self.messages(chosen, until=until, every=every))
            parts.append(
                stream.push_joint_states(
                    self.time[chosen],
                    self.robot.joint_names,
                    self.joints[chosen],
                    self.joints[chosen],
                )
            )
        return Samples.concatenate([part for part in parts if len(part)])

    def errors(self, samples: Samples) -> tuple[float, float, float]:
        """Return RMS errors of ω, of its derivative and of the linear acceleration."""
        late = samples.select(samples.time > AWAKE)
        rows = np.rint(late.time * RATE).astype(int)
        twist, acceleration = np.asarray(late.base_twist), np.asarray(late.base_acceleration)
        return (
            _rms(twist[:, 3:] - self.omega[rows]),
            _rms(acceleration[:, 3:] - self.alpha[rows]),
            _rms(acceleration[:, :3] - self.rate[rows]),
        )


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.sum(values**2, axis=1))))


@pytest.fixture(scope="module")
def noisy() -> Flight:
    """Return a flight whose odometry is off by 2 cm/s and 0.02 rad/s."""
    return Flight(noise=0.02)


def test_the_motion_of_an_offset_and_askew_sensor_is_that_of_the_base() -> None:
    flight = Flight()
    samples = flight.play(SampleStream(flight.robot, SETTINGS))
    omega, alpha, linear = flight.errors(samples)
    # the low-pass passes 1.3 Hz but for a thousandth of 0.8 rad/s, 6 rad/s² and 3 m/s²
    assert omega < 2e-3
    assert alpha < 2e-2
    assert linear < 2e-2


def test_the_sensor_takes_the_noise_of_odometry_out_of_the_accelerations(noisy: Flight) -> None:
    with_sensor = SampleStream(noisy.robot, SETTINGS)
    by_sensor = noisy.errors(noisy.play(with_sensor))
    alone = SampleStream(noisy.robot, SETTINGS)
    by_odometry = noisy.errors(noisy.play(alone, until=-1.0))
    for better, worse in zip(by_sensor, by_odometry, strict=True):
        assert better < 0.3 * worse
    assert with_sensor.take_diagnostics() == alone.take_diagnostics() == ()
    assert alone.counts["samples without imu"] == 0  # it was never there


def test_constant_biases_are_taken_off(noisy: Flight) -> None:
    exact = noisy.errors(noisy.play(SampleStream(noisy.robot, SETTINGS)))
    off = copy(noisy)
    off.force = noisy.force + np.array([0.2, -0.3, 0.25])
    off.gyroscope = noisy.gyroscope + np.array([0.02, -0.03, 0.05])
    biased = off.errors(off.play(SampleStream(off.robot, SETTINGS)))
    np.testing.assert_allclose(biased, exact, rtol=0.02, atol=2e-3)


def test_batches_do_not_matter_to_biases(noisy: Flight) -> None:
    whole = noisy.play(SampleStream(noisy.robot, SETTINGS))
    again = SampleStream(noisy.robot, SETTINGS)
    fine = []
    for k in range(len(noisy.time)):
        chosen = slice(k, k + 1)
        again.push(noisy.messages(chosen))
        fine.append(
            again.push_joint_states(
                noisy.time[chosen],
                noisy.robot.joint_names,
                noisy.joints[chosen],
                noisy.joints[chosen],
            )
        )
    one_by_one = Samples.concatenate([part for part in fine if len(part)])
    np.testing.assert_array_equal(one_by_one.time, whole.time)
    np.testing.assert_allclose(
        np.asarray(one_by_one.base_acceleration), np.asarray(whole.base_acceleration), atol=1e-9
    )


def test_a_sensor_that_falls_silent_costs_no_sample_and_is_counted(noisy: Flight) -> None:
    complete = noisy.play(SampleStream(noisy.robot, SETTINGS))
    stream = SampleStream(noisy.robot, SETTINGS)
    samples = noisy.play(stream, until=2.5)
    np.testing.assert_array_equal(samples.time, complete.time)
    assert np.isfinite(np.asarray(samples.base_acceleration)).all()
    assert stream.counts["samples without imu"] > 50
    odometry = noisy.play(SampleStream(noisy.robot, SETTINGS), until=-1.0)
    after = samples.time > 2.5 + stream.delay
    np.testing.assert_array_equal(
        np.asarray(samples.base_acceleration)[after],
        np.asarray(odometry.base_acceleration)[after],
    )


def freeze(flight: Flight, names: tuple[str, ...], rows: slice) -> Flight:
    """Return a flight in which some readings stay what the first of these rows says."""
    frozen = copy(flight)
    for name in names:
        values = getattr(flight, name).copy()
        values[rows] = values[rows.start]
        setattr(frozen, name, values)
    return frozen


def test_a_sensor_that_repeats_itself_is_silent(noisy: Flight) -> None:
    since = round(2.5 * RATE)
    frozen = freeze(noisy, ("gyroscope", "force"), slice(since, None))
    stream = SampleStream(frozen.robot, SETTINGS)
    samples = frozen.play(stream)
    silent = noisy.play(SampleStream(noisy.robot, SETTINGS), until=noisy.time[since + 1])
    np.testing.assert_array_equal(samples.time, silent.time)
    np.testing.assert_array_equal(
        np.asarray(samples.base_acceleration), np.asarray(silent.base_acceleration)
    )
    assert stream.counts["imu repeated"] == len(noisy.time) - since - 1
    assert [each.kind for each in stream.take_diagnostics()] == ["imu_silent"]


def test_odometry_that_repeats_itself_in_motion_is_no_motion(noisy: Flight) -> None:
    rows = slice(round(2.0 * RATE), round(2.5 * RATE))
    frozen = freeze(noisy, ("position", "orientation", "twist"), rows)
    samples = frozen.play(SampleStream(frozen.robot, SETTINGS))
    assert not ((samples.time > 2.0) & (samples.time < 2.5)).any()
    assert samples.time[-1] > 3.5
    whole = noisy.errors(noisy.play(SampleStream(noisy.robot, SETTINGS)))
    np.testing.assert_allclose(frozen.errors(samples), whole, rtol=0.2)


def degrees(flight: Flight) -> None:
    flight.gyroscope = np.degrees(flight.gyroscope)


def other_axes(flight: Flight) -> None:
    flight.gyroscope = flight.gyroscope[:, [1, 2, 0]]


def in_g(flight: Flight) -> None:
    flight.force = flight.force / 9.81


def upside_down(flight: Flight) -> None:
    flight.force = -flight.force


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (degrees, "publish rad/s"),
        (other_axes, "give .* axes as 'imu' in the robot's description"),
        (in_g, "publish m/s² with gravity"),
        (upside_down, "give its place and axes as 'imu' in the robot's description"),
    ],
)
def test_an_implausible_sensor_is_named_and_not_used(
    spoil: Callable[[Flight], None], words: str
) -> None:
    flight = Flight(3.0)
    odometry = flight.play(SampleStream(flight.robot, SETTINGS), until=-1.0)
    spoil(flight)
    stream = SampleStream(flight.robot, SETTINGS)
    samples = flight.play(stream)
    np.testing.assert_array_equal(
        np.asarray(samples.base_acceleration), np.asarray(odometry.base_acceleration)
    )
    (finding,) = stream.take_diagnostics()
    assert re.search(words, str(finding))
    assert stream.counts["samples with an implausible imu"] > 100


def test_readings_that_are_no_numbers_are_counted_and_bridged(noisy: Flight) -> None:
    stream = SampleStream(noisy.robot, SETTINGS)
    nothing = ImuRecording(np.zeros(1), np.full((1, 3), np.nan), np.zeros((1, 3)))
    stream.push(Recording.of_sensors(imu=nothing))
    assert stream.counts["imu late or not finite"] == 1
    holed = copy(noisy)
    gone = np.random.default_rng(22).random((len(noisy.force), 1)) < 0.05
    holed.force = np.where(gone, np.nan, noisy.force)
    spoiled = holed.errors(holed.play(stream))
    exact = noisy.errors(noisy.play(SampleStream(noisy.robot, SETTINGS)))
    np.testing.assert_allclose(spoiled, exact, rtol=0.1)
    assert stream.counts["samples without imu"] == 0


def test_a_sensor_too_slow_for_the_filter_is_left_alone() -> None:
    flight = Flight(3.0)
    stream = SampleStream(flight.robot, SETTINGS)
    odometry = flight.play(SampleStream(flight.robot, SETTINGS), until=-1.0)
    samples = flight.play(stream, every=20)  # 25 Hz for a cut-off of 20 Hz
    np.testing.assert_allclose(
        np.asarray(samples.base_acceleration),
        np.asarray(odometry.base_acceleration)[: len(samples)],
        atol=1e-11,
    )
    assert len(odometry) - len(samples) <= 11  # the last ones still wait for a reading
    assert stream.counts["samples without imu"] > 100
    (finding,) = stream.take_diagnostics()
    assert "comes at 25 Hz, too slowly for a cut-off of 20 Hz: raise its rate to 50 Hz" in str(
        finding
    )


def test_a_sensor_that_loses_messages_is_still_used(noisy: Flight) -> None:
    """At 125 Hz a cut-off of 20 Hz is well within reach; one message in ten never comes."""
    lossy = copy(noisy)
    gone = np.random.default_rng(23).random((len(noisy.force), 1)) < 0.1
    lossy.force = np.where(gone, np.nan, noisy.force)
    stream = SampleStream(lossy.robot, SETTINGS)
    every = lossy.errors(lossy.play(stream, every=4))
    exact = noisy.errors(noisy.play(SampleStream(noisy.robot, SETTINGS)))
    assert stream.take_diagnostics() == ()
    assert stream.counts["samples without imu"] == 0
    np.testing.assert_allclose(every, exact, rtol=0.3)


def test_what_a_good_sensor_says_of_a_tilted_odometry_blames_no_sample() -> None:
    flight = Flight()
    tilt = pin.exp3(np.radians([4.0, 0.0, 0.0]))
    flight.orientation = np.array([pin.Quaternion(tilt @ turn).coeffs() for turn in flight.turns])
    stream, told = SampleStream(flight.robot, SETTINGS), set[str]()
    for start in range(0, len(flight.time), 200):
        chosen = slice(start, start + 200)
        messages, joints = flight.messages(chosen), flight.joints[chosen]
        assert messages.imu is not None
        silent = (messages.imu.time > 3.05) & (messages.imu.time < 3.25)
        stream.push(replace(messages, imu=messages.imu.select(~silent)))
        stream.push_joint_states(flight.time[chosen], flight.robot.joint_names, joints, joints)
        told |= {one.kind for one in stream.take_diagnostics()}
    assert "base_tilted" in told
    assert stream.counts["samples without imu"] > 10
    assert stream.counts["samples with an implausible imu"] == 0


def test_without_a_usable_sensor_the_cutoff_is_the_odometrys() -> None:
    """Readings in g at first; once they are right, they have to agree for a while."""
    flight = Flight(14.0, noise=0.01)
    wrong = flight.time[:, None] < 0.5
    flight.force = np.where(wrong, flight.force / 9.81, flight.force)
    stream = SampleStream(flight.robot, replace(SETTINGS, by_odometry=10.0))
    cutoffs = [stream.cutoff]
    for start in range(0, len(flight.time), 100):
        chosen = slice(start, start + 100)
        stream.push(flight.messages(chosen))
        joints = flight.joints[chosen]
        stream.push_joint_states(flight.time[chosen], flight.robot.joint_names, joints, joints)
        cutoffs.append(stream.cutoff)
        if start == 1000:
            assert [one.kind for one in stream.take_diagnostics()] == ["imu_acceleration"]
    changes = [
        cutoff for cutoff, last in zip(cutoffs[1:], cutoffs, strict=False) if cutoff != last
    ]
    assert changes == [10.0, 20.0]
    assert cutoffs[5] == 10.0
    assert stream.take_diagnostics() == ()
