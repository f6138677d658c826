# SPDX-License-Identifier: Apache-2.0
"""Exciting trajectories: smooth, periodic, seeded and within limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from sysid_core.excitation.fourier import FadedMotion
from sysid_core.robot import Robot, load_robot
from sysid_sim.errors import SimulationError
from sysid_sim.trajectories import ExcitationConfig, exciting_trajectory, nominal_dynamics

ROBOTS = ("panda", "ur10", "kuka_lwr", "valkyrie_arm", "digit_left_leg")
TIME = np.linspace(0.0, 22.0, 2000)


@pytest.fixture(scope="module")
def trajectory_of(robot_of: Callable[[str], Robot]) -> Callable[[str], FadedMotion]:
    return cache(lambda name: exciting_trajectory(robot_of(name), 1))


@pytest.mark.parametrize("name", ROBOTS)
def test_trajectories_keep_the_limits(
    name: str,
    robot_of: Callable[[str], Robot],
    trajectory_of: Callable[[str], FadedMotion],
) -> None:
    robot = robot_of(name)
    motion = trajectory_of(name).at(TIME)
    lower, upper, velocity, effort = (limit[robot.actuated] for limit in robot.limits)
    assert (motion.position >= lower).all()
    assert (motion.position <= upper).all()
    # half the speed and 0.7 of the torque, fitted on a coarser grid of times
    assert (np.abs(motion.velocity) <= 0.52 * velocity).all()
    q, v, a = (series[::20] for series in motion)
    torque = nominal_dynamics(robot).torques(q, v, a)
    assert np.isfinite(torque).all()
    assert (np.abs(torque) <= 0.72 * effort).all()


@pytest.mark.parametrize("name", ROBOTS)
def test_every_joint_moves(name: str, trajectory_of: Callable[[str], FadedMotion]) -> None:
    motion = trajectory_of(name).at(TIME)
    assert (np.ptp(motion.position, axis=0) > 0.2).all()


def test_derivatives_agree_with_differences(panda: Robot) -> None:
    trajectory = exciting_trajectory(panda, 1)
    h = 1e-5
    before, here, after = (trajectory.at(TIME + dt) for dt in (-h, 0.0, h))
    velocity = (after.position - before.position) / (2.0 * h)
    acceleration = (after.velocity - before.velocity) / (2.0 * h)
    np.testing.assert_allclose(here.velocity, velocity, atol=1e-7)
    # the fade's third derivative jumps at its ends
    np.testing.assert_allclose(here.acceleration, acceleration, atol=1e-3)


def test_the_motion_starts_at_rest_and_repeats(panda: Robot) -> None:
    excitation = ExcitationConfig(period=10.0, fade=1.0)
    trajectory = exciting_trajectory(panda, 1, excitation)
    start = trajectory.at(np.array([-1.0, 0.0]))
    np.testing.assert_array_equal(start.position, np.vstack([trajectory.series.centre] * 2))
    np.testing.assert_array_equal(start.velocity, 0.0)
    np.testing.assert_array_equal(start.acceleration, 0.0)
    time = np.linspace(1.0, 10.0, 50)
    once, again = trajectory.at(time), trajectory.at(time + 10.0)
    np.testing.assert_allclose(once.position, again.position, atol=1e-9)


def test_the_seed_decides_the_trajectory(panda: Robot) -> None:
    one, same, other = (exciting_trajectory(panda, seed).at(TIME).position for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)


def test_a_weak_arm_moves_where_it_can_hold_itself(panda: Robot) -> None:
    weak = ExcitationConfig(effort=0.2)  # less than the middle of its ranges takes
    with pytest.raises(SimulationError, match="cannot move even a little"):
        exciting_trajectory(panda, 1, weak)
    motion = exciting_trajectory(panda, 1, weak, elsewhere=True).at(TIME)
    assert (motion.position >= panda.limits.lower).all()
    assert (motion.position <= panda.limits.upper).all()
    q, v, a = (series[::20] for series in motion)
    torque = nominal_dynamics(panda).torques(q, v, a)
    assert (np.abs(torque) <= 0.21 * panda.limits.effort).all()
    assert (np.ptp(motion.position, axis=0) > 0.1).all()


def test_what_cannot_be_followed_is_refused(
    panda: Robot, robot_of: Callable[[str], Robot]
) -> None:
    with pytest.raises(SimulationError, match=r"joint .* would take .* and may take 1%"):
        exciting_trajectory(panda, 1, ExcitationConfig(effort=0.01))
    with pytest.raises(SimulationError, match="floating base"):
        exciting_trajectory(robot_of("solo12"), 1)
    with pytest.raises(SimulationError, match="at most 1"):
        ExcitationConfig(amplitude=1.5)
    with pytest.raises(SimulationError, match="harmonics at least one"):
        ExcitationConfig(harmonics=0)


def test_joints_without_a_range_are_named(panda: Robot) -> None:
    locked = replace(
        panda.description, limits={key: {"panda_joint3": 0.0} for key in ("lower", "upper")}
    )
    with pytest.raises(SimulationError, match="without a range cannot move: panda_joint3;"):
        exciting_trajectory(load_robot(locked), 1)
