# SPDX-License-Identifier: Apache-2.0
"""Simulated time follows a clock, and stale commands are replaced by what is safe."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_sim.pacing import CommandGate, Pacing


def due(pacing: Pacing, now: float) -> list[int]:
    ticks = []
    while pacing.ready(now):
        ticks.append(pacing.take())
    return ticks


@pytest.mark.parametrize("speed", [0.5, 1.0, 4.0])
def test_simulated_time_follows_the_clock(speed: float) -> None:
    pacing = Pacing(period=0.002, speed=speed, now=100.0)
    ticks = [tick for i in range(1, 1001) for tick in due(pacing, 100.0 + 0.0021 * i)]
    assert ticks == list(range(len(ticks)))
    assert len(ticks) * 0.002 == pytest.approx(2.1 * speed, abs=0.002 * speed + 0.002)
    assert pacing.take_late() == 0.0


def test_a_long_stall_is_not_made_up_for() -> None:
    pacing = Pacing(period=0.002, speed=1.0, now=0.0)
    assert len(due(pacing, 3.0)) * 0.002 == pytest.approx(0.05)
    assert pacing.take_late() == pytest.approx(2.95)
    assert pacing.take_late() == 0.0
    assert len(due(pacing, 3.0021)) == 1


def test_a_change_of_speed_makes_no_jump() -> None:
    pacing = Pacing(period=0.001, speed=1.0, now=0.0)
    assert len(due(pacing, 0.0101)) == 10
    pacing.set_speed(2.0, 0.0101)
    assert not due(pacing, 0.0101)
    assert len(due(pacing, 0.0111)) == 2


def test_a_long_wait_stands_still_and_a_short_one_is_made_up_for() -> None:
    pacing = Pacing(period=0.001, speed=1.0, now=0.0)
    due(pacing, 0.0101)
    pacing.wait(0.0131)  # the command of the eleventh period comes three periods late
    assert due(pacing, 0.0131) == [10, 11, 12]
    pacing.wait(0.5)
    assert due(pacing, 0.5) == list(range(13, 63))  # what may be made up for, and no more
    assert due(pacing, 0.5011) == [63]
    assert pacing.take_late() == 0.0


def test_a_clock_that_stands_still_lets_no_time_pass() -> None:
    pacing = Pacing(period=0.001, speed=1.0, now=5.0)
    assert not due(pacing, 5.0)
    assert not due(pacing, 4.0)


def test_nothing_drives_before_the_first_command() -> None:
    gate = CommandGate(3)
    assert gate.next(0.002) is None
    assert not gate.driven
    assert gate.lapses == 0


def test_a_stale_command_is_dropped() -> None:
    gate = CommandGate(3)
    assert gate.offer(np.ones(3), now=0.0)
    applied = [gate.next(0.01) for _ in range(20)]
    assert sum(np.array_equal(c, np.ones(3)) for c in applied if c is not None) == 11
    assert applied[-1] is None
    assert gate.lapses == 1
    assert gate.offer(np.ones(3), now=0.0)
    assert gate.next(0.01) is not None


@pytest.mark.parametrize("bad", [np.ones(2), np.ones(4), np.array([1.0, np.nan, 1.0]), np.ones(0)])
def test_a_malformed_command_is_counted_and_leaves_the_last_one(bad: FloatArray) -> None:
    gate = CommandGate(3)
    gate.offer(np.ones(3), now=0.0)
    assert not gate.offer(bad, now=1.0)
    assert gate.refused == 1
    kept = gate.next(0.01)
    assert kept is not None
    np.testing.assert_array_equal(kept, np.ones(3))


def test_a_late_command_is_waited_for_but_not_forever() -> None:
    gate = CommandGate(3)
    assert not gate.late(0.004, 1.0, now=5.0)  # none has come yet: nobody to wait for
    gate.offer(np.ones(3), now=5.0)
    gate.next(0.002)
    assert not gate.late(0.004, 1.0, now=5.0)
    gate.next(0.002)
    assert gate.late(0.004, 1.0, now=5.5)
    assert not gate.late(0.004, 1.0, now=6.5)
    gate.offer(np.ones(3), now=5.6)
    assert not gate.late(0.004, 1.0, now=5.6)
