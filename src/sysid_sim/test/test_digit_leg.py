# SPDX-License-Identifier: Apache-2.0
"""Digit's simulated leg, end to end: its bag identifies it better than its description."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sysid_core.identification import identify
from sysid_core.online.gate import GateState
from sysid_core.online.replay import replay, stream_settings_for
from sysid_core.robot import Robot
from sysid_core.robot.loops import LoopClosure
from sysid_sim.run import Run, run_scenario
from sysid_sim.scenarios import find_scenario
from sysid_sim.trajectories import ExcitationConfig, exciting_trajectory


@pytest.fixture(scope="module")
def run() -> Run:
    return run_scenario(find_scenario("digit_leg"), duration=6.0)


@pytest.mark.heavy
def test_every_joint_is_predicted_better_on_the_part_held_out(run: Run) -> None:
    found = identify(run.robot, run.recording)
    assert found.validation is not None
    ratio = found.validation.rmse_identified / found.validation.rmse_nominal
    assert (ratio < 0.95).all(), ratio
    assert (ratio[:4] < 0.4).all(), ratio  # the toes' friction, mostly at rest, is not seen
    assert not any("left out" in text for text in found.warnings)


@pytest.mark.heavy
def test_the_gate_opens_within_three_seconds(run: Run) -> None:
    stream = stream_settings_for(run.recording, run.robot)
    updates = [step.update for step in replay(run.recording, run.robot, stream=stream)]
    first = next(update for update in updates if update.identified)
    assert first.time - run.recording.time[0] < 3.0
    assert updates[-1].state is GateState.IDENTIFIED, updates[-1].reasons


def test_exciting_motions_keep_the_loops_closed_and_passive_joints_off_their_limits(
    robot_of: Callable[[str], Robot],
) -> None:
    robot = robot_of("digit_left_leg")
    closure = LoopClosure(robot)
    trajectory = exciting_trajectory(robot, 3, ExcitationConfig(period=5.0, amplitude=0.8))
    motion = closure.motion(*trajectory.at(np.linspace(0.0, 6.0, 601)))
    assert motion.valid.all()
    assert max(closure.excess(q).max() for q in motion.q) < -0.03
