# SPDX-License-Identifier: Apache-2.0
"""Rows behind a low-pass hold the whole motion: no filter bends what is not linear in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sysid_core.aligning import aligned_recording
from sysid_core.arrays import FloatArray
from sysid_core.batch import Batch, batch_at, low_passed, rows_of
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.recording import Recording
from sysid_core.robot import load_robot
from sysid_core.signals.options import SignalConfig


def _off(batch: Batch, regression: TreeRegression, truth: FloatArray, cutoff: float) -> float:
    """Return the largest error [N·m] of the true parameters on rows behind a low-pass."""
    rows = low_passed(rows_of(regression, batch), batch, cutoff)
    return max(float(np.abs(own).max()) for own in rows.residuals(regression.base.project(truth)))


def test_the_true_parameters_explain_rows_behind_a_low_pass_that_would_bend_the_motion() -> None:
    robot = load_robot("ur10")
    truth, regression = robot.consistent_nominal.copy(), TreeRegression(robot)
    truth[robot.layout.friction] = 0.0
    time = np.arange(0.0, 6.0, 2e-3)
    phase = 2.0 * np.pi * 1.5 * time[:, None] + np.arange(6.0)
    position = 0.6 * np.sin(phase)
    velocity, acceleration = 1.8 * np.pi * np.cos(phase), -((3.0 * np.pi) ** 2) * position
    effort = regression.full(position, velocity, acceleration) @ truth
    recording = Recording(time, robot.joint_names, position, effort=effort)
    aligned = aligned_recording(robot, recording, SignalConfig())
    choice = aligned.choice
    whole = batch_at(robot, aligned, replace(choice, cutoff=30.0), 4.0)
    bent = batch_at(robot, aligned, replace(choice, cutoff=5.0), 24.0)
    left = rows_of(regression, bent).residuals(regression.base.project(truth))
    size = max(float(np.abs(own).max()) for own in left)
    assert _off(whole, regression, truth, 5.0) < 0.02 * size


def test_each_row_behind_a_low_pass_keeps_its_sample() -> None:
    robot = load_robot("ur10")
    regression = TreeRegression(robot)
    time = np.arange(0.0, 4.0, 4e-3)
    position = 0.3 * np.sin(2.0 * time[:, None] + np.arange(6.0))
    recording = Recording(time, robot.joint_names, position, effort=np.ones_like(position))
    aligned = aligned_recording(robot, recording, SignalConfig())
    batch = batch_at(robot, aligned, replace(aligned.choice, cutoff=20.0), 4.0)
    cut = batch.select(np.abs(batch.samples.time - 2.0) > 0.1)  # two stretches
    rows = low_passed(rows_of(regression, cut), cut, 10.0)
    plain = rows_of(regression, cut)
    smooth = int(np.searchsorted(regression.base.columns, robot.layout.inertial.stop))
    for behind, before in zip(rows.blocks, plain.blocks, strict=True):
        assert len(behind.sample) < len(before.sample)
        assert np.all(np.diff(behind.sample) > 0)
        same = before.matrix[behind.sample, :smooth]  # dry friction has steps
        assert np.abs(behind.matrix[:, :smooth] - same).max() < 1e-3 * np.abs(same).max()
