# SPDX-License-Identifier: Apache-2.0
"""What pushes a walking robot, or lies on it for a while, is named and not learned from."""

from __future__ import annotations

import re
from typing import Any

import mujoco
import numpy as np
import pytest

from sysid_core.identification import Identification, IdentifyConfig, identify
from sysid_sim.run import Run, run_scenario
from sysid_sim.scenarios import find_scenario

FROM, TO = 3.0, 4.0  # [s]
KEPT = IdentifyConfig(disturbed="kept")


def walk(force: tuple[float, float, float], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a trot of Spot, which weighs 334 N, with a force [N] on its base for a second."""
    step = mujoco.mj_step

    def pushed(model: Any, data: Any, *args: Any, **options: Any) -> None:
        data.xfrc_applied[1, :3] = force if FROM <= data.time < TO else (0.0, 0.0, 0.0)
        step(model, data, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(mujoco, "mj_step", pushed)
        return run_scenario(find_scenario("spot_trot"), duration=7.0)


def error(found: Identification, run: Run) -> float:
    """Return by how much the learned model's torques differ from the true one's."""
    (block,) = found.regression.rows(found.samples).blocks
    base = found.regression.base
    off = base.project(found.estimate.parameters) - base.project(run.truth)
    return float(np.linalg.norm(block.matrix @ off))


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("force", "said"),
    [
        ((0.0, 20.0, 0.0), "a force of about 1.* N from outside seems to act on the base"),
        ((0.0, 0.0, -50.0), "the robot seems to carry about [45].* kg"),
    ],
)
def test_what_acts_on_the_base_for_a_while_is_named_and_left_out(
    force: tuple[float, float, float], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = walk(force, monkeypatch)
    found = identify(run.robot, run.recording)
    kept = identify(run.robot, run.recording, KEPT)
    (text,) = (text for text in found.warnings if "left out of what is learned" in text)
    pattern = rf"{said} in a part of the recording \((\S+) to (\S+) s\) and not in the rest"
    match = re.match(pattern, text)
    assert match, text
    assert FROM - 0.3 < float(match[1]) <= FROM
    assert TO <= float(match[2]) < TO + 0.3
    assert any("leave that out by --without" in other for other in kept.warnings)
    assert error(found, run) < 0.4 * error(kept, run)
