# SPDX-License-Identifier: Apache-2.0
"""Which efforts of a live stream lie at an end of their range."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.signals.plateaus import FrequentValues, LiveEnds

RATE = 200.0
TIME = np.arange(4000) / RATE
SWING = 20.0 * np.sin(2.0 * np.pi * 0.4 * TIME) + 5.0 * np.sin(2.0 * np.pi * 1.1 * TIME)
MOTION = np.sin(2.0 * np.pi * 0.3 * TIME)


def marked(
    effort: FloatArray,
    position: FloatArray = MOTION,
    *,
    limit: float = np.inf,
    chunk: int = 5,
) -> BoolArray:
    ends = LiveEnds(RATE, np.array([limit]))
    rows = np.column_stack([position, effort])
    parts = [ends.push(rows[i : i + chunk]) for i in range(0, len(rows), chunk)]
    return np.concatenate(parts)[:, 0]


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("chunk", [1, 5, 64])
def test_efforts_that_are_cut_off_are_marked(unit: float, chunk: int) -> None:
    cut = np.clip(SWING, -12.0, 15.0)
    found, at_end = marked(unit * cut, chunk=chunk), (cut == -12.0) | (cut == 15.0)
    assert not found[~at_end].any()
    first = np.flatnonzero(at_end)[2 * 64]  # before, they may be a sine's
    assert found[first:].sum() > 0.97 * at_end[first:].sum()


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_an_end_may_lie_on_either_side_of_zero(sign: float) -> None:
    cut = sign * np.minimum(SWING, -10.0)
    assert marked(cut).sum() > 0.8 * (cut == -10.0 * sign).sum()


@pytest.mark.parametrize(
    "effort",
    [
        SWING,
        np.round(SWING / 10.0) * 10.0,  # one of few values
        0.0 * SWING + 3.0,  # not measured
        np.where(np.abs(SWING) < 6.0, 0.0, SWING),  # small ones are not shown
    ],
)
def test_efforts_that_return_for_another_reason_are_not(effort: FloatArray) -> None:
    assert not marked(effort).any()


@pytest.mark.parametrize(
    "effort",
    [
        np.round(SWING),  # a coarse sensor
        np.where(np.abs(SWING - 8.0) < 3.0, 8.0, SWING),  # it goes on beyond
    ],
)
def test_efforts_that_look_like_an_end_at_first_hardly_are(effort: FloatArray) -> None:
    assert marked(effort).mean() < 0.03


def test_a_joint_at_rest_is_at_no_end() -> None:
    resting = np.where(TIME < 10.0, MOTION, MOTION[2000])
    assert not marked(np.where(TIME < 10.0, SWING, SWING.max()), resting).any()


def test_what_a_motor_cannot_exceed_is_what_it_gives() -> None:
    cut = np.clip(SWING, -np.inf, 15.0)
    assert not marked(cut, limit=15.0).any()
    assert marked(cut, limit=30.0).any()


def test_a_range_that_was_mended_is_forgotten() -> None:
    found = marked(np.where(TIME < 8.0, np.clip(SWING, -10.0, 10.0), SWING))
    assert found[TIME < 8.0].any()
    assert not found[TIME > 12.0].any()


def test_a_value_that_comes_row_by_row_is_counted() -> None:
    values = FrequentValues(1, 1)
    for _ in range(50):
        values.vote(0, 3.0, 1e-6, 1.0)
        values.sums *= 0.999
    assert values.count.max() > 45.0
    assert values.sums[..., 1].max() > 45.0
