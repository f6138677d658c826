# SPDX-License-Identifier: Apache-2.0
"""The cut-off follows from what predicts held-out torque, whatever the spectrum looks like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.batch import Batch, batch_of
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.effort_lag import find_lag
from sysid_core.identification import Identification, IdentifyConfig, identify
from sysid_core.recording import Recording
from sysid_core.robot import Robot
from sysid_core.signals.options import SignalConfig
from sysid_core.validation import validate

Spoil = Callable[[Recording], Recording]


def _vibrating(recording: Recording) -> Recording:
    """Shake the positions above the motion's band, where nothing moves the torques."""
    shake = 2e-3 * np.sin(2.0 * np.pi * 23.0 * recording.time + 0.3)
    return replace(recording, position=recording.position + shake[:, None], velocity=None)


def _shaken(recording: Recording) -> Recording:
    """Shake the positions so hard that three rungs below the spectrum's help nothing."""
    shake = 2e-2 * np.sin(2.0 * np.pi * 9.0 * recording.time + 0.3)
    return replace(recording, position=recording.position + shake[:, None], velocity=None)


def _interpolated(recording: Recording) -> Recording:
    """Draw a slow log out by linear interpolation."""
    slow = np.arange(recording.time[0], recording.time[-1], 0.11)
    assert recording.effort is not None

    def drawn(values: FloatArray) -> FloatArray:
        rare = np.array([np.interp(slow, recording.time, column) for column in values.T])
        return np.array([np.interp(recording.time, slow, column) for column in rare]).T

    position, effort = drawn(recording.position), drawn(recording.effort)
    return replace(recording, position=position, effort=effort, velocity=None)


def _error(ur10: Robot, clean: Recording, ur10_truth: FloatArray, found: Identification) -> float:
    """Return the error [N·m] on the clean recording, always at the same cut-off."""
    parameters = found.estimate.parameters
    scores = validate(ur10, clean, ur10_truth, parameters, learned_cutoff=8.0).scores
    return float(np.linalg.norm(scores.rmse_identified))


@pytest.mark.parametrize(
    "spoil",
    [
        _interpolated,
        pytest.param(_vibrating, marks=pytest.mark.heavy),
        pytest.param(_shaken, marks=pytest.mark.heavy),
    ],
)
def test_what_the_spectrum_takes_for_motion_is_filtered_where_it_spoils_the_prediction(
    ur10: Robot, ur10_truth: FloatArray, make_recording: Callable[..., Recording], spoil: Spoil
) -> None:
    clean = make_recording(ur10, ur10_truth, duration=24.0, noise=0.3, seed=3)
    recording = spoil(clean)
    found = identify(ur10, recording)
    ladder = {
        cutoff: _error(
            ur10,
            clean,
            ur10_truth,
            identify(ur10, recording, IdentifyConfig(signals=SignalConfig(cutoff=cutoff))),
        )
        for cutoff in (2.0, 4.0, 16.0)
    }
    assert _error(ur10, clean, ur10_truth, found) < 1.1 * min(ladder.values())
    assert max(ladder.values()) > 1.5 * min(ladder.values())


@pytest.mark.heavy
def test_what_spoils_wrists_alone_is_filtered_however_noisy_the_shoulder_is(
    ur10: Robot, ur10_truth: FloatArray, make_recording: Callable[..., Recording]
) -> None:
    clean = make_recording(ur10, ur10_truth, duration=24.0, noise=0.1, seed=3)
    assert clean.effort is not None
    wrists = np.array([False, False, False, True, True, True])
    noise = np.random.default_rng(9).normal(size=clean.effort.shape)
    shake = 4e-3 * wrists * np.sin(2.0 * np.pi * 23.0 * clean.time + 0.3)[:, None]
    recording = replace(
        clean,
        position=clean.position + shake,
        velocity=None,
        effort=clean.effort + np.array([20.0, 20.0, 0.0, 0.0, 0.0, 0.0]) * noise,
    )

    def error(cutoff: float | None) -> float:
        options = IdentifyConfig(signals=SignalConfig(cutoff=cutoff))
        parameters = identify(ur10, recording, options).estimate.parameters
        scores = validate(ur10, clean, ur10_truth, parameters, learned_cutoff=8.0).scores
        return float(np.linalg.norm(scores.rmse_identified[wrists]))

    assert error(None) < 1.1 * min(error(cutoff) for cutoff in (2.0, 4.0, 8.0))


@pytest.mark.heavy
def test_a_filter_that_cuts_into_a_fast_motion_is_not_taken(
    ur10: Robot, ur10_truth: FloatArray, make_recording: Callable[..., Recording]
) -> None:
    """What it leaves of the motion would fit all the better."""
    slow = make_recording(ur10, ur10_truth, duration=120.0, seed=3)
    time, rng = slow.time / 8.0, np.random.default_rng(8)
    position = slow.position
    velocity = np.gradient(position, time, axis=0)
    moves = TreeRegression(ur10).full(position, velocity, np.gradient(velocity, time, axis=0))
    sticky = 0.2 * ur10_truth[ur10.layout.term("coulomb")] * np.exp(-np.abs(velocity) / 0.2)
    quick = replace(
        slow,
        time=time,
        position=position + 1e-3 * rng.normal(size=position.shape),
        velocity=None,
        effort=moves @ ur10_truth
        + sticky * np.sign(velocity)
        + 0.3 * rng.normal(size=position.shape),
    )

    def error(cutoff: float | None) -> float:
        options = IdentifyConfig(signals=SignalConfig(cutoff=cutoff))
        off = identify(ur10, quick, options).estimate.parameters[: len(ur10_truth)] - ur10_truth
        return float(np.sqrt(np.mean((moves @ off) ** 2)))

    assert error(None) < 1.02 * min(error(cutoff) for cutoff in (1.0, 5.0, 12.0, 18.0))


def _late(recording: Recording, lag: float) -> Recording:
    """Log efforts a time [s] after the positions that they go with; before, if negative."""
    time, effort = recording.time, recording.effort
    assert effort is not None
    moved = np.array([np.interp(time - lag, time, column) for column in effort.T]).T
    return replace(recording, effort=moved)


@pytest.mark.parametrize(
    "lag", [0.03, *(pytest.param(each, marks=pytest.mark.heavy) for each in (0.0, -0.01))]
)
def test_efforts_that_come_late_or_early_are_moved_to_their_positions(
    ur10: Robot, ur10_truth: FloatArray, make_recording: Callable[..., Recording], lag: float
) -> None:
    clean = make_recording(ur10, ur10_truth, duration=24.0, noise=0.3, seed=3)
    found = identify(ur10, _late(clean, lag))
    punctual = identify(ur10, clean)
    assert found.signals.lag == pytest.approx(lag, abs=1e-3 if lag else 0.0)
    assert any("efforts come" in text for text in found.warnings) == bool(lag)
    error = _error(ur10, clean, ur10_truth, punctual)
    assert _error(ur10, clean, ur10_truth, found) == pytest.approx(error, rel=0.2)


@pytest.mark.heavy
def test_a_lag_that_noise_hides_at_the_chosen_cutoff_is_found(
    ur10: Robot, ur10_truth: FloatArray, make_recording: Callable[..., Recording]
) -> None:
    clean = make_recording(ur10, ur10_truth, duration=24.0, noise=0.3, seed=3)
    late = _late(clean, 0.03)
    assert late.effort is not None
    hum = 60.0 * np.sin(2.0 * np.pi * 11.0 * clean.time)[:, None]
    found = identify(ur10, replace(late, effort=late.effort + hum))
    assert found.signals.lag == pytest.approx(0.03, abs=4e-3)
    punctual = identify(ur10, clean)
    error = _error(ur10, clean, ur10_truth, punctual)
    assert _error(ur10, clean, ur10_truth, found) < 2.0 * error


def test_a_joint_without_any_noise_hides_no_lag(
    ur10: Robot, ur10_truth: FloatArray, make_recording: Callable[..., Recording]
) -> None:
    clean = make_recording(ur10, ur10_truth, duration=24.0, noise=0.1, seed=3)
    options = SignalConfig(cutoff=8.0)
    noise = np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.0])

    def at(lag: float) -> Batch:
        return batch_of(ur10, _late(clean, 0.03 - lag), options)

    lag, _ = find_lag(TreeRegression(ur10), at(0.0), 0.01, noise, at)
    assert lag == pytest.approx(0.03, rel=0.1)


def test_what_was_asked_for_is_taken(
    ur10: Robot, ur10_truth: FloatArray, make_recording: Callable[..., Recording]
) -> None:
    recording = _late(make_recording(ur10, ur10_truth, duration=12.0, noise=0.3, seed=4), 0.03)
    found = identify(ur10, recording, IdentifyConfig(signals=SignalConfig(cutoff=7.0)))
    assert found.signals.cutoff == 7.0
    assert found.signals.lag == pytest.approx(0.03, abs=1e-3)


def test_a_robot_that_rests_for_a_while_has_the_cutoff_of_its_motion(
    ur10: Robot, ur10_truth: FloatArray, make_recording: Callable[..., Recording]
) -> None:
    clean = make_recording(ur10, ur10_truth, duration=24.0, noise=0.0, seed=3)
    assert clean.effort is not None
    step = float(np.median(np.diff(clean.time)))
    # it comes to rest, stays there for a fifth of the training part, and goes on
    time = np.arange(0.0, 30.0, step)
    pace = 1.0 - np.clip(np.minimum(time - 5.0, 11.0 - time), 0.0, 1.0)
    pace = pace**2 * (3.0 - 2.0 * pace)
    passed = np.clip(np.cumsum(pace) * step, 0.0, clean.time[-1])
    position = np.array([np.interp(passed, clean.time, column) for column in clean.position.T]).T
    velocity = np.gradient(position, step, axis=0)
    moves = TreeRegression(ur10).full(position, velocity, np.gradient(velocity, step, axis=0))
    rng = np.random.default_rng(5)
    effort = moves @ ur10_truth + 0.3 * rng.normal(size=position.shape)
    shake = 2e-3 * pace * np.sin(2.0 * np.pi * 23.0 * time)
    recording = replace(
        clean, time=time, position=position + shake[:, None], velocity=None, effort=effort
    )
    found = identify(ur10, recording)
    lower = identify(ur10, recording, IdentifyConfig(signals=SignalConfig(cutoff=4.0)))
    error = _error(ur10, clean, ur10_truth, found)
    assert error < 1.1 * _error(ur10, clean, ur10_truth, lower)


def test_only_the_training_part_decides(
    ur10: Robot, ur10_truth: FloatArray, make_recording: Callable[..., Recording]
) -> None:
    clean = make_recording(ur10, ur10_truth, duration=24.0, noise=0.3, seed=5)
    late = clean.time > clean.time[0] + 0.75 * (clean.time[-1] - clean.time[0])
    assert clean.effort is not None
    rng = np.random.default_rng(6)
    effort = clean.effort + late[:, None] * rng.normal(0.0, 5.0, clean.effort.shape)
    chosen = [identify(ur10, one).signals.cutoff for one in (clean, replace(clean, effort=effort))]
    assert chosen[0] == chosen[1]
