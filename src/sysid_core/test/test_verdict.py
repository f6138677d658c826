# SPDX-License-Identifier: Apache-2.0
"""What is implausible about an identification is named, and absurd models are not exported."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.errors import ModelError
from sysid_core.robot import Robot, load_robot
from sysid_core.robot.export import require_believable
from sysid_core.scores import Curve, Scores
from sysid_core.verdict import implausible_results, require_explained


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("ur10")


def _scores(robot: Robot, r2_nominal: float = 0.5, r2_identified: float = 0.9) -> Scores:
    ones = np.ones(len(robot.joint_names))
    r2 = (r2_nominal * ones, r2_identified * ones)
    return Scores(robot.joint_names, 2.0 * ones, ones, *r2, 100)


def _kinds(
    robot: Robot, parameters: FloatArray, scores: Scores, predicted: float, std: float = 0.1
) -> set[str]:
    value = np.full(3, predicted)
    curve = Curve(robot.joint_names[0], np.arange(3.0), 0.1 * value, value, value, value > 0.0)
    return {d.kind for d in implausible_results(robot, parameters, std, scores, None, (curve,))}


def test_a_plausible_result_is_not_doubted(robot: Robot) -> None:
    assert _kinds(robot, robot.nominal, _scores(robot), 100.0) == set()
    require_believable(robot, robot.nominal, "")


def test_what_is_implausible_is_named(robot: Robot) -> None:
    light = robot.nominal.copy()
    robot.layout.inertias(light)[:] *= 0.1
    kinds = _kinds(robot, light, _scores(robot, -100.0, -0.1), 1000.0)
    assert kinds == {"far_off", "contradiction", "beyond_effort_limit", "total_mass"}


@pytest.mark.parametrize(("factor", "std", "odd"), [(1.2, 0.1, 0), (1.5, 0.1, 1), (1.5, 5.0, 0)])
def test_a_mass_is_odd_where_it_is_known(
    robot: Robot, factor: float, std: float, odd: bool
) -> None:
    scaled = robot.nominal.copy()
    robot.layout.inertias(scaled)[:] *= factor
    assert _kinds(robot, scaled, _scores(robot), 100.0, std) == ({"total_mass"} if odd else set())


@pytest.mark.parametrize("factor", [0.1, 0.4, 2.5, 10.0])
def test_absurd_masses_are_not_exported(robot: Robot, factor: float) -> None:
    scaled = robot.nominal.copy()
    robot.layout.inertias(scaled)[:] *= factor
    with pytest.raises(ModelError, match=r"total mass .* pass --any-mass"):
        require_believable(robot, scaled, "pass --any-mass")


def test_a_model_that_explains_nothing_is_not_exported(robot: Robot) -> None:
    ones = np.ones(len(robot.joint_names))
    useless = Scores(robot.joint_names, ones, 1.01 * ones, -ones, -ones, 100)
    with pytest.raises(ModelError, match=r"median R² -1\): .* pass --any-mass"):
        require_explained(useless, "pass --any-mass")
    for r2, rmse in ((-0.1, 0.9), (0.1, 1.01)):  # better than nominal; explains some of it
        found = Scores(robot.joint_names, ones, rmse * ones, -ones, r2 * ones, 100)
        require_explained(found, "pass --any-mass")


def test_efforts_in_amperes_are_not_exported(robot: Robot) -> None:
    # what the data show is too small; what only the prior knows keeps its mass
    light = robot.nominal.copy()
    robot.layout.inertias(light)[2:] *= 0.1
    robot.layout.inertias(light)[0] *= 2.0
    robot.layout.inertias(light)[1] *= 0.2
    with pytest.raises(ModelError, match="torques"):
        require_believable(robot, light, "pass --any-mass")
