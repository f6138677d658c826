# SPDX-License-Identifier: Apache-2.0
"""Values between two updates of a sensor are told from measured ones."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.signals.group import Track
from sysid_core.signals.synchronise import synchronise
from sysid_core.signals.updates import fresh_rows, knot_rate, quantum

RATE = 1000.0
TIME = np.arange(0.0, 10.0, 1.0 / RATE)


def _motion(time: FloatArray) -> FloatArray:
    return np.column_stack(
        [np.sin(2.0 * time), 0.5 * np.cos(3.1 * time), 0.2 * np.sin(5.0 * time)]
    )


@pytest.mark.parametrize("every", [2, 4, 25])
@pytest.mark.parametrize("step", [None, 1e-5])
def test_only_updates_of_a_slower_sensor_are_new(every: int, step: float | None) -> None:
    values = _motion(TIME)
    if step is not None:
        values = step * np.round(values / step)
    held = values[np.arange(len(TIME)) // every * every]
    fresh = fresh_rows(held)
    assert np.array_equal(np.flatnonzero(fresh[:, 0]), np.arange(0, len(TIME), every))
    assert (fresh == fresh[:, :1]).all()


@pytest.mark.parametrize("step", [1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("noise", [0.0, 0.3, 3.0])
def test_rounding_is_not_taken_for_a_slower_sensor(step: float, noise: float) -> None:
    values = _motion(TIME) + noise * step * np.random.default_rng(0).normal(size=(len(TIME), 3))
    values = step * np.round(values / step)
    assert fresh_rows(values).all()
    assert quantum(values[:, 1]) == pytest.approx(step, rel=1e-4) or step == 1e-5


def test_a_joint_at_rest_goes_on_with_its_message() -> None:
    values, turn = _motion(TIME), 4.0 * np.pi / 3.1  # [s] at which the joint turns, or rests
    there = np.minimum(TIME, turn) + np.maximum(TIME - turn - 3.0, 0.0)
    values[:, 1] = _motion(there)[:, 1]
    held = values[np.arange(len(TIME)) // 10 * 10]
    fresh = fresh_rows(held)
    assert np.array_equal(fresh[:, 1], fresh[:, 0])
    alone = fresh_rows(held[:, 1:2])
    assert np.diff(np.flatnonzero(alone[:, 0])).max() <= 20


@pytest.mark.parametrize("held", [20, 200])
def test_values_held_while_a_robot_moves_on_are_no_rest(held: int) -> None:
    source = np.arange(len(TIME))
    for start in range(500, 9000, 700):
        source[start : start + held] = start
    fresh = fresh_rows(_motion(TIME)[source])
    assert (fresh == (np.diff(source, prepend=-1) != 0)[:, np.newaxis]).all()


def test_missing_values_stay_missing() -> None:
    values = _motion(TIME)
    values[::3, 0] = np.nan
    assert np.array_equal(fresh_rows(values), np.isfinite(values))


@pytest.mark.parametrize("slow", [15.0, 30.0])
def test_a_drawn_out_log_shows_the_rate_of_its_knots(slow: float) -> None:
    rare = np.arange(0.0, 20.0, 1.0 / slow)
    time = np.arange(0.0, rare[-1], 0.01)
    drawn = np.column_stack([np.interp(time, rare, column) for column in _motion(rare).T])
    assert knot_rate(time, drawn) == pytest.approx(slow, rel=0.02)
    assert knot_rate(time, np.round(_motion(time), 4)) == np.inf
    assert knot_rate(TIME, _motion(TIME)) == np.inf


@pytest.mark.parametrize("steepness", [3.0, 6.0])
def test_constant_speeds_without_noise_are_not_drawn_out(steepness: float) -> None:
    time = np.arange(0.0, 20.0, 0.004)
    speed = np.clip(steepness * np.sin(np.pi * time), -1.0, 1.0)
    smooth = np.convolve(speed, np.hanning(25), mode="same")
    assert knot_rate(time, np.cumsum(smooth)[:, None]) == np.inf


def test_held_samples_give_the_grid_of_the_sensor() -> None:
    values = _motion(TIME)
    held = synchronise([Track(TIME, values[np.arange(len(TIME)) // 10 * 10])])
    assert held.sensor_rate == pytest.approx(100.0)
    assert held.held == pytest.approx(dict.fromkeys(range(3), 100.0))
    (segment,) = held.segments
    assert np.abs(segment.values[0] - _motion(segment.time)).max() < 1e-9


@pytest.mark.parametrize("ratio", [1.02, 1.07])
def test_a_log_of_nearly_the_sensors_rate_tells_when_the_sensor_measured(ratio: float) -> None:
    rate = 30.0
    log = np.arange(0.0, 40.0, 1.0 / (ratio * rate))
    measured = np.floor(log * rate + 1e-9) / rate
    found = synchronise([Track(log, _motion(measured))])
    (segment,) = found.segments
    inner = slice(5, -5)
    lag = 1.0 / rate
    errors = [
        np.abs(segment.values[0] - _motion(segment.time + shift))[inner].max()
        for shift in np.linspace(-lag, lag, 41)
    ]
    assert found.report.timing == "uniform"
    assert min(errors) < 0.1 * np.abs(_motion(log) - _motion(measured)).max()


def test_a_coarsely_rounded_signal_of_few_changes_is_not_held() -> None:
    time = np.arange(0.0, 20.0, 0.004)
    coarse = np.asarray(np.round(np.sin(2.0 * np.pi * 0.3 * time)), dtype=np.float64)
    assert fresh_rows(coarse[:, None]).all()


@pytest.mark.parametrize("every", [2, 5, 10])
def test_coarse_channels_of_one_message_are_new_together(every: int) -> None:
    """Each seems to miss what is rounded to the value before."""
    rng = np.random.default_rng(1)
    held = np.repeat(_motion(np.arange(0.0, 40.0, every * 0.01)), every, axis=0)
    noisy = held + np.repeat(0.1 * rng.normal(size=(len(held) // every, 3)), every, axis=0)
    fresh = fresh_rows(0.06 * np.round(noisy / 0.06))
    rows = np.arange(0, len(held), every)
    assert np.mean([np.isin(rows, np.flatnonzero(own)).mean() for own in fresh.T]) > 0.97
    assert not fresh[np.setdiff1d(np.arange(len(held)), rows)].any()


def test_efforts_that_saturate_stay_where_they_were_measured() -> None:
    """Their values are repeated as if held, but no slower clock is behind them."""
    rng, time = np.random.default_rng(0), np.arange(0.0, 40.0, 0.02)
    wave = np.sin(8.0 * _motion(1.3 * time)) + 0.02 * rng.normal(size=(len(time), 3))
    (segment,) = synchronise([Track(time, np.clip(wave, -0.5, 0.5))]).segments
    there = np.array([np.interp(time, segment.time, column) for column in segment.values[0].T]).T
    free = np.abs(wave) < 0.5
    assert np.sqrt(np.mean((there - wave)[free] ** 2)) < 0.02


def _frozen(what: slice) -> tuple[Track, FloatArray]:
    """Return positions and efforts of three joints, some of which stand for 2 s, and when."""
    positions = _motion(TIME)
    efforts = positions[:, ::-1] + 0.02 * np.random.default_rng(0).normal(size=positions.shape)
    values = np.hstack([positions, efforts])
    rows = np.flatnonzero((TIME > 3.0) & (TIME < 5.0))
    values[rows, what] = values[rows[0], what]
    return Track(TIME, values, positions=3), TIME[rows]


@pytest.mark.parametrize("what", [slice(0, 6), slice(0, 3), slice(1, 2), slice(3, 6)])
def test_what_stands_while_the_robot_moves_on_is_left_out(what: slice) -> None:
    track, frozen = _frozen(what)
    found = synchronise([track])
    before, after = found.segments
    assert before.time[-1] < frozen[1]
    assert after.time[0] > frozen[-1]
    assert found.report.frozen == pytest.approx(2.0, abs=0.02)
    for segment in (before, after):
        assert np.abs(segment.values[0][:, :3] - _motion(segment.time)).max() < 1e-6


def test_what_stands_while_the_robot_rests_is_left_in() -> None:
    on = np.minimum(TIME, 3.0) + np.maximum(TIME - 5.0, 0.0)
    eased = np.convolve(np.pad(on, 25, mode="edge"), np.hanning(51) / 25.0, mode="valid")
    values = _motion(eased)
    found = synchronise([Track(TIME, np.hstack([values, values]), positions=3)])
    assert len(found.segments) == 1
    assert found.report.frozen == 0.0


def test_efforts_that_are_all_cut_off_are_not_frozen() -> None:
    positions = _motion(TIME)
    efforts = np.clip(20.0 * positions[:, :1] * np.ones(3), -1.0, 1.0)
    efforts = efforts + 1e-3 * positions * (np.abs(efforts) < 1.0)
    found = synchronise([Track(TIME, np.hstack([positions, efforts]), positions=3)])
    assert len(found.segments) == 1


def test_a_position_frozen_beyond_its_others_is_left_out() -> None:
    track, frozen = _frozen(slice(0, 0))
    track.values[(TIME > 3.0) & (TIME < 5.0), :2] = 3.0
    before, after = synchronise([track]).segments
    assert before.time[-1] < frozen[1]
    assert after.time[0] > frozen[-1]
