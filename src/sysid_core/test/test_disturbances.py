# SPDX-License-Identifier: Apache-2.0
"""Parts of a recording in which a robot was touched, or carried something, are named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError
from sysid_core.identification import Identification, IdentifyConfig, identify
from sysid_core.recording import Recording
from sysid_core.recordings import Source
from sysid_core.robot import Robot

PUSH = np.array([15.0, -25.0, 10.0, 3.0, 2.0, 0.5])  # [N·m]


@pytest.fixture(scope="module")
def calm(
    ur10: Robot, ur10_truth: FloatArray, make_recording: Callable[..., Recording]
) -> Recording:
    return make_recording(ur10, ur10_truth, duration=40.0, rate=200.0, noise=0.3, seed=5)


def pushed(recording: Recording, *spans: tuple[float, float]) -> Recording:
    time, effort = recording.time - recording.time[0], np.array(recording.effort)
    for start, stop in spans:
        effort[(time >= start) & (time < stop)] += PUSH
    return replace(recording, effort=effort)


def told(robot: Robot, data: Recording | Sequence[Source]) -> list[str]:
    found = identify(robot, data, IdentifyConfig(train=1.0))
    return [text for text in found.warnings if "do not fit the rest" in text]


def test_an_undisturbed_recording_has_no_such_part(ur10: Robot, calm: Recording) -> None:
    assert told(ur10, calm) == []


def test_errors_that_are_rounding_are_none(
    ur10: Robot, ur10_truth: FloatArray, make_recording: Callable[..., Recording]
) -> None:
    exact = make_recording(ur10, ur10_truth, duration=20.0)
    slight = pushed(exact, (4.0, 6.0))
    effort = np.asarray(exact.effort)
    effort = effort + 1e-3 * (np.asarray(slight.effort) - effort)
    assert told(ur10, replace(exact, effort=effort)) == []


@pytest.mark.parametrize("spans", [[(11.0, 12.0)], [(5.0, 6.5), (20.0, 29.0)]])
def test_a_robot_that_was_touched_is_told_with_the_time(
    ur10: Robot, calm: Recording, spans: list[tuple[float, float]]
) -> None:
    (text,) = told(ur10, pushed(calm, *spans))
    named = text.split("(")[1].split(")")[0].split(", ")
    assert len(named) == len(spans)
    for part, (start, stop) in zip(named, spans, strict=True):
        first, last = (float(number) for number in part.removesuffix(" s").split(" to "))
        assert start - 1.4 < first <= start + 0.1
        assert stop - 0.1 <= last < stop + 1.4


def test_of_several_recordings_the_one_is_named(ur10: Robot, calm: Recording) -> None:
    disturbed = replace(pushed(calm, (10.0, 13.0)), source="leant")
    (text,) = told(ur10, [Source(replace(calm, source="calm")), Source(disturbed)])
    assert text.count(" s of leant") == 1
    assert "calm" not in text


def test_what_is_disturbed_is_not_learned_from(
    ur10: Robot, ur10_truth: FloatArray, calm: Recording
) -> None:
    disturbed = pushed(calm, (5.0, 6.5), (20.0, 23.0))
    left = identify(ur10, disturbed, IdentifyConfig(train=0.8))
    kept = identify(ur10, disturbed, IdentifyConfig(train=0.8, disturbed="kept"))
    bare = identify(ur10, calm, IdentifyConfig(train=0.8))
    (said,) = (text for text in left.warnings if "do not fit the rest" in text)
    assert "left out of what is learned; if" in said
    assert not any("left out of what is learned" in text for text in kept.warnings)
    held = (found.samples.time[found.split] for found in (left, kept))
    assert np.ptp(list(held)) < 0.3  # what validates stays

    def error(found: Identification) -> float:
        assert found.train is not None
        return float(np.linalg.norm(found.estimate.parameters - ur10_truth))

    assert error(left) < 1.5 * error(bare)
    assert error(left) < 0.5 * error(kept)


def test_times_are_those_of_the_recording_whatever_was_left_out_before(
    ur10: Robot, calm: Recording
) -> None:
    source = Source(pushed(calm, (30.0, 32.0)), without=((0.0, 6.0), (12.0, 14.0)))
    (text,) = told(ur10, [source])
    first, last = text.split("(")[1].removesuffix(" s)").split(" s)")[0].split(" to ")
    assert 28.6 < float(first) <= 30.1
    assert 31.9 <= float(last) < 33.4


@pytest.mark.parametrize(
    ("span", "words"), [((0.0, 99.0), "leaves nothing"), ((41.0, 42.0), "begins after its end")]
)
def test_a_part_that_cannot_be_left_out_is_refused(
    ur10: Robot, calm: Recording, span: tuple[float, float], words: str
) -> None:
    with pytest.raises(DataError, match=words):
        identify(ur10, [Source(calm, without=(span,))])


def test_what_one_joint_alone_shows_is_its_own(ur10: Robot, calm: Recording) -> None:
    """As a joint's elasticity, which a motion excites for a while."""
    effort = np.array(calm.effort)
    effort[2000:2600, 3] += PUSH[3] * np.sin(2.0 * np.pi * 1.5 * calm.time[2000:2600])
    assert told(ur10, replace(calm, effort=effort)) == []


def test_efforts_of_one_joint_that_stay_about_where_they_were_are_told(
    ur10: Robot, calm: Recording
) -> None:
    effort = np.array(calm.effort)
    effort[3100:4100, 1] = effort[3100, 1] + np.random.default_rng(0).normal(0.0, 0.1, 1000)
    (text,) = told(ur10, replace(calm, effort=effort))
    assert text.startswith("shoulder_lift_joint")
    start, end = text.split("(")[1].split(" s)")[0].split(" to ")
    assert 14.1 < float(start) <= 15.6
    assert 20.4 <= float(end) < 21.9


def test_of_a_recording_in_parts_whole_ones_can_be_left_out(
    ur10: Robot, calm: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sysid_core.recordings.PART_ROWS", 1000)
    ends = [part.recording.time[[0, -1]] for part in Source(calm).parts(ur10, 1.0)]
    assert len(ends) > 3
    # of the second part its last row is left, of the third one nothing
    span = float(ends[1][0]) - 0.5, float(ends[1][1]) - 0.001
    gone = float(ends[1][1]) + 0.001, float(ends[2][1]) + 0.5
    left = list(Source(calm, without=(span, gone)).parts(ur10, 1.0))
    assert len(left) == len(ends) - 2
    assert all(part.origin == calm.time[0] for part in left)
    assert identify(ur10, [Source(calm, without=(span, gone))], IdentifyConfig(train=1.0)).samples


def test_stretches_of_a_moment_tell_nothing(ur10: Robot, calm: Recording) -> None:
    assert told(ur10, pushed(calm, (3.0, 3.3)).select(slice(1000))) == []
