# SPDX-License-Identifier: Apache-2.0
"""Efforts of recordings that are cut off are told of, and nothing is learned from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.aligning import aligned_recording
from sysid_core.arrays import FloatArray
from sysid_core.batch import Batch, batch_of, learning_rows
from sysid_core.dynamics.select import make_regression
from sysid_core.identification import Identification, identify
from sysid_core.recording import BaseRecording, Recording, Samples
from sysid_core.robot import Robot
from sysid_core.signals.chain import ChainConfig, Grid, filter_grid
from sysid_core.signals.filters import support
from sysid_core.signals.options import SignalConfig

ELBOW = 2
Spoil = Callable[[FloatArray], FloatArray]


def spoiled(recording: Recording, spoil: Spoil, joint: int = ELBOW) -> Recording:
    assert recording.effort is not None
    effort = recording.effort.copy()
    effort[:, joint] = spoil(effort[:, joint])
    return replace(recording, effort=effort)


def above(share: float) -> Spoil:
    return lambda x: np.minimum(x, np.quantile(x, 1.0 - share))


def told(warnings: tuple[str, ...]) -> list[str]:
    return [text for text in warnings if "the torque stays at" in text]


def test_nothing_is_learned_from_what_is_cut_off(
    ur10: Robot, clean: Recording, error_on_clean: Callable[[Identification], float]
) -> None:
    cut = spoiled(clean, above(0.2))
    found = identify(ur10, cut)
    (text,) = told(found.warnings)
    assert text.startswith(f"{ur10.joint_names[ELBOW]}: the torque stays at")
    assert "left out" in text
    assert error_on_clean(found) < 1.5 * error_on_clean(identify(ur10, clean))


def test_a_coarse_effort_that_is_cut_off_is_told_of(ur10: Robot, clean: Recording) -> None:
    coarse = spoiled(clean, lambda x: np.minimum(np.round(x / 5.0) * 5.0, -10.0))
    (text,) = told(aligned_recording(ur10, coarse, SignalConfig()).warnings)
    assert "stays at -10 N·m" in text


def test_only_rows_of_that_joint_that_rest_on_it_are_left_out(
    ur10: Robot, clean: Recording
) -> None:
    regression = make_regression(ur10)

    def counts(recording: Recording) -> tuple[Batch, np.ndarray]:
        batch = batch_of(ur10, recording, SignalConfig(cutoff=5.0))
        blocks = learning_rows(regression, batch, 0.01).blocks
        return batch, np.array([len(block.target) for block in blocks])

    (whole, all_rows), (batch, rows) = counts(clean), counts(spoiled(clean, above(0.2)))
    assert whole.samples.cut_off is None
    assert batch.samples.cut_off is not None
    assert len(batch) == len(whole)
    others = np.arange(len(rows)) != ELBOW
    np.testing.assert_array_equal(rows[others], all_rows[others])
    assert 0.2 < 1.0 - rows[ELBOW] / all_rows[ELBOW] < 0.8
    half = batch.select(slice(0, len(batch) // 2))
    joined = Batch.concatenate([half, whole], whole.report).samples
    assert joined.cut_off is not None
    np.testing.assert_array_equal(joined.cut_off[: len(half)], half.samples.cut_off)
    assert not joined.cut_off[len(half) :].any()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda x: x,
        lambda x: np.round(x / 5.0) * 5.0,  # a coarse sensor
        lambda x: np.round(x / 40.0) * 40.0,  # one of few values
        lambda x: 0.0 * x + 3.0,  # not measured
        lambda x: np.where(np.abs(x) < 15.0, 0.0, x),  # what is left would be biased
    ],
)
def test_an_effort_that_dwells_for_a_reason_is_not_cut_off(
    ur10: Robot, clean: Recording, spoil: Spoil
) -> None:
    aligned = aligned_recording(ur10, spoiled(clean, spoil), SignalConfig())
    assert not told(aligned.warnings)
    assert all("cut_off" not in grid.joints for grid in aligned.grids)


def test_a_joint_that_rests_is_not_cut_off(ur10: Robot, clean: Recording) -> None:
    assert clean.effort is not None
    time, half = clean.time, len(clean) // 2
    position, effort = clean.position.copy(), clean.effort.copy()
    position[half:], effort[half:] = position[half], effort.max(axis=0)
    resting = replace(clean, time=time, position=position, velocity=None, effort=effort)
    assert not told(aligned_recording(ur10, resting, SignalConfig()).warnings)


@pytest.mark.parametrize("lag", [0.0, 0.03])
def test_samples_know_what_they_rest_on(lag: float) -> None:
    time = np.arange(400) / 100.0
    cut = np.zeros((400, 2))
    cut[200:220, 1] = 2.0
    values = np.zeros((400, 2))
    grid = Grid(time, {"position": values, "effort": values, "cut_off": cut}, {})
    chain = ChainConfig(100.0, 5.0)
    edge, moved = support(100.0, 5.0), round(100.0 * lag)
    found = filter_grid(grid.with_efforts_earlier(lag), chain).samples.cut_off
    assert found is not None
    assert not found[:, 0].any()
    expected = np.zeros(400)
    expected[200 - moved - edge : 220 - moved + edge] = 1.0
    expected[200 - moved : 220 - moved] = 2.0
    np.testing.assert_array_equal(found[:, 1], expected[edge : 400 - edge])
    thinned = filter_grid(grid.with_efforts_earlier(lag), chain, every=3).samples.cut_off
    np.testing.assert_array_equal(thinned, found[::3])
    bare = Grid(time, {"position": values}, {})
    assert filter_grid(bare, chain).samples.cut_off is None


def test_a_leg_is_not_learned_from_while_an_effort_is_cut_off(
    solo12: Robot, solo12_data: Samples
) -> None:
    run, pose = solo12_data, np.asarray(solo12_data.base_pose)
    base = BaseRecording(run.time, pose[:, :3], pose[:, 3:], np.asarray(run.base_twist))
    whole = Recording(run.time, solo12.joint_names, run.position, effort=run.effort, base=base)
    cut = spoiled(whole, above(0.1))
    every, fewer = (batch_of(solo12, r, SignalConfig()) for r in (whole, cut))
    assert not told(every.report.warnings)
    (text,) = told(fewer.report.warnings)
    assert "its speed varies by" in text
    assert 0.2 * len(every) < len(fewer) < 0.9 * len(every)
    assert fewer.samples.cut_off is not None
    assert not fewer.samples.cut_off.any()
