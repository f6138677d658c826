# SPDX-License-Identifier: Apache-2.0
"""Joint states that a driver repeats count as silence; a joint that stands alone is named."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_controller.repeats import Repeats
from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic

NAMES = ("a", "b")
LIMIT = np.array([10.0, 10.0])
NONE, PERIOD = np.zeros(0), 0.01


def _judged(
    position: FloatArray, velocity: FloatArray, effort: FloatArray, sent: FloatArray
) -> tuple[list[int], Repeats]:
    """Return which rows (n, 2) are refused."""
    repeats = Repeats(NAMES, LIMIT, 0.1)
    rows = zip(position, velocity, effort, sent, strict=True)
    told = [repeats.judge(*row, PERIOD * k) for k, row in enumerate(rows)]
    assert all(d is None or d.kind == "repeated" for d in told)
    return [k for k, d in enumerate(told) if isinstance(d, Diagnostic)], repeats


STOOD = np.ones((50, 2))
NOISE = np.random.default_rng(0).normal(size=(50, 2))
RISING = np.linspace(0.0, 1.0, 50)[:, None] * np.ones(2)


def test_states_that_repeat_while_torques_change_are_refused() -> None:
    refused, _ = _judged(STOOD, 0.0 * STOOD, STOOD, RISING)
    assert refused == list(range(11, 50))


@pytest.mark.parametrize(
    ("effort", "sent"),
    [
        (NOISE, RISING),  # efforts are measured anew
        (STOOD, STOOD),  # nothing else was to be expected
        (STOOD, 0.1 * RISING),  # nor here: friction holds that
        (np.zeros((50, 2)), RISING),  # there are none that could tell
        (np.zeros((50, 0)), RISING),
    ],
)
def test_robots_that_rest_are_believed(effort: FloatArray, sent: FloatArray) -> None:
    refused, repeats = _judged(STOOD, 0.0 * STOOD, effort, sent)
    assert not refused
    assert repeats.standing() is None


def test_a_joint_that_stands_while_its_velocity_moves_it_is_named() -> None:
    velocity = np.column_stack([np.zeros(50), np.full(50, 0.4)])
    moving = np.column_stack([np.sin(RISING[:, 0]), np.ones(50)])
    refused, repeats = _judged(moving, velocity, NOISE, RISING)
    assert not refused
    told = repeats.standing()
    assert told is not None
    assert "joint 'b' has stood at 1 rad" in str(told)
    assert repeats.lost.tolist() == [False, True]
    assert repeats.judge(moving[0], velocity[0], NOISE[0], RISING[0], 1.0) is None
    assert repeats.standing() is not None  # it stands on
    assert repeats.judge(moving[0] + 0.1, velocity[0], NOISE[0], RISING[0], 1.01) is None
    assert repeats.standing() is None


def test_a_joint_that_stands_without_coming_to_rest_is_named_whatever_its_velocity() -> None:
    moving = np.column_stack([np.sin(RISING[:, 0]), np.minimum(RISING[:, 0], 0.5) ** 2])
    refused, repeats = _judged(moving, 0.0 * STOOD, NOISE, RISING)
    assert not refused
    told = repeats.standing()
    assert told is not None
    assert "joint 'b' has stood at 0.25 rad" in str(told)
    rests = np.column_stack([moving[:, 0], np.sin(np.minimum(4.0 * RISING[:, 0], np.pi / 2.0))])
    refused, repeats = _judged(rests, 0.0 * STOOD, NOISE, RISING)
    assert not refused
    assert repeats.standing() is None


def test_an_encoder_that_is_slower_than_the_states_is_believed() -> None:
    position = np.repeat(np.arange(10.0)[:, None] * np.ones(2), 5, axis=0)
    refused, repeats = _judged(position, np.full((50, 2), 20.0), NOISE, RISING)
    assert not refused
    assert repeats.standing() is None
