# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on a live robot: nothing spoiled comes out, the cause is named, it recovers."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

RATE = 200.0

Make = Callable[..., Any]


@pytest.fixture
def learned(graph: Make) -> Any:
    """Return a graph whose identifier has opened its gate."""
    g = graph("recorder", "identifier")
    g.play_until(g.identified)
    return g


def recovers(g: Any) -> None:
    """Play on until new estimates are adopted again, and check what was heard on the way."""
    g.play(0.5)
    revision = g.newest("parameters").revision

    def adopted() -> bool:
        return bool(g.newest("parameters").revision > revision and g.newest("status").state == 2)

    g.play_until(adopted)
    assert g.newest("parameters").identified
    assert g.all_finite()


def test_joint_states_that_stop_for_two_seconds(learned: Any) -> None:
    learned.until(lambda: learned.newest("status").state == 3)
    learned.until(lambda: learned.diagnosed("joint states", "is the driver running?"))
    held = [m for m in learned.heard["status"] if m.state == 3]
    assert "no informative samples" in held[-1].reasons[0]
    assert learned.newest("parameters").identified
    learned.clock_offset += 2.0
    recovers(learned)
    learned.until(lambda: learned.diagnosed("joint states", "gaps"))


def test_the_clock_jumps_back_as_a_bag_begins_anew(learned: Any) -> None:
    learned.play(4.0)
    learned.next = 0
    recovers(learned)
    learned.until(lambda: learned.diagnosed("joint states", "resets"))
    learned.next = 0
    recovers(learned)


def test_ten_percent_dropped(graph: Make) -> None:
    rng = np.random.default_rng(1)

    def drop(index: int, message: Any) -> Sequence[Any]:
        return [] if rng.uniform() < 0.1 else [message]

    g = graph("recorder", "identifier")
    g.play(16.0, drop, until=g.identified)
    assert g.identified()
    assert g.newest("parameters").r2 > 0.95
    g.until(lambda: g.diagnosed("joint states", "lost"))
    assert g.all_finite()


def test_twenty_milliseconds_of_jitter_in_transport(graph: Make) -> None:
    """Messages come up to four periods late and in clumps; their stamps are right."""
    rng = np.random.default_rng(2)
    waiting: list[Any] = []

    def delay(index: int, message: Any) -> Sequence[Any]:
        waiting.append(message)
        if rng.uniform() < 0.25 or len(waiting) == 4:
            out, waiting[:] = list(waiting), []
            return out
        return []

    g = graph("recorder", "identifier")
    g.play(16.0, delay, until=g.identified)
    assert g.identified()
    assert g.all_finite()


def test_twenty_milliseconds_of_jitter_in_the_stamps(graph: Make) -> None:
    """Stamps taken on arrival by a driver that is held up; order is kept or nearly so."""
    rng = np.random.default_rng(3)

    def jitter(index: int, message: Any) -> Sequence[Any]:
        stamp = message.header.stamp
        shifted = stamp.sec * 10**9 + stamp.nanosec + int(rng.uniform(0.0, 20e6))
        stamp.sec, stamp.nanosec = divmod(shifted, 10**9)
        return [message]

    g = graph("recorder", "identifier")
    g.play(16.0, jitter, until=g.identified)
    assert g.all_finite()
    assert g.identified()
    assert g.newest("parameters").r2 > 0.95


def test_joints_in_another_order_and_more_of_them(graph: Make) -> None:
    def mixed(index: int, message: Any) -> Sequence[Any]:
        order = [2, 0, 3, 1]
        message.name = ["gripper", *(message.name[i] for i in order)]
        for field in ("position", "velocity", "effort"):
            values = getattr(message, field)
            setattr(message, field, [9.9, *(values[i] for i in order)])
        return [message]

    g = graph("recorder", "identifier")
    g.play(16.0, mixed, until=g.identified)
    assert g.identified()
    assert g.newest("parameters").r2 > 0.95
    assert list(g.newest("samples").joint_names) == list(g.motion.robot.joint_names)


def test_the_order_may_change_while_running(learned: Any) -> None:
    def reverse(index: int, message: Any) -> Sequence[Any]:
        message.name = list(reversed(message.name))
        for field in ("position", "velocity", "effort"):
            setattr(message, field, list(reversed(getattr(message, field))))
        return [message]

    before = learned.newest("parameters").revision
    learned.play(4.0, reverse)
    assert learned.newest("parameters").revision > before
    assert learned.newest("status").r2 > 0.95
    assert learned.all_finite()


@pytest.mark.parametrize("field", ["position", "velocity", "effort"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_none(graph: Make, field: str, value: float) -> None:
    def spoil(index: int, message: Any) -> Sequence[Any]:
        if index % 50 == 7:
            values = list(getattr(message, field))
            values[index % 4] = value
            setattr(message, field, values)
        return [message]

    g = graph("recorder", "identifier")
    g.play(16.0, spoil, until=g.identified)
    assert g.identified()
    if field != "velocity":  # measured velocities are not used
        g.until(lambda: g.diagnosed("joint states", "not finite"))
    assert g.all_finite()


def test_stamps_out_of_all_order(learned: Any) -> None:
    def wild(index: int, message: Any) -> Sequence[Any]:
        if index % 40 == 3:
            message.header.stamp.sec = 5 if index % 80 == 3 else 2_000_000_000
        return [message]

    learned.play(4.0, wild)
    learned.until(lambda: learned.diagnosed("joint states", "implausible"))
    recovers(learned)


def test_the_same_message_twice(learned: Any) -> None:
    learned.play(4.0, lambda index, message: [message, message])
    learned.until(lambda: learned.diagnosed("joint states", "duplicate"))
    recovers(learned)


def test_an_identifier_that_comes_late_or_comes_back(graph: Make) -> None:
    g = graph("recorder")
    g.play(3.0)
    node = g.start("identifier")
    g.play_until(g.identified)
    g.executor.remove_node(node)
    node.destroy_node()
    g.start("identifier")
    g.until(lambda: not g.newest("parameters").identified)
    g.play_until(g.identified)


def test_a_recorder_that_comes_back(learned: Any) -> None:
    node = learned.nodes["recorder"]
    learned.executor.remove_node(node)
    node.destroy_node()
    learned.play(1.0)
    learned.start("recorder")
    recovers(learned)


def test_samples_whose_arrays_do_not_fit(learned: Any) -> None:
    from sysid_msgs.msg import JointSamples

    names = list(learned.motion.robot.joint_names)
    zeros = array("d", [0.0] * 4)
    for bad in (
        JointSamples(robot="valkyrie_arm", joint_names=names, time=array("d", [0.0])),
        JointSamples(robot="valkyrie_arm", joint_names=names, position=zeros),
        JointSamples(robot="valkyrie_arm", joint_names=names[:2], time=array("d", [0.0])),
        JointSamples(
            robot="valkyrie_arm",
            joint_names=names,
            time=array("d", [0.0]),
            position=zeros,
            velocity=zeros,
            acceleration=zeros,
            effort=zeros,
            contact_names=["foot"],
        ),
    ):
        learned.diagnostics["identification"].clear()
        learned.samples_in.publish(bad)
        learned.until(
            lambda: any(
                "numbers" in s.message
                or "lack" in s.message
                or "columns" in s.message
                or "contacts" in s.message
                for s in learned.diagnostics["identification"]
            )
        )
    learned.heard["samples"].clear()
    recovers(learned)


def test_sequences_times_and_positions_that_no_recorder_sends(learned: Any) -> None:
    from sysid_msgs.msg import JointSamples

    robot = learned.motion.robot
    usual: dict[str, Any] = {
        "robot": robot.name,
        "joint_names": list(robot.joint_names),
        **{name: array("d", [0.1] * 4) for name in ("velocity", "acceleration", "effort")},
    }
    newest = learned.newest("samples").time[-1]
    for sequence, time, position in (
        (0, newest + 0.01, 1e200),
        (2**64 - 1, newest + 0.02, 1e9),
        (0, newest + 0.03, 1e3),
        (2**64 - 1, 1e300, 0.1),
        (0, float(2**40), 0.1),
    ):
        learned.samples_in.publish(
            JointSamples(
                sequence=sequence,
                time=array("d", [time]),
                position=array("d", [position] * 4),
                **usual,
            )
        )
    learned.heard["samples"].clear()
    recovers(learned)


def test_a_solver_that_breaks_is_a_fault_with_its_cause(learned: Any) -> None:
    node = learned.nodes["identifier"]
    usable = node._identifier.snapshot

    def broken() -> Any:
        raise MemoryError("no room for a matrix")

    node._identifier.snapshot = broken
    learned.play(1.0)
    learned.until(lambda: learned.diagnosed("identification", "no room for a matrix"))
    node._identifier.snapshot = usable
    recovers(learned)
