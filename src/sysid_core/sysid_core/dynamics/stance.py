# SPDX-License-Identifier: Apache-2.0
"""Where robots rest and stand, and how their joints move over feet that stay where they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.contact_kinematics import ContactKinematics
from sysid_core.errors import ModelError
from sysid_core.robot.loops import LoopClosure
from sysid_core.robot.model import Robot

__all__ = [
    "FOOT_RADIUS",
    "Stance",
    "StandingFeet",
    "foot_radii",
    "rest_configuration",
    "stance_of",
    "standing_configuration",
]

FOOT_RADIUS = 0.004
"""Of the ball that stands for a point foot where the description gives none [m]."""
_HIP, _KNEE = 0.75, -1.5
_STRAIGHT = 0.1
"""Legs whose Jacobian is worse conditioned than this are stretched [-]."""
_ROUNDS = 20
"""Newton steps to the balanced stance, three times what they need."""
_NEWTON_STEPS = 8
_CLOSE = 1e-9  # [m] by which a foot may be off


class Stance(NamedTuple):
    """The robot at rest on level ground, from which all motions start."""

    pose: FloatArray  # (7,) base position [m] in the world, quaternion x, y, z, w
    joints: FloatArray  # (nj,) [rad]
    feet: FloatArray  # (nc, 3) [m] contact frames in the world

    @property
    def height(self) -> float:
        """Height of the base above the feet [m]."""
        return float(self.pose[2] - self.feet[:, 2].mean())

    @property
    def speed(self) -> float:
        """Speed √(g h) [m/s] that makes robots of all sizes comparable (Froude)."""
        return float(np.sqrt(9.81 * self.height))

    @property
    def time(self) -> float:
        """Time √(h / g) [s] that makes robots of all sizes comparable."""
        return float(np.sqrt(self.height / 9.81))


def rest_configuration(robot: Robot) -> FloatArray:
    """Return a configuration (nq,) in the middle of the joints' ranges, with closed loops.

    A joint without a range rests at zero; a floating base is at the origin.

    Raises
    ------
    RobotError
        If the loops cannot close.
    """
    lower, upper = robot.limits.lower, robot.limits.upper
    ranged = np.isfinite(lower) & np.isfinite(upper)
    joints = np.zeros(len(lower))
    joints[ranged] = 0.5 * (lower[ranged] + upper[ranged])
    if robot.floating:
        return np.concatenate([np.zeros(6), [1.0], joints])
    if not robot.linked:
        return joints
    return LoopClosure(robot).solve(joints[robot.actuated]).configuration


def standing_configuration(robot: Robot) -> FloatArray:
    """Return the configuration at rest (nq,); a floating robot's lowest foot is on the ground."""
    q = rest_configuration(robot)
    if robot.floating:
        model = robot.model
        data = model.createData()
        pin.forwardKinematics(model, data, q)
        feet = [robot.place(contact.frame) for contact in robot.description.contacts]
        heights = [(data.oMi[joint] * placement).translation[2] for joint, placement in feet]
        if heights:
            q[2] = float(np.max(foot_radii(robot) - np.array(heights)))
    return q


def foot_radii(robot: Robot) -> FloatArray:
    """Return the radii (nc,) [m] of the spheres that touch the ground."""
    radii = np.array([contact.radius for contact in robot.description.contacts])
    return np.where(radii > 0.0, radii, FOOT_RADIUS)


def stance_of(robot: Robot) -> Stance:
    """Return a stance with bent knees, on the ground, its centre of mass between its feet.

    It begins with the middle of the joints' ranges, unless the legs are stretched there: then
    each leg's last two joints are bent so that the knees point to the middle of the robot. Then
    the feet are put on one level, with their middle below the nominal centre of mass.

    Raises
    ------
    ModelError
        If the robot does not stand on legs of three joints each.
    """
    if not robot.floating:
        raise ModelError(f"robot '{robot.name}' does not stand, for it has no floating base")
    kinematics = ContactKinematics(robot)
    q = rest_configuration(robot)
    geometry = kinematics.evaluate(q[None])
    places = geometry.position[0]
    legs = _legs_of(robot, kinematics)
    for leg, (own, jacobian) in enumerate(zip(legs, geometry.jacobian[0, :, :3, 6:], strict=True)):
        values = np.linalg.svd(jacobian[:, own], compute_uv=False)
        if values[-1] < _STRAIGHT * values[0]:
            sign = 1.0 if places[leg, 0] > 0.0 else -1.0
            q[7 + own[1:]] = sign * np.array([_HIP, _KNEE])
    radii = foot_radii(robot)
    feet = _balance(robot, kinematics, legs, q, radii)
    q[2] = float(np.max(radii - feet[:, 2]))
    return Stance(q[:7], q[7:], feet + q[:3])


def _legs_of(robot: Robot, kinematics: ContactKinematics) -> list[IndexArray]:
    """Return the three joints of every leg, from the base to the foot."""
    model, legs = robot.model, []
    for name, (foot, _) in zip(kinematics.names, kinematics.frames, strict=True):
        above = list(model.supports[foot])[2:]  # below the world and the floating base
        if len(above) != 3:
            raise ModelError(
                f"robot '{robot.name}' does not stand on legs of three joints: contact '{name}' "
                f"is carried by {len(above)}"
            )
        legs.append(np.array([model.idx_vs[joint] - 6 for joint in above]))
    return legs


def _balance(
    robot: Robot,
    kinematics: ContactKinematics,
    legs: list[IndexArray],
    q: FloatArray,
    radii: FloatArray,
) -> FloatArray:
    """Move the legs of q (nq,) in place until the feet are level and balanced; returns them."""
    model = robot.with_parameters(robot.consistent_nominal)
    data = model.createData()
    ground: float | None = None
    for _ in range(_ROUNDS):
        geometry = kinematics.evaluate(q[None])
        feet = geometry.position[0]
        if ground is None:
            ground = float(np.mean(feet[:, 2] - radii))
        wanted = feet + pin.centerOfMass(model, data, q) - feet.mean(axis=0)
        wanted[:, 2] = ground + radii
        for own, jacobian, step in zip(
            legs, geometry.jacobian[0, :, :3, 6:], wanted - feet, strict=True
        ):
            q[7 + own] += np.linalg.solve(jacobian[:, own], step)
    return kinematics.evaluate(q[None]).position[0]


def _turn_rates(turn: FloatArray, rates: FloatArray) -> FloatArray:
    """Return how turns (…, 3) [rad] change with angular velocities (…, 3, m), to third order.

    The inverse of the left Jacobian of SO(3) (Solà et al. 2018, eq. 146).
    """
    half = 0.5 * np.cross(turn[..., None], rates, axis=-2)
    return np.asarray(rates - half + np.cross(turn[..., None], half, axis=-2) / 6.0)


class StandingFeet:
    """The joints that keep all feet where they stand while the base moves.

    Ball feet roll: their centres move by what the turn of the shank since the stance rolls off.

    Raises
    ------
    ModelError
        If the robot does not stand on legs of three joints each.
    """

    def __init__(self, robot: Robot) -> None:
        self.stance = stance_of(robot)
        self.kinematics = ContactKinematics(robot)
        # three joints each, from the base to the foot
        self.legs = _legs_of(robot, self.kinematics)
        q = np.concatenate([self.stance.pose, self.stance.joints])
        self._upright = self.kinematics.evaluate(q[None]).rotation[0]

    def configurations(self, pose: FloatArray) -> FloatArray:
        """Return the configurations (n, nq) of base poses (n, 7); NaN out of the legs' reach."""
        q = np.hstack([pose, np.tile(self.stance.joints, (len(pose), 1))])
        apart, going = np.zeros(len(q)), np.arange(len(q))
        for _ in range(_NEWTON_STEPS):
            geometry = self.kinematics.evaluate(q[going])
            turn = self._turned(geometry.rotation)
            missing = self.stance.feet + self._rolled(turn) - geometry.position
            apart[going] = np.abs(missing).max(axis=(1, 2))
            left = ~(apart[going] < 1e-12)
            if not left.any():
                break
            going = going[left]
            moved = geometry.jacobian[left]
            moved[..., 3:, :] = _turn_rates(turn[left], moved[..., 3:, :])
            ground = self.kinematics.at_ground(moved)
            for leg, own in enumerate(self.legs):
                jacobian = ground[:, leg, :3][:, :, 6 + own]
                step = np.linalg.solve(jacobian, missing[left, leg, :, None])[..., 0]
                q[going[:, None], 7 + own] += step
        q[~(apart < _CLOSE)] = np.nan
        return q

    def carried(self, joints: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the configurations (n, nq) of joints (n, nj), and how far feet are off (n,) [m].

        The base is where it brings the feet nearest to where they stand (Kabsch 1976).
        """
        q = np.hstack([np.tile(self.stance.pose, (len(joints), 1)), joints])
        for _ in range(_NEWTON_STEPS):
            geometry = self.kinematics.evaluate(q)
            wanted = self.stance.feet + self._rolled(self._turned(geometry.rotation))
            middle, aim = (feet.mean(axis=1) for feet in (geometry.position, wanted))
            apart = np.swapaxes(wanted - aim[:, None], 1, 2)
            left, _, right = np.linalg.svd(apart @ (geometry.position - middle[:, None]))
            left[:, :, 2] *= np.linalg.det(left @ right)[:, None]
            turn = left @ right
            base = Rotation.from_quat(q[:, 3:7])
            shift = aim + np.einsum("nij,nj->ni", turn, q[:, :3] - middle) - q[:, :3]
            q[:, :3] += shift
            q[:, 3:7] = (Rotation.from_matrix(turn) * base).as_quat()
            if np.abs(shift).max() < _CLOSE:
                break
        geometry = self.kinematics.evaluate(q)
        rolled = self._rolled(self._turned(geometry.rotation))
        missing = self.stance.feet + rolled - geometry.position
        return q, np.linalg.norm(missing, axis=2).max(axis=1)

    def _turned(self, rotation: FloatArray) -> FloatArray:
        """Return the turns (n, nc, 3) [rad] of the feet since the stance by their rotations."""
        turned = (rotation @ np.swapaxes(self._upright, 1, 2)).reshape(-1, 3, 3)
        return Rotation.from_matrix(turned).as_rotvec().reshape(rotation.shape[:3])

    def _rolled(self, turn: FloatArray) -> FloatArray:
        """Return how far turns (n, nc, 3) [rad] moved the feet's centres (n, nc, 3) [m]."""
        return np.cross(turn, -self.kinematics.reach)
