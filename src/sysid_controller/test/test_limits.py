# SPDX-License-Identifier: Apache-2.0
"""No torque leaves its limits, whatever goes in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sysid_controller.limits import POSITION_MARGIN, EffortLimiter
from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import FloatArray
from sysid_core.robot.limits import Limits

PERIOD = 0.002
SETTINGS = ControllerConfig(effort_rate=20.0)
LIMITS = Limits(
    np.array([-1.0, -2.0, -np.inf]),
    np.array([1.0, 0.5, np.inf]),
    np.array([2.0, 2.0, np.inf]),
    np.array([50.0, 10.0, 5.0]),
)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0])


def fuzzed(rng: np.random.Generator, scale: float) -> FloatArray:
    values = rng.normal(scale=scale, size=3) * 10.0 ** rng.integers(-3, 4, 3)
    special = rng.random(3) < 0.2
    values[special] = rng.choice(SPECIAL, int(special.sum()))
    return values


def test_fuzzed_input_never_exceeds_torque_or_torque_rate() -> None:
    rng = np.random.default_rng(11)
    limiter = EffortLimiter(LIMITS, SETTINGS)
    last = np.zeros(3)
    with np.errstate(all="ignore"):
        for _ in range(5000):
            given = bool(rng.random() < 0.8)
            result = limiter.apply(
                fuzzed(rng, 20.0),
                PERIOD,
                fuzzed(rng, 5.0),
                rng.normal(scale=1.0, size=3) if given else None,
                rng.normal(scale=3.0, size=3) if given else None,
            )
            assert np.isfinite(result.effort).all()
            assert (np.abs(result.effort) <= LIMITS.effort).all()
            step = np.abs(result.effort - last)
            assert (step <= 20.0 * LIMITS.effort * PERIOD * (1.0 + 1e-9)).all()
            last = result.effort


def test_effort_without_limits_passes_unchanged_and_says_so() -> None:
    limiter = EffortLimiter(LIMITS, SETTINGS)
    effort = np.array([1.0, -0.2, 0.1])
    result = limiter.apply(effort, PERIOD, np.zeros(3), np.zeros(3), np.zeros(3))
    np.testing.assert_array_equal(result.effort, effort)
    assert not result.limited.any()


def test_each_cause_is_reported_for_its_joint() -> None:
    limiter = EffortLimiter(LIMITS, replace(SETTINGS, effort_rate=1e4))
    result = limiter.apply(
        np.array([80.0, 5.0, np.nan]), PERIOD, np.zeros(3), np.array([0, 0.6, 0]), np.zeros(3)
    )
    np.testing.assert_array_equal(result.by_effort, [True, False, False])
    np.testing.assert_array_equal(result.by_range, [False, True, False])
    np.testing.assert_array_equal(result.not_finite, [False, False, True])
    assert result.effort[0] == 50.0
    limiter = EffortLimiter(LIMITS, SETTINGS)
    result = limiter.apply(np.array([40.0, 0.0, 0.0]), PERIOD, np.zeros(3))
    np.testing.assert_array_equal(result.by_rate, [True, False, False])
    assert result.effort[0] == pytest.approx(20.0 * 50.0 * PERIOD)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_nothing_pushes_further_out_of_the_range(side: float) -> None:
    rng = np.random.default_rng(12)
    config = replace(SETTINGS, effort_rate=1e4)
    limit = LIMITS.upper[0] if side > 0 else LIMITS.lower[0]
    for _ in range(500):
        limiter = EffortLimiter(LIMITS, config)
        beyond = rng.uniform(0.0, 0.2)
        effort, hold = np.zeros(3), np.zeros(3)
        effort[0], hold[0] = side * rng.uniform(0.0, 100.0), rng.uniform(-20.0, 20.0)
        position, velocity = np.zeros(3), np.zeros(3)
        position[0], velocity[0] = limit + side * beyond, rng.normal()
        result = limiter.apply(effort, PERIOD, hold, position, velocity)
        outward = side * result.effort[0]
        # at most what gravity takes away again, and nothing at all a margin beyond
        assert outward <= max(side * hold[0], 0.0) + 1e-9
        if beyond >= POSITION_MARGIN:
            assert outward <= 0.0


def test_inward_torque_near_the_limit_is_left_alone() -> None:
    limiter = EffortLimiter(LIMITS, replace(SETTINGS, effort_rate=1e4))
    position = np.array([0.99, 0.0, 0.0])
    result = limiter.apply(np.array([-30.0, 0, 0]), PERIOD, np.zeros(3), position, np.zeros(3))
    assert result.effort[0] == -30.0


def test_protection_grows_without_a_jump() -> None:
    """Walking a joint from the range to beyond it, the torque changes in small steps only."""
    outputs = []
    for position in np.linspace(0.9, 1.2, 3001):
        limiter = EffortLimiter(LIMITS, replace(SETTINGS, effort_rate=1e4))
        state = np.array([position, 0.0, 0.0])
        result = limiter.apply(
            np.array([20.0, 0.0, 0.0]), PERIOD, np.array([8.0, 0, 0]), state, np.array([1.0, 0, 0])
        )
        outputs.append(result.effort[0])
    assert np.abs(np.diff(outputs)).max() < 0.1
    assert outputs[0] == 20.0
    assert outputs[-1] < 0.0


def test_speed_towards_the_limit_is_braked() -> None:
    limiter = EffortLimiter(LIMITS, replace(SETTINGS, effort_rate=1e4))
    position = np.array([0.99, 0.0, 0.0])
    result = limiter.apply(np.zeros(3), PERIOD, np.zeros(3), position, np.array([1.5, 0, 0]))
    assert result.effort[0] < -5.0


def test_a_lowered_limit_holds_at_once() -> None:
    limiter = EffortLimiter(LIMITS, replace(SETTINGS, effort_rate=1e4))
    limiter.apply(np.array([50.0, 0.0, 0.0]), PERIOD, np.zeros(3))
    limiter.configure(replace(SETTINGS, effort_scale=0.5))
    result = limiter.apply(np.array([50.0, 0.0, 0.0]), PERIOD, np.zeros(3))
    assert result.effort[0] == 25.0


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_neither_a_spring_nor_an_old_torque_leaves_the_limit(side: float) -> None:
    limiter = EffortLimiter(LIMITS, replace(SETTINGS, effort_rate=1e4))
    beyond, out = side * np.array([1.2, 0.0, 0.0]), side * np.array([50.0, 0.0, 0.0])
    for _ in range(3):  # the spring pulls inward beside all the torque there is
        back = limiter.apply(-out, PERIOD, np.zeros(3), beyond, np.zeros(3))
        assert back.effort[0] == -out[0]
    limiter = EffortLimiter(LIMITS, SETTINGS)
    limiter.last = out.copy()
    limiter.configure(replace(SETTINGS, effort_scale=0.1))
    for elapsed in (PERIOD, 0.0):
        assert limiter.apply(out, elapsed, np.zeros(3)).effort[0] == side * 5.0
        limiter.last = out.copy()
        assert limiter.apply(-out, elapsed, np.zeros(3)).effort[0] == side * 5.0
        limiter.last = out.copy()


def test_joints_without_limits_stay_finite() -> None:
    endless = Limits(*(np.full(1, v) for v in (-np.inf, np.inf, np.inf, np.inf)))
    limiter = EffortLimiter(endless, SETTINGS)
    result = limiter.apply(np.array([1e6]), 0.0, np.zeros(1), np.zeros(1), np.zeros(1))
    assert result.effort[0] == 1e6
