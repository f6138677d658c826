# SPDX-License-Identifier: Apache-2.0
"""Size and colour of innovations come out while they pass, whatever comes with them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.rows import RowBlock, Rows
from sysid_core.online.colour import LAG, Bursts, ResidualColour

RATE = 100.0


def autoregressive(pole: float, samples: int, seed: int = 0) -> FloatArray:
    """Return a series (n,) of unit variance; its autocorrelation time is (1 + p) / (1 − p)."""
    noise = np.random.default_rng(seed).normal(size=samples)
    return np.asarray(lfilter([np.sqrt(1.0 - pole**2)], [1.0, -pole], noise))


def learned(series: FloatArray, batch: int = 5) -> ResidualColour:
    colour = ResidualColour(1, RATE)
    learn(colour, series, batch)
    return colour


def learn(colour: ResidualColour | Bursts, series: FloatArray, batch: int) -> None:
    for part in np.array_split(series, len(series) // batch):
        block = RowBlock(np.zeros((len(part), 1)), part, np.arange(len(part)))
        colour.push(Rows((block,)), np.zeros(1), len(part))


@pytest.mark.parametrize("pole", [0.0, 0.6, 0.9, 0.95])
def test_the_factor_is_the_autocorrelation_time(pole: float) -> None:
    time = (1.0 + pole) / (1.0 - pole)
    found = [learned(autoregressive(pole, 6000, seed)).factor[0] for seed in range(10)]
    # the largest of some scattered ratios lies above the mean; the longest batch cuts off below
    assert 0.65 * time < np.mean(found) < 1.6 * time


def test_stretches_that_were_not_seen_yet_count_as_one_long_error() -> None:
    """Unless seen eight times: then they count as what they showed."""
    colour = learned(autoregressive(0.0, 320))  # of which the newer half waits
    length = 2.0 ** np.arange(colour.factors.shape[1])
    seen = length <= 160 / 8
    np.testing.assert_array_equal(colour.cautious_factors[0, seen], colour.factors[0, seen])
    last = colour.factors[0, seen][-1]
    expected = np.minimum(last * length[~seen] / 20.0, length[~seen])
    np.testing.assert_allclose(colour.cautious_factors[0, ~seen], expected)


def test_the_size_is_that_of_the_newest_residuals() -> None:
    series = autoregressive(0.5, 12000)
    colour = learned(series * np.where(np.arange(12000) < 4000, 1.0, 3.0))
    np.testing.assert_allclose(colour.variance, 9.0, rtol=0.15)


def test_what_is_usual_knows_nothing_of_the_newest_change() -> None:
    series = autoregressive(0.5, 4000)
    changed = series.copy()
    changed[-round(LAG * RATE) :] *= 10.0
    np.testing.assert_array_equal(learned(changed).variance, learned(series).variance)


def test_a_glitch_does_not_look_usual() -> None:
    series = autoregressive(0.5, 4000)
    spoilt = series.copy()
    spoilt[3000:3030] += 50.0
    assert learned(spoilt).variance[0] < 1.5 * learned(series).variance[0]


def test_batches_may_come_as_they_like() -> None:
    series = autoregressive(0.9, 3000)
    few, many = learned(series, 5), learned(series, 50)
    np.testing.assert_allclose(few.factor, many.factor, rtol=0.1)


def test_rows_that_are_turned_within_a_sample_keep_their_colour() -> None:
    rng = np.random.default_rng(3)
    slow = np.column_stack([autoregressive(0.95, 4000, seed) for seed in (1, 2, 3)])
    colour = ResidualColour(1, RATE)
    for start in range(0, len(slow), 10):
        turned, predictors = [], []
        for residual in slow[start : start + 10]:
            turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
            turned.append(turn @ (np.array([9.0, 3.0, 1.0]) + residual))
            predictors.append(turn @ np.array([[9.0], [3.0], [1.0]]))
        block = RowBlock(
            np.concatenate(predictors), np.concatenate(turned), np.repeat(np.arange(10), 3)
        )
        colour.push(Rows((block,)), np.ones(1), 10)
    assert 15.0 < colour.factor[0] < 80.0


def test_bursts_are_told_by_how_powers_scatter() -> None:
    """A Gaussian stretch has a relative variance of 2/n; bursts in one stretch of 16 have 15."""
    even = autoregressive(0.0, 16384)
    bursts = np.where(np.arange(16384) // 16 % 16 == 0, even, 0.01 * even)
    for series, ratio, rows in ((even, 10.0, 16.0), (bursts, 16.0, 2.0 / 15.0)):
        found = Bursts(1, RATE)
        learn(found, series, 16)
        whole, count = found.rise(ratio * 16.0, 16)
        np.testing.assert_allclose([whole / count, count], [ratio, rows], rtol=0.5)
