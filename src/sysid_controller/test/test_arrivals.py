# SPDX-License-Identifier: Apache-2.0
"""Lost and late messages are told from stamps and times of arrival."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_controller.arrivals import Arrivals

PERIOD = 0.002


def arrivals(lost: float, jitter: float, *, pace: float = 1.0, seed: int = 1) -> Arrivals:
    rng = np.random.default_rng(seed)
    stamps = 100.0 + PERIOD * np.arange(1000)
    stamps = stamps[rng.random(1000) >= lost]
    times = pace * stamps + rng.uniform(0.0, jitter, len(stamps))
    found = Arrivals()
    for i in np.argsort(times):
        found.note(float(stamps[i]), float(times[i]))
    return found


def test_a_steady_stream_is_no_trouble() -> None:
    found = arrivals(0.0, 0.001)
    assert found.fault == ""
    assert found.lost == 0.0
    assert found.jitter < 0.001


@pytest.mark.parametrize("lost", [0.1, 0.5])
def test_the_lost_share_is_found(lost: float) -> None:
    found = arrivals(lost, 0.0)
    # 1000 draws: four standard deviations of the drawn share are 6 %
    assert found.lost == pytest.approx(lost, abs=0.065)
    assert "never arrive" in found.fault


def test_jitter_is_found_where_messages_overtake_each_other() -> None:
    found = arrivals(0.0, 0.02)
    assert found.jitter == pytest.approx(0.02, rel=0.1)  # but for its outer 4 %
    assert "20 ms of jitter" in found.fault or "19 ms of jitter" in found.fault
    assert found.lost < 0.05


def test_simulated_time_at_another_pace_is_no_jitter() -> None:
    assert arrivals(0.0, 0.0, pace=0.3).fault == ""


def test_a_clock_set_back_begins_anew() -> None:
    found = arrivals(0.5, 0.0)
    found.note(0.0, 1000.0)
    assert found.fault == ""
