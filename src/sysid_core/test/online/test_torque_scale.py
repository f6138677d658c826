# SPDX-License-Identifier: Apache-2.0
"""A joint's scale is told by the masses that load it, and by nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sysid_core.dynamics.select import make_regression
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation.problem import Problem
from sysid_core.online.anchor import wide_motion
from sysid_core.online.torque_scale import ScaleEvidence, ScalePosterior
from sysid_core.priors import default_constraints, default_prior

Arm = Any
NOISE = 0.005  # [N·m]


def told_of_scales(arm: Arm) -> list[ScalePosterior]:
    """Return what ten seconds of motion tell of every joint's scale."""
    robot = arm.robot
    regression = make_regression(robot)
    statistics = Statistics.of(regression.rows(arm.samples(0.0, 10.0, noise=NOISE)))
    problem = Problem(
        robot.layout,
        regression.base,
        regression.groups,
        statistics,
        default_prior(robot),
        default_constraints(robot),
        anchor=wide_motion(robot, regression),
    )
    evidence = ScaleEvidence(problem, np.zeros((regression.base.size, regression.base.size)))
    usual = np.sqrt(statistics.square / statistics.count)
    weights = 1.0 / np.maximum(NOISE, 0.02 * usual) ** 2
    return [evidence.posterior(statistics, weights, j) for j in range(len(robot.joint_names))]


@pytest.mark.parametrize("friction", [1.0, 0.02])
@pytest.mark.parametrize("name", ["ur10", "iiwa14"])
def test_friction_tells_no_scale_however_far_it_is_from_what_was_thought(
    arm_of: Callable[[str], Arm], name: str, friction: float
) -> None:
    arm = arm_of(name).altered(viscous=friction, coulomb=friction, offset=friction)
    found = told_of_scales(arm)
    for scale in found:
        low, high = scale.range
        assert low <= 1.0 <= high
    assert all(scale.range == (1.0, 1.0) for scale in found[:4])  # which masses load
