# SPDX-License-Identifier: Apache-2.0
"""Stamps at arrival tell the robot's clock once their delays are taken off."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.signals.arrival import taken_times
from sysid_core.signals.live_arrivals import LiveArrivals
from sysid_core.signals.synchronise import Track, synchronise
from sysid_core.signals.ticks import find_ticks

PERIOD = 1e-3


def _regular(count: int) -> FloatArray:
    return np.asarray(PERIOD * np.arange(count), dtype=np.float64)


def _arrived(time: FloatArray, delay: float, seed: int) -> FloatArray:
    """Delay messages by exponential times [s], in order."""
    rng = np.random.default_rng(seed)
    stamps = np.maximum.accumulate(time + rng.exponential(delay, len(time)))
    return np.asarray(stamps + 1e-9 * np.arange(len(time)))


@pytest.mark.parametrize("delay", [0.3e-3, 1e-3, 5e-3])
def test_the_clock_behind_delays_is_found(delay: float) -> None:
    time = _regular(20_000)
    tried = list(taken_times(_arrived(time, delay, 1), gap=5.0))
    assert all(found.period == pytest.approx(PERIOD, rel=1e-3) for found in tried)
    # the shortest delay of a window remains, the same throughout
    errors = [float(np.std(found.time - time)) for found in tried]
    assert max(errors) < 0.2 * delay
    assert np.allclose(np.diff(tried[-1].time), tried[-1].period)
    # other sensors are on the same clock without that delay
    assert np.abs(tried[-1].time - time).max() < 0.3 * delay
    assert errors[-1] <= min(errors)


def test_an_interruption_ends_a_run_and_a_long_delay_does_not() -> None:
    time = _regular(10_000)
    time[6000:] += 0.5
    stamps = _arrived(time, 1e-3, 2)
    stamps[3000:3030] = stamps[3030]  # a message waits for 30 ms and those behind it with it
    stamps = np.asarray(np.maximum.accumulate(stamps) + 1e-9 * np.arange(len(time)))
    for found in taken_times(stamps, gap=5.0):
        assert [run.start for run in found.runs] == [0, 6000]


def test_too_few_messages_tell_nothing() -> None:
    assert not list(taken_times(_regular(50), gap=5.0))
    assert not list(taken_times(np.zeros(1000), gap=5.0))


@pytest.mark.parametrize("delay", [1e-3, 3e-3])
def test_samples_that_arrive_in_bursts_come_out_at_their_own_rate(delay: float) -> None:
    time = _regular(8000)
    values = np.sin(2.0 * np.pi * time)[:, None]
    found = synchronise([Track(_arrived(time, delay, 3), values)])
    assert found.rate == pytest.approx(1000.0, rel=2e-3)
    assert found.report.timing == "uniform"
    (segment,) = found.segments
    expected = np.sin(2.0 * np.pi * segment.time)
    assert np.abs(segment.values[0][:, 0] - expected).max() < 2.0 * np.pi * 2.0 * delay


def test_values_repeated_by_chance_are_neither_rests_nor_interruptions() -> None:
    rng = np.random.default_rng(5)
    taken = _regular(20_000)
    source = np.maximum.accumulate(np.where(rng.random(20_000) < 0.15, 0, np.arange(20_000)))
    values = np.stack([np.sin(taken), np.cos(taken)], axis=1)
    found = synchronise([Track(_arrived(taken, 3e-3, 5), values[source])])
    (segment,) = found.segments
    late = np.unwrap(np.arctan2(*segment.values[0].T)) - segment.time
    assert np.std(late[100:-100]) < 1e-4


def test_a_message_that_is_sent_twice_is_one_sample() -> None:
    time = np.repeat(0.01 * np.arange(1000), 2)
    values = np.sin(time)[:, None]
    found = synchronise([Track(time, values)])
    assert found.rate == pytest.approx(100.0, rel=1e-3)


def _live(
    stamps: FloatArray, chunk: int = 50, values: FloatArray | None = None
) -> tuple[FloatArray, LiveArrivals]:
    """Return when those messages were taken that are timed by the end, which are the first."""
    values = np.zeros((len(stamps), 0)) if values is None else values
    rows = np.hstack([values, np.arange(float(len(stamps)))[:, None]])
    arrivals = LiveArrivals(PERIOD, gap=5.0, judged=values.shape[1])
    parts = [
        arrivals.push(stamps[k : k + chunk], rows[k : k + chunk])
        for k in range(0, len(stamps), chunk)
    ]
    times, timed = (np.concatenate(column) for column in zip(*parts, strict=True))
    np.testing.assert_array_equal(np.sort(timed[:, -1]), np.arange(len(timed)))
    return times[np.argsort(timed[:, -1])], arrivals


def _moving(time: FloatArray) -> FloatArray:
    noise = 1e-6 * np.random.default_rng(8).normal(size=(len(time), 2))
    return np.stack([np.sin(9.0 * time), np.cos(7.0 * time)], axis=1) + noise


@pytest.mark.parametrize("chunk", [1, 50, 333])
def test_live_stamps_that_jitter_by_the_transport_give_way_to_an_even_clock(chunk: int) -> None:
    time = _regular(6000)
    stamps = _arrived(time, 0.3 * PERIOD, 9)
    found, arrivals = _live(stamps, chunk, _moving(time))
    assert arrivals.clock != "stamps"
    assert np.std((found - time[: len(found)])[1000:]) < 0.1 * np.std(stamps - time)


def test_live_stamps_that_tell_when_samples_were_taken_stay() -> None:
    rng = np.random.default_rng(10)
    stamps = np.sort(_regular(6000) + 0.2 * PERIOD * rng.normal(size=6000))
    found, arrivals = _live(stamps, 50, _moving(stamps))
    assert arrivals.clock == "stamps"
    np.testing.assert_array_equal(found, stamps)


@pytest.mark.parametrize("delay", [1e-3, 5e-3])
@pytest.mark.parametrize("chunk", [pytest.param(1, marks=pytest.mark.heavy), 50, 333])
def test_a_live_clock_is_found_behind_delays(delay: float, chunk: int) -> None:
    time = _regular(12_000)
    found, arrivals = _live(_arrived(time, delay, 1), chunk)
    assert arrivals.clock != "stamps"
    late = (found - time[: len(found)])[3000:]
    assert np.std(late) < 0.2 * delay  # the same delay throughout is none
    assert np.abs(np.diff(late)).max() < 0.2 * PERIOD


def test_a_live_clock_that_drifts_is_followed() -> None:
    time = (1.0 + 2e-4) * _regular(20_000)
    found, _ = _live(_arrived(time, 2e-3, 2))
    assert np.abs(found - time[: len(found)])[3000:].max() < 1e-3


def test_live_stamps_of_the_robots_own_clock_stay_as_they_are() -> None:
    rng = np.random.default_rng(3)
    stamps = np.sort(_regular(5000) + 0.1 * PERIOD * rng.normal(size=5000))
    stamps = np.delete(stamps, [700, 1300, 1301, 1302])
    stamps[2000:] += 0.3  # an interruption
    held = stamps.copy()
    held[3000:3060] = stamps[3060] + 1e-9 * np.arange(60)  # one hold-up ends in a burst
    held[:] = np.maximum.accumulate(held)
    for given in (stamps, held):
        found, arrivals = _live(given)
        assert arrivals.clock == "stamps"
        np.testing.assert_array_equal(found, given)


def test_a_live_count_begins_anew_behind_an_interruption_and_where_time_goes_back() -> None:
    time = _regular(12_000)
    for jump in (0.5, -3.0):
        moved = time + jump * (time > 6.0)
        parts = [_arrived(moved[:6001], 2e-3, 4), _arrived(moved[6001:], 2e-3, 5)]
        found, _ = _live(np.concatenate(parts))
        assert np.abs(found - moved[: len(found)])[9000:].max() < 1e-3


@pytest.mark.parametrize("chunk", [pytest.param(1, marks=pytest.mark.heavy), 50, 333])
@pytest.mark.parametrize("kept", [1.0, 0.1])
def test_live_messages_that_were_held_up_keep_their_count(chunk: int, kept: float) -> None:
    """A tenth of a second's messages come at once: no interruption, unless most of them lack."""
    rng = np.random.default_rng(12)
    time = _regular(12_000)
    stamps = _arrived(time, 1e-4, 13)
    keep = np.ones(len(time), dtype=bool)
    for start in rng.choice(np.arange(200, 11_800, 200), 30, replace=False):
        held = slice(start, start + 100)
        stamps[held] = time[start + 100] + 2e-5 * np.arange(100)
        keep[held] = rng.random(100) <= kept
    found, _ = _live(np.maximum.accumulate(stamps)[keep], chunk)
    late = np.abs(found - time[keep][: len(found)])[3000:]
    assert np.median(late) < 1e-3
    assert kept < 1.0 or late.max() < 2e-3


def test_a_live_queue_that_is_gone_leaves_stamps_as_they_are() -> None:
    time = _regular(12_000)
    stamps = np.concatenate([_arrived(time[:6000], 2e-3, 6), time[6000:] + 1e-4])
    found, arrivals = _live(np.maximum.accumulate(stamps))
    assert arrivals.clock == "stamps"
    np.testing.assert_array_equal(found[9000:], stamps[9000:])


def test_live_stamps_that_are_not_finite_change_no_others() -> None:
    stamps = _arrived(_regular(4000), 2e-3, 7)
    broken = np.insert(stamps, [100, 2000], [np.nan, np.inf])
    found, _ = _live(broken, 4002)
    expected, _ = _live(stamps, 4000)
    np.testing.assert_array_equal(found[np.isfinite(broken)], expected)


@pytest.mark.parametrize("chunk", [1, 50, 333])
def test_live_stamps_that_are_equal_or_go_back_leave_a_clock(chunk: int) -> None:
    """As behind a hold-up, where messages are stamped at once and those of two threads mix."""
    rng = np.random.default_rng(11)
    time = _regular(6000)
    stamps = time.copy()
    for start in range(200, 6000, 150):
        stamps[start : start + 30] = time[start + 30]
    stamps = np.round(stamps + 1e-3 * rng.normal(size=6000), 3)
    with np.errstate(all="raise"):
        found, _ = _live(stamps, chunk, _moving(time))
    assert np.isfinite(found).all()
    assert np.abs(found - time[: len(found)]).max() < 0.05


def test_a_live_clock_that_stands_still_is_borne() -> None:
    with np.errstate(all="raise"):
        found, _ = _live(np.ones(2000), 50, _moving(_regular(2000)))
    assert np.isfinite(found).all()


@pytest.mark.parametrize("jitter", [0.1, 0.3])
@pytest.mark.parametrize("lost", [0.01, 0.05, 0.2])
def test_messages_that_are_lost_do_not_move_those_that_jitter(jitter: float, lost: float) -> None:
    rng = np.random.default_rng(12)
    time = _regular(12_000)
    time = time[rng.random(len(time)) >= lost]
    stamps = time + jitter * PERIOD * np.abs(rng.normal(size=len(time)))
    stamps = np.maximum.accumulate(stamps) + 1e-9 * np.arange(len(time))
    found, arrivals = _live(stamps, 50, _moving(time))
    assert arrivals.clock == "ticks"
    # live, once the ticks are believed
    late = (found - time[: len(found)])[1000:]
    assert np.std(late) < 0.4 * jitter * PERIOD
    # and in a recording
    ticks = find_ticks(stamps, 1.0 / PERIOD)
    assert ticks is not None
    assert np.mean(np.diff(ticks.number) == np.rint(np.diff(time) / PERIOD)) > 0.97


def test_stamps_at_random_belong_to_no_ticks() -> None:
    stamps = np.sort(np.random.default_rng(13).uniform(0.0, 10.0, 5000))
    assert find_ticks(stamps, 500.0) is None


def test_live_stamps_that_are_not_finite_are_not_waited_for() -> None:
    stamps = np.full(2000, np.nan)
    stamps[:5] = [0.0, 1e-3, 1.4e-3, 3e-3, 4e-3]  # uneven, and then no more
    found, _ = _live(stamps, 1)
    assert len(found) > 1000
