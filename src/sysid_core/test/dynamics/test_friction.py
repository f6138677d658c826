# SPDX-License-Identifier: Apache-2.0
"""The friction law is one law: its columns times parameters are its torque, on every robot."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.batch import Batch, rows_of
from sysid_core.dynamics.base_parameters import find_base_parameters
from sysid_core.dynamics.closed_chain import ClosedChainDynamics, ClosedChainRegression
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.contact_dynamics import ContactDynamics
from sysid_core.dynamics.friction import FRICTION, FrictionLaw, FrictionTerm
from sysid_core.dynamics.open_tree import OpenTree, random_states
from sysid_core.dynamics.rows import select_rows
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.errors import RobotError
from sysid_core.parameters import ParameterLayout
from sysid_core.priors import default_prior, free_parameters
from sysid_core.recording import Samples
from sysid_core.robot.description import Transmission
from sysid_core.robot.library import load_robot
from sysid_core.robot.model import Robot
from sysid_core.signals.prepare import PrepareReport

LAYOUT = ParameterLayout((), ("a", "b", "c"), ("b_motor",))
DIRECTIONS = np.array([[0.0, 1.0, 0.7]])
SCALES = np.full((len(FRICTION), 3), 0.4)
CHOSEN = {"panda_joint2": {"load": 1.0, "sigmoid": 0.3}, "panda_joint4": {"stribeck": 0.01}}


def motion(n: int = 20) -> tuple[FloatArray, FloatArray, FloatArray]:
    q, v, a = np.random.default_rng(1).normal(size=(3, n, 3))
    return q, v, a


def coupled(name: str) -> Robot:
    """Return a shipped robot with a motor that turns two of its joints."""
    robot = load_robot(name)
    pair = robot.actuated_names[1:3]
    transmission = Transmission(pair, ((1.0, 0.0), (0.6, 1.0)), "joint")
    return load_robot(replace(robot.description, transmission=transmission))


def drawn(robot: Robot) -> FloatArray:
    """Return parameters of which every one of friction differs from zero."""
    x = robot.consistent_nominal.copy()
    width = robot.layout.friction.stop - robot.layout.friction.start
    x[robot.layout.friction] = np.random.default_rng(2).uniform(0.1, 1.0, width)
    return x


@pytest.mark.parametrize("width", [0.0, 0.1])
@pytest.mark.parametrize("term", FRICTION, ids=lambda term: term.name)
def test_columns_times_a_parameter_are_its_torque(term: FrictionTerm, width: float) -> None:
    """For every term alone, of joints and of the coupled motor."""
    law, rigid = FrictionLaw(DIRECTIONS, width, SCALES), motion()[2]
    columns = law.columns(*motion(), rigid)
    for where in LAYOUT.places(term.name):
        for index in range(where.start, where.stop):
            x = np.zeros(LAYOUT.size)
            x[index] = 0.8
            law.set_parameters(x)
            np.testing.assert_allclose(law.torque(*motion(), rigid=rigid), columns @ x, atol=1e-12)


def test_no_friction_drives_its_joint() -> None:
    """Not at any speed, load or acceleration, whatever the parameters within their bounds."""
    law, rng = FrictionLaw(DIRECTIONS, 0.0, SCALES), np.random.default_rng(4)
    q, v, a = rng.normal(size=(3, 500, 3)) * np.logspace(-4, 1, 500)[:, None]
    x = rng.uniform(0.0, 1.0, LAYOUT.size)
    for term in ("offset", "armature", "spring"):  # they store energy, or are no friction
        for where in LAYOUT.places(term):
            x[where] = 0.0
    x[LAYOUT.term("viscous")] += DIRECTIONS[0] ** 2  # the joints hold the motor's diagonal share
    law.set_parameters(np.minimum(x, LAYOUT.upper))
    torque = law.torque(q, v, a, rigid=100.0 * rng.normal(size=v.shape))
    assert ((torque * v).sum(axis=1) >= 0.0).all()


def test_joints_lack_terms_that_are_not_chosen_for_them() -> None:
    x = np.ones(LAYOUT.size)
    scales = SCALES.copy()
    scales[[term.chosen for term in FRICTION], 1] = 0.0
    law, least = FrictionLaw(DIRECTIONS, 0.0, scales), FrictionLaw(DIRECTIONS, 0.0)
    for each in (law, least):
        each.set_parameters(x)
    rigid = motion()[2]
    with_terms, without = (each.torque(*motion(), rigid=rigid) for each in (law, least))
    np.testing.assert_array_equal(with_terms[:, 1], without[:, 1])
    assert (with_terms[:, [0, 2]] != without[:, [0, 2]]).all()


def test_all_terms_together_and_one_state_at_a_time() -> None:
    law, x = FrictionLaw(DIRECTIONS, 0.1), np.linspace(0.1, 1.0, LAYOUT.size)
    law.set_parameters(x)
    whole = law.columns(*motion()) @ x
    single = [law.torque(*state) for state in zip(*motion(), strict=True)]
    np.testing.assert_allclose(single, whole, atol=1e-12)


def test_a_motor_that_turns_with_several_joints_loses_energy_to_its_own_motion() -> None:
    """With the diagonal share that its joints hold, its power is that of one turning motor."""
    law, (_, v, a) = FrictionLaw(DIRECTIONS, 0.0), motion()
    x = np.zeros(LAYOUT.size)
    x[LAYOUT.coupling_term("viscous")] = 0.5
    x[LAYOUT.term("viscous")] = 0.5 * DIRECTIONS[0] ** 2
    x[LAYOUT.coupling_term("coulomb")] = 0.3
    law.set_parameters(x)
    motor = v @ DIRECTIONS[0]
    power = (law.torque(v, v, a) * v).sum(axis=1)
    np.testing.assert_allclose(power, 0.5 * motor**2 + 0.3 * np.abs(motor), atol=1e-12)


def test_layout_bounds_and_priors_follow_from_the_table() -> None:
    robot = load_robot("ur10")
    layout, prior, free = robot.layout, default_prior(robot), free_parameters(robot)
    for term in FRICTION:
        where = np.arange(layout.size)[layout.term(term.name)]
        assert np.isin(where, layout.nonnegative).all() == (term.lower == 0.0)
        assert np.isin(where, layout.dry[:, 0]).all() == term.dry
        identified = term in robot.friction_terms
        assert free[where].all() == identified
        if term.guess is not None and identified:
            assert (prior.mean[where] > 0.0).all()


def test_a_tree_has_one_law() -> None:
    robot = coupled("panda")
    tree, x = OpenTree(robot, parameters=drawn(robot)), drawn(robot)
    q, v, a = random_states(robot, 10)
    rows = tree.regressor(q, v, a)
    np.testing.assert_allclose(rows @ x, tree.torques(q, v, a), atol=1e-9)
    for i in range(len(q)):
        np.testing.assert_allclose(tree.torque(q[i], v[i], a[i]), rows[i] @ x, atol=1e-9)
        parts = tree.inertia(q[i]) @ a[i] + tree.bias(q[i], v[i])
        np.testing.assert_allclose(parts, rows[i] @ x, atol=1e-9)
        still = np.zeros_like(v[i])
        np.testing.assert_allclose(tree.gravity(q[i]), tree.torque(q[i], still, still), atol=1e-9)


def test_a_tree_has_one_law_with_chosen_terms() -> None:
    """Its rows take the load of the parameters that they are asked to."""
    robot = coupled("panda").with_friction(CHOSEN)
    regression, x = TreeRegression(robot), drawn(robot)
    tree = OpenTree(robot, parameters=x)
    q, v, a = random_states(robot, 10)
    samples = Samples(np.arange(10.0), q, v, a, tree.torques(q, v, a))
    rows = regression.with_load(regression.all_rows(samples), x)
    for errors in rows.residuals(regression.base.project(x)):
        np.testing.assert_allclose(errors, 0.0, atol=1e-9)
    regression.assume_load(x)
    for block, other in zip(rows.blocks, regression.all_rows(samples).blocks, strict=True):
        np.testing.assert_allclose(block.matrix, other.matrix, atol=1e-9)
    for i in range(10):
        parts = tree.torque(q[i], v[i], a[i]), samples.effort[i]
        np.testing.assert_allclose(*parts, atol=1e-9)
    nowhere = layout_places(robot, "stribeck")
    assert np.isin(nowhere, regression.base.columns).sum() == 1


def test_other_terms_leave_the_load_that_was_assumed() -> None:
    robot = load_robot("panda").with_friction(CHOSEN)
    regression, x = TreeRegression(robot), drawn(robot)
    x[robot.layout.inertial] *= 2.0
    regression.assume_load(x)
    other = {**CHOSEN, "panda_joint6": {"sigmoid": 0.2}}
    samples = Samples(np.arange(10.0), *random_states(robot, 10), np.zeros((10, 7)))
    place = robot.layout.term("load").start + np.array([1])
    found = []
    for one in (regression, regression.with_friction(other)):
        block = one.all_rows(samples).blocks[1]
        found.append(block.matrix[:, one.base.places(place)[0]])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_friction_takes_the_load_that_a_recording_was_made_with() -> None:
    robot = coupled("panda").with_friction(CHOSEN)
    regression, x, load = TreeRegression(robot), drawn(robot), np.zeros(robot.layout.size)
    load[robot.layout.body(6)] = [2.0, 0.1, 0.0, 0.2, 0.03, 0.0, 0.03, 0.0, 0.0, 0.01]
    q, v, a = random_states(robot, 10)
    samples = Samples(
        np.arange(10.0), q, v, a, OpenTree(robot, parameters=x + load).torques(q, v, a)
    )
    report = cast(PrepareReport, SimpleNamespace(rate=1e10, cutoff=1e9))
    batch = Batch(samples, np.ones((10, 8)), report, np.tile(load, (10, 1)))
    regression.assume_load(x)
    rows = select_rows(rows_of(regression, batch), lambda _, block: block.sample > 3)
    for again in (rows, regression.with_load(rows, x)):
        for errors in again.residuals(regression.base.project(x)):
            np.testing.assert_allclose(errors, 0.0, atol=1e-9)


def test_a_joint_without_a_column_for_its_load_keeps_the_others_as_they_are() -> None:
    robot = load_robot("panda").with_friction({"panda_joint2": {"load": 1.0}})
    regression, (place,) = TreeRegression(robot), layout_places(robot, "load")[[1]]
    A = regression.full(*random_states(robot, 60)).reshape(-1, robot.layout.size)
    A[:, place] = 0.0
    regression.base = find_base_parameters(A, robot.layout.labels)
    q, v, a = random_states(robot, 5)
    rows = regression.all_rows(Samples(np.arange(5.0), q, v, a, np.zeros((5, 7))))
    again = regression.with_load(rows, drawn(robot))
    for before, after in zip(rows.blocks, again.blocks, strict=True):
        np.testing.assert_array_equal(after.matrix, before.matrix)


def layout_places(robot: Robot, term: str) -> IndexArray:
    return np.arange(robot.layout.size)[robot.layout.term(term)]


def test_chosen_terms_are_for_trees() -> None:
    legged = load_robot("solo12")
    with pytest.raises(RobotError, match="fixed base"):
        legged.with_friction({legged.joint_names[0]: {"load": 1.0}})


def test_a_closed_chain_has_one_law() -> None:
    robot = coupled("digit_left_leg")
    regression, dynamics = ClosedChainRegression(robot), ClosedChainDynamics(robot)
    x, rng = drawn(robot), np.random.default_rng(3)
    dynamics.set_parameters(x)
    q, v, a = 0.02 * rng.normal(size=(3, 10, 6))
    full = regression.closure.motion(q, v, a, regression.closure.home)
    expected = regression.contract(full, np.arange(10), np.arange(len(x))) @ x
    np.testing.assert_allclose(dynamics.torques(q, v, a), expected, atol=1e-7)
    for i in range(10):
        np.testing.assert_allclose(dynamics.torque(q[i], v[i], a[i]), expected[i], atol=1e-7)


def test_a_robot_in_contact_has_one_law() -> None:
    """The coupling's friction included, in equations of motion as in rows."""
    robot = coupled("solo12")
    dynamics, x = ContactDynamics(robot), drawn(robot)
    dynamics.set_parameters(x)
    rows = OpenTree(robot).regressor(*random_states(robot, 10))
    for i, (q, v, a) in enumerate(zip(*random_states(robot, 10), strict=True)):
        terms = dynamics.terms(q, v)
        np.testing.assert_allclose(terms.inertia @ a + terms.bias, rows[i] @ x, atol=1e-9)
    coupling = robot.layout.coupling_term("coulomb").start
    assert coupling in ContactRegression(robot).base.columns
