# SPDX-License-Identifier: Apache-2.0
"""What a motion does not show stays nominal: no motion makes another one's torques worse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.select import make_regression
from sysid_core.online.anchor import WideMotion, wide_motion
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.update import Update
from sysid_core.recording import Samples
from sysid_core.robot import Robot, load_robot

Arm = Any


def rubbed(arm: Arm, samples: Samples) -> Samples:
    """Return samples with friction that the model lacks: falling with speed, rising with load."""
    coulomb = arm.truth[arm.robot.layout.term("coulomb")]
    v = samples.velocity
    falling = 0.2 * coulomb * np.exp(-((v / 0.1) ** 2)) * np.sign(v)
    return replace(
        samples, effort=samples.effort + falling + 0.03 * np.abs(samples.effort) * np.sign(v)
    )


def moved(arm: Arm, size: FloatArray, start: float, stop: float) -> Samples:
    """Return samples of a motion scaled by `size` (nj,) about where it begins."""
    q, v, a = arm.states(np.arange(round(100.0 * start), round(100.0 * stop)) / 100.0)
    q = q[:1] + size * (q - q[:1])
    effort = arm.torque(arm.truth, q, size * v, size * a)
    time = start + np.arange(len(q)) / 100.0
    return rubbed(arm, Samples(time, q, size * v, size * a, effort))


def error(arm: Arm, parameters: FloatArray, samples: Samples) -> FloatArray:
    """Return the root mean square error (nj,) of the model's torques."""
    predicted = arm.torque(parameters, samples.position, samples.velocity, samples.acceleration)
    return np.asarray(np.sqrt(np.mean((predicted - samples.effort) ** 2, axis=0)))


def learned(arm: Arm, size: FloatArray) -> list[Update]:
    plain = OnlineConfig()
    identifier = OnlineIdentifier(
        arm.robot, replace(plain, payload=replace(plain.payload, enabled=False))
    )
    updates = []
    for start in np.arange(0.0, 5.0, 0.1):
        identifier.ingest(moved(arm, size, start, start + 0.1))
        updates.append(identifier.update())
    return updates


@pytest.mark.parametrize("joint", [0, 4, 6, None])
def test_small_and_partial_motions_never_make_a_wide_motion_worse(
    arm_of: Callable[[str], Arm], joint: int | None
) -> None:
    arm = arm_of("panda")
    size = np.full(7, 0.05) if joint is None else (np.arange(7) == joint).astype(float)
    updates = learned(arm, size)
    wide = rubbed(arm, replace(arm, seed=77).samples(0.0, 10.0))
    nominal = np.linalg.norm(error(arm, arm.robot.nominal, wide))
    used = [update.parameters for update in updates if update.changed and update.identified]
    assert used
    assert max(np.linalg.norm(error(arm, x, wide)) for x in used) < 1.02 * nominal
    seen = moved(arm, size, 0.0, 5.0)
    shown = np.abs(seen.velocity).max(axis=0) > 0.0
    before = np.linalg.norm(error(arm, arm.robot.nominal, seen)[shown])
    assert np.linalg.norm(error(arm, updates[-1].parameters, seen)[shown]) < 0.5 * before


def test_friction_of_a_joint_that_turns_one_way_is_not_taken_for_an_offset(
    arm_of: Callable[[str], Arm],
) -> None:
    arm = arm_of("panda")
    joint, shape = 1, (300, 7)
    time = np.arange(300) / 100.0
    position, velocity, acceleration = np.zeros((3, *shape))
    velocity[:, joint] = 0.5 + 0.1 * np.sin(2.0 * time)
    acceleration[:, joint] = 0.2 * np.cos(2.0 * time)
    position[:, 3] = -1.5
    position[:, joint] = -0.8 + 0.5 * time - 0.05 * np.cos(2.0 * time)
    truth = arm.robot.nominal.copy()
    rubbing = arm.robot.layout.term("coulomb")
    truth[rubbing][joint] += 2.0
    effort = arm.torque(truth, position, velocity, acceleration)
    samples = Samples(time, position, velocity, acceleration, effort)
    identifier = OnlineIdentifier(arm.robot)
    for part in np.array_split(np.arange(300), 30):
        identifier.ingest(samples.select(part))
        update = identifier.update()
    assert update.identified
    offset = update.parameters[arm.robot.layout.term("offset")][joint]
    assert abs(offset) < 1.0, offset


@pytest.mark.parametrize("name", ["ur10", "digit_left_leg", "solo12"])
def test_a_wide_motion_is_known_for_every_class_of_robot(name: str) -> None:
    robot = load_robot(name)
    regression = make_regression(robot)
    anchor = wide_motion(robot, regression)
    b = regression.base.size
    assert anchor.gram.shape == (len(regression.groups), b, b)
    assert (anchor.count > 0.0).all()
    assert not anchor.square.any()  # torques come with the nominal parameters
    information = anchor.gram.sum(axis=0)
    # it holds every base parameter that torques depend on
    assert np.diagonal(information).min() > 0.0


def described(robot: Robot, **changes: Any) -> Robot:
    return Robot(replace(robot.description, **changes), robot.urdf)


@pytest.mark.parametrize("name", ["panda", "ur10", "digit_left_leg", "solo12"])
def test_a_speed_limit_that_is_a_placeholder_makes_no_motion_wilder(name: str) -> None:
    robot = load_robot(name)
    limits = {"velocity": dict.fromkeys(robot.joint_names, 1000.0)}
    wild = described(robot, limits=limits)
    usual, most = (
        WideMotion(each, make_regression(each)).torques(robot.nominal).square
        for each in (robot, wild)
    )
    assert (most >= 0.9 * usual).all()
    assert most.sum() < 100.0 * usual.sum()


def test_friction_that_is_described_far_too_high_is_let_go(arm_of: Callable[[str], Arm]) -> None:
    arm = arm_of("panda")
    high = {joint: {"viscous": 30.0, "coulomb": 30.0} for joint in arm.robot.joint_names}
    robot = described(arm.robot, friction_nominal=high)
    last = learned(replace(arm, robot=robot), np.ones(7))[-1]
    wide = replace(arm, seed=77).samples(0.0, 10.0)
    off, nominal = (np.linalg.norm(error(arm, x, wide)) for x in (last.parameters, robot.nominal))
    assert last.identified
    assert off < 0.012 * nominal


@pytest.mark.parametrize("name", ["panda", "ur10", "valkyrie_arm"])
@pytest.mark.parametrize("joint", [0, -2])
def test_the_pull_of_an_anchor_makes_no_friction_known(
    name: str, joint: int, arm_of: Callable[[str], Arm]
) -> None:
    """Of joints that rest, friction is as likely as before; of one that moves, it is covered."""
    arm = arm_of(name)
    size = np.zeros(len(arm.robot.joint_names))
    size[joint] = 1.0
    last = learned(arm, size)[-1]
    estimate, layout = last.estimate, arm.robot.layout
    assert estimate is not None
    for term in ("viscous", "coulomb"):
        where = np.arange(layout.size)[layout.term(term)]
        off = np.abs(estimate.parameters - arm.truth)[where]
        assert (off < 3.0 * estimate.std[where]).all()
