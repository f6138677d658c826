# SPDX-License-Identifier: Apache-2.0
"""Positions that leap as no joint moves are left out where they leap back, and told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.identification import identify
from sysid_core.leaps import without_leaps
from sysid_core.recording import Recording
from sysid_core.robot import Robot
from sysid_core.validation import validate

SHOULDER = 1


@pytest.fixture(scope="module")
def clean(
    ur10: Robot, ur10_truth: FloatArray, make_recording: Callable[..., Recording]
) -> Recording:
    return make_recording(ur10, ur10_truth, duration=24.0, noise=0.3, seed=3)


def moved(recording: Recording, by: float, first: float, last: float) -> Recording:
    position = recording.position.copy()
    where = (recording.time >= first) & (recording.time < last)
    position[where, SHOULDER] += by
    return replace(recording, position=position, velocity=None)


def test_nothing_is_learned_between_a_leap_and_the_one_back(
    ur10: Robot, ur10_truth: FloatArray, clean: Recording
) -> None:
    spoiled = moved(moved(clean, 30.0, 8.0, 8.3), -0.5, 12.0, 13.0)
    found = identify(ur10, spoiled)
    (text,) = (text for text in found.warnings if "leap" in text)
    assert text.startswith(f"{ur10.joint_names[SHOULDER]}: its position leapt away and back")

    def error(recording: Recording) -> float:
        parameters = identify(ur10, recording).estimate.parameters
        scores = validate(ur10, clean, ur10_truth, parameters, learned_cutoff=8.0).scores
        return float(np.linalg.norm(scores.rmse_identified))

    assert error(spoiled) < 1.5 * error(replace(clean, velocity=None))


def test_a_joint_that_gets_another_zero_is_told_with_the_time(
    ur10: Robot, clean: Recording
) -> None:
    recording, (text,) = without_leaps(ur10, moved(clean, 0.15, 10.0, np.inf))
    assert len(recording) == len(clean)
    by, rest = text.split("leaps by ")[1].split(" rad ")
    assert float(by) == pytest.approx(0.15, abs=0.03)  # and what it moved meanwhile
    assert rest.startswith("at 10.0 s")
    part = moved(clean, 0.15, 10.0, np.inf).select(slice(500, None))
    (text,) = without_leaps(ur10, part, float(clean.time[0]))[1]
    assert "at 10.0 s" in text


def test_gaps_wraps_outliers_and_slow_encoders_are_no_leaps(ur10: Robot, clean: Recording) -> None:
    later = clean.time + 100.0 * (clean.time > 8.999)
    away = moved(clean, 0.5, 9.0, np.inf)
    wrapped = np.mod(clean.position + np.pi, 2.0 * np.pi) - np.pi
    spike = clean.position.copy()
    spike[3000:3003, SHOULDER] += 1.0
    held = clean.position[np.arange(len(clean)) // 20 * 20]
    for recording in (
        clean,
        replace(away, time=later),
        replace(clean, position=wrapped),
        replace(clean, position=spike),
        replace(clean, position=held),
        replace(clean, position=np.round(clean.position, 2)),
        clean.select(np.sort(np.random.default_rng(0).permutation(len(clean))[::2])),
    ):
        same, said = without_leaps(ur10, recording)
        assert said == ()
        assert len(same) == len(recording)
