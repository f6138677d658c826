# SPDX-License-Identifier: Apache-2.0
"""Motions of standing robots leave their feet where they stand and keep all limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sysid_core.dynamics.contact_kinematics import ContactKinematics
from sysid_core.errors import SysidError
from sysid_core.excitation.design import ExciteConfig
from sysid_core.excitation.limits import motion_limits
from sysid_core.excitation.optimise import excite
from sysid_core.excitation.standing import StandingDesign
from sysid_core.robot import Robot, load_robot
from sysid_core.robot.clearance import Obstacles


@pytest.fixture(scope="module", params=["spot"])
def robot(request: pytest.FixtureRequest) -> Robot:
    return load_robot(request.param)


@pytest.fixture(scope="module")
def design(robot: Robot) -> StandingDesign:
    return StandingDesign(robot, motion_limits(robot, share=0.8, speed=0.8), 6.0, 4)


def test_the_feet_stand_fast_and_carry_the_robot(robot: Robot, design: StandingDesign) -> None:
    motion = design.random(np.random.default_rng(1))
    q, v, a = motion.whole(np.linspace(0.0, 6.0, 50))
    kinematics = ContactKinematics(robot)
    J = kinematics.constraint_rows(kinematics.evaluate(q).jacobian, np.ones(4, dtype=bool))
    slip, sway = np.abs(J @ v[:, :, None]).max(), np.abs(v[:, :3]).max()
    # a ball's way is not quite a function of its turn: a few per cent of the way it rolls
    assert slip < 0.05 * sway
    torque, forces = design.demands(q, v, a)
    assert (forces[:, :, 2] > 0.0).all()
    assert (np.abs(torque) <= design.limits.effort).all()
    # what carries it is what the equations of motion ask for
    whole = np.zeros_like(v)
    whole[:, 6:] = torque
    whole += np.einsum("nkv,nk->nv", J, forces.reshape(len(q), -1))
    np.testing.assert_allclose(whole, design.tree.torques(q, v, a), atol=1e-8)


def test_it_begins_and_ends_at_rest_where_the_robot_stands(design: StandingDesign) -> None:
    motion = design.random(np.random.default_rng(2))
    ends = motion.states(np.array([0.0, 6.0]))
    stance = np.tile(motion.feet.stance.joints, (2, 1))
    np.testing.assert_allclose(ends.position, stance, atol=1e-9)
    middle = np.abs(motion.states(np.linspace(0.0, 6.0, 50)).velocity).max()
    np.testing.assert_allclose(ends.velocity, 0.0, atol=1e-3 * middle)


@pytest.mark.heavy
def test_the_best_of_many_keeps_the_limits(robot: Robot, design: StandingDesign) -> None:
    found = excite(robot, design.limits, ExciteConfig(duration=6.0, harmonics=4, iterations=12))
    assert found.sharpness > 1.0
    assert found.moving == robot.joint_names
    for shares in found.usage.values():
        assert (shares <= 1.0).all()


@pytest.mark.parametrize(
    "changes", [{"joints": ("FL_HAA",)}, {"focus": "gravity"}, {"obstacles": Obstacles(floor=0.1)}]
)
def test_what_a_standing_robot_cannot_heed_is_refused(changes: dict[str, Any]) -> None:
    solo = load_robot("solo12")
    with pytest.raises(SysidError, match="standing robot moves all joints of its legs"):
        excite(solo, motion_limits(solo), ExciteConfig(**changes))


def test_two_feet_do_not_stand() -> None:
    description = load_robot("solo12").description
    biped = load_robot(replace(description, contacts=description.contacts[:2]))
    with pytest.raises(SysidError, match="floating base and 2 feet"):
        excite(biped, motion_limits(biped))
