# SPDX-License-Identifier: Apache-2.0
"""The synchroniser recovers the clock, keeps gaps, and counts what it found."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.errors import DataError, ParameterError
from sysid_core.signals.buffer import RecentRows
from sysid_core.signals.group import Track
from sysid_core.signals.synchronise import synchronise
from sysid_core.signals.timing import (
    estimate_clock,
    find_passes,
    thin_duplicates,
    usual_interval,
)

RATE = 125.0
EPOCH = 1.7e9


def _motion(time: np.ndarray) -> np.ndarray:
    return np.stack([np.sin(2.0 * time), np.cos(3.0 * time)], axis=1)


def test_regular_rows_come_out_as_they_are() -> None:
    time = EPOCH + np.arange(500) / RATE
    values = _motion(time - EPOCH)
    result = synchronise([Track(time, values)])
    assert result.rate == pytest.approx(RATE, rel=1e-6)
    (segment,) = result.segments
    assert len(segment.time) == 500
    np.testing.assert_allclose(segment.values[0], values, atol=1e-5)


def test_a_last_row_that_comes_a_little_early_leaves_no_hole() -> None:
    time = np.arange(500) / RATE
    values = _motion(time)
    time[-1] -= 5e-4 / RATE
    (segment,) = synchronise([Track(time, values)], rate=RATE, timing="stamped").segments
    assert len(segment.time) == 500
    np.testing.assert_allclose(segment.values[0], values, atol=1e-4)


def test_the_rate_is_recovered_from_jitter_and_losses() -> None:
    rng = np.random.default_rng(11)
    kept = np.sort(rng.choice(5000, 4700, replace=False))
    time = kept / RATE + rng.uniform(-0.15, 0.15, len(kept)) / RATE
    clock = estimate_clock(time)
    # 4700 intervals share all stamps but two, whose jitter is 0.3 periods at most.
    assert clock.rate == pytest.approx(RATE, rel=1e-4)
    assert clock.lost == kept[-1] - kept[0] + 1 - len(kept)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [100, 1000])
@pytest.mark.parametrize(("jitter", "lost"), [(0.05, 0.3), (0.15, 0.3), (0.3, 0.0), (1.0, 0.0)])
def test_the_rate_is_that_of_the_clock_whatever_jitters_or_is_lost(
    seed: int, count: int, jitter: float, lost: float
) -> None:
    rng = np.random.default_rng(seed)
    kept = np.flatnonzero(rng.random(count) >= lost)
    time = EPOCH + np.sort(kept + rng.uniform(-jitter, jitter, len(kept))) / RATE
    # Where jitter hides the clock, the stamps are counted: both ends are off by one jitter.
    # A line through the phases has an error of √12 σ/n^1.5; five of them, σ being jitter/√3, and
    # twice that because gaps cut some of these recordings in pieces.
    expected = 2.0 * jitter / (count - 1) if jitter > 0.5 else 20.0 * jitter / count**1.5
    assert estimate_clock(time).rate == pytest.approx(RATE, rel=expected)


def test_a_clock_that_starts_anew_after_gaps_keeps_its_rate() -> None:
    rng = np.random.default_rng(14)
    starts = np.cumsum(rng.uniform(50.0, 100.0, 20))
    time = np.concatenate([start + np.arange(40) for start in starts]) / RATE
    time = time + rng.uniform(-0.2, 0.2, len(time)) / RATE
    assert estimate_clock(time).rate == pytest.approx(RATE, rel=2e-3)


def test_stamps_that_jitter_by_themselves_are_put_on_the_clock_behind_them() -> None:
    rng = np.random.default_rng(12)
    truth = np.arange(2000) / RATE
    stamps = truth + rng.uniform(0.0, 0.3, len(truth)) / RATE
    result = synchronise([Track(stamps, _motion(truth))])
    assert result.report.timing == "uniform"
    (segment,) = result.segments
    # What remains is the delay of the first comers, of 64 stamps or more: 0.3/65 periods.
    np.testing.assert_allclose(segment.values[0], _motion(segment.time), atol=2e-4)
    stamped = synchronise([Track(stamps, _motion(truth))], timing="stamped").segments[0]
    error = np.abs(stamped.values[0] - _motion(stamped.time - 0.15 / RATE)).max()
    assert error > 1e-3


def test_samples_that_jitter_themselves_stay_where_their_stamps_say() -> None:
    rng = np.random.default_rng(13)
    stamps = np.arange(2000) / RATE + rng.uniform(0.0, 0.3, 2000) / RATE
    result = synchronise([Track(stamps, _motion(stamps))])
    assert result.report.timing == "stamped"
    (segment,) = result.segments
    np.testing.assert_allclose(segment.values[0], _motion(segment.time), atol=5e-5)


def test_the_noise_of_a_faster_sensor_does_not_fold_back() -> None:
    rng = np.random.default_rng(15)
    joints, fast = np.arange(500) / RATE, np.arange(500 * 8) / (8.0 * RATE)
    noise = rng.standard_normal((len(fast), 1))
    tracks = [Track(joints, _motion(joints)), Track(fast, np.hstack([_motion(fast), noise]))]
    (segment,) = synchronise(tracks, timing="stamped").segments
    # The mean of eight, interpolated between nine.
    assert np.std(segment.values[1][:, 2]) < 1.1 / np.sqrt(8.0)
    # The mean over a period of sin ωt is (ωT)²/24 less.
    smooth = segment.values[1][1:-1, :2]
    np.testing.assert_allclose(smooth, _motion(segment.time)[1:-1], atol=1e-4)


def test_gaps_split_and_are_never_interpolated() -> None:
    time = np.concatenate([np.arange(200), np.arange(230, 400), np.arange(404, 500)]) / RATE
    result = synchronise([Track(time, _motion(time))])
    # Five periods are bridged, thirty are not.
    assert [len(segment.time) for segment in result.segments] == [200, 270]
    assert (result.report.gaps, result.report.lost) == (1, 4)
    for segment in result.segments:
        assert not np.any((segment.time > 199.5 / RATE) & (segment.time < 229.5 / RATE))
        np.testing.assert_allclose(segment.values[0], _motion(segment.time), atol=2e-4)


def test_duplicates_and_late_rows_are_put_right_and_counted() -> None:
    order = np.arange(300)
    order[[100, 101]] = [101, 100]
    order = np.insert(order, 50, 49)
    time = order / RATE
    result = synchronise([Track(time, _motion(time))])
    assert (result.report.duplicates, result.report.late, result.report.gaps) == (1, 1, 0)
    (segment,) = result.segments
    np.testing.assert_allclose(segment.values[0], _motion(segment.time), atol=1e-9)


def test_a_bag_played_twice_gives_two_segments() -> None:
    time = np.tile(np.arange(200) / RATE, 2)
    result = synchronise([Track(time, _motion(time))])
    assert result.report.resets == 1
    assert [len(segment.time) for segment in result.segments] == [200, 200]


def test_single_impossible_stamps_are_left_out() -> None:
    time = np.arange(300) / RATE
    stamps = time.copy()
    stamps[100], stamps[200] = 1e9, np.nan
    result = synchronise([Track(stamps, _motion(time))])
    assert (result.report.implausible, result.report.resets) == (2, 0)
    (segment,) = result.segments
    np.testing.assert_allclose(segment.values[0], _motion(segment.time), atol=1e-4)


def test_joints_of_separate_messages_share_one_grid() -> None:
    first, second = np.arange(400) / RATE, np.arange(200) * 2 / RATE + 0.3 / RATE
    time = np.concatenate([first, second])
    order = np.argsort(time)
    values = np.full((600, 2), np.nan)
    values[:400, 0] = np.sin(first)
    values[400:, 1] = np.cos(second)
    result = synchronise([Track(time[order], values[order])])
    assert result.rate == pytest.approx(RATE)
    assert result.sensor_rate == pytest.approx(RATE / 2)
    (segment,) = result.segments
    np.testing.assert_allclose(segment.values[0][:, 0], np.sin(segment.time), atol=1e-6)
    np.testing.assert_allclose(segment.values[0][:, 1], np.cos(segment.time), atol=1e-6)


def test_columns_without_values_stay_without() -> None:
    time = np.arange(100) / RATE
    values = np.column_stack([np.sin(time), np.full(100, np.nan)])
    (segment,) = synchronise([Track(time, values)]).segments
    assert np.isnan(segment.values[0][:, 1]).all()
    assert np.isfinite(segment.values[0][:, 0]).all()


def test_flags_take_the_nearest_row_and_limit_the_stretch() -> None:
    time = np.arange(400) / RATE
    slow = np.arange(20, 100) * 4 / RATE
    flags = (slow > 1.5).astype(float)[:, np.newaxis]
    result = synchronise([Track(time, _motion(time)), Track(slow, flags, flags=True)])
    (segment,) = result.segments
    assert segment.time[0] >= slow[0]
    assert segment.time[-1] <= slow[-1]
    assert set(np.unique(segment.values[1])) == {0.0, 1.0}
    switch = segment.time[np.argmax(segment.values[1][:, 0])]
    assert abs(switch - 1.5) < 4 / RATE


def test_the_grid_can_have_another_rate() -> None:
    time = np.arange(500) / RATE
    result = synchronise([Track(time, _motion(time))], rate=50.0)
    (segment,) = result.segments
    np.testing.assert_allclose(np.diff(segment.time), 0.02, atol=1e-12)
    np.testing.assert_allclose(segment.values[0], _motion(segment.time), atol=5e-5)


def test_what_cannot_be_synchronised_is_refused() -> None:
    time = np.arange(10) / RATE
    with pytest.raises(ParameterError):
        synchronise([Track(time, _motion(time))], rate=0.0)
    with pytest.raises(ParameterError):
        synchronise([Track(time, _motion(time))], gap=1.0)
    with pytest.raises(DataError):
        synchronise([Track(np.full(10, np.nan), _motion(time))])
    with pytest.raises(DataError):
        synchronise([Track(time, np.full((10, 2), np.nan))])
    with pytest.raises(DataError):
        synchronise([Track(np.zeros(10), _motion(time))])


def test_thinning_keeps_one_of_every_burst() -> None:
    time = np.array([0.0, 1.0, 1.05, 1.1, 2.0, 2.01, 3.0])
    np.testing.assert_array_equal(
        thin_duplicates(time, 1.0), [True, True, False, False, True, False, True]
    )


def test_passes_cover_every_plausible_row_once() -> None:
    rng = np.random.default_rng(14)
    time = np.concatenate([np.arange(50), np.arange(30), np.arange(40)]) + rng.uniform(0, 0.2, 120)
    passes = find_passes(time)
    assert [len(rows) for rows in passes.rows] == [50, 30, 40]
    np.testing.assert_array_equal(np.sort(np.concatenate(passes.rows)), np.arange(120))


def test_a_hold_up_whose_messages_come_at_once_is_no_mistaken_stamp() -> None:
    time = np.arange(3000) / RATE
    stamps = time.copy()
    for start in range(200, 2900, 300):  # longer than a gap
        stamps[start : start + 8] = time[start + 8]
    passes = find_passes(stamps)
    assert (passes.implausible, passes.resets) == (0, 0)
    assert sum(len(rows) for rows in passes.rows) == len(stamps)
    # one that nothing behind it bears out still is
    stamps = time.copy()
    stamps[[700, 701]] += 50.0
    stamps[701] = stamps[700]
    passes = find_passes(stamps)
    assert (passes.implausible, passes.resets) == (2, 0)


def test_bursts_have_the_rate_of_their_messages() -> None:
    """Even if most messages come at once, as behind a queue; a pause does not count."""
    rng = np.random.default_rng(15)
    time = np.arange(4000) / RATE
    stamps = np.maximum.accumulate(time + rng.exponential(4.0 / RATE, 4000))
    stamps = stamps + 1e-9 * np.arange(4000)
    stamps[2000:] += 100.0
    assert np.mean(np.diff(stamps) < 1e-8) > 0.5
    assert usual_interval(np.diff(stamps)) == pytest.approx(1.0 / RATE, rel=0.2)
    rows = RecentRows(longest=0.1, horizon=np.inf)
    rows.push(stamps[:2000], np.zeros((2000, 1)))
    assert rows.rate < 3.0 * RATE
    result = synchronise([Track(stamps[:2000], _motion(time[:2000]))])
    assert result.rate == pytest.approx(RATE, rel=0.01)
