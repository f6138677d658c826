# SPDX-License-Identifier: Apache-2.0
"""True parameters: possible, seeded, within their spread, and readable again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sysid_core.errors import DataError
from sysid_core.estimate_json import identity_json
from sysid_core.inertia import pseudo_inertia, smallest_eigenvalue
from sysid_core.robot import Robot, known_robots
from sysid_core.robot.description import RobotDescription
from sysid_sim.errors import SimulationError
from sysid_sim.plant import Plant
from sysid_sim.truth import TruthSpread, draw_truth, read_truth


@pytest.mark.parametrize("name", sorted(known_robots()))
def test_every_draw_is_a_robot_that_can_exist(name: str, robot_of: Callable[[str], Robot]) -> None:
    robot = robot_of(name)
    spread = TruthSpread(mass=0.6, com=0.9, shape=0.5, friction=0.9)
    for seed in range(20):
        truth = draw_truth(robot, seed, spread)
        assert (smallest_eigenvalue(robot.layout.inertias(truth)) > 0.0).all()
        assert (truth[robot.layout.nonnegative] >= 0.0).all()
    Plant(robot, truth)  # its friction and couplings can be simulated


def test_a_draw_differs_from_nominal_within_the_spread(panda: Robot) -> None:
    nominal = panda.consistent_nominal
    masses = panda.layout.masses
    ratios = []
    for seed in range(50):
        truth = draw_truth(panda, seed, TruthSpread(mass=0.2))
        ratios.append(truth[masses] / nominal[masses])
    assert np.min(ratios) >= 0.8
    assert np.max(ratios) <= 1.2
    assert np.std(ratios) == pytest.approx(0.2 / np.sqrt(3.0), rel=0.1)


@pytest.mark.parametrize(("kind", "ways"), [("mass", 1), ("com", 3), ("shape", 6)])
def test_draws_are_as_likely_as_a_prior_of_their_deviation_says(
    kind: str, ways: int, panda: Robot
) -> None:
    wide = TruthSpread()
    none = TruthSpread(mass=0.0, com=0.0, shape=0.0)
    spread = replace(none, **{kind: getattr(wide, kind)})
    nominal = panda.layout.inertias(panda.consistent_nominal)
    distances = []
    for seed in range(60):
        for phi, drawn in zip(
            nominal, panda.layout.inertias(draw_truth(panda, seed, spread)), strict=True
        ):
            before = pseudo_inertia(phi)
            apart = np.linalg.solve(before, pseudo_inertia(drawn) - before)
            distances.append(np.trace(apart @ apart) / (4.0 * wide.body_std**2))
    # chi-square with a degree of freedom for each way in which a body was changed
    assert np.mean(distances) < 1.1 * ways


def test_without_spread_the_truth_is_nominal(panda: Robot) -> None:
    nothing = TruthSpread(mass=0.0, com=0.0, shape=0.0, friction=0.0, offset=0.0)
    truth = draw_truth(panda, 1, nothing)
    inertial = panda.layout.inertial
    np.testing.assert_allclose(truth[inertial], panda.consistent_nominal[inertial], atol=1e-12)


def test_the_seed_decides_the_draw(panda: Robot) -> None:
    np.testing.assert_array_equal(draw_truth(panda, 4), draw_truth(panda, 4))
    assert not np.array_equal(draw_truth(panda, 4), draw_truth(panda, 5))


def test_terms_that_are_not_identified_stay_nominal(panda: Robot) -> None:
    assert "armature" not in panda.description.friction_terms
    where = panda.layout.term("armature")
    np.testing.assert_array_equal(draw_truth(panda, 1)[where], panda.nominal[where])


def test_friction_of_passive_joints_stays_nominal(robot_of: Callable[[str], Robot]) -> None:
    leg = robot_of("digit_left_leg")
    truth = draw_truth(leg, 1)
    for term in RobotDescription.friction_terms:
        where = leg.layout.term(term)
        changed = truth[where] != leg.nominal[where]
        np.testing.assert_array_equal(changed, leg.actuated)


def test_bodies_that_are_not_identified_stay_nominal(robot_of: Callable[[str], Robot]) -> None:
    leg = robot_of("digit_left_leg")
    fixed = set(leg.layout.bodies) - set(leg.description.inertias)
    assert fixed
    truth = draw_truth(leg, 1)
    for body in leg.layout.bodies:
        where = leg.layout.body(body)
        same = np.array_equal(truth[where], leg.consistent_nominal[where])
        assert same == (body in fixed)


def test_a_truth_is_read_back_as_it_was_written(
    tmp_path: Path, robot_of: Callable[[str], Robot]
) -> None:
    robot = robot_of("tx40")
    truth = draw_truth(robot, 2)
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(identity_json(robot, truth)))
    np.testing.assert_array_equal(read_truth(robot, path)[1], truth)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"bodies": {"a": [1]}, "joints": {}}'])
def test_a_file_without_parameters_is_refused(tmp_path: Path, text: str, panda: Robot) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"bad\.json"):
        read_truth(panda, path)
    with pytest.raises(DataError, match="cannot be read"):
        read_truth(panda, tmp_path / "missing.json")


def test_a_spread_beyond_reason_is_refused() -> None:
    with pytest.raises(SimulationError, match="mass must lie between 0 and 1"):
        TruthSpread(mass=1.5)
    with pytest.raises(SimulationError, match="com"):
        TruthSpread(com=float("nan"))
