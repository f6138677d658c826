# SPDX-License-Identifier: Apache-2.0
"""Live samples get a lower low-pass, and late efforts their time, where that predicts torque."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.online.replay import replay, stream_settings_for
from sysid_core.online.second_filter import SecondFilter, rate_of
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
