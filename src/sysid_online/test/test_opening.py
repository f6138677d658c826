# SPDX-License-Identifier: Apache-2.0
"""A stream opens at the rate of the robot's own joint states, however they come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.online.stream import SampleStream
from sysid_core.online.stream_config import StreamConfig
from sysid_core.recording import Recording
from sysid_core.robot import Robot, load_robot
from sysid_online.opening import OpeningStream

RATE = 1000.0


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("valkyrie_arm")


def _batches(names: tuple[str, ...], time: FloatArray) -> list[Recording]:
    values = np.sin(time)[:, None] * np.ones(len(names))
    whole = Recording(time, names, 0.1 * values, effort=values)
    return [whole.select(slice(k, k + 50)) for k in range(0, len(time), 50)]


def _opened(robot: Robot, batches: list[Recording]) -> tuple[float, int]:
    """Return the rate [Hz] that a stream opens at, and the number of samples."""
    stream = OpeningStream(robot, StreamConfig(), rate=0.0, cutoff=0.0)
    samples = sum(len(s) for batch in batches for s in stream.push_joint_states(batch))
    return stream.rate, samples


def test_stamps_at_arrival_do_not_hide_the_rate(robot: Robot) -> None:
    rng = np.random.default_rng(2)
    time = np.arange(6000) / RATE
    stamps = np.maximum.accumulate(time + rng.exponential(3e-3, len(time))) + 1e-7 * time
    rate, samples = _opened(robot, _batches(robot.joint_names, stamps))
    assert rate == pytest.approx(RATE, rel=0.02)
    assert samples > 0.9 * 600


def test_a_gripper_on_the_same_topic_is_no_part_of_the_rate(robot: Robot) -> None:
    time = np.arange(4000) / RATE
    own = _batches(robot.joint_names, time)
    gripper = _batches(("gripper",), time + 1e-4)
    both = [batch for pair in zip(own, gripper, strict=True) for batch in pair]
    rate, samples = _opened(robot, both)
    assert rate == pytest.approx(RATE)
    assert samples > 0.9 * 400


def test_states_without_efforts_and_states_that_are_held_do_not_hide_the_rate(
    robot: Robot,
) -> None:
    time = np.arange(4000) / RATE
    batches = _batches(robot.joint_names, time)
    some = [replace(b, effort=None) if k % 3 else b for k, b in enumerate(batches)]
    assert _opened(robot, some)[0] == pytest.approx(RATE)
    held = [b.select(np.arange(len(b)) // 5 * 5) for b in batches]
    whole = [replace(h, time=b.time) for h, b in zip(held, batches, strict=True)]
    assert _opened(robot, whole)[0] == pytest.approx(RATE / 5.0)


def test_a_start_with_uneven_stamps_does_not_double_the_rate(robot: Robot) -> None:
    """Pairs of messages 1 ms apart, every 4 ms, until the driver has settled."""
    time = np.arange(4000) / 500.0
    time[1:400:2] -= 1e-3
    rate, samples = _opened(robot, _batches(robot.joint_names, time))
    assert rate == pytest.approx(500.0, rel=0.01)
    assert samples > 0.8 * 800


def test_a_rate_is_believed_in_the_end_though_states_are_lost(robot: Robot) -> None:
    time = (np.arange(8000) / 500.0)[np.random.default_rng(0).random(8000) < 0.6]
    rate, samples = _opened(robot, _batches(robot.joint_names, time))
    assert rate == pytest.approx(500.0, rel=0.01)
    assert samples


def test_states_that_nothing_was_prepared_for_are_counted_and_the_next_ones_used(
    robot: Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = _batches(robot.joint_names, np.arange(4000) / RATE)
    stream = OpeningStream(robot, StreamConfig(), rate=0.0, cutoff=0.0)
    assert sum(len(s) for batch in batches[:20] for s in stream.push_joint_states(batch))

    def fails(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(SampleStream, "push_joint_states", fails)
        assert stream.push_joint_states(batches[20]) == []
    assert stream.counts == {"joint states lost to an error (ZeroDivisionError)": 50}
    after = [s for batch in batches[21:] for s in stream.push_joint_states(batch)]
    assert stream.rate == pytest.approx(RATE)
    assert sum(map(len, after)) > 0.9 * 290


def test_joint_states_that_come_in_parts_are_joined(robot: Robot) -> None:
    time = np.arange(4000) / RATE
    whole = Recording.concatenate(_batches(robot.joint_names, time))
    assert whole.effort is not None
    parts = []
    for columns, late in ((slice(0, 3), 0.0), (slice(3, None), 4e-4)):
        names, q = robot.joint_names[columns], whole.position[:, columns]
        part = Recording(time + late, names, q, effort=whole.effort[:, columns])
        parts.append([part.select(slice(k, k + 1)) for k in range(len(part))])
    both = [batch for pair in zip(*parts, strict=True) for batch in pair]
    rate, samples = _opened(robot, both)
    assert rate == pytest.approx(RATE)
    assert samples > 0.9 * 400
