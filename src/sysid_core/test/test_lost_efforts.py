# SPDX-License-Identifier: Apache-2.0
"""Efforts that stood are left out; those that a range, a step or a driver explains are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.aligning import aligned_recording
from sysid_core.arrays import FloatArray
from sysid_core.identification import Identification, identify
from sysid_core.recording import Recording
from sysid_core.robot import Robot
from sysid_core.signals.options import SignalConfig

ELBOW = 2
Change = Callable[[FloatArray], FloatArray]


def changed(recording: Recording, change: Change) -> Recording:
    assert recording.effort is not None
    effort = recording.effort.copy()
    effort[:, ELBOW] = change(effort[:, ELBOW])
    return replace(recording, effort=effort)


def lost(*spans: tuple[float, float], zero: bool) -> Change:
    """Lose efforts between shares of the recording: zero, or as they were last."""

    def change(effort: FloatArray) -> FloatArray:
        effort = effort.copy()
        for first, last in spans:
            start, stop = int(first * len(effort)), int(last * len(effort))
            effort[start:stop] = 0.0 if zero else effort[start]
        return effort

    return change


def told(robot: Robot, recording: Recording) -> list[str]:
    warnings = aligned_recording(robot, recording, SignalConfig()).warnings
    return [text for text in warnings if "the torque stood" in text]


@pytest.fixture(scope="module")
def clean_error(
    ur10: Robot, clean: Recording, error_on_clean: Callable[[Identification], float]
) -> float:
    return error_on_clean(identify(ur10, clean))


MANY = tuple((0.04 + k / 12.0, 0.06 + k / 12.0) for k in range(10))


@pytest.mark.parametrize(
    ("spans", "zero"),
    [
        (MANY, False),
        (((0.75, 1.0),), True),
        pytest.param(((0.3, 0.4),), False, marks=pytest.mark.heavy),
        pytest.param(((0.3, 0.4),), True, marks=pytest.mark.heavy),
        pytest.param(((0.75, 1.0),), False, marks=pytest.mark.heavy),
        pytest.param(MANY, True, marks=pytest.mark.heavy),
    ],
)
def test_nothing_is_learned_from_what_was_lost(
    ur10: Robot,
    clean: Recording,
    clean_error: float,
    error_on_clean: Callable[[Identification], float],
    spans: tuple[tuple[float, float], ...],
    zero: bool,
) -> None:
    found = identify(ur10, changed(clean, lost(*spans, zero=zero)))
    (text,) = (text for text in found.warnings if "the torque stood" in text)
    assert text.startswith(ur10.joint_names[ELBOW])
    seconds = float(text.split(" for ")[1].split(" s")[0])
    total = 24.0 * sum(last - first for first, last in spans)
    assert 0.7 * total < seconds < 1.05 * total
    assert error_on_clean(found) < 1.5 * clean_error


@pytest.mark.parametrize(
    "change",
    [
        lambda effort: effort,
        lambda effort: np.round(effort / 3.0) * 3.0,
        lambda effort: np.clip(effort, -20.0, 20.0),
        lambda effort: np.where(np.abs(effort) < 10.0, 0.0, effort),
        lambda effort: np.sign(effort) * np.maximum(np.abs(effort) - 10.0, 0.0),
        lambda effort: effort[np.arange(len(effort)) // 10 * 10],
        lambda effort: np.zeros_like(effort),
    ],
    ids=["whole", "coarse", "cut_off", "swallowed", "reduced", "slow", "none"],
)
def test_what_a_driver_does_all_the_time_is_not_lost(
    ur10: Robot, clean: Recording, change: Change
) -> None:
    assert told(ur10, changed(clean, change)) == []


def test_a_robot_may_stand_with_its_drives_off_before_it_moves(
    ur10: Robot, clean: Recording
) -> None:
    assert clean.effort is not None
    assert clean.velocity is not None
    still = int(0.2 * len(clean.time))
    step = float(np.median(np.diff(clean.time)))
    time = clean.time[0] + step * np.arange(len(clean.time) + still)
    noise = np.random.default_rng(0).normal(0.0, 1e-5, (still, len(ur10.joint_names)))
    first = [clean.position[:1] + noise, np.zeros_like(noise), np.zeros_like(noise)]
    then = [clean.position, clean.velocity, clean.effort]
    position, velocity, effort = (np.vstack(pair) for pair in zip(first, then, strict=True))
    whole = replace(clean, time=time, position=position, velocity=velocity, effort=effort)
    assert told(ur10, whole) == []
