# SPDX-License-Identifier: Apache-2.0
"""Buffers of live rows: equal to the batch, every trouble counted, memory bounded."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.signals.buffer import GatedRows, RecentRows
from sysid_core.signals.group import Track
from sysid_core.signals.synchronise import synchronise

RATE = 100.0


def _motion(time: FloatArray) -> FloatArray:
    return np.stack([np.sin(2.0 * time), np.cos(3.0 * time)], axis=1)


class Runs:
    """Feeds rows and keeps every run that is over."""

    def __init__(self, rows: GatedRows) -> None:
        self.rows = rows
        self.ended: list[tuple[FloatArray, FloatArray]] = []
        self.resets: list[bool] = []

    def feed(self, time: FloatArray, values: FloatArray, portion: int = 1) -> None:
        for i in range(0, len(time), portion):
            self.rows.sort_in(time[i : i + portion], values[i : i + portion], self._end)
        self._end(False)

    def _end(self, reset: bool) -> None:
        count = np.floor((self.rows.newest - self.rows.origin) * RATE + 1e-3)
        grid = self.rows.origin + np.arange(count + 1) / RATE
        self.ended.append((grid, self.rows.at(grid)))
        self.resets.append(reset)


@pytest.mark.parametrize("portion", [1, 7, 1000])
def test_the_buffer_equals_the_batch(portion: int) -> None:
    rng = np.random.default_rng(15)
    time = 1.7e9 + np.arange(600, dtype=np.float64) / RATE + rng.uniform(-0.2, 0.2, 600) / RATE
    values = _motion(time - 1.7e9) + 1e-3 * rng.standard_normal((600, 2))
    batch = synchronise([Track(time, values)], rate=RATE, timing="stamped").segments[0]
    runs = Runs(GatedRows(RATE, 2))
    runs.feed(time, values, portion)
    ((grid, got),) = runs.ended
    shared = min(len(batch.time), len(grid))
    assert shared >= 598
    np.testing.assert_allclose(grid[:shared], batch.time[:shared], atol=1e-6)
    np.testing.assert_allclose(got[:shared], batch.values[0][:shared], atol=1e-6)


@pytest.mark.parametrize("portion", [1, 7, 1000])
def test_every_trouble_is_counted_and_none_comes_out(portion: int) -> None:
    time = np.arange(100, dtype=np.float64) / RATE
    values = _motion(time)
    sequence = [(t, v) for t, v in zip(time, values, strict=True)]
    sequence.insert(90, (1e6, values[0]))
    sequence.insert(80, (time[75], values[75]))
    sequence.insert(60, (time[60], np.array([np.nan, 0.0])))
    sequence.insert(50, (time[49] + 1e-4, values[49]))
    sequence.insert(40, (time[40] - 0.3 / RATE, np.array([50.0, 0.0])))
    sequence.insert(30, (time[30] - 0.3 / RATE, values[30] + 1.0))
    del sequence[20]
    rows = GatedRows(RATE, 2, upper=np.array([10.0, 10.0]), max_rate=np.array([20.0, 20.0]))
    runs = Runs(rows)
    runs.feed(np.array([t for t, _ in sequence]), np.array([v for _, v in sequence]), portion)
    counts = rows.counts
    assert counts.received == len(sequence)
    assert counts.accepted == 99
    assert (counts.implausible, counts.late, counts.duplicate) == (3, 1, 1)
    assert (counts.not_finite, counts.lost, counts.gaps, counts.resets) == (1, 1, 0, 0)
    ((grid, got),) = runs.ended
    np.testing.assert_allclose(grid, time, atol=1e-9)
    np.testing.assert_allclose(got, values, atol=2e-4)


def test_a_gap_starts_a_new_run_and_is_not_filled() -> None:
    time = np.concatenate([np.arange(50), np.arange(80, 130)]) / RATE
    runs = Runs(GatedRows(RATE, 2))
    runs.feed(time, _motion(time))
    counts = runs.rows.counts
    assert (counts.gaps, counts.lost, counts.resets) == (1, 30, 0)
    assert runs.resets[0] is False
    np.testing.assert_allclose(np.concatenate([grid for grid, _ in runs.ended]), time, atol=1e-9)


def test_a_bag_that_starts_over_is_a_reset() -> None:
    time = np.tile(np.arange(100, dtype=np.float64) / RATE, 3)
    runs = Runs(GatedRows(RATE, 2))
    runs.feed(time, _motion(time), portion=10)
    assert runs.rows.counts.resets == 2
    assert runs.resets[:2] == [True, True]
    np.testing.assert_allclose(np.concatenate([grid for grid, _ in runs.ended]), time, atol=1e-9)


def test_a_real_jump_of_a_value_is_accepted_after_a_gap() -> None:
    time = np.arange(100, dtype=np.float64) / RATE
    values = np.where(time < 0.5, 0.0, 5.0)[:, np.newaxis]
    runs = Runs(GatedRows(RATE, 1, max_rate=np.array([1.0])))
    runs.feed(time, values)
    assert runs.rows.counts.gaps == 1
    got = np.concatenate([values for _, values in runs.ended])
    assert set(np.unique(np.round(got, 9))) == {0.0, 5.0}


@pytest.mark.parametrize("portion", [1, 7, 1000])
def test_values_that_stand_out_are_replaced_and_counted(portion: int) -> None:
    time = np.arange(600, dtype=np.float64) / RATE
    clean = _motion(time) + 1e-3 * np.random.default_rng(4).standard_normal((600, 2))
    spoiled = clean.copy()
    spoiled[[300, 450, 597], [0, 1, 0]] += 0.5
    runs = Runs(GatedRows(RATE, 2))
    runs.feed(time, spoiled, portion)
    ((_, got),) = runs.ended
    assert runs.rows.counts.outliers == 3
    assert runs.rows.counts.accepted == 600
    np.testing.assert_allclose(got, clean, atol=6e-3)


def test_rest_is_no_gap() -> None:
    time = np.arange(300, dtype=np.float64) / RATE
    values = _motion(np.clip(time, 0.8, 2.1))
    runs = Runs(GatedRows(RATE, 2))
    runs.feed(time, values)
    ((_, got),) = runs.ended
    assert (runs.rows.counts.lost, runs.rows.counts.gaps) == (0, 0)
    np.testing.assert_allclose(got, values, atol=0.05)


def test_bad_settings_are_refused() -> None:
    for rate in (0.0, np.nan, -1.0):
        with pytest.raises(ParameterError):
            GatedRows(rate, 1)
    with pytest.raises(ParameterError):
        GatedRows(RATE, 1, gap=1.0)
    with pytest.raises(ParameterError):
        GatedRows(RATE, 2, upper=np.zeros(3))


def test_rows_are_read_at_the_times_of_another_source() -> None:
    rows = RecentRows(longest=0.1, horizon=2.0)
    assert rows.known_until == -np.inf
    time = np.concatenate([np.arange(0.0, 1.0, 0.02), np.arange(1.5, 2.0, 0.02)])
    for part in np.array_split(time, 7):
        assert rows.push(part, part[:, None] ** 2) == 0
    assert rows.known_until == pytest.approx(1.96)
    assert rows.rate == pytest.approx(50.0)
    asked = np.array([-0.1, 0.333, 0.99, 1.2, 1.731, 3.0])
    got = rows.at(asked)[:, 0]
    assert np.isnan(got[[0, 2, 3, 5]]).all()
    np.testing.assert_allclose(got[[1, 4]], asked[[1, 4]] ** 2, atol=1e-9)
    late_lacking_and_good = np.array([1.0, 2.1, 2.1]), np.array([[0.0], [np.nan], [2.1**2]])
    assert rows.push(*late_lacking_and_good) == 2
    assert rows.newest == 2.1
    rows.reset()
    assert len(rows) == 0


def test_rows_older_than_the_horizon_are_forgotten() -> None:
    rows = RecentRows(longest=0.1, horizon=0.5, flags=True)
    for k in range(200):
        rows.push(np.array([k * 0.02]), np.array([[float(k % 2)]]))
    assert len(rows) < 60
    assert np.isnan(rows.at(np.array([2.9]))).all()
    np.testing.assert_array_equal(rows.at(np.array([3.581, 3.599])), [[1.0], [0.0]])
