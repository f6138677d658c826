# SPDX-License-Identifier: Apache-2.0
"""Outliers are found and counted; motion, steps and quantisation are left alone."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.errors import ParameterError
from sysid_core.signals.outliers import LiveHampel, hampel


def test_spikes_in_a_smooth_motion_are_replaced_and_counted() -> None:
    time = np.arange(1000) * 0.01
    clean = np.stack([np.sin(time), np.cos(2 * time)], axis=1)
    spoiled = clean.copy()
    spoiled[[0, 100, 500, 501, 999], 0] += [0.5, 0.5, -0.8, -0.8, 0.3]
    result = hampel(spoiled)
    np.testing.assert_array_equal(result.counts, [5, 0])
    # Inside, a chord stands in: ẍ h²/2 at most for two samples. At an end, the neighbour does.
    np.testing.assert_allclose(result.values[1:-1], clean[1:-1], atol=0.01**2)
    np.testing.assert_allclose(result.values, clean, atol=0.011)
    np.testing.assert_array_equal(result.values[~result.outliers], spoiled[~result.outliers])


def test_motion_hides_no_spikes() -> None:
    time = np.arange(6000) / 60.0
    clean = np.stack([np.sin(4.0 * time), 3.0 * np.cos(time)], axis=1)
    noisy = clean + 1e-4 * np.random.default_rng(2).standard_normal(clean.shape)
    hit = np.arange(20, 6000, 970)
    spoiled = noisy.copy()
    spoiled[hit] += 0.3
    result = hampel(spoiled)
    np.testing.assert_array_equal(np.flatnonzero(result.outliers.any(axis=1)), hit)
    np.testing.assert_array_equal(result.counts, [len(hit)] * 2)
    np.testing.assert_allclose(result.values, clean, atol=3e-3)
    assert hampel(noisy).counts.sum() == 0


@pytest.mark.parametrize("portion", [1, 7, 40])
def test_rows_that_come_one_after_the_other_are_cleaned_alike(portion: int) -> None:
    time = np.arange(1500) / 60.0
    rng = np.random.default_rng(3)
    values = np.stack([np.sin(4.0 * time), np.cos(3.0 * time)], axis=1)
    values += 1e-3 * rng.standard_normal(values.shape)
    values[rng.random(len(time)) < 0.01, 0] += 0.3
    expected = hampel(values)
    live, rows = LiveHampel(2), values.copy()
    count = 0
    for first in range(0, len(rows), portion):
        count += live.clean(rows, first, min(first + portion, len(rows)))
    known = slice(200, None)  # after the noise is known
    np.testing.assert_allclose(rows[known], expected.values[known], atol=1e-9)
    assert count >= expected.outliers[known].sum() > 5
    np.testing.assert_array_equal(rows[:50], values[:50])


def test_a_channel_that_rests_and_few_rows_are_left_alone() -> None:
    live = LiveHampel(1)
    rows = np.zeros((400, 1))
    rows[300] = 1.0
    assert live.clean(rows, 0, 250) + live.clean(rows, 250, 400) == 0
    assert live.clean(np.arange(10.0)[:, np.newaxis], 0, 10) == 0


def test_gaussian_noise_has_next_to_no_outliers() -> None:
    noise = np.random.default_rng(7).standard_normal((20000, 2))
    assert hampel(noise).counts.sum() < 100


def test_steps_and_flips_of_a_quantum_are_signal() -> None:
    steps = np.repeat([0.0, 1.0, -1.0, 0.0], 50)[:, np.newaxis]
    assert hampel(steps).counts.sum() == 0
    resting = np.zeros((500, 1))
    resting[::37] = 0.01
    assert hampel(resting).counts.sum() == 0


def test_held_values_stay_whole_but_for_spikes_that_are_held() -> None:
    slow = 1e-3 * np.random.default_rng(3).standard_normal(250)
    slow[100:] += 0.05
    held = np.repeat(slow, 4)[:, np.newaxis]
    held[200:202] = 9.0
    result = hampel(held)
    assert result.outliers[200:202].all()
    runs = result.outliers[204:].reshape(-1, 4)
    assert (runs.all(axis=1) == runs.any(axis=1)).all()
    assert (np.ptp(result.values[204:].reshape(-1, 4), axis=1) == 0.0).all()


def test_values_that_are_missing_stay_missing() -> None:
    values = np.sin(np.arange(300) * 0.05)[:, np.newaxis]
    values[50:60] = np.nan
    values[200] = 9.0
    result = hampel(values)
    assert np.isnan(result.values[50:60]).all()
    assert result.counts[0] == 1


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ParameterError):
        hampel(np.zeros((10, 1)), half_window=0)
    with pytest.raises(ParameterError):
        hampel(np.zeros((10, 1)), threshold=0.0)
