# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics by which a legged robot's base and swinging feet follow a reference."""

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from sysid_controller.contact_qp import ContactForceQp, QpSolution
from sysid_controller.contact_torque import projected_torque
from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.contact_dynamics import ContactDynamics, ContactTerms
from sysid_core.dynamics.contact_kinematics import BASE
from sysid_core.robot import Robot

__all__ = ["BASE_BANDWIDTH", "ContactLaw", "ContactReference"]

BASE_BANDWIDTH = 12.0  # Of the base's closed loop ω [rad/s]: gains ω² and 2ω, as for the feet
_FOOT_BANDWIDTH = 40.0  # [rad/s] of swinging feet: as fast as a trot's short steps need
_CONTACT_DAMPING = 20.0  # [1/s] at which the motion of a standing foot is brought to rest
_LEG_DAMPING = 1e-6  # [-] keeps stretched legs from asking for endless accelerations
_SIGN_WIDTH = 0.05  # [rad/s] of the smoothed sign of Coulomb friction
_FRICTION = 0.5  # [-] a margin to the ground's friction
_FORCE_WEIGHT = 1e-5  # of squared forces [N²] against squared acceleration errors


class ContactReference(NamedTuple):
    """Desired motion of the base and of the feet in swing."""

    pose: FloatArray  # (7,) base position in the world [m], unit quaternion x, y, z, w
    # velocity, acceleration: (6,) linear part in the world [m/s, m/s²], angular part in the base
    # frame [rad/s, rad/s²].
    velocity: FloatArray
    acceleration: FloatArray
    # foot_position, foot_velocity, foot_acceleration: (nc, 3) [m, m/s, m/s²] in the world; those
    # of feet in contact are not used.
    foot_position: FloatArray
    foot_velocity: FloatArray
    foot_acceleration: FloatArray


class ContactLaw:
    """Tracks a base and swing feet with torques from the nominal model.

    Each tick turns the references into a wanted acceleration, exactly achievable where every leg
    can move its foot in all directions, and that into torques whose contact forces lie inside
    friction cones.

    Raises
    ------
    ModelError
        If the robot's class is not supported.
    """

    def __init__(self, robot: Robot, friction: float = _FRICTION) -> None:
        self.dynamics = ContactDynamics(robot, _SIGN_WIDTH)
        self._limit = robot.limits.effort
        self._qp = ContactForceQp(
            robot.model.nv,
            self.dynamics.kinematics,
            self._limit,
            friction=friction,
            force_weight=_FORCE_WEIGHT,
        )

    def __call__(
        self, reference: ContactReference, q: FloatArray, v: FloatArray, contacts: BoolArray
    ) -> QpSolution:
        """Return torques within the robot's limits; where the QP fails, the least ones.

        The measured q (nq,) and v (nv,) are in Pinocchio's convention; the contacts (nc,) are feet
        that are to carry load now.
        """
        terms = self.dynamics.terms(q, v)
        feet = self._foot_accelerations(reference, v, contacts, terms)
        wanted = self._wanted(terms, base_acceleration(reference, q, v), feet, contacts)
        solution = self._qp.solve(terms, wanted, feet, contacts)
        effort = solution.effort
        if solution.failure is not None:
            J, _ = self.dynamics.constraint(terms, contacts)
            effort = projected_torque(terms, J, wanted, np.zeros_like(effort))
        return solution._replace(effort=np.clip(effort, -self._limit, self._limit))

    def _foot_accelerations(
        self, reference: ContactReference, v: FloatArray, contacts: BoolArray, terms: ContactTerms
    ) -> FloatArray:
        """Return the wanted accelerations (nc, 6) of the feet; angular ones bring them to rest."""
        kp, kd = _FOOT_BANDWIDTH**2, 2.0 * _FOOT_BANDWIDTH
        motion = self.dynamics.kinematics.at_ground(terms.jacobian) @ v
        wanted = -_CONTACT_DAMPING * motion
        swing = ~contacts
        wanted[swing, :3] = (
            reference.foot_acceleration
            + kd * (reference.foot_velocity - terms.velocity)
            + kp * (reference.foot_position - terms.position)
        )[swing]
        wanted[swing, 3:] = -kd * motion[swing, 3:]
        return wanted

    def _wanted(
        self, terms: ContactTerms, base: FloatArray, feet: FloatArray, contacts: BoolArray
    ) -> FloatArray:
        """Return the acceleration (nv,) that moves base and feet as wanted."""
        kinematics = self.dynamics.kinematics
        # stance feet are held where they touch the ground, swing feet moved by their frames
        ground = contacts[:, None, None]
        drift = terms.drift[:, :, None]
        jacobian = np.where(ground, kinematics.at_ground(terms.jacobian), terms.jacobian)
        drift = np.where(ground, kinematics.at_ground(drift), drift)[:, :, 0]
        chosen = np.arange(6) < np.where(kinematics.flat, 6, 3)[:, None]
        J = jacobian[chosen]
        right = (feet - drift)[chosen] - J[:, :BASE] @ base
        legs = J[:, BASE:]
        damping = _LEG_DAMPING * np.trace(legs @ legs.T) / len(legs) * np.eye(len(legs))
        joints = legs.T @ np.linalg.solve(legs @ legs.T + damping, right)
        return np.concatenate([base, joints])


def base_acceleration(reference: ContactReference, q: FloatArray, v: FloatArray) -> FloatArray:
    """Return the wanted derivative (6,) of the twist's components."""
    kp, kd = BASE_BANDWIDTH**2, 2.0 * BASE_BANDWIDTH
    R = pin.Quaternion(q[3:7]).toRotationMatrix()
    desired = pin.Quaternion(reference.pose[3:]).toRotationMatrix()
    linear, angular = v[:3], v[3:6]
    world = (
        reference.acceleration[:3]
        + kd * (reference.velocity[:3] - R @ linear)
        + kp * (reference.pose[:3] - q[:3])
    )
    turn = (
        reference.acceleration[3:]
        + kd * (reference.velocity[3:] - angular)
        + kp * pin.log3(R.T @ desired)
    )
    # d/dt (Rᵀ ṗ) = Rᵀ p̈ − ω × (Rᵀ ṗ)
    return np.concatenate([R.T @ world - np.cross(angular, linear), turn])
