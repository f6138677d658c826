# SPDX-License-Identifier: Apache-2.0
"""Default priors and constraints hold for every robot, whatever its URDF lacks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sysid_core.dynamics.select import make_regression
from sysid_core.errors import ParameterError
from sysid_core.inertia import smallest_eigenvalue
from sysid_core.priors import default_constraints, default_prior, free_parameters
from sysid_core.robot import Robot, known_robots, load_robot
from sysid_core.robot.strength import torque_scale


@pytest.mark.parametrize("name", sorted(known_robots()))
def test_prior_is_consistent_and_what_is_identified_has_a_scale(name: str) -> None:
    robot = load_robot(name)
    prior = default_prior(robot)
    assert (smallest_eigenvalue(robot.layout.inertias(prior.mean)) > 0.0).all()
    assert (prior.body_std > 0.0).all()
    assert (prior.scalar_std > 0.0).all()
    free = free_parameters(robot)
    positive = robot.layout.nonnegative[free[robot.layout.nonnegative]]
    assert (prior.mean[positive] > 0.0).all()


def test_nominal_friction_is_the_prior_where_it_is_given() -> None:
    robot = load_robot("ur10")
    given = replace(robot.description, friction_nominal={"elbow_joint": {"coulomb": 7.5}})
    robot = load_robot(given)
    coulomb = default_prior(robot).mean[robot.layout.term("coulomb")]
    assert coulomb[2] == 7.5
    assert (coulomb > 0.0).all()


def test_a_placeholder_for_friction_leaves_usual_friction_possible() -> None:
    robot = load_robot("ur10")
    usual = default_prior(robot).mean[robot.layout.term("viscous")][2]
    given = replace(robot.description, friction_nominal={"elbow_joint": {"viscous": 1e-4 * usual}})
    prior = default_prior(load_robot(given))
    assert prior.mean[robot.layout.term("viscous")][2] == usual


def test_friction_guesses_lie_within_effort_limits() -> None:
    robot = load_robot("ur10")
    scale, mean = torque_scale(robot), default_prior(robot).mean
    assert (scale <= robot.limits.effort).all()
    assert (mean[robot.layout.term("coulomb")] < 0.1 * robot.limits.effort).all()


@pytest.mark.parametrize("effort", [0.0, 1.0, 1e5])
def test_effort_limits_that_are_placeholders_shape_no_prior(effort: float) -> None:
    """Zero, less than holds the arm, or more than any drive has."""
    known = load_robot("ur10")
    scale = torque_scale(_limited(known, effort=effort or np.inf))
    assert (scale < known.limits.effort).all()
    assert (scale > 0.1 * known.limits.effort).all()
    # the first joint lifts nothing, the last hardly anything
    assert scale[0] == scale[1]
    assert scale[-1] > 0.1 * scale[0]


def test_a_limit_that_all_joints_share_may_be_a_placeholder_of_the_weak_ones() -> None:
    known = load_robot("ur10")
    limit = known.limits.effort[0]
    scale = torque_scale(_limited(known, effort=limit * 1.5))
    assert scale[0] == limit * 1.5
    assert scale[-1] < 0.5 * limit


def test_legs_are_thought_as_strong_as_their_limits_say() -> None:
    robot = load_robot("solo12")
    unlimited = torque_scale(_limited(robot, effort=np.inf))
    assert unlimited == pytest.approx(robot.limits.effort, rel=0.5)


def test_a_range_of_nothing_is_none() -> None:
    """URDFs that leave a joint's range out have zero for both of its ends."""
    known = load_robot("panda")
    robot = _limited(known, lower=0.0, upper=0.0)
    assert make_regression(robot).base.size == make_regression(known).base.size
    low, high = robot.sampling_range
    assert (low == -np.pi).all()
    assert (high == np.pi).all()


def _limited(robot: Robot, **limits: float) -> Robot:
    """Return a robot whose joints all have these limits."""
    given = {kind: dict.fromkeys(robot.joint_names, value) for kind, value in limits.items()}
    return load_robot(replace(robot.description, limits=given))


def test_only_frees_the_named_body() -> None:
    robot = load_robot("ur10")
    fixed = default_constraints(robot, only=["wrist_3_link"]).fixed
    assert (~fixed).sum() == 10
    assert not fixed[robot.layout.body("wrist_3_link")].any()


def test_terms_that_are_not_identified_are_held_at_their_nominal_value() -> None:
    robot = load_robot(replace(load_robot("ur10").description, friction_terms=("coulomb",)))
    fixed, mean = default_constraints(robot).fixed, default_prior(robot).mean
    for term in ("viscous", "armature", "offset"):
        where = robot.layout.term(term)
        assert fixed[where].all()
        np.testing.assert_array_equal(mean[where], robot.nominal[where])
    assert not fixed[robot.layout.term("coulomb")].any()


def test_placeholder_inertias_deserve_little_confidence() -> None:
    robot = load_robot("ur10")
    nominal = robot.nominal.copy()
    nominal[robot.layout.body("forearm_link")] = [1.0, 0, 0, 0, 1.0, 0, 1.0, 0, 0, 1.0]
    robot.nominal = nominal
    std = default_prior(robot).body_std
    assert std[robot.layout.bodies.index("forearm_link")] > 2.0 * std[0]


def test_unknown_bodies_are_named() -> None:
    description = load_robot("ur10").description
    with pytest.raises(ParameterError, match="forarm_link"):
        default_constraints(load_robot("ur10"), only=["forarm_link"])
    prior = replace(description.prior, confidence={"forarm_link": 0.1})
    with pytest.raises(ParameterError, match="forarm_link"):
        default_prior(load_robot(replace(description, prior=prior)))
    with pytest.raises(ParameterError, match="forarm_link"):
        default_constraints(load_robot(replace(description, mass_bounds={"forarm_link": (0, 1)})))
