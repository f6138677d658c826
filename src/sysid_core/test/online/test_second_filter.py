# SPDX-License-Identifier: Apache-2.0
"""Live samples get a lower low-pass, and late efforts their time, where that predicts torque."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.contacts.condition import condition_contacts
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.replay import replay, stream_settings_for
from sysid_core.online.second_filter import SecondFilter, leaves_enough, rate_of
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.update import Update
from sysid_core.recording import Recording, Samples
from sysid_core.robot import Robot, load_robot
from sysid_core.signals.cutoff import CutoffChoice

RATE, BEFORE = 100.0, 40.0
DRIFT = np.array([0.3, -0.5])


def _choice(cutoff: float, lag: float = 0.0) -> CutoffChoice:
    return CutoffChoice(cutoff, 0.0, 0.0, "", lag=lag)


def _samples(start: float, stop: float, lag: float = 0.0, shaken: float = 0.0) -> Samples:
    """Return two joints that drift and swing at 0.4 Hz, their efforts a lag [s] late."""
    time = np.arange(round(start * RATE), round(stop * RATE)) / RATE

    def signal(at: FloatArray, size: float) -> FloatArray:
        return np.asarray(size * np.sin(0.8 * np.pi * at)[:, None] + at[:, None] * DRIFT)

    shake = shaken * np.sin(2.0 * np.pi * 25.0 * time)[:, None]
    position = signal(time, 1.0)
    return Samples(time, position + shake, 0.0 * position, 0.0 * position, signal(time - lag, 5.0))


@pytest.mark.parametrize("lag", [0.0, 0.012, -0.02])
def test_motion_passes_vibration_does_not_and_efforts_get_their_time(lag: float) -> None:
    out = SecondFilter(_choice(5.0, lag), RATE, BEFORE).push(_samples(0.0, 5.0, lag, shaken=1e-3))
    still = _samples(0.0, 5.0).select(np.isin(_samples(0.0, 5.0).time, out.time))
    w, t = 0.8 * np.pi, out.time[:, None]
    assert len(out) > 400
    np.testing.assert_allclose(out.position, still.position, atol=2e-3)
    np.testing.assert_allclose(out.velocity, w * np.cos(w * t) + DRIFT, atol=5e-3)
    np.testing.assert_allclose(out.acceleration, -(w**2) * np.sin(w * t) * [1, 1], atol=0.03)
    np.testing.assert_allclose(out.effort, still.effort, atol=8e-3)


def test_samples_come_out_the_same_however_they_come_in() -> None:
    rng, whole = np.random.default_rng(0), _samples(0.0, 6.0, 0.01)
    at_once = SecondFilter(_choice(3.0, 0.01), RATE, BEFORE).push(whole)
    step_by_step = SecondFilter(_choice(3.0, 0.01), RATE, BEFORE)
    cuts = np.sort(rng.choice(len(whole), 40, replace=False))
    edges = [0, *cuts.tolist(), len(whole)]
    parts = [step_by_step.push(whole.select(slice(a, b))) for a, b in pairwise(edges)]
    together = Samples.concatenate(parts)
    for name in ("time", "position", "velocity", "acceleration", "effort"):
        np.testing.assert_allclose(getattr(together, name), getattr(at_once, name), atol=1e-9)
    assert step_by_step.time == at_once.time[-1]


def test_nothing_is_filtered_across_a_gap_or_a_clock_that_goes_back() -> None:
    second = SecondFilter(_choice(5.0), RATE, BEFORE)
    first = second.push(_samples(0.0, 2.0))
    reach = first.time[0]
    after = second.push(_samples(3.0, 5.0))
    assert after.time[0] == pytest.approx(3.0 + reach)
    back = second.push(_samples(1.0, 3.0))
    assert back.time[0] == pytest.approx(1.0 + reach)


def test_the_rate_is_that_of_the_samples_whatever_gaps_there_are() -> None:
    assert rate_of([_samples(0.0, 1.0), _samples(4.0, 5.0)]) == pytest.approx(RATE)


def _walking(time: FloatArray) -> Samples:
    """Return samples of a base whose joint swings, and whose effort is 20 ms late."""
    wave = np.sin(4.0 * time)[:, None]
    base = np.repeat([[0.0, 0.0, 0.4, 0.0, 0.0, 0.0, 1.0]], len(time), axis=0)
    late = 3.0 * np.sin(4.0 * (time - 0.02))[:, None]
    twist = np.tile(wave, 6)
    return Samples(time, wave, wave, wave, late, base, twist, twist, wave > 0.0)


@pytest.mark.parametrize("lag", [0.02, -0.013])
def test_efforts_of_a_floating_robot_move_alone(lag: float) -> None:
    time = np.arange(400) / RATE
    samples = _walking(time[(time < 1.5) | (time > 1.7)])  # as around a change of contacts
    late = replace(samples, effort=3.0 * np.sin(4.0 * (samples.time - lag))[:, None])
    whole = SecondFilter(_choice(BEFORE, lag), RATE, BEFORE).push(late)
    assert len(samples) - len(whole) <= 10
    index = np.searchsorted(samples.time, whole.time)
    for name in ("position", "acceleration", "base_pose", "base_twist", "contacts"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(samples, name)[index])
    np.testing.assert_allclose(whole.effort, 3.0 * np.sin(4.0 * whole.time)[:, None], atol=2e-4)
    step_by_step = SecondFilter(_choice(BEFORE, lag), RATE, BEFORE)
    cuts = np.sort(np.random.default_rng(0).choice(len(samples), 60, replace=False))
    parts = [step_by_step.push(late.select(p)) for p in np.split(np.arange(len(late)), cuts)]
    together = Samples.concatenate(parts)
    np.testing.assert_array_equal(together.time, whole.time)
    np.testing.assert_allclose(together.effort, whole.effort, atol=1e-12)


def test_all_sensors_of_a_floating_robot_pass_a_lower_low_pass() -> None:
    calm = _walking(np.arange(400) / RATE)
    shake = 0.5 * np.sin(2.0 * np.pi * 25.0 * calm.time)[:, None]
    turned = np.repeat([1.0, -1.0], 200)[:, None]  # quaternions may flip their sign
    pose, twist = np.asarray(calm.base_pose), np.asarray(calm.base_twist)
    shaken = replace(
        calm,
        base_pose=np.hstack([pose[:, :3], turned * pose[:, 3:]]),
        base_twist=twist + shake,
        base_acceleration=3.0 * twist + shake,
        wrenches=np.repeat((twist + shake)[:, None], 2, axis=1),
    )
    out = SecondFilter(_choice(5.0), RATE, BEFORE).push(shaken)
    assert len(out) > 350
    there = np.searchsorted(calm.time, out.time)
    wrenches = np.repeat(twist[there, None], 2, axis=1)
    np.testing.assert_allclose(np.asarray(out.base_twist), twist[there], atol=5e-3)
    np.testing.assert_allclose(np.asarray(out.base_acceleration), 3.0 * twist[there], atol=1e-2)
    np.testing.assert_allclose(np.asarray(out.wrenches), wrenches, atol=5e-3)
    np.testing.assert_allclose(abs(np.asarray(out.base_pose)), abs(pose[there]), atol=1e-9)
    np.testing.assert_array_equal(np.asarray(out.contacts), np.asarray(calm.contacts)[there])


@pytest.mark.parametrize(("longest", "enough"), [(4.0, True), (0.25, False)])
def test_a_low_pass_must_leave_most_samples(longest: float, enough: bool) -> None:
    """Feet that come and go leave short runs."""
    time = np.arange(400) / RATE
    time += 0.05 * np.floor(time / longest)
    config = OnlineConfig(sample_rate=RATE, cutoff=BEFORE)
    assert leaves_enough([_walking(time)], config, 10.0) is enough


@pytest.mark.parametrize("steps", [pytest.param(0, marks=pytest.mark.heavy), 2])
def test_late_efforts_of_a_leg_get_their_time_live(
    solo12: Robot, solo12_data: Samples, steps: int
) -> None:
    late = solo12_data.effort.copy()
    late[steps:] = solo12_data.effort[: len(late) - steps]
    samples = condition_contacts(solo12, replace(solo12_data, effort=late)).kept
    identifier = OnlineIdentifier(solo12, OnlineConfig(sample_rate=RATE, cutoff=20.0))
    for first in range(0, len(samples), 20):
        identifier.ingest(samples.select(slice(first, first + 20)))
        last = identifier.update()
    told = [str(note) for note in last.notes if note.kind == "effort_lag"]
    assert [text for text in told if "20 ms after" in text] == told
    assert bool(told) == bool(steps)


@pytest.fixture(scope="module")
def arm() -> Robot:
    return load_robot("ur10")


@pytest.fixture(scope="module")
def late(arm: Robot, make_recording: Callable[..., Recording]) -> Recording:
    """Return a recording whose efforts passed a first-order low-pass of 20 ms."""
    truth, layout = arm.consistent_nominal.copy(), arm.layout
    truth[layout.term("viscous")] = [12.0, 15.0, 8.0, 2.0, 2.0, 1.5]
    truth[layout.term("coulomb")] = [9.0, 11.0, 6.0, 2.0, 1.8, 1.5]
    recording = make_recording(arm, truth, duration=14.0, rate=125.0, noise=0.1, seed=7)
    assert recording.effort is not None
    effort, share = recording.effort.copy(), 1.0 - np.exp(-1.0 / (125.0 * 0.02))
    for i in range(1, len(effort)):
        effort[i] = effort[i - 1] + share * (effort[i] - effort[i - 1])
    return replace(recording, effort=effort)


def _last(robot: Robot, recording: Recording, low_pass: str = "chosen") -> Update:
    stream = stream_settings_for(recording, robot)
    config = OnlineConfig(low_pass=low_pass)
    *_, last = replay(recording, robot, stream=stream, online=config)
    return last.update


@pytest.mark.heavy
def test_late_efforts_get_their_time_live(arm: Robot, late: Recording) -> None:
    update = _last(arm, late)
    told = [note for note in update.notes if note.kind == "effort_lag"]
    assert len(told) == 1
    assert "ms after their positions" in str(told[0])
    plain = _last(arm, late, "described")
    assert not [note for note in plain.notes if note.kind == "effort_lag"]
    errors = [np.linalg.norm(u.scores.candidate.rmse) for u in (update, plain)]
    assert errors[0] < 0.6 * errors[1]


def test_a_described_cutoff_is_left_alone(arm: Robot, late: Recording) -> None:
    signals = replace(arm.description.signals, cutoff=10.0)
    described = Robot(replace(arm.description, signals=signals), arm.urdf)
    assert not [n for n in _last(described, late).notes if n.kind in ("effort_lag", "low_pass")]
