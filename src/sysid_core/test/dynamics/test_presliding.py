# SPDX-License-Identifier: Apache-2.0
"""Friction before sliding depends on the way, not on the speed, and never gives energy."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.friction import FRICTION, FrictionLaw
from sysid_core.dynamics.open_tree import random_states
from sysid_core.dynamics.presliding import deflections
from sysid_core.dynamics.tree import TreeDynamics, TreeRegression
from sysid_core.robot import Robot, load_robot

DISTANCES = np.array([1e-3, 1e-2, 0.1])
CHOSEN = {"panda_joint2": {"presliding": 0.02}, "panda_joint4": {"presliding": 0.005}}


def way(seed: int = 0, count: int = 400) -> FloatArray:
    return np.cumsum(np.random.default_rng(seed).normal(size=count) * 0.004)


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("panda").with_friction(CHOSEN)


@pytest.fixture(scope="module")
def dynamics(robot: Robot) -> TreeDynamics:
    found, x = TreeDynamics(robot, 0.0), robot.consistent_nominal.copy()
    x[robot.layout.term("presliding")] = 3.0
    found.set_parameters(x)
    return found


def motion(count: int = 200) -> tuple[FloatArray, FloatArray, FloatArray]:
    time, speed = np.linspace(0.0, 4.0, count)[:, None], 2.0 + 0.3 * np.arange(7)
    return tuple(0.3 * speed**k * np.sin(speed * time + 0.5 * np.pi * k) for k in range(3))  # type: ignore[return-value]


def test_deflections_solve_dahls_equation() -> None:
    q, z = way(), np.zeros(3)
    expected = [z]
    for step in np.diff(q):
        fine = step / 1000
        for _ in range(1000):  # the midpoint rule
            half = z + 0.5 * np.abs(fine) * (np.sign(step) - z) / DISTANCES
            z = z + np.abs(fine) * (np.sign(step) - half) / DISTANCES
        expected.append(z)
    np.testing.assert_allclose(deflections(q, DISTANCES, np.zeros(3)), expected, atol=1e-5)


def test_places_in_between_change_nothing() -> None:
    q = way()
    finer = np.interp(np.linspace(0.0, len(q) - 1.0, 7 * (len(q) - 1) + 1), np.arange(len(q)), q)
    np.testing.assert_allclose(
        deflections(finer, DISTANCES)[::7], deflections(q, DISTANCES), atol=1e-12
    )


def test_a_pause_changes_nothing() -> None:
    q = way()
    paused = np.concatenate([q[:100], np.full(30, q[99]), q[100:]])
    whole = deflections(paused, DISTANCES)
    np.testing.assert_allclose(np.delete(whole, range(100, 130), 0), deflections(q, DISTANCES))
    resting = deflections(np.ones(5), DISTANCES)
    np.testing.assert_array_equal(resting, np.zeros((5, 3)))


def test_a_way_there_and_back_takes_energy() -> None:
    for seed in range(20):
        q = way(seed)
        q = np.concatenate([q, q[::-1], q, q[::-1]])  # settled by the second time
        z = deflections(q, DISTANCES)[len(q) // 2 :]
        step = np.diff(q[len(q) // 2 :])[:, None]
        work = (0.5 * (z[1:] + z[:-1]) * step).sum(axis=0)
        assert (work > 0.0).all()


def test_what_is_followed_is_the_deflection_of_the_way() -> None:
    scales = np.ones((len(FRICTION), 2)) * [0.01, 0.0]
    law, place = FrictionLaw(np.zeros((0, 2)), 0.0, scales), len(FRICTION) * 2
    x = np.zeros(place)
    presliding = [term.name for term in FRICTION].index("presliding")
    x[2 * presliding : 2 * presliding + 2] = 2.0
    law.set_parameters(x)
    q = np.stack([way(1), way(2)], axis=1)
    still = np.zeros(2)
    found = []
    for position in q:
        law.follow(position)
        found.append(law.torque(position, still, still, still))
    expected = 2.0 * deflections(q[:, 0], np.array([0.01]), np.zeros(1))[:, 0]
    np.testing.assert_allclose(np.array(found)[:, 0], expected, atol=1e-12)
    np.testing.assert_array_equal(np.array(found)[:, 1], 0.0)
    # what holds the joint at rest does not depend on how it came there
    np.testing.assert_array_equal(law.torque(q[-1], still, still), 0.0)


def test_states_of_a_motion_have_a_past_and_others_have_not(dynamics: TreeDynamics) -> None:
    q, v, a = motion()
    rigid = TreeDynamics(load_robot("panda"), 0.0).torques(q, v, a)
    friction = dynamics.torques(q, v, a) - rigid
    for joint, distance in ((1, 0.02), (3, 0.005)):
        expected = 3.0 * deflections(q[:, joint], np.array([distance]))[:, 0]
        np.testing.assert_allclose(friction[:, joint], expected, atol=1e-9)
    np.testing.assert_allclose(friction[:, [0, 2, 4, 5, 6]], 0.0, atol=1e-9)
    states = random_states(dynamics.robot, 200)
    rigid = TreeDynamics(load_robot("panda"), 0.0).torques(*states)
    friction = dynamics.torques(*states) - rigid
    np.testing.assert_allclose(friction[:, 1], 3.0 * np.sign(states[1][:, 1]), atol=1e-9)


def test_it_can_be_told_from_coulomb_friction(robot: Robot) -> None:
    regression, layout = TreeRegression(robot), robot.layout
    for term in ("coulomb", "presliding"):
        places = layout.term(term).start + np.array([1, 3])
        assert (regression.base.places(places) >= 0).all()
