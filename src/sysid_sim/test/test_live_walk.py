# SPDX-License-Identifier: Apache-2.0
"""A walking robot is identified live, whatever of its sensors is missing or wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.contact_kinematics import configuration
from sysid_core.errors import DataError
from sysid_core.identification import IdentifyConfig, identify
from sysid_core.online.replay import replay, stream_settings_for
from sysid_core.online.stream import SampleStream
from sysid_core.online.update import Update
from sysid_core.recording import BaseRecording, Recording, Samples
from sysid_core.signals.rotation import rotate_into_body
from sysid_core.signals.sensors import SOURCES
from sysid_sim.run import Run, run_scenario
from sysid_sim.scenarios import find_scenario

DURATION = 6.0
STILL = 2.0
"""Time [s] that the robot stands before it walks."""

Change = Callable[[Recording], Recording]


@cache
def walked(name: str) -> Run:
    return run_scenario(find_scenario(name), duration=DURATION)


class Outcome(NamedTuple):
    """What a replay came to."""

    last: Update
    told: tuple[str, ...]
    run: Run

    @property
    def mass(self) -> float:
        masses = self.run.robot.layout.masses
        return float(self.last.parameters[masses].sum())

    @property
    def true_mass(self) -> float:
        return float(self.run.truth[self.run.robot.layout.masses].sum())


def as_it_is(recording: Recording) -> Recording:
    return recording


@cache
def replayed(name: str, change: Change = as_it_is) -> Outcome:
    """Replay a changed recording of a walk."""
    run, told = walked(name), list[str]()
    recording = change(run.recording)
    stream = stream_settings_for(recording, run.robot)
    for step in replay(recording, run.robot, stream=stream, tell=told.extend):
        last = step.update
    return Outcome(last, tuple(told), run)


def without_contacts(recording: Recording) -> Recording:
    return replace(recording, contacts=None)


def without_imu(recording: Recording) -> Recording:
    return replace(recording, imu=None)


def with_flags(recording: Recording, share: float, *, none: bool = False) -> Recording:
    """Return the recording with a share of its flags flipped, or none of them set."""
    assert recording.contacts is not None
    active = recording.contacts.active
    flips = np.random.default_rng(5).random(active.shape) < share
    wrong = np.zeros_like(active) if none else active ^ flips
    return replace(recording, contacts=replace(recording.contacts, active=wrong))


def one_in_ten_flipped(recording: Recording) -> Recording:
    return with_flags(recording, 0.1)


def all_in_the_air(recording: Recording) -> Recording:
    return with_flags(recording, 0.0, none=True)


def with_base(recording: Recording, change: Callable[[BaseRecording], BaseRecording]) -> Recording:
    assert recording.base is not None
    return replace(recording, base=change(recording.base))


def flipped(recording: Recording) -> Recording:
    """Turn every third quaternion's sign, and give all of them half again their length."""

    def change(base: BaseRecording) -> BaseRecording:
        sign = np.where(np.arange(len(base.time)) % 3 == 0, -1.5, 1.5)[:, None]
        return replace(base, orientation=sign * base.orientation)

    return with_base(recording, change)


def twist_in_the_world(recording: Recording) -> Recording:
    def change(base: BaseRecording) -> BaseRecording:
        backward = base.orientation * np.array([-1.0, -1.0, -1.0, 1.0])
        parts = [rotate_into_body(backward, base.twist[:, k : k + 3]) for k in (0, 3)]
        return replace(base, twist=np.hstack(parts))

    return with_base(recording, change)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param("solo12_trot", without_contacts, marks=pytest.mark.heavy),
        pytest.param("solo12_trot", one_in_ten_flipped, marks=pytest.mark.heavy),
        ("spot_trot", as_it_is),
        ("spot_trot", without_imu),
        ("spot_trot", without_contacts),
        pytest.param("spot_trot", all_in_the_air, marks=pytest.mark.heavy),
        pytest.param("spot_trot", flipped, marks=pytest.mark.heavy),
    ],
)
def test_a_walk_is_identified_whatever_is_missing_or_wrong(name: str, change: Change) -> None:
    found = replayed(name, change)
    assert found.last.identified
    assert found.last.scores.r2 > 0.99
    assert found.mass == pytest.approx(found.true_mass, rel=0.02)


def in_a_tilted_world(recording: Recording) -> Recording:
    """Turn the odometry's world by 4°, which no inertial sensor tells."""
    tilt = pin.Quaternion(pin.rpy.rpyToMatrix(np.radians(4.0), 0.0, 0.0))

    def change(base: BaseRecording) -> BaseRecording:
        turned = [(tilt * pin.Quaternion(*q[[3, 0, 1, 2]])).coeffs() for q in base.orientation]
        position = base.position @ tilt.matrix().T
        return replace(base, orientation=np.array(turned), position=position)

    return without_imu(with_base(recording, change))


@pytest.mark.heavy
def test_an_odometry_whose_world_is_tilted_does_no_harm() -> None:
    name, errors = "spot_trot", []
    samples, run = samples_of(name), walked(name)
    regression = ContactRegression(run.robot)
    truth = regression.residuals(samples, run.truth).residual
    for change in (without_imu, in_a_tilted_world):
        found = replayed(name, change).last
        assert any("world is tilted" in text for text in found.warnings) is (
            change is in_a_tilted_world
        )
        own = regression.residuals(samples, found.parameters).residual
        errors.append(float(np.sqrt(np.mean((own - truth) ** 2))))
    assert errors[1] < 1.5 * errors[0]


@pytest.mark.parametrize(
    "name", [pytest.param("solo12_trot", marks=pytest.mark.heavy), "spot_trot"]
)
def test_contacts_from_torques_tell_the_same_as_their_topic(name: str) -> None:
    given, told = replayed(name), replayed(name, without_contacts)
    assert any("stance is estimated from the torques" in text for text in told.told)
    assert not any("torques" in text for text in given.told)
    # feet that touch down or lift off carry too little to tell: those samples are left out
    assert told.last.samples > 0.9 * given.last.samples
    assert told.mass == pytest.approx(given.mass, rel=0.01)
    # both predict the same torques, but for a share of what friction and noise leave
    samples = samples_of(name)
    regression = ContactRegression(given.run.robot)
    residuals = [
        regression.residuals(samples, outcome.last.parameters) for outcome in (given, told)
    ]
    between = float(np.sqrt(np.mean((residuals[0].residual - residuals[1].residual) ** 2)))
    assert between < 0.02 * float(np.sqrt(np.mean(residuals[0].target ** 2)))


def samples_of(name: str, change: Change = as_it_is) -> Samples:
    return streamed(name, change).samples


class Streamed(NamedTuple):
    """A stream after a walk, its samples and what it told."""

    stream: SampleStream
    samples: Samples
    told: tuple[str, ...]


@cache
def streamed(name: str, change: Change = as_it_is) -> Streamed:
    run = walked(name)
    recording = change(run.recording)
    stream = SampleStream(run.robot, stream_settings_for(recording, run.robot))
    assert recording.effort is not None
    parts: list[Samples] = []
    for start in range(0, len(recording.time), 25):
        part = slice(start, start + 25)
        sensors = {
            source: messages.select(part)
            for source in SOURCES
            if (messages := getattr(recording, source)) is not None
        }
        stream.push(Recording.of_sensors(**sensors))
        parts.append(
            stream.push_joint_states(
                recording.time[part],
                recording.joint_names,
                recording.position[part],
                recording.effort[part],
            )
        )
    whole = [part for part in parts if len(part)]
    samples = Samples.concatenate(whole) if whole else parts[0]
    return Streamed(stream, samples, tuple(map(str, stream.take_diagnostics())))


def test_the_inertial_sensor_halves_what_the_true_model_leaves() -> None:
    """Accelerations from odometry are noise at the base; those from the sensor hardly are."""
    run = walked("spot_trot")
    left = {}
    for change in (as_it_is, without_imu):
        samples = samples_of("spot_trot", change)
        samples = samples.select(samples.time > samples.time[0] + STILL)
        found = ContactRegression(run.robot).residuals(samples, run.truth)
        left[change] = np.sqrt(np.mean(found.residual[:, 6:] ** 2, axis=0).sum())
    assert left[as_it_is] < 0.75 * left[without_imu]


def test_odometry_whose_stamps_jitter_is_put_on_its_clock() -> None:
    def stamped_at_arrival(recording: Recording) -> Recording:
        def change(base: BaseRecording) -> BaseRecording:
            late = np.random.default_rng(0).exponential(1e-3, len(base.time))
            time = np.maximum.accumulate(base.time + late) + 1e-7 * np.arange(len(late))
            return replace(base, time=time)

        return with_base(recording, change)

    found, run = streamed("spot_trot", stamped_at_arrival), walked("spot_trot")
    assert found.told == ()
    left = [
        np.linalg.norm(ContactRegression(run.robot).residuals(samples, run.truth).residual)
        / np.sqrt(len(samples))
        for samples in (found.samples, samples_of("spot_trot"))
    ]
    assert left[0] < 1.2 * left[1]
    assert len(found.samples) > 0.9 * len(samples_of("spot_trot"))


def test_flags_that_come_back_are_used_again() -> None:
    def gap(recording: Recording) -> Recording:
        contacts = recording.contacts
        assert contacts is not None
        silent = (contacts.time > 3.0) & (contacts.time < 5.0)
        return replace(
            recording,
            contacts=replace(
                contacts, time=contacts.time[~silent], active=contacts.active[~silent]
            ),
        )

    outcome, whole = replayed("spot_trot", gap), replayed("spot_trot")
    # of the silent time only samples without a doubtful foot are in the window
    assert outcome.last.samples > 0.95 * whole.last.samples
    assert not any("estimated from the torques" in text for text in outcome.told)


def test_a_twist_in_the_world_frame_is_refused_and_told() -> None:
    found = streamed("spot_trot", twist_in_the_world)
    whole = samples_of("spot_trot")
    assert len(found.samples) < 0.5 * len(whole)
    assert found.stream.counts["samples with unusable odometry"] > 0
    assert any("world frame" in text and "REP-105" in text for text in found.told)


@pytest.mark.parametrize("change", [one_in_ten_flipped, all_in_the_air])
def test_wrong_flags_are_told_with_the_foot(change: Change) -> None:
    told = streamed("spot_trot", change).told
    assert any("carries load without a contact flag" in text for text in told)


def front_legs_swapped(recording: Recording) -> Recording:
    return _wired(recording, [3, 4, 5, 0, 1, 2, *range(6, 12)], np.ones(12))


def a_hip_mirrored(recording: Recording) -> Recording:
    return _wired(recording, list(range(12)), np.where(np.arange(12) == 6, -1.0, 1.0))


def _wired(recording: Recording, order: list[int], signs: FloatArray) -> Recording:
    """Return what a driver gives whose joints come in another order, some of the other sense."""
    assert recording.velocity is not None
    assert recording.effort is not None
    return replace(
        recording,
        position=recording.position[:, order] * signs,
        velocity=recording.velocity[:, order] * signs,
        effort=recording.effort[:, order] * signs,
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            front_legs_swapped,
            "{0} and {3}, {1} and {4}, {2} and {5} are swapped",
            marks=pytest.mark.heavy,
        ),
        (a_hip_mirrored, "{6} have the opposite sign"),
    ],
)
def test_legs_that_are_mixed_up_are_named_and_no_model_is_used(change: Change, said: str) -> None:
    found = replayed("spot_trot", change)
    assert not found.last.identified
    (cause,) = found.last.causes
    assert cause.kind == "joint_order"
    names = found.run.robot.joint_names
    assert f"positions and efforts of {said.format(*names)}" in cause.message


def test_a_recorded_walk_tells_what_its_feet_bear_for_a_while() -> None:
    run = walked("spot_trot")
    recording, regression = run.recording, ContactRegression(run.robot)
    samples = streamed("spot_trot").samples
    assert recording.effort is not None
    time, effort = samples.time - recording.time[0], recording.effort.copy()
    state = configuration(run.robot, samples)
    jacobian = regression.kinematics.evaluate(state.q).jacobian
    flags = np.asarray(samples.contacts, dtype=bool)
    rider = np.array([0.0, 0.0, -50.0, 0.0, 0.0, 0.0])
    added = np.zeros((len(samples), effort.shape[1]))
    for i in np.flatnonzero((time > 3.0) & (time < 3.8) & flags.any(axis=1)):
        J = regression.kinematics.constraint_rows(jacobian[i : i + 1], flags[i])[0]
        own = np.repeat([state.q[i, 3:7]], 2, axis=0)
        feet = np.linalg.lstsq(
            J[:, :6].T, rotate_into_body(own, rider.reshape(2, 3)).ravel(), rcond=None
        )[0]
        added[i] = J[:, 6:].T @ feet
    columns = [recording.joint_names.index(name) for name in run.robot.joint_names]
    for column, own in zip(columns, added.T, strict=True):
        effort[:, column] += np.interp(recording.time, samples.time, own)
    given = replace(recording, effort=effort)
    found = identify(run.robot, given, IdentifyConfig(disturbed="kept"))
    (said,) = (text for text in found.warnings if "in a part of the recording" in text)
    number, start, end = re.findall(r"[0-9.]+", said)[:3]
    assert 3.5 < float(number) < 6.0
    assert "the robot seems to carry about" in said
    assert 2.7 < float(start) <= 3.1
    assert 3.7 <= float(end) < 4.1


@pytest.mark.parametrize(
    "name", [pytest.param("solo12_trot", marks=pytest.mark.heavy), "spot_trot"]
)
def test_a_good_walk_has_nothing_to_mend(name: str) -> None:
    found = streamed(name)
    assert found.told == ()
    assert found.stream.contact_source == "topic"


def test_missing_odometry_is_told() -> None:
    def gone(recording: Recording) -> Recording:
        return replace(recording, base=None)

    found = streamed("spot_trot", gone)
    assert len(found.samples) == 0
    assert any("publish 'odom'" in text for text in found.told)
    with pytest.raises(DataError, match="record 'odom'"):
        replayed("spot_trot", gone)


def test_odometry_that_stops_stops_the_samples_and_is_told() -> None:
    def stopped(recording: Recording) -> Recording:
        def change(base: BaseRecording) -> BaseRecording:
            end = int(np.searchsorted(base.time, 4.0))
            return BaseRecording(
                base.time[:end], base.position[:end], base.orientation[:end], base.twist[:end]
            )

        return with_base(recording, change)

    run = walked("spot_trot")
    told: list[str] = []
    recording = stopped(run.recording)
    stream = stream_settings_for(recording, run.robot)
    steps = list(replay(recording, run.robot, stream=stream, tell=told.extend))
    assert steps[-1].update.time < 4.0
    assert any("publish 'odom'" in text for text in told)
