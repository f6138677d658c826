# SPDX-License-Identifier: Apache-2.0
"""Durations mean what they say at whatever rate samples come."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.online.settings import OnlineConfig
from sysid_online.sample_filter import SampleFilter


def test_the_rate_and_the_cutoff_are_those_of_the_samples() -> None:
    known = SampleFilter(OnlineConfig())
    assert not known.changes(np.arange(10) / 50.0, 8.0)  # too few to tell
    assert known.changes(np.arange(10, 30) / 50.0, 8.0)
    config = known.applied(OnlineConfig(window=3.0))
    assert config.sample_rate == pytest.approx(50.0)
    assert (config.cutoff, config.window) == (8.0, 3.0)
    assert not known.changes(np.arange(30, 50) / 50.4, 8.0)  # a rate that is off by rounding
    assert known.changes(np.arange(50, 60) / 50.0, 12.0)


@pytest.mark.parametrize("cutoff", [np.nan, np.inf, -1.0, 0.0])
def test_a_cutoff_that_is_none_is_not_known(cutoff: float) -> None:
    known = SampleFilter(OnlineConfig())
    known.changes(np.arange(30) / 100.0, cutoff)
    assert known.applied(OnlineConfig()).cutoff == 0.0


def test_stamps_that_are_no_numbers_tell_no_rate() -> None:
    known = SampleFilter(OnlineConfig())
    assert not known.changes(np.full(30, np.nan), 8.0)
    assert not known.changes(np.full(30, 4.0), 8.0)
