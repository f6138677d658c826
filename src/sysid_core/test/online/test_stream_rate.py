# SPDX-License-Identifier: Apache-2.0
"""The rate of a live stream, whatever its stamps are rounded to."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.online.stream_config import stream_rate


def values(count: int) -> np.ndarray:
    """Return noise, as of efforts: no two states are the same."""
    return np.random.default_rng(3).standard_normal((count, 4))


@pytest.mark.parametrize("rate", [100.0, 125.0, 300.0, 500.0])
@pytest.mark.parametrize("step", [0.001, 0.004, 0.01, 0.02])
@pytest.mark.parametrize("count", [100, 2000])
def test_rounded_stamps_tell_the_rate_of_the_states(rate: float, step: float, count: int) -> None:
    stamps = np.floor((0.3e-3 + np.arange(count) / rate) / step) * step
    assert stream_rate(stamps, values(count)) == pytest.approx(rate, rel=0.05)


@pytest.mark.parametrize("step", [0.002, 0.004, 0.007, 0.0125, 0.025])
@pytest.mark.parametrize("lost", [0.01, 0.05])
def test_rounded_stamps_do_so_where_messages_are_lost(step: float, lost: float) -> None:
    rng = np.random.default_rng(5)
    stamps = np.floor((0.3e-3 + np.arange(2000) / 100.0) / step) * step
    stamps = stamps[rng.random(len(stamps)) >= lost]
    assert stream_rate(stamps, values(len(stamps))) == pytest.approx(100.0, rel=0.02 + lost)


@pytest.mark.parametrize("lost", [0.02, 0.1, 0.4])
def test_losses_do_not(lost: float) -> None:
    rng = np.random.default_rng(4)
    stamps = np.arange(2000) / 250.0
    stamps = stamps[rng.random(len(stamps)) >= lost]
    assert stream_rate(stamps, values(len(stamps))) == pytest.approx(250.0, rel=0.01)


def test_messages_that_come_twice_do_not() -> None:
    stamps, states = np.repeat(np.arange(500) / 100.0, 2), np.repeat(values(500), 2, axis=0)
    assert stream_rate(stamps, states) == pytest.approx(100.0, rel=0.01)


@pytest.mark.parametrize("seed", range(50))
def test_stamps_of_any_kind_tell_a_rate(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 120))
    leaps = np.cumsum(rng.choice([1e-9, 1e-6, 1e-4, 8e-3, 0.05, 0.5, 3.0], count))
    held_up = np.maximum.accumulate(0.008 * np.arange(count) + rng.exponential(0.3, count))
    for stamps in (leaps, held_up + 1e-9 * np.arange(count)):
        rate = stream_rate(stamps, values(count))
        assert np.isfinite(rate)
        assert rate > 0.0
