# SPDX-License-Identifier: Apache-2.0
"""Columns of friction that are averaged over some places are those that passed the low-pass."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from sysid_core.dynamics.friction import FRICTION, FrictionTerm, JointMotion
from sysid_core.dynamics.presliding import deflections
from sysid_core.dynamics.rows import RowBlock
from sysid_core.dynamics.select import make_regression
from sysid_core.friction_filter import (
    LiveFriction,
    filter_friction,
    filtered_column,
    nearby,
    sign_factor,
)
from sysid_core.friction_way import filtered_deflections, late_signs
from sysid_core.recording import Samples
from sysid_core.robot import load_robot
from sysid_core.signals.filters import low_pass
from sysid_core.signals.prepare import PrepareReport

RATE = 2000.0
TERMS = {
    "panda_joint2": {"load": 1.0, "stribeck": 0.1},
    "panda_joint3": {"presliding": 0.03},
    "panda_joint4": {"sigmoid": 0.2, "presliding": 0.01},
}
BENT = [term for term in FRICTION if term.scale_unit == "rad/s"]


@pytest.mark.parametrize("term", BENT, ids=lambda term: term.name)
@pytest.mark.parametrize("cutoff", [1.5, 10.0, 20.0])
def test_a_term_that_bends_passes_the_filter(term: FrictionTerm, cutoff: float) -> None:
    time = np.arange(0.0, 4.0, 1.0 / RATE)
    velocity = np.sin(2.0 * np.pi * 0.5 * time)
    change = np.pi * np.cos(2.0 * np.pi * 0.5 * time)
    motion = JointMotion(time, velocity, change, np.sign(velocity), scale=0.05)
    assert term.column is not None
    expected = low_pass(term.column(motion), RATE, cutoff)
    lost = (len(time) - len(expected)) // 2
    kept = slice(lost, len(time) - lost)
    sign = low_pass(np.sign(velocity), RATE, cutoff)
    motion = JointMotion(time[kept], velocity[kept], change[kept], sign, scale=0.05)
    q, v, a = (values[:, None] for values in (time, velocity, change))
    rows, report = np.arange(len(time))[kept], SimpleNamespace(rate=RATE, cutoff=cutoff)
    near = nearby(Samples(time, q, v, a, v), rows, 0, cast(PrepareReport, report), 0.05)
    error = np.std(filtered_column(term, motion, near) - expected)
    assert error < 0.05 * np.std(term.column(motion) - expected)


@pytest.mark.parametrize("cutoff", [6.0, 10.0])
def test_live_rows_of_friction_are_those_of_a_recording(cutoff: float) -> None:
    """Whether what comes before and after is known, or velocities go straight on."""
    regression = make_regression(load_robot("panda").with_friction(TERMS))
    rate, time = 500.0, np.arange(0.0, 6.0, 0.002)
    phase = 2.0 * np.pi * (0.3 + 0.05 * np.arange(7)) * time[:, None]
    speed = 2.0 * np.pi * (0.3 + 0.05 * np.arange(7))
    q, v = np.asarray(0.4 * np.sin(phase)), np.asarray(0.4 * speed * np.cos(phase))
    samples = Samples(time, q, v, np.asarray(-(speed**2) * q), np.zeros_like(q))
    report = cast(PrepareReport, SimpleNamespace(rate=rate, output_rate=rate, cutoff=cutoff))
    plain, live, recorded = (regression.rows(samples).blocks for _ in range(3))
    friction = LiveFriction(regression)
    for first in range(0, len(time), 25):
        some = slice(first, first + 25)
        inside = [
            RowBlock(block.matrix[some], block.target[some], np.arange(25)) for block in live
        ]
        friction.filter(tuple(inside), samples.select(some), rate, cutoff)
    factor = sign_factor(regression.robot, samples, report)
    filter_friction(regression, recorded, samples, factor, report)
    inner = slice(250, -250)
    for one, other, without in zip(live, recorded, plain, strict=True):
        error = one.matrix[inner] - other.matrix[inner]
        before = without.matrix[inner] - other.matrix[inner]
        assert np.abs(before).max() > 0.3
        assert np.std(error) < 0.15 * np.std(before)


@pytest.mark.parametrize("every", [1, 10, 50])
def test_the_way_passes_the_filter_however_thin_its_samples_are(every: int) -> None:
    """Of two stretches, each of which begins with the joint sliding."""
    cutoff, time = 8.0, np.r_[np.arange(0.0, 4.0, 1.0 / RATE), np.arange(9.0, 13.0, 1.0 / RATE)]
    w = 2.0 * np.pi * 0.7
    q, v, a = np.sin(w * time), w * np.cos(w * time), -w * w * np.sin(w * time)
    distances, half = np.array([0.01, 0.1]), len(time) // 2
    stretches = [deflections(part, distances) for part in (q[:half], q[half:])]
    expected = np.concatenate([low_pass(part, RATE, cutoff) for part in stretches])
    lost = (half - len(expected) // 2) // 2
    inside = np.r_[lost : half - lost, half + lost : len(time) - lost]
    kept = np.isin(np.arange(len(time)), np.r_[0:half:every, half : len(time) : every])
    samples, rate = Samples(time, *np.stack([q, v, a, a])[..., None]).select(kept), RATE / every
    report = cast(PrepareReport, SimpleNamespace(rate=RATE, output_rate=rate, cutoff=cutoff))
    whole = np.full((len(time), 2), np.nan)
    whole[kept] = filtered_deflections(samples, 0, report, distances)
    error = (whole[inside] - expected)[kept[inside]]
    assert np.std(error) < 0.02


def test_late_signs_are_those_of_an_eighth_to_all_of_the_rise_time_ago() -> None:
    cutoff, rate, time = 8.0, 32.0, np.arange(0.0, 8.0, 1.0 / 32.0)
    w = 2.0 * np.pi * 0.7
    q, v = np.sin(w * time), w * np.cos(w * time)
    samples = Samples(time, q[:, None], v[:, None], -w * w * q[:, None], q[:, None])
    report = cast(PrepareReport, SimpleNamespace(rate=rate, output_rate=rate, cutoff=cutoff))
    dense = np.arange(0.0, 8.0, 1.0 / 3200.0)
    for column, late in zip(late_signs(samples, 0, report).T, (1, 2, 4, 8), strict=True):
        sign = np.sign(np.cos(w * (dense - late / (16.0 * cutoff))))
        expected = np.interp(time, dense, np.pad(low_pass(sign, 3200.0, cutoff), 398, "edge"))
        assert np.std((column - expected)[10:-10]) < 0.05


def test_a_lower_cutoff_from_one_batch_to_the_next_goes_on() -> None:
    """Whoever filters may change it: there is less of the past than it weighs."""
    regression = make_regression(load_robot("panda").with_friction(TERMS))
    time = np.arange(0.0, 2.0, 0.01)
    q = np.repeat(np.sin(time)[:, None], 7, axis=1)
    samples = Samples(time, q, np.gradient(q, 0.01, axis=0), -q, np.zeros_like(q))
    friction = LiveFriction(regression)
    for some, cutoff in ((slice(0, 100), 10.0), (slice(100, 200), 3.0)):
        part = samples.select(some)
        blocks = regression.rows(part).blocks
        friction.filter(blocks, part, 100.0, cutoff)
        assert all(np.isfinite(block.matrix).all() for block in blocks)
