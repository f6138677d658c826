# SPDX-License-Identifier: Apache-2.0
"""A load that comes and goes while a recording is made is told, with where it was held."""

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


def told(found: Identification) -> list[tuple[float, float]]:
    """Return when the load is said to be held."""
    texts = [text for text in found.warnings if "the tool seems to carry" in text]
    spans = re.findall(r"--without ([\d.]+):([\d.]+)", " ".join(texts))
    return [(float(start), float(end)) for start, end in spans]


def learned(robot: Robot, data: Recording | Sequence[Source]) -> Identification:
    return identify(robot, data, IdentifyConfig(train=1.0))


@pytest.mark.parametrize("com", [[0.0, 0.0, 0.1], [0.08, -0.05, 0.02]])
def test_a_load_that_comes_and_goes_is_told_and_can_be_left_out(
    ur10: Robot, ur10_truth: FloatArray, bare: Recording, com: list[float]
) -> None:
    recording = holding(ur10, bare, 2.0, np.array(com))
    found = learned(ur10, recording)
    spans = told(found)
    held = np.concatenate([np.arange(start, end, 0.1) for start, end in HELD])
    within = np.concatenate([np.arange(start, end, 0.1) for start, end in spans])
    both = np.intersect1d(np.rint(10.0 * held), np.rint(10.0 * within))
    assert len(both) > 0.8 * max(len(held), len(within))
    left = learned(ur10, [Source(recording, without=tuple(spans))])
    assert not told(left)

    def error(one: Identification) -> float:
        assert one.train is not None
        base = one.regression.base
        return float(np.linalg.norm(base.project(one.estimate.parameters - ur10_truth)))

    assert error(left) < 0.3 * error(found)


def test_no_load_is_seen_where_there_is_none(ur10: Robot, bare: Recording) -> None:
    assert not told(learned(ur10, bare))


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
