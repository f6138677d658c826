# SPDX-License-Identifier: Apache-2.0
"""Loads that come and go, and hands that lead a robot, are told with when they did."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.identification import Identification, IdentifyConfig, identify
from sysid_core.recording import Recording
from sysid_core.recordings import Source
from sysid_core.robot import Robot

HELD = [(start, start + 3.0) for start in np.arange(3.0, 40.0, 6.0)]  # [s]


@pytest.fixture(scope="module")
def bare(
    ur10: Robot, ur10_truth: FloatArray, make_recording: Callable[..., Recording]
) -> Recording:
    return make_recording(ur10, ur10_truth, duration=40.0, rate=200.0, noise=0.3, seed=5)


def holding(
    robot: Robot,
    recording: Recording,
    mass: float,
    com: FloatArray,
    held: Sequence[tuple[float, float]] = HELD,
) -> Recording:
    """Return the recording with the torque that a held mass needs beside the robot's."""
    model, tool = robot.model, robot.frame(robot.tool_frame)
    more = model.copy()
    load = pin.Inertia(mass, com, 0.01 * mass * np.eye(3))
    more.appendBodyToJoint(tool.parentJoint, load, tool.placement)
    data, other = model.createData(), more.createData()
    q, step = recording.position, float(np.diff(recording.time).mean())
    v = np.gradient(q, step, axis=0)
    a = np.gradient(v, step, axis=0)
    effort, time = np.array(recording.effort), recording.time - recording.time[0]
    for i in np.flatnonzero(np.any([(time >= s) & (time < e) for s, e in held], axis=0)):
        effort[i] += pin.rnea(more, other, q[i], v[i], a[i])
        effort[i] -= pin.rnea(model, data, q[i], v[i], a[i])
    return replace(recording, effort=effort)


def told(found: Identification, what: str = "tool seems to carry") -> list[tuple[float, float]]:
    """Return when the load is said to be held, or the robot to be led."""
    texts = [text for text in found.warnings if what in text]
    spans = re.findall(r"--without ([\d.]+):([\d.]+)", " ".join(texts))
    return [(float(start), float(end)) for start, end in spans]


def led_by_hand(
    robot: Robot,
    truth: FloatArray,
    recording: Recording,
    led: Sequence[tuple[float, float]],
) -> Recording:
    """Return the recording with drives that bear the robot's weight alone at times."""
    model, layout = robot.with_parameters(truth), robot.layout
    data, q = model.createData(), recording.position
    effort, time = np.array(recording.effort), recording.time - recording.time[0]
    for i in np.flatnonzero(np.any([(time >= s) & (time < e) for s, e in led], axis=0)):
        weight = pin.computeGeneralizedGravity(model, data, q[i])
        effort[i] = weight + truth[layout.term("offset")]
    return replace(recording, effort=effort)


def overlap(spans: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]) -> float:
    """Return the time in both of two sets of spans, as a share of the longer set."""
    one, other = (
        np.unique(np.concatenate([np.arange(round(10 * a), round(10 * b)) for a, b in some]))
        for some in (spans, others)
    )
    return len(np.intersect1d(one, other)) / max(len(one), len(other))


def error(found: Identification, truth: FloatArray) -> float:
    base = found.regression.base
    return float(np.linalg.norm(base.project(found.estimate.parameters - truth)))


def learned(robot: Robot, data: Recording | Sequence[Source]) -> Identification:
    return identify(robot, data, IdentifyConfig(train=1.0))


@pytest.mark.parametrize(
    "com", [pytest.param([0.0, 0.0, 0.1], marks=pytest.mark.heavy), [0.08, -0.05, 0.02]]
)
def test_a_load_that_comes_and_goes_is_told_and_can_be_left_out(
    ur10: Robot, ur10_truth: FloatArray, bare: Recording, com: list[float]
) -> None:
    recording = holding(ur10, bare, 2.0, np.array(com))
    found = learned(ur10, recording)
    spans = told(found)
    assert overlap(HELD, spans) > 0.8
    left = learned(ur10, [Source(recording, without=tuple(spans))])
    assert not told(left)
    assert error(left, ur10_truth) < 0.3 * error(found, ur10_truth)


def test_nothing_is_seen_where_there_is_nothing(ur10: Robot, bare: Recording) -> None:
    found = learned(ur10, bare)
    assert not told(found)
    assert not told(found, "led by hand")


def test_a_hand_that_leads_the_robot_at_times_is_told_and_can_be_left_out(
    ur10: Robot, ur10_truth: FloatArray, bare: Recording
) -> None:
    led = [(8.0, 18.0), (25.0, 33.0)]
    recording = led_by_hand(ur10, ur10_truth, bare, led)
    found = learned(ur10, recording)
    spans = told(found, "led by hand")
    assert overlap(led, spans) > 0.7
    left = learned(ur10, [Source(recording, without=tuple(spans))])
    assert error(left, ur10_truth) < 0.5 * error(found, ur10_truth)


def test_of_several_recordings_the_one_is_named(ur10: Robot, bare: Recording) -> None:
    loaded = replace(holding(ur10, bare, 1.0, np.zeros(3)), source="work")
    found = learned(
        ur10, [Source(replace(bare.select(slice(2000)), source="free")), Source(loaded)]
    )
    (text,) = (text for text in found.warnings if "the tool seems to carry" in text)
    assert text.count(" s of work") == len(HELD)
    assert "of free" not in text


def test_what_stands_out_and_is_a_load_is_told_as_one(ur10: Robot, bare: Recording) -> None:
    found = learned(ur10, holding(ur10, bare, 2.0, np.zeros(3), [(15.0, 25.0)]))
    ((start, end),) = told(found)
    assert 13.9 < start <= 15.1
    assert 24.9 <= end < 26.1
    assert not any("do not fit" in text for text in found.warnings)


def test_what_stands_out_and_is_no_load_is_none(ur10: Robot, bare: Recording) -> None:
    effort = np.array(bare.effort)
    effort[2000:3500] += [60.0, -80.0, 40.0, 10.0, 8.0, 2.0]
    found = learned(ur10, replace(bare, effort=effort))
    assert not told(found)
    assert any("do not fit" in text for text in found.warnings)
