# SPDX-License-Identifier: Apache-2.0
"""Joint trajectories let the base sway while the feet stay where they stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.contact_kinematics import ContactKinematics
from sysid_core.errors import SysidError
from sysid_core.robot import Robot, load_robot
from sysid_sim.trajectories import StanceTrajectory


def sway(robot: Robot, **changes: float) -> StanceTrajectory:
    return StanceTrajectory(robot, 3, **{"amplitude": 0.7, "speed": 0.5, "fade": 1.0, **changes})


@pytest.mark.parametrize("name", ["solo12", "spot"])
def test_the_feet_stand_fast(name: str, robot_of: Callable[[str], Robot]) -> None:
    """Where they touch the ground they have no velocity; they roll, so their centres have."""
    robot = robot_of(name)
    trajectory, kinematics = sway(robot), ContactKinematics(robot)
    step, time = 1e-4, np.linspace(2.0, 12.0, 40)
    q = np.hstack([trajectory.base(time), trajectory.at(time).position])
    before, after = trajectory.base(time - step), trajectory.base(time + step)
    v = np.zeros((len(time), 18))
    v[:, 6:] = trajectory.at(time).velocity
    for i in range(len(time)):
        v[i, :6] = _twist(before[i], after[i], step)
    ground = kinematics.at_ground(kinematics.evaluate(q).jacobian)[:, :, :3]
    speed = np.linalg.norm(np.einsum("ncrv,nv->ncr", ground, v), axis=2)
    swaying = np.linalg.norm(after[:, :3] - before[:, :3], axis=1).max() / (2.0 * step)
    # a ball's way is not quite a function of its turn: a few per cent of the way it rolls
    assert speed.max() < 0.02 * swaying


def _twist(before: FloatArray, after: FloatArray, step: float) -> FloatArray:
    frames = [pin.XYZQUATToSE3(pose) for pose in (before, after)]
    return np.asarray(pin.log6(frames[0].actInv(frames[1])).vector / (2.0 * step))


def test_derivatives_are_those_of_the_positions(robot_of: Callable[[str], Robot]) -> None:
    trajectory, step = sway(robot_of("solo12")), 1e-3
    time = np.linspace(0.0, 8.0, 30)
    before, now, after = (trajectory.at(time + shift) for shift in (-step, 0.0, step))
    slope = (after.position - before.position) / (2.0 * step)
    np.testing.assert_allclose(now.velocity, slope, atol=1e-6)
    bend = (after.velocity - before.velocity) / (2.0 * step)
    np.testing.assert_allclose(now.acceleration, bend, atol=0.02 * np.abs(bend).max())


def test_it_begins_at_rest_and_keeps_the_limits(robot_of: Callable[[str], Robot]) -> None:
    robot = robot_of("spot")
    trajectory = sway(robot, amplitude=1.0)
    np.testing.assert_allclose(trajectory.at(np.zeros(1)).position[0], trajectory.stance.joints)
    moved = trajectory.at(np.linspace(0.0, 60.0, 500))
    assert (moved.position > robot.limits.lower).all()
    assert (moved.position < robot.limits.upper).all()
    assert (np.abs(moved.velocity) < 0.55 * robot.limits.velocity).all()


def test_a_robot_that_does_not_stand_on_legs_is_refused() -> None:
    footless = replace(load_robot("solo12").description, contacts=())
    with pytest.raises(SysidError, match="contact"):
        sway(load_robot(footless))
    with pytest.raises(SysidError, match="floating base"):
        sway(load_robot("panda"))
