# SPDX-License-Identifier: Apache-2.0
"""Laws of the filters: zero phase, the meaning of the cut-off, no aliasing."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.errors import DataError, ParameterError
from sysid_core.signals.filters import low_pass

RATE = 200.0
TIME = np.arange(2000) / RATE
INSIDE = slice(400, 1600)


def _amplitude_and_phase(signal: np.ndarray, frequency: float) -> tuple[float, float]:
    carrier = np.exp(-2j * np.pi * frequency * TIME[INSIDE])
    coefficient = 2.0 * np.mean(signal[INSIDE] * carrier)
    return float(np.abs(coefficient)), float(np.angle(coefficient))


@pytest.mark.parametrize("frequency", [0.5, 2.0, 5.0, 8.0])
def test_a_filtered_sinusoid_has_no_delay(frequency: float) -> None:
    filtered = low_pass(np.cos(2 * np.pi * frequency * TIME), RATE, 10.0)
    _, phase = _amplitude_and_phase(filtered, frequency)
    assert abs(phase) < 1e-6


@pytest.mark.parametrize("order", [1, 2, 4, 6])
def test_the_gain_at_the_cutoff_is_minus_three_decibels(order: int) -> None:
    filtered = low_pass(np.cos(2 * np.pi * 10.0 * TIME), RATE, 10.0, order=order)
    amplitude, _ = _amplitude_and_phase(filtered, 10.0)
    assert amplitude == pytest.approx(1 / np.sqrt(2), rel=1e-4)


def test_a_straight_line_passes_unchanged_to_its_ends() -> None:
    # What is left is the transient of the extension's start, e^-12 of the filter's lag.
    line = 3.0 - 2.0 * TIME
    np.testing.assert_allclose(low_pass(line, RATE, 5.0), line, atol=1e-5)


def test_the_stop_band_is_stopped() -> None:
    filtered = low_pass(np.cos(2 * np.pi * 40.0 * TIME), RATE, 10.0)
    assert np.abs(filtered[INSIDE]).max() < 1e-3


def test_channels_are_filtered_one_by_one() -> None:
    rng = np.random.default_rng(1)
    values = rng.standard_normal((300, 3))
    together = low_pass(values, RATE, 20.0)
    for channel in range(3):
        np.testing.assert_allclose(
            together[:, channel], low_pass(values[:, channel], RATE, 20.0), atol=1e-12
        )


@pytest.mark.parametrize("cutoff", [0.0, -1.0, 100.0, 150.0, np.nan])
def test_a_cutoff_outside_of_the_band_is_refused(cutoff: float) -> None:
    with pytest.raises(ParameterError, match="100 Hz"):
        low_pass(TIME, RATE, cutoff)


def test_values_that_are_not_finite_are_refused() -> None:
    with pytest.raises(DataError, match="finite"):
        low_pass(np.array([0.0, np.nan, 1.0]), RATE, 10.0)
    with pytest.raises(DataError, match="too few"):
        low_pass(np.zeros(1), RATE, 10.0)
