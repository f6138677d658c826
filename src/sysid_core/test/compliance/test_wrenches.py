# SPDX-License-Identifier: Apache-2.0
"""Derivatives of poses are true, and the wrenches across joints are those of the dynamics."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.compliance.poses import Poses, differentiate_poses
from sysid_core.compliance.wrenches import joint_loads
from sysid_core.errors import DataError, ModelError
from sysid_core.excitation.fourier import States, random_motion
from sysid_core.excitation.limits import fit_into, motion_limits
from sysid_core.robot import Robot, load_robot


@pytest.fixture(scope="module")
def panda() -> Robot:
    return load_robot("panda")


@pytest.fixture(scope="module")
def swing(panda: Robot) -> tuple[Poses, States]:
    """Return poses of all links of a swinging Panda at 120 Hz, and its states."""
    rng = np.random.default_rng(8)
    motion = fit_into(random_motion(7, 6.0, 5, rng), motion_limits(panda), fill=True)
    time = motion.times(120.0)
    states = motion.states(time)
    model = panda.with_parameters(panda.consistent_nominal)
    data = model.createData()
    position, orientation = np.empty((len(time), 7, 3)), np.empty((len(time), 7, 4))
    for i, q in enumerate(states.position):
        pin.forwardKinematics(model, data, q)
        for k in range(7):
            position[i, k] = data.oMi[k + 1].translation
            orientation[i, k] = pin.Quaternion(data.oMi[k + 1].rotation).coeffs()
    flips = np.sign(np.sum(orientation[1:] * orientation[:-1], axis=2))
    orientation[1:] *= np.cumprod(flips, axis=0)[:, :, None]
    return Poses(time, panda.layout.bodies, position, orientation), states


def test_the_motion_of_links_is_that_of_the_kinematics(
    panda: Robot, swing: tuple[Poses, States]
) -> None:
    poses, states = swing
    motion = differentiate_poses(poses)
    model, data = panda.model, panda.model.createData()
    for i in range(0, len(motion.time), 25):
        row = int(np.argmin(np.abs(poses.time - motion.time[i])))
        state = [values[row] for values in states]
        pin.forwardKinematics(model, data, *state)
        axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        for k in range(7):
            velocity = pin.getVelocity(model, data, k + 1, axes)
            acceleration = pin.getClassicalAcceleration(model, data, k + 1, axes)
            # a spline of degree 7 through a motion of a few hertz: errors far below 1e-4
            for found, expected in (
                (motion.velocity[i, k], velocity.linear),
                (motion.angular_velocity[i, k], velocity.angular),
                (motion.acceleration[i, k], acceleration.linear),
                (motion.angular_acceleration[i, k], acceleration.angular),
            ):
                np.testing.assert_allclose(found, expected, atol=1e-4)


def test_the_wrench_about_a_joints_axis_is_the_inverse_dynamics_torque(
    panda: Robot, swing: tuple[Poses, States]
) -> None:
    poses, states = swing
    motion = differentiate_poses(poses)
    loads = joint_loads(panda, motion, poses.links)
    assert [load.joint for load in loads] == list(panda.joint_names)
    model, data = panda.model, panda.model.createData()
    for i in range(0, len(motion.time), 25):
        row = int(np.argmin(np.abs(poses.time - motion.time[i])))
        torque = pin.rnea(model, data, *(values[row] for values in states))
        for k, load in enumerate(loads):
            assert load.wrench[i, 5] == pytest.approx(torque[k], abs=1e-3)


def test_joints_that_only_turn_deflect_about_their_axis_alone(
    panda: Robot, swing: tuple[Poses, States]
) -> None:
    poses, states = swing
    motion = differentiate_poses(poses)
    rows = np.searchsorted(poses.time, motion.time)
    for k, load in enumerate(joint_loads(panda, motion, poses.links)):
        np.testing.assert_allclose(load.deflection[:, :5], 0.0, atol=1e-7)
        np.testing.assert_allclose(load.rate[:, :5], 0.0, atol=1e-5)
        np.testing.assert_allclose(load.deflection[:, 5], states.position[rows, k], atol=1e-7)
        np.testing.assert_allclose(load.rate[:, 5], states.velocity[rows, k], atol=1e-5)


def test_only_joints_whose_neighbours_were_recorded_are_determined(
    panda: Robot, swing: tuple[Poses, States]
) -> None:
    poses, _ = swing
    last = Poses(poses.time, poses.links[4:], poses.position[:, 4:], poses.orientation[:, 4:])
    loads = joint_loads(panda, differentiate_poses(last), last.links)
    assert [load.joint for load in loads] == list(panda.joint_names[5:])
    first = Poses(poses.time, poses.links[:3], poses.position[:, :3], poses.orientation[:, :3])
    with pytest.raises(DataError, match="no joint is determined"):
        joint_loads(panda, differentiate_poses(first), first.links)


def test_strange_links_and_robots_are_refused(panda: Robot, swing: tuple[Poses, States]) -> None:
    poses, _ = swing
    motion = differentiate_poses(poses)
    with pytest.raises(DataError, match="no moving link tail"):
        joint_loads(panda, motion, ("tail", *poses.links[1:]))
    with pytest.raises(ModelError, match="floating base"):
        joint_loads(load_robot("solo12"), motion, poses.links)
