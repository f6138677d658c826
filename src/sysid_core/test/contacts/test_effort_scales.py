# SPDX-License-Identifier: Apache-2.0
"""A leg's joint whose efforts have another sign or scale is named, and nothing else is."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.contacts.condition import condition_contacts
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.statistics import Statistics
from sysid_core.effort_scales import EffortScales, EffortSums, RecentEfforts
from sysid_core.estimation import Problem
from sysid_core.online.gate import GateState
from sysid_core.online.learner import Learner
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.torque_checks import TorqueVerdict, refusing
from sysid_core.priors import default_constraints, default_prior
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot

KNEE = 5


@pytest.fixture(scope="module")
def walk(solo12: Robot, solo12_data: Samples) -> Samples:
    kept = condition_contacts(solo12, solo12_data).kept
    return kept.select(slice(None, None, 4))


def scaled(samples: Samples, joint: int, factor: float) -> Samples:
    effort = samples.effort.copy()
    effort[:, joint] *= factor
    return replace(samples, effort=effort)


def scales(robot: Robot) -> EffortScales:
    regression = ContactRegression(robot)
    problem = Problem(
        layout=robot.layout,
        base=regression.base,
        groups=regression.groups,
        statistics=Statistics.zero(1, regression.base.size),
        prior=default_prior(robot),
        constraints=default_constraints(robot),
    )
    return EffortScales(robot, problem)


def verdicts(robot: Robot, samples: Samples, still: float = 0.0) -> dict[int, TorqueVerdict]:
    rows = ContactRegression(robot).rows(samples, still)
    return scales(robot).judge(EffortSums.of(rows, samples.effort), 20.0)


def test_efforts_add_up_to_the_targets(legged: Any) -> None:
    samples = legged.samples(40, seed=3)
    rows = ContactRegression(legged.robot).rows(replace(samples, wrenches=None))
    ((_, target, _),) = rows.blocks
    assert rows.by_effort is not None
    own = rows.by_effort * samples.effort[rows.blocks[0].sample]
    np.testing.assert_allclose(own.sum(axis=1), target, atol=1e-9)


def test_measured_wrenches_are_the_rest_of_the_targets(legged: Any) -> None:
    samples = legged.samples(40, seed=3)
    assert samples.wrenches is not None
    rows = ContactRegression(legged.robot).rows(samples)
    sums = EffortSums.of(rows, samples.effort)
    ((_, target, _),) = rows.blocks
    joints = len(legged.robot.joint_names)
    square = sums.products[-joints - 1 :, -joints - 1 :]
    assert square.sum() == pytest.approx(float(target @ target))
    assert square[-1, -1] > 0.0


@pytest.mark.parametrize(
    ("factor", "kind"), [(1.5, "torque_scale"), (0.6, "torque_scale"), (-1.0, "torque_sign")]
)
@pytest.mark.parametrize("joint", [0, 4, 11])
def test_a_scaled_effort_is_named(
    solo12: Robot, walk: Samples, joint: int, factor: float, kind: str
) -> None:
    found = refusing(verdicts(solo12, scaled(walk, joint, factor)), in_use=True)
    ((which, verdict),) = found.items()
    assert which == joint
    assert verdict.finding is not None
    assert (verdict.finding.kind, verdict.finding.subject) == (kind, solo12.joint_names[joint])
    said = float(verdict.finding.message.split()[3])
    assert said == pytest.approx(factor, rel=0.05)


def test_an_effort_that_is_noise_or_missing_is_named(solo12: Robot, walk: Samples) -> None:
    rng, effort = np.random.default_rng(1), walk.effort.copy()
    effort[:, KNEE] = np.std(effort[:, KNEE]) * rng.normal(size=len(walk))
    noisy, mute = replace(walk, effort=effort), scaled(walk, KNEE, 0.0)
    for samples, kind in ((noisy, "torque_noise"), (mute, "torque_stuck")):
        ((joint, verdict),) = refusing(verdicts(solo12, samples), in_use=True).items()
        assert joint == KNEE
        assert verdict.finding is not None
        assert verdict.finding.kind == kind


@pytest.mark.parametrize("joint", range(12))
def test_noise_in_place_of_an_effort_is_named_at_every_joint(
    solo12: Robot, walk: Samples, joint: int
) -> None:
    noise = np.random.default_rng(joint).normal(size=len(walk))
    effort = walk.effort.copy()
    effort[:, joint] = 0.45 * np.std(effort[:, joint]) * noise
    found = refusing(verdicts(solo12, replace(walk, effort=effort)), in_use=True)
    ((which, verdict),) = found.items()
    assert which == joint
    assert verdict.finding is not None
    assert verdict.finding.kind == "torque_noise"


def test_a_weak_joint_beside_strong_ones_is_not_stuck(solo12: Robot, walk: Samples) -> None:
    """A finger of 1e-5 of a knee's torque moves as it should."""
    limits = solo12.limits._replace(effort=np.r_[1e-3, solo12.limits.effort[1:]])
    weak = copy(solo12)
    weak.limits = limits
    found = [verdicts(robot, scaled(walk, 0, 1e-5))[0].finding for robot in (solo12, weak)]
    assert [one is not None and one.kind == "torque_stuck" for one in found] == [True, False]


def test_right_efforts_are_shown_to_be(solo12: Robot, walk: Samples) -> None:
    found = verdicts(solo12, walk)
    assert not refusing(found, in_use=True)
    assert [joint for joint, verdict in found.items() if verdict.shown]


@pytest.mark.parametrize("kind", ["late", "noise", "zeros", "friction"])
def test_other_faults_pass_for_no_scale(solo12: Robot, walk: Samples, kind: str) -> None:
    rng, usual = np.random.default_rng(4), np.std(walk.effort, axis=0)
    effort: FloatArray = walk.effort
    spoiled = {
        "late": lambda: replace(walk, effort=np.roll(effort, 1, axis=0)),
        "noise": lambda: replace(
            walk, effort=effort + 0.3 * usual * rng.normal(size=effort.shape)
        ),
        "zeros": lambda: replace(
            walk, position=walk.position + np.radians(2.0) * rng.choice([-1, 1], effort.shape[1])
        ),
        "friction": lambda: replace(walk, effort=effort + 0.1 * usual * np.sign(walk.velocity)),
    }
    assert not refusing(verdicts(solo12, spoiled[kind]()), in_use=True)


def test_a_robot_that_stands_shows_no_scale(solo12: Robot, walk: Samples) -> None:
    """Its dry friction is not known; what little is left fits many scales."""
    still = np.zeros_like(walk.velocity)
    stands = np.zeros_like(np.asarray(walk.base_twist))
    posed = np.repeat(0, len(walk))
    standing = replace(
        walk.select(posed),
        time=walk.time,
        velocity=still,
        acceleration=still,
        base_twist=stands,
        base_acceleration=stands,
        contacts=np.ones((len(walk), len(solo12.description.contacts)), dtype=bool),
    )
    found = verdicts(solo12, standing, still=0.1)
    assert not any(verdict.finding for verdict in found.values())
    assert not any(verdict.shown for verdict in found.values())


def test_old_efforts_fade(solo12: Robot, walk: Samples) -> None:
    regression, recent = ContactRegression(solo12), RecentEfforts(half_life=100.0)
    for part in (scaled(walk, KNEE, -1.0), *[walk] * 4):
        rows = regression.rows(part)
        recent.push(rows, part.effort)
    checks = recent.checks(scales(solo12))
    assert checks is not None
    nothing = Statistics.zero(1, regression.base.size)
    assert not refusing(checks.judge(nothing, np.array([20.0]), (0,)), in_use=True)
    assert not checks.judge(nothing, np.array([20.0]), ())
    recent.clear()
    assert recent.checks(scales(solo12)) is None


def test_who_learns_again_knows_the_efforts(solo12: Robot, walk: Samples) -> None:
    """A lower low-pass starts with the samples that were filtered before."""
    regression, config = ContactRegression(solo12), OnlineConfig(window=1.0)
    first, learner = (Learner(solo12, regression, config) for _ in range(2))
    list(first.learn(walk, regression.base.project(solo12.nominal), None))
    learner.relearn(walk)
    learner.succeed(first, lasts=False)
    request = learner.request()
    assert request is not None
    assert request.verdicts()


@pytest.mark.parametrize("factor", [1.0, -1.0])
def test_the_gate_refuses_a_leg_whose_joint_has_its_sign_turned(
    solo12: Robot, walk: Samples, factor: float
) -> None:
    samples = scaled(walk, KNEE, factor)
    identifier = OnlineIdentifier(solo12)
    for first in range(0, len(samples), 20):
        identifier.ingest(samples.select(slice(first, first + 20)))
        last = identifier.update()
    named = {(cause.kind, cause.subject) for cause in last.causes}
    if factor > 0.0:
        assert last.state is GateState.IDENTIFIED
        return
    assert not last.identified
    assert named == {("torque_sign", solo12.joint_names[KNEE])}
