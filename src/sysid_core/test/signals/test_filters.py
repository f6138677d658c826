# SPDX-License-Identifier: Apache-2.0
"""Laws of the filters: zero phase, the meaning of the cut-off, no aliasing."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.errors import DataError, ParameterError
from sysid_core.signals.filters import low_pass, rise_time, smoothed, support

RATE = 200.0
TIME = np.arange(2000) / RATE
INSIDE = slice(400, 1600)


def _amplitude_and_phase(frequency: float, cutoff: float) -> tuple[float, float]:
    carrier = np.exp(-2j * np.pi * frequency * TIME)
    half = support(RATE, cutoff) - 2
    filtered = low_pass(np.cos(2 * np.pi * frequency * TIME), RATE, cutoff)
    coefficient = 2.0 * np.mean((filtered * carrier[half:-half])[INSIDE])
    return float(np.abs(coefficient)), float(np.angle(coefficient))


@pytest.mark.parametrize("frequency", [0.5, 2.0, 5.0, 8.0])
def test_a_filtered_sinusoid_has_no_delay(frequency: float) -> None:
    _, phase = _amplitude_and_phase(frequency, 10.0)
    assert abs(phase) < 1e-6


@pytest.mark.parametrize(
    ("part", "least", "most"),
    [(0.1, 0.9998, 1.0), (0.3, 0.99, 1.0), (1.0, 0.45, 0.6), (2.0, -0.01, 0.01)],
)
@pytest.mark.parametrize("cutoff", [5.0, 10.0, 20.0])
def test_the_gain_is_flat_halves_at_the_cutoff_and_ends_at_twice_that(
    cutoff: float, part: float, least: float, most: float
) -> None:
    amplitude, _ = _amplitude_and_phase(part * cutoff, cutoff)
    assert least <= amplitude <= most


def test_cubics_pass_unchanged_and_are_differentiated_exactly() -> None:
    cubic = 3.0 - 2.0 * TIME + 0.5 * TIME**2 - 0.1 * TIME**3
    value, first, second = smoothed(cubic[:, None], RATE, 5.0)
    edge = support(RATE, 5.0)
    time = TIME[edge:-edge, None]
    np.testing.assert_allclose(value, cubic[edge:-edge, None], atol=1e-9)
    np.testing.assert_allclose(first, -2.0 + time - 0.3 * time**2, atol=1e-8)
    np.testing.assert_allclose(second, 1.0 - 0.6 * time, atol=1e-6)


def test_a_piece_of_a_recording_gives_what_the_whole_does() -> None:
    values = np.random.default_rng(2).standard_normal((500, 2))
    half = support(RATE, 10.0) - 2
    piece = low_pass(values[100:300], RATE, 10.0)
    np.testing.assert_allclose(
        piece, low_pass(values, RATE, 10.0)[100 : 300 - 2 * half], atol=1e-12
    )


def test_every_so_manieth_value_is_one_of_all() -> None:
    values = np.random.default_rng(4).standard_normal((300, 2))
    edge = support(RATE, 10.0)
    every = slice(None, None, 7)
    for part, whole in ((values, values), (values[:100], values)):
        some, full = smoothed(part, RATE, 10.0, every=7), smoothed(whole, RATE, 10.0)
        count = len(part) - 2 * edge
        for a, b, size in zip(some, full, (1.0, 30.0, 1000.0), strict=True):
            np.testing.assert_allclose(a, b[:count][every], atol=1e-11 * size)


def test_the_stop_band_is_stopped() -> None:
    assert _amplitude_and_phase(20.0, 5.0)[0] < 1e-3


def test_a_step_rises_in_the_stated_time() -> None:
    rate, cutoff = 4000.0, 5.0
    rising = low_pass(np.repeat([0.0, 1.0], 4000), rate, cutoff)
    start, end = (int(np.argmax(rising >= level)) for level in (0.1, 0.9))
    assert (end - start) / rate == pytest.approx(rise_time(cutoff), rel=0.01)


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


def test_a_missing_value_spoils_what_it_reaches_and_no_more() -> None:
    values = np.random.default_rng(3).standard_normal((300, 2))
    holed = values.copy()
    holed[150, 0] = np.nan
    half = support(RATE, 10.0) - 2
    whole, rest = low_pass(values, RATE, 10.0), low_pass(holed, RATE, 10.0)
    spoiled = slice(150 - 2 * half, 151)
    assert np.isnan(rest[spoiled, 0]).all()
    rest[spoiled, 0] = whole[spoiled, 0]
    np.testing.assert_allclose(rest, whole, atol=1e-12)


def test_too_few_values_are_refused() -> None:
    with pytest.raises(DataError, match="too few"):
        low_pass(np.zeros(1), RATE, 10.0)
