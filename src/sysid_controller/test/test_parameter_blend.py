# SPDX-License-Identifier: Apache-2.0
"""Parameters take over gradually, and only the right ones do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sysid_controller.parameter_blend import ParameterBlend, ParameterSizes
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.friction import FRICTION, FrictionLaw
from sysid_core.dynamics.open_tree import OpenTree, random_states
from sysid_core.exchange import ParameterSet
from sysid_core.inertia import smallest_eigenvalue
from sysid_core.robot import Robot, load_robot

PERIOD = 0.002
DURATION = 1.0
Perturbed = Callable[[Robot, int], FloatArray]


@pytest.fixture
def offered(panda: Robot, perturbed: Perturbed) -> ParameterSet:
    return ParameterSet("panda", panda.model_hash, 3, 10.0, True, perturbed(panda, 1))


@pytest.fixture
def blend(panda: Robot) -> ParameterBlend:
    return ParameterBlend(panda, DURATION)


def run(blend: ParameterBlend, duration: float) -> list[FloatArray]:
    values = []
    for _ in range(round(duration / PERIOD)):
        blend.advance(PERIOD)
        values.append(blend.parameters)
    return values


def test_starts_on_the_nominal_parameters(blend: ParameterBlend, panda: Robot) -> None:
    np.testing.assert_array_equal(blend.parameters, panda.consistent_nominal)
    assert not blend.identified
    assert blend.share == 1.0
    assert not blend.advance(PERIOD)


def test_takes_over_in_the_blend_time_without_a_jump(
    blend: ParameterBlend, offered: ParameterSet, panda: Robot
) -> None:
    assert blend.offer(offered) is None
    np.testing.assert_array_equal(blend.parameters, panda.consistent_nominal)
    values = np.array([panda.consistent_nominal, *run(blend, 1.0)])
    difference = np.abs(offered.vector - panda.consistent_nominal)
    # two lags in a row: the steepest slope is 6.638/e of the difference per blend time
    steps = np.abs(np.diff(values, axis=0))
    assert (steps <= difference * 6.638 / np.e * PERIOD / DURATION * 1.01 + 1e-15).all()
    assert steps[0].max() < 0.02 * difference.max() * PERIOD / DURATION * 6.638
    assert blend.share == pytest.approx(0.99, abs=2e-3)
    run(blend, 1.5)
    np.testing.assert_array_equal(blend.parameters, offered.vector)
    assert blend.identified
    assert blend.revision == 3


def test_every_blend_of_consistent_parameters_is_consistent(
    blend: ParameterBlend, offered: ParameterSet, panda: Robot
) -> None:
    blend.offer(offered)
    for vector in run(blend, 1.0)[::10]:
        assert smallest_eigenvalue(panda.layout.inertias(vector)).min() > 0.0


def test_a_stream_of_revisions_does_not_hold_the_blend_up(
    blend: ParameterBlend, offered: ParameterSet, panda: Robot
) -> None:
    rng = np.random.default_rng(3)
    for revision in range(4, 44):  # 20 per second
        vector = offered.vector * (1.0 + 1e-6 * rng.normal())
        assert blend.offer(replace(offered, revision=revision, vector=vector)) is None
        run(blend, 0.05)
    distance = np.abs(blend.parameters - offered.vector).max()
    assert distance < 0.01 * np.abs(panda.consistent_nominal - offered.vector).max()


def test_without_identification_it_returns_to_nominal_gradually(
    blend: ParameterBlend, offered: ParameterSet, panda: Robot
) -> None:
    blend.offer(offered)
    run(blend, 3.0)
    back = replace(offered, revision=4, identified=False, vector=np.zeros(0))
    assert blend.offer(back) is None
    assert not blend.identified
    first = run(blend, 0.01)[-1]
    assert np.abs(first - offered.vector).max() < np.abs(first - panda.consistent_nominal).max()
    run(blend, 3.0)
    np.testing.assert_array_equal(blend.parameters, panda.consistent_nominal)


MOVED = {"panda_joint1": {"sigmoid": 0.5}, "panda_joint2": {"sigmoid": 0.2, "load": 1.0}}
"""Friction terms beside those of `BENT`: one is new, one bends elsewhere, one is lost."""
BENT = {"panda_joint2": {"sigmoid": 0.4}, "panda_joint3": {"stribeck": 0.1}}


def bent(offered: ParameterSet, robot: Robot, revision: int) -> ParameterSet:
    vector, layout = offered.vector.copy(), robot.layout
    for joint, terms in robot.description.friction_chosen.items():
        for term in terms:
            place = layout.term(term).start + robot.joint_names.index(joint)
            vector[place] = 0.1 if term == "load" else 3.0
    return replace(offered, revision=revision, vector=vector, scales=robot.friction_scales)


def torques(blend: ParameterBlend, tree: OpenTree, *motion: FloatArray) -> FloatArray:
    tree.set_parameters(blend.parameters, blend.scales)
    return tree.torque(*motion)


def test_torques_do_not_jump_when_joints_get_or_lose_friction_terms(
    blend: ParameterBlend, offered: ParameterSet, panda: Robot
) -> None:
    tree, motion = OpenTree(panda, 0.01), [part[0] for part in random_states(panda, 1)]
    motion[1] *= 0.1  # where friction bends
    for revision, law in ((4, BENT), (5, MOVED), (6, {})):
        robot = panda.with_friction(law)
        target = bent(offered, robot, revision)
        before = torques(blend, tree, *motion)
        assert blend.offer(target) is None
        np.testing.assert_allclose(torques(blend, tree, *motion), before, rtol=1e-12)
        told = [before]
        while blend.share < 1.0:
            blend.advance(PERIOD)
            told.append(torques(blend, tree, *motion))
        way = np.abs(np.array(told) - before).max(axis=0)
        assert (np.abs(np.diff(told, axis=0)) <= 0.01 * way + 1e-12).all()
        wanted = OpenTree(robot, 0.01, target.vector).torque(*motion)
        np.testing.assert_allclose(told[-1], wanted, rtol=1e-9)


def test_the_nominal_model_has_its_own_friction_at_once(
    blend: ParameterBlend, offered: ParameterSet, panda: Robot
) -> None:
    blend.offer(bent(offered, panda.with_friction(BENT), 4))
    run(blend, 2.0)
    blend.drop("it moved badly", 0.0, 10.0)
    np.testing.assert_array_equal(blend.scales, panda.friction_scales)


def test_friction_of_any_kind_that_takes_all_torque_is_refused(
    blend: ParameterBlend, offered: ParameterSet, panda: Robot
) -> None:
    robot = panda.with_friction({"panda_joint2": {"load": 1.0}})
    good = bent(offered, robot, 4)
    vector = good.vector.copy()
    vector[panda.layout.term("load").start + 1] = 30.0
    reason = blend.offer(replace(good, vector=vector))
    assert reason is not None
    assert "panda_joint2" in str(reason)


def test_friction_changes_no_sharper_than_the_sign() -> None:
    width, scales = 0.01, np.zeros((len(FRICTION), 1))
    k = [term.name for term in FRICTION].index("sigmoid")
    scales[k] = 1e-9
    parameters = np.zeros(len(FRICTION))
    parameters[k] = 1.0
    law, v = FrictionLaw(np.zeros((0, 1)), width, scales), np.full(1, 1e-4)
    law.set_parameters(parameters)
    still = np.zeros(1)
    assert law.torque(still, v, still) == pytest.approx(np.tanh(1e-4 / width))


def test_keeps_the_last_good_ones_when_nothing_comes(
    blend: ParameterBlend, offered: ParameterSet
) -> None:
    blend.offer(offered)
    run(blend, 20.0)
    np.testing.assert_array_equal(blend.parameters, offered.vector)


def broken(vector: FloatArray, index: int, value: float) -> FloatArray:
    changed = vector.copy()
    changed[index] = value
    return changed


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda s, r: {"robot": "ur10"}, "robot 'ur10'"),
        (lambda s, r: {"model_hash": "0" * 16}, "same robot description"),
        (lambda s, r: {"vector": s.vector[:-1]}, "this robot has"),
        (lambda s, r: {"vector": broken(s.vector, 11, np.nan)}, "not finite"),
        (lambda s, r: {"vector": broken(s.vector, 4, np.inf)}, "not finite"),
        (lambda s, r: {"vector": broken(s.vector, 0, -1.0)}, "no body can have"),
        (lambda s, r: {"vector": broken(s.vector, 4, 0.0)}, "no body can have"),
        (
            lambda s, r: {"vector": broken(s.vector, r.layout.term("viscous").start, -0.1)},
            "panda_joint1.viscous is negative",
        ),
        (lambda s, r: {"revision": 2, "stamp": 9.0}, "older than 3"),
        (lambda s, r: {"revision": 2}, "older than 3"),
    ],
)
def test_refuses_what_does_not_fit_and_keeps_the_good_ones(
    blend: ParameterBlend,
    offered: ParameterSet,
    panda: Robot,
    change: Callable[[ParameterSet, Robot], dict[str, Any]],
    reason: str,
) -> None:
    blend.offer(offered)
    run(blend, 3.0)
    refusal = blend.offer(replace(offered, **{"revision": 4, **change(offered, panda)}))
    assert refusal is not None
    assert reason in str(refusal)
    run(blend, 0.1)
    np.testing.assert_array_equal(blend.parameters, offered.vector)
    assert blend.revision == 3


@pytest.mark.parametrize("stamp", [11.0, 0.0])
def test_a_restarted_identifier_may_start_over(
    blend: ParameterBlend, offered: ParameterSet, perturbed: Perturbed, panda: Robot, stamp: float
) -> None:
    blend.offer(offered)
    again = replace(offered, revision=1, stamp=stamp, vector=perturbed(panda, 2))
    assert blend.offer(again) is None
    assert blend.revision == 1


def test_a_forged_revision_locks_nobody_out(blend: ParameterBlend, offered: ParameterSet) -> None:
    blend.offer(replace(offered, revision=2**64 - 1, stamp=1e9))
    one_late = replace(offered, revision=4)
    assert all(blend.offer(one_late) is not None for _ in range(5))  # the same, over and over
    answers = [blend.offer(replace(offered, revision=r)) for r in (5, 6, 7)]
    assert [answer is None for answer in answers] == [False, True, True]
    assert blend.revision == 7


def test_after_the_clock_was_set_back_any_revision_is_new(
    blend: ParameterBlend, offered: ParameterSet
) -> None:
    blend.offer(offered)
    blend.forget_history()
    assert blend.offer(replace(offered, revision=1, stamp=1.0)) is None


def test_the_latched_message_once_more_changes_nothing(
    blend: ParameterBlend, offered: ParameterSet
) -> None:
    blend.offer(offered)
    run(blend, 3.0)
    assert blend.offer(offered) is None
    assert blend.share == 1.0


def test_no_blend_time_takes_a_small_change_over_at_once(
    panda: Robot, offered: ParameterSet
) -> None:
    blend = ParameterBlend(panda, 0.0)
    near = panda.consistent_nominal + 1e-4 * (offered.vector - panda.consistent_nominal)
    blend.offer(replace(offered, vector=near))
    assert blend.advance(PERIOD)
    np.testing.assert_array_equal(blend.parameters, near)


def test_without_blend_time_a_large_change_takes_the_time_that_its_torque_needs(
    panda: Robot, offered: ParameterSet
) -> None:
    blend = ParameterBlend(panda, 0.0)
    jump = ParameterSizes(panda).jump(offered.vector, panda.consistent_nominal)
    assert jump > 0.1
    blend.offer(offered)
    run(blend, 0.5 * jump)
    assert blend.share < 0.9
    run(blend, 0.6 * jump)
    assert blend.share > 0.99


@pytest.mark.parametrize(
    ("term", "value", "words"),
    [
        ("offset", 20.0, "an offset of 20 N·m at joint 'panda_joint6' is more than 3"),
        ("coulomb", 13.0, "friction at full speed of 13"),
        ("viscous", 5.0, "friction at full speed of 13"),
        ("armature", 9.0, "a rotor's torque of 23.5 N·m at joint 'panda_joint6'"),
    ],
)
def test_friction_beyond_a_joints_torque_limit_is_refused_by_name(
    blend: ParameterBlend, offered: ParameterSet, panda: Robot, term: str, value: float, words: str
) -> None:
    vector = panda.consistent_nominal.copy()
    vector[panda.layout.term(term).start + 5] = value
    refusal = str(blend.offer(replace(offered, vector=vector)))
    assert words in refusal
    assert "(its torque limit is 12)" in refusal


def test_bodies_too_heavy_to_hold_are_refused_by_name(
    blend: ParameterBlend, offered: ParameterSet, panda: Robot
) -> None:
    vector = panda.consistent_nominal.copy()
    panda.layout.inertias(vector)[6] *= 30.0
    refusal = str(blend.offer(replace(offered, vector=vector)))
    assert "gravity of" in refusal
    assert "panda_joint" in refusal


@pytest.mark.parametrize("name", ["digit_left_leg", "solo12"])
def test_the_nominal_parameters_of_every_class_of_robot_are_of_a_fit_size(name: str) -> None:
    robot = load_robot(name)
    nominal = robot.consistent_nominal
    assert ParameterSizes(robot).refusal(nominal, nominal) == ""
    heavy = nominal.copy()
    robot.layout.inertias(heavy)[:] *= 20.0
    assert ParameterSizes(robot).refusal(heavy, nominal)
