# SPDX-License-Identifier: Apache-2.0
"""A model that is learned while a robot sways on standing feet holds while it walks."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from sysid_core.identification import IdentifyConfig, identify
from sysid_core.robot import load_robot
from sysid_core.validation import rows_at_learned_cutoff
from sysid_sim.run import run_scenario
from sysid_sim.scenarios import find_scenario
from sysid_sim.walker import MOTIONS, Walker

SEED = 0


@pytest.mark.heavy
def test_what_a_sway_hardly_shows_is_not_bent_to_its_noise() -> None:
    trot = find_scenario("solo12_trot")
    sway = replace(trot, behaviour=partial(Walker, MOTIONS["wobble"]))
    robot = load_robot(trot.robot)
    learned = run_scenario(sway, seed=SEED, duration=6.0)
    found = identify(robot, learned.recording)
    walked = run_scenario(trot, seed=SEED, duration=3.0).recording
    regression, rows, _ = rows_at_learned_cutoff(robot, walked, IdentifyConfig(), 8.0)
    matrix = np.vstack([block.matrix for block in rows.blocks])

    def error(parameters: np.ndarray) -> float:
        base = regression.base.project(parameters) - regression.base.project(learned.truth)
        return float(np.linalg.norm(matrix @ base))

    assert error(found.estimate.parameters) < 0.08 * error(robot.nominal)
