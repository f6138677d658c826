# SPDX-License-Identifier: Apache-2.0
"""Live messages that only repeat the one before, or a joint of it, are told from new ones."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.signals.repeats import LiveRepeats, LostEfforts, StandingJoints

PERIOD = 0.01


def _new(
    source: np.ndarray, stamps: FloatArray, portion: int = 1000, *, rests: bool = False
) -> tuple[BoolArray, LiveRepeats]:
    """Return which of messages that hold the values of `source` (n,) are new.

    Positions scatter, or come to rest with the last of them; efforts always scatter.
    """
    values = np.random.default_rng(1).normal(size=(int(source.max()) + 1, 2))
    if rests:
        values[:, 0] = 1e-5 * np.arange(len(values), 0, -1.0) ** 2
    values = values[source]
    repeats = LiveRepeats(PERIOD, gap=5.0, positions=1)
    parts = [
        repeats.find_new(stamps[k : k + portion], values[k : k + portion])
        for k in range(0, len(source), portion)
    ]
    return np.concatenate(parts), repeats


@pytest.mark.parametrize("portion", [1, 7, 1000])
def test_messages_that_repeat_the_one_before_are_not_new(portion: int) -> None:
    source = np.arange(400)
    source[50::20] -= 1
    source[303:305] = 302
    new, repeats = _new(source, PERIOD * np.arange(400.0), portion)
    np.testing.assert_array_equal(new, np.diff(source, prepend=-1) != 0)
    # one came in every period
    assert repeats.count == repeats.covered == 18 + 2


@pytest.mark.parametrize("portion", [1, 7, 1000])
@pytest.mark.parametrize("held", [4, 40])
def test_of_a_robot_that_moves_no_message_that_repeats_is_new(portion: int, held: int) -> None:
    source = np.arange(400)
    source[200 : 200 + held] = 199
    new, repeats = _new(source, PERIOD * np.arange(400.0), portion)
    np.testing.assert_array_equal(new, np.diff(source, prepend=-1) != 0)
    assert repeats.count == held


@pytest.mark.parametrize("portion", [1, 7, 1000])
def test_of_a_robot_that_rests_some_messages_are_new(portion: int) -> None:
    source = np.minimum(np.arange(400), 100)
    stamps = PERIOD * np.arange(400.0)
    new, _ = _new(source, stamps, portion, rests=True)
    assert np.diff(stamps[new]).max() < 5.0 * PERIOD
    assert 60 < new[101:].sum() < 110
    # also behind a clock that goes back
    stamps[200:] -= 1.5
    new, _ = _new(source, stamps, portion, rests=True)
    assert new[200:203].any()
    assert 60 < new[101:].sum() < 110


def test_messages_that_hold_a_slower_sensors_values_stand_for_no_others() -> None:
    source = np.arange(400) // 4
    lost = np.random.default_rng(2).random(400) < 0.1
    new, repeats = _new(source[~lost], (0.25 * PERIOD * np.arange(400.0))[~lost])
    assert new.sum() == len(np.unique(source[~lost]))
    assert repeats.covered == 0


TIME = PERIOD * np.arange(1000.0)
SWEEP = np.column_stack([np.sin(TIME), np.sin(1.7 * TIME), np.cos(0.4 * TIME)])
NAMES = ("a", "b", "c")


def _standing(positions: FloatArray, portion: int) -> tuple[BoolArray, list[str]]:
    """Return in which messages a joint stands, and what is said of it."""
    standing = StandingJoints(3)
    parts = [
        standing.take_out(positions[k : k + portion]) for k in range(0, len(positions), portion)
    ]
    found = ~np.concatenate(parts)
    assert standing.count == found.sum()
    told = [str(one) for one in standing.take_diagnostics(NAMES)]
    assert standing.take_diagnostics(NAMES) == []
    return found, told


@pytest.mark.parametrize("portion", [1, 7, 1000])
@pytest.mark.parametrize("value", [None, 0.0, 3.0])
@pytest.mark.parametrize("noise", [0.0, 1e-5])
def test_a_joint_that_stands_while_others_move_is_found(
    portion: int, value: float | None, noise: float
) -> None:
    positions = SWEEP + np.random.default_rng(0).normal(0.0, noise, SWEEP.shape)
    positions[400:600, 1] = positions[399, 1] if value is None else value
    found, told = _standing(positions, portion)
    assert found[410:600].all()
    assert not found[:400].any()
    assert not found[600:].any()
    (text,) = told
    assert text.startswith("b: its position stood")


@pytest.mark.parametrize("quantum", [0.0, 1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("every", [1, 4])
def test_joints_that_rest_turn_or_have_slow_encoders_do_not_stand(
    quantum: float, every: int
) -> None:
    positions = SWEEP.copy()
    gentle = np.clip(TIME / 3.0, 0.0, 1.0)
    positions[:, 1] = gentle**3 * (10.0 - 15.0 * gentle + 6.0 * gentle**2)  # then it rests
    positions[:, 2] = positions[np.arange(len(TIME)) // every * every, 2]
    if quantum:
        noise = np.random.default_rng(0).normal(0.0, 0.5 * quantum, SWEEP.shape)
        positions = np.round((positions + noise) / quantum) * quantum
    found, told = _standing(positions, 7)
    assert found.mean() < 0.01
    assert told == []


EFFORT = 10.0 * SWEEP + np.random.default_rng(3).normal(0.0, 0.1, SWEEP.shape)


def _lost(efforts: FloatArray, limit: float = np.inf) -> tuple[BoolArray, list[str]]:
    """Return in which messages an effort is lost, and what is said of it."""
    lost = LostEfforts(np.full(3, limit))
    found = ~np.concatenate([lost.take_out(efforts[k : k + 7]) for k in range(0, len(efforts), 7)])
    assert lost.count == found.sum()
    return found, [str(one) for one in lost.take_diagnostics(NAMES)]


@pytest.mark.parametrize("value", [None, 0.0])
def test_an_effort_that_stands_though_it_is_noisy_is_found(value: float | None) -> None:
    efforts = EFFORT.copy()
    efforts[600:800, 0] = efforts[599, 0] if value is None else value
    found, told = _lost(efforts)
    assert found[610:800].all()
    assert not found[:600].any()
    assert not found[800:].any()
    (text,) = told
    assert text.startswith("a: its effort stood")


@pytest.mark.parametrize(
    ("changed", "limit"),
    [
        (np.clip(EFFORT, -7.0, 7.0), np.inf),
        (np.clip(EFFORT, -7.0, 7.0), 7.0),
        (np.where(np.abs(EFFORT) < 3.0, 0.0, EFFORT), np.inf),
        (np.round(EFFORT), np.inf),
        (EFFORT[np.arange(len(TIME)) // 10 * 10], np.inf),
        (np.where(TIME[:, None] < 4.0, 0.0, EFFORT), np.inf),
    ],
    ids=["cut_off", "motors_limit", "swallowed", "coarse", "slow", "off_at_first"],
)
def test_what_an_effort_does_all_the_time_is_not_lost(changed: FloatArray, limit: float) -> None:
    found, told = _lost(changed, limit)
    assert found.mean() < 0.01
    assert told == []
