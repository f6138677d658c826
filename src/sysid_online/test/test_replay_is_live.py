# SPDX-License-Identifier: Apache-2.0
"""A recording through `replay` and through the live nodes: the same decisions in that order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from types import SimpleNamespace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.online.replay import replay, stream_settings_for
from sysid_core.online.update import Update
from sysid_core.recording import Recording

Make = Callable[..., Any]
RATE, UPDATE_RATE = 200.0, 20.0
LIFTED, WRONG, END = 7.0, 12.0, 15.0
"""When a load is picked up, when a torque turns wrong, and the end [s]."""


@pytest.fixture(scope="module")
def eventful(motion: Any) -> Recording:
    """Return an arm that picks up a load; later, the torque of a joint doubles."""
    robot, count = motion.robot, round(END * RATE)
    time = np.arange(count) / RATE
    q, v = motion.position[:count], motion.velocity[:count]
    a = np.gradient(v, 1.0 / RATE, axis=0)
    frame = robot.frame(robot.tool_frame)
    bare = robot.with_parameters(robot.consistent_nominal)
    held = pin.Inertia(3.0, np.array([0.02, 0.0, 0.05]), 0.01 * np.eye(3))
    loaded = bare.copy()
    loaded.appendBodyToJoint(frame.parentJoint, held, frame.placement)
    effort = motion.effort[:count].copy()
    carried = time >= LIFTED
    effort[carried] += (torque(loaded, q, v, a) - torque(bare, q, v, a))[carried]
    effort[time >= WRONG, 1] *= 2.0
    effort += 0.02 * np.random.default_rng(6).normal(size=effort.shape)
    return Recording(time + 1000.0, robot.joint_names, q, None, effort)


def torque(model: Any, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
    data = model.createData()
    return np.stack([pin.rnea(model, data, *row) for row in zip(q, v, a, strict=True)])


def live(g: Any, recording: Recording) -> Iterator[Update]:
    """Hand messages to the nodes' own callbacks, and let the identifier solve in their pace."""
    from sensor_msgs.msg import JointState

    from sysid_ros.fields import stamp

    recorder, identifier = g.nodes["recorder"], g.nodes["identifier"]
    sent: list[Any] = []
    recorder._samples = type("Sink", (), {"publish": staticmethod(sent.append)})()
    step = round(RATE / UPDATE_RATE)
    for start in range(0, len(recording), step):
        for i in range(start, min(start + step, len(recording))):
            message = JointState(
                name=list(recording.joint_names),
                position=recording.position[i].tolist(),
                effort=recording.effort[i].tolist(),  # type: ignore[index]
            )
            message.header.stamp = stamp(float(recording.time[i]))
            recorder._on_joint_state(message)
        recorder._process()
        for message in sent:
            identifier._on_samples(message)
        if sent:
            sent.clear()
            identifier._solve()
            yield identifier._update


def decisions(updates: Iterator[Update]) -> list[tuple[Any, ...]]:
    """Return what was decided, without repetitions."""
    told = (
        (
            update.state.name,
            tuple((cause.kind, cause.subject) for cause in update.causes),
            update.identified,
            update.payload_attached,
            tuple(sorted({(note.kind, note.subject) for note in update.notes})),
        )
        for update in updates
    )
    return [key for key, _ in groupby(told)]


def test_a_recording_is_judged_alike_live_and_in_replay(
    graph: Make, eventful: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    g = graph("recorder", "identifier")
    # a busy computer must not pass for a silent robot
    clock = SimpleNamespace(monotonic=lambda: 0.0, perf_counter=lambda: 0.0)
    monkeypatch.setattr("sysid_online.identifier_node.time", clock)
    g.nodes["identifier"]._heard = 0.0
    robot = g.nodes["identifier"].robot
    stream = stream_settings_for(eventful, robot)
    steps = replay(eventful, robot, stream=stream, update_rate=UPDATE_RATE)
    once = decisions(step.update for step in steps)
    assert {state for state, *_ in once} >= {"FILLING", "IDENTIFIED", "HOLDING"}
    assert any(attached for *_, attached, _ in once)
    assert decisions(live(g, eventful)) == once
