# SPDX-License-Identifier: Apache-2.0
"""The recorder turns joint states into samples, tells of bad ones, and saves what it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sysid_core.data import read_recording

EPOCH, RATE = 1000.0, 200.0

Make = Callable[..., Any]


def columns(message: Any, name: str) -> np.ndarray:
    values = np.asarray(getattr(message, name))
    return values.reshape(-1, len(message.joint_names))


def test_samples_are_the_motion_in_order_and_without_gaps(graph: Make) -> None:
    g = graph("recorder")
    g.play(4.0)
    g.until(lambda: g.heard["samples"] and g.newest("samples").sequence > 250)
    sequence = 0
    for message in g.heard["samples"]:
        assert message.robot == "valkyrie_arm"
        assert message.sequence == sequence
        sequence += len(message.time)
        assert message.time[-1] == 0.0
        stamp = message.header.stamp
        time = stamp.sec + 1e-9 * stamp.nanosec + np.asarray(message.time) - EPOCH
        rows = np.rint(time * RATE).astype(int)
        assert np.all(np.abs(time * RATE - rows) < 0.01)
        # the low-pass leaves motion below a hertz as it is; friction's steps in the torque not
        q, v = g.motion.position[rows], g.motion.velocity[rows]
        np.testing.assert_allclose(columns(message, "position"), q, atol=1e-4)
        np.testing.assert_allclose(columns(message, "velocity"), v, atol=1e-3)
        assert list(message.joint_names) == list(g.motion.robot.joint_names)


def test_velocities_are_optional(graph: Make) -> None:
    def without(index: int, message: Any) -> Sequence[Any]:
        message.velocity = []
        return [message]

    g = graph("recorder")
    g.play(2.0, without)
    g.until(lambda: g.heard["samples"])
    assert g.all_finite()


def test_the_rate_is_measured_despite_jitter(graph: Make) -> None:
    rng = np.random.default_rng(0)

    def jitter(index: int, message: Any) -> Sequence[Any]:
        nanoseconds = message.header.stamp.nanosec + int(rng.uniform(-2e6, 2e6))
        message.header.stamp.nanosec = int(np.clip(nanoseconds, 0, 999_999_999))
        return [message]

    g = graph("recorder")
    g.play(2.0, jitter)
    g.until(lambda: g.diagnostics["joint states"] and g.heard["samples"])
    g.diagnostics["joint states"].clear()
    g.until(lambda: g.diagnostics["joint states"])
    values = {kv.key: kv.value for kv in g.diagnostics["joint states"][-1].values}
    assert float(values["rate [Hz]"]) == pytest.approx(RATE, rel=0.02)


def test_memory_that_is_free_is_given_back_once_a_minute(
    graph: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[None] = []
    monkeypatch.setattr("sysid_online.recorder_node.trim_memory", lambda: calls.append(None))
    g = graph("recorder")
    for _ in range(120):
        g.nodes["recorder"]._report()
    assert len(calls) == 2


def test_silence_is_an_error_that_names_the_driver(graph: Make) -> None:
    g = graph("recorder")
    g.play(1.0)
    g.until(lambda: g.diagnosed("joint states", "is the driver running?"))
    assert g.diagnostics["joint states"][-1].level == b"\x02"


def test_a_clock_that_never_comes_is_told(graph: Make) -> None:
    g = graph("recorder", use_sim_time=True)
    g.until(lambda: g.diagnosed("joint states", "no /clock comes"))


def test_efforts_that_nobody_measures_are_told(graph: Make) -> None:
    def without(index: int, message: Any) -> Sequence[Any]:
        message.effort = [0.0] * len(message.effort)
        return [message]

    g = graph("recorder")
    g.play(4.0, without, until=lambda: g.diagnosed("joint states", "all efforts are zero"))


def test_a_simulation_starts_at_zero(graph: Make, tmp_path: Path) -> None:
    """Its first stamp is zero, which is no missing one."""
    from rosgraph_msgs.msg import Clock

    from sysid_msgs.srv import SaveBuffer

    g = graph("recorder", use_sim_time=True)
    clock = g.probe.create_publisher(Clock, "/clock", 10)

    def from_zero(index: int, message: Any) -> Sequence[Any]:
        message.header.stamp.sec -= int(EPOCH)
        clock.publish(Clock(clock=message.header.stamp))
        return [message]

    g.play(4.0, from_zero, until=lambda: g.heard["samples"])
    answer = g.call(SaveBuffer, "recorder/save", SaveBuffer.Request(directory=str(tmp_path / "a")))
    assert answer.success
    time = read_recording(tmp_path / "a").time
    np.testing.assert_allclose(time[:3], np.arange(3) / RATE, atol=1e-6)


def test_messages_without_a_stamp_are_used_and_told(graph: Make) -> None:
    def unstamped(index: int, message: Any) -> Sequence[Any]:
        message.header.stamp.sec = message.header.stamp.nanosec = 0
        return [message]

    g = graph("recorder")
    g.play(1.0, unstamped)
    g.until(lambda: g.diagnosed("joint states", "without a time stamp"))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda m: setattr(m, "effort", []), "without position or effort"),
        (lambda m: setattr(m, "position", [0.0]), "without position or effort"),
        (lambda m: setattr(m, "velocity", [0.0]), "arrays of odd length"),
        (lambda m: setattr(m, "name", ["a", "b", "c", "d"]), "without the robot's joints"),
    ],
)
def test_malformed_messages_are_told_by_their_fault(
    graph: Make, spoil: Callable[[Any], None], words: str
) -> None:
    def spoiled(index: int, message: Any) -> Sequence[Any]:
        if index % 10 == 0:
            spoil(message)
        return [message]

    g = graph("recorder")
    g.play(3.0, spoiled)
    g.until(lambda: g.diagnosed("joint states", words))
    g.until(lambda: g.heard["samples"])
    assert g.all_finite()


def test_the_ring_buffer_is_saved_as_a_bag_with_its_joints(graph: Make, tmp_path: Path) -> None:
    from sysid_msgs.srv import SaveBuffer

    g = graph("recorder", buffer_duration=2.0)
    empty = g.call(SaveBuffer, "recorder/save", SaveBuffer.Request(directory=str(tmp_path / "a")))
    assert not empty.success
    assert "no joint states" in empty.message
    g.play(6.0)
    g.until(lambda: g.heard["samples"] and g.newest("samples").sequence > 400)
    folder = tmp_path / "bag"
    request = SaveBuffer.Request(directory=str(folder))
    answer = g.call(SaveBuffer, "recorder/save", request)
    assert answer.success, answer.message
    assert answer.duration == pytest.approx(2.0, abs=0.3)
    recording = read_recording(folder)
    assert len(recording) == answer.messages
    rows = np.rint((recording.time - EPOCH) * RATE).astype(int)
    np.testing.assert_array_equal(recording.position, g.motion.position[rows])
    assert recording.effort is not None
    np.testing.assert_array_equal(recording.effort, g.motion.effort[rows])
    again = g.call(SaveBuffer, "recorder/save", request)
    assert not again.success


def test_an_empty_robot_is_refused_with_a_reason() -> None:
    rclpy = pytest.importorskip("rclpy")
    from sysid_core.errors import ParameterError
    from sysid_online.recorder_node import RecorderNode

    rclpy.init(args=[])
    try:
        with pytest.raises(ParameterError, match="'robot' is empty"):
            RecorderNode()
    finally:
        rclpy.try_shutdown()
