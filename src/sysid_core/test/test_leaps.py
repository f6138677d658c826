# SPDX-License-Identifier: Apache-2.0
"""Positions that leap as no joint moves are left out where they leap back, and told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.identification import Identification, identify
from sysid_core.leaps import without_leaps
from sysid_core.recording import Recording
from sysid_core.robot import Robot

SHOULDER = 1


def moved(recording: Recording, by: float, first: float, last: float) -> Recording:
    position = recording.position.copy()
    where = (recording.time >= first) & (recording.time < last)
    position[where, SHOULDER] += by
    return replace(recording, position=position, velocity=None)


def test_nothing_is_learned_between_a_leap_and_the_one_back(
    ur10: Robot, clean: Recording, error_on_clean: Callable[[Identification], float]
) -> None:
    spoiled = moved(moved(clean, 30.0, 8.0, 8.3), -0.5, 12.0, 13.0)
    found = identify(ur10, spoiled)
    (text,) = (text for text in found.warnings if "leap" in text)
    assert text.startswith(f"{ur10.joint_names[SHOULDER]}: its position leapt away and back")
    unspoiled = identify(ur10, replace(clean, velocity=None))
    assert error_on_clean(found) < 1.5 * error_on_clean(unspoiled)


def test_what_lies_between_two_that_are_left_out_stays(ur10: Robot, clean: Recording) -> None:
    spoiled = moved(moved(clean, 1.0, 8.0, 8.2), 1.0, 8.7, 8.9)
    left, (text,) = without_leaps(ur10, spoiled)
    rows = int(text.split(": ")[2].split(" rows")[0])
    assert len(clean) - len(left) == rows
    gone = np.setdiff1d(clean.time, left.time)
    assert (((gone >= 8.0) & (gone < 8.2)) | ((gone >= 8.7) & (gone < 8.9))).all()


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
