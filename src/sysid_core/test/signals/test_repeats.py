# SPDX-License-Identifier: Apache-2.0
"""Live messages that only repeat the one before are told from new ones."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.signals.repeats import LiveRepeats

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
