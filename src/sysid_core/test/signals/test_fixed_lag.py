# SPDX-License-Identifier: Apache-2.0
"""Laws of the fixed-lag filters: exact polynomials, right stamps, stream equals batch."""

from __future__ import annotations

import time as clock

import numpy as np
import pytest

from sysid_core.errors import DataError, ParameterError
from sysid_core.signals.fixed_lag import FixedLagFilter, FixedLagLowPass, FixedLagSavitzkyGolay

DT = 0.004


@pytest.mark.parametrize("lag", [0, 3, 7, 14])
@pytest.mark.parametrize("order", [2, 3, 4])
def test_polynomials_are_exact_at_the_stamp_of_the_estimate(order: int, lag: int) -> None:
    smoother = FixedLagSavitzkyGolay(15, order, lag, DT)
    time = np.arange(40, dtype=np.float64) * DT
    polynomial = np.polynomial.Polynomial(np.arange(1.0, order + 2.0))
    batch = smoother.push(time, polynomial(time)[:, np.newaxis])
    np.testing.assert_allclose(batch.time, time[14:] - lag * DT, atol=1e-12)
    for got, derivative in zip(batch[1:4], range(3), strict=True):
        expected = (
            polynomial.deriv(derivative)(batch.time) if derivative else polynomial(batch.time)
        )
        np.testing.assert_allclose(got[:, 0], expected, rtol=1e-6, atol=1e-6)


def _filters() -> list[FixedLagFilter]:
    return [FixedLagSavitzkyGolay(11, 3, 5, DT), FixedLagLowPass(20.0, DT, 12)]


@pytest.mark.parametrize("which", [0, 1])
def test_a_stream_in_any_portions_equals_the_batch(which: int) -> None:
    rng = np.random.default_rng(4)
    time = 1.7e9 + np.arange(200, dtype=np.float64) * DT
    values, efforts = rng.standard_normal((200, 3)), rng.standard_normal((200, 2))
    whole = _filters()[which].push(time, values, efforts)
    smoother = _filters()[which]
    parts, start = [], 0
    while start < 200:
        stop = start + int(rng.integers(1, 30))
        parts.append(smoother.push(time[start:stop], values[start:stop], efforts[start:stop]))
        start = stop
    for got, expected in zip(zip(*parts, strict=True), whole, strict=True):
        np.testing.assert_allclose(np.concatenate(got), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("which", [0, 1])
def test_companions_see_the_kernel_of_the_positions(which: int) -> None:
    rng = np.random.default_rng(5)
    values = rng.standard_normal((100, 2))
    batch = _filters()[which].push(np.arange(100, dtype=np.float64) * DT, values, values)
    np.testing.assert_allclose(batch.companions, batch.position, atol=1e-12)


def test_derivatives_of_the_low_pass_are_those_of_its_own_output() -> None:
    rng = np.random.default_rng(6)
    smoother = FixedLagLowPass(10.0, DT, 25)
    batch = smoother.push(np.arange(400, dtype=np.float64) * DT, rng.standard_normal((400, 1)))
    p = batch.position[:, 0]
    stencil = (p[:-4] - 8 * p[1:-3] + 8 * p[3:-1] - p[4:]) / (12 * DT)
    np.testing.assert_allclose(batch.velocity[2:-2, 0], stencil, atol=1e-8)


def test_no_estimate_spans_a_gap_or_a_step_back() -> None:
    time = np.concatenate([np.arange(30), np.arange(40, 70), np.arange(30)]) * DT
    level = np.concatenate([np.zeros(30), np.ones(30), np.full(30, 2.0)])[:, np.newaxis]
    batch = FixedLagSavitzkyGolay(11, 3, 5, DT).push(time, level)
    assert len(batch.time) == 3 * 20
    # A window across a jump of level would show a slope of about 1/(11 dt).
    assert np.abs(batch.velocity).max() < 1e-9


def test_a_reset_forgets_everything() -> None:
    smoother = FixedLagSavitzkyGolay(5, 2, 2, DT)
    smoother.push(np.arange(4, dtype=np.float64) * DT, np.zeros((4, 1)))
    smoother.reset()
    assert len(smoother.push(np.arange(4, 8, dtype=np.float64) * DT, np.zeros((4, 3))).time) == 0


def test_bad_settings_and_shapes_are_refused() -> None:
    for window, order, lag, dt in [(5, 5, 2, DT), (5, 1, 2, DT), (5, 2, 5, DT), (5, 2, 2, 0.0)]:
        with pytest.raises(ParameterError):
            FixedLagSavitzkyGolay(window, order, lag, dt)
    with pytest.raises(ParameterError):
        FixedLagLowPass(200.0, DT, 10)
    with pytest.raises(ParameterError):
        FixedLagLowPass(20.0, DT, 2)
    smoother = FixedLagSavitzkyGolay(5, 2, 2, DT)
    with pytest.raises(DataError):
        smoother.push(np.arange(3, dtype=np.float64) * DT, np.zeros((2, 1)))
    smoother.push(0.0, np.zeros(2))
    with pytest.raises(DataError, match="channels"):
        smoother.push(DT, np.zeros(3))


def test_a_batched_sample_takes_no_more_than_ten_microseconds() -> None:
    smoother = FixedLagSavitzkyGolay(31, 4, 15, DT)
    values = np.zeros((5000, 12))
    time = np.arange(5000, dtype=np.float64) * DT
    best = np.inf
    for _ in range(5):
        smoother.reset()
        start = clock.process_time()
        for row in range(0, 5000, 50):
            smoother.push(time[row : row + 50], values[row : row + 50], values[row : row + 50])
        best = min(best, (clock.process_time() - start) / 5000)
    assert best < 10e-6
