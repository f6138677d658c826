# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics of a floating base in contact, projected or as a QP with friction cones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from sysid_controller.contact_qp import ConeConfig, ContactForceQp
from sysid_controller.contact_torque import CONTACT_METHODS
from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.contact_dynamics import ContactDynamics, ContactTerms
from sysid_core.dynamics.contact_kinematics import BASE
from sysid_core.dynamics.null_space import null_space
from sysid_core.errors import ParameterError
from sysid_core.robot import Robot

__all__ = [
    "ContactLaw",
    "ContactLawConfig",
    "ContactOutput",
    "ContactReference",
    "ContactState",
    "projected_torque",
]


class ContactState(NamedTuple):
    """Measured state of a legged robot.

    Attributes
    ----------
    pose : (7,)
        Base position in the world [m], unit quaternion x, y, z, w.
    twist : (6,)
        Linear [m/s] and angular [rad/s] velocity in the base frame.
    position, velocity : (nj,) [rad, rad/s]
    contacts : (nc,) bool
        Feet that are to carry load now.
    """

    pose: FloatArray
    twist: FloatArray
    position: FloatArray
    velocity: FloatArray
    contacts: BoolArray


class ContactReference(NamedTuple):
    """Desired motion of the base and of the feet in swing.

    Attributes
    ----------
    pose : (7,)
        Base position in the world [m], unit quaternion x, y, z, w.
    velocity, acceleration : (6,)
        Linear part in the world [m/s, m/s²], angular part in the base frame [rad/s, rad/s²].
    foot_position, foot_velocity, foot_acceleration : (nc, 3) [m, m/s, m/s²]
        In the world; those of feet in contact are not used.
    """

    pose: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    foot_position: FloatArray
    foot_velocity: FloatArray
    foot_acceleration: FloatArray


class ContactOutput(NamedTuple):
    """What the law decided.

    Attributes
    ----------
    effort : (nj,) [N·m]
    wrenches : (nc, 6) [N, N·m]
        Expected on the robot about the contact frames' origins, in world axes.
    acceleration : (nv,)
        That the torques are meant for.
    fallback : Diagnostic or None
        Why the projected law stood in for the QP in this tick.
    """

    effort: FloatArray
    wrenches: FloatArray
    acceleration: FloatArray
    fallback: Diagnostic | None = None


@dataclass(frozen=True)
class ContactLawConfig:
    """Settings of `ContactLaw`.

    Attributes
    ----------
    method : str
        ``projected``: least torque that gives the wanted motion whatever the contact forces
        (Mistry & Righetti 2011); ``qp``: the nearest motion with forces inside friction cones
        and torques within limits.
    base_bandwidth, foot_bandwidth : float [rad/s]
        Of the closed loops of base and swing feet, ω: gains ω² and 2ζω.
    damping_ratio : float [-]
    contact_damping : float [1/s]
        Rate at which the motion of a stance foot is brought to rest.
    cones : ConeConfig

    Raises
    ------
    ParameterError
        If a value is out of its range.
    """

    method: str = "qp"
    base_bandwidth: float = 12.0
    foot_bandwidth: float = 40.0
    damping_ratio: float = 1.0
    contact_damping: float = 20.0
    cones: ConeConfig = field(default_factory=ConeConfig)

    def __post_init__(self) -> None:
        if self.method not in CONTACT_METHODS:
            raise ParameterError(
                f"method must be one of {', '.join(CONTACT_METHODS)}, got '{self.method}'"
            )
        for name in ("base_bandwidth", "foot_bandwidth", "damping_ratio", "contact_damping"):
            value = getattr(self, name)
            if not (np.isfinite(value) and 0.0 < value <= 1000.0):
                raise ParameterError(f"{name} must lie in (0, 1000], got {value!r}")


def projected_torque(
    dynamics: ContactDynamics, terms: ContactTerms, acceleration: FloatArray, active: BoolArray
) -> ContactOutput:
    """Return the least torque of a motion, free of contact forces (Mistry & Righetti 2011).

    ``τ = (Nᵀ Sᵀ)⁺ Nᵀ (M v̇ + h)`` with N spanning the null space of the contact Jacobian: the
    same as ``(P Sᵀ)⁺ P (M v̇ + h)`` with the projector P = I − J⁺J. On two point feet the turn
    about their line cannot be driven; the torque is the least-squares one there.

    Parameters
    ----------
    dynamics : ContactDynamics
    terms : ContactTerms
    acceleration : (nv,)
    active : (nc,) bool
    """
    J, _ = dynamics.constraint(terms, active)
    N = null_space(J[None])[0]
    needed = terms.inertia @ acceleration + terms.bias
    effort = np.linalg.lstsq(N[BASE:].T, N.T @ needed, rcond=1e-9)[0]
    left = needed.copy()
    left[BASE:] -= effort
    forces = np.linalg.lstsq(J.T, left, rcond=1e-9)[0] if len(J) else np.zeros(0)
    return ContactOutput(effort, dynamics.kinematics.wrenches(forces, active), acceleration)


class ContactLaw:
    """Tracks a base and swing feet with torques from the model.

    Each tick turns the references into a wanted acceleration, exactly achievable where every leg
    can move its foot in all directions, and that into torques by the chosen method.

    Parameters
    ----------
    robot : Robot
        Floating, with contacts; all joints actuated.
    settings : ContactLawConfig, optional
    sign_width : float [rad/s]
        Width of the smoothed sign of Coulomb friction.

    Raises
    ------
    ModelError
        If the robot's class is not supported.
    """

    def __init__(
        self, robot: Robot, settings: ContactLawConfig | None = None, sign_width: float = 0.05
    ) -> None:
        self.settings = settings or ContactLawConfig()
        self.dynamics = ContactDynamics(robot, sign_width)
        self._limit = robot.limits.effort
        self._qp: ContactForceQp | None = None
        if self.settings.method == "qp":
            self._qp = ContactForceQp(
                robot.model.nv, self.dynamics.kinematics, self._limit, self.settings.cones
            )

    def set_parameters(self, parameters: FloatArray) -> None:
        """Use a parameter vector (p,) of the robot's layout from now on."""
        self.dynamics.set_parameters(parameters)

    def __call__(self, reference: ContactReference, state: ContactState) -> ContactOutput:
        """Return torques within the robot's limits."""
        q = np.concatenate([state.pose, state.position])
        v = np.concatenate([state.twist, state.velocity])
        terms = self.dynamics.terms(q, v)
        feet = self._foot_accelerations(reference, state, terms)
        base = self.base_acceleration(reference, state)
        acceleration = self._wanted(terms, base, feet, state.contacts)
        if self._qp is not None:
            solution = self._qp.solve(terms, acceleration, feet, state.contacts)
            if solution.failure is None:
                return self._limited(ContactOutput(*solution))
            projected = projected_torque(self.dynamics, terms, acceleration, state.contacts)
            return self._limited(projected._replace(fallback=solution.failure))
        return self._limited(projected_torque(self.dynamics, terms, acceleration, state.contacts))

    def _limited(self, output: ContactOutput) -> ContactOutput:
        return output._replace(effort=np.clip(output.effort, -self._limit, self._limit))

    def _gains(self, bandwidth: float) -> tuple[float, float]:
        return bandwidth**2, 2.0 * self.settings.damping_ratio * bandwidth

    def base_acceleration(self, reference: ContactReference, state: ContactState) -> FloatArray:
        """Return the wanted derivative (6,) of the twist's components."""
        kp, kd = self._gains(self.settings.base_bandwidth)
        R = pin.Quaternion(state.pose[3:]).toRotationMatrix()
        desired = pin.Quaternion(reference.pose[3:]).toRotationMatrix()
        linear, angular = state.twist[:3], state.twist[3:]
        world = (
            reference.acceleration[:3]
            + kd * (reference.velocity[:3] - R @ linear)
            + kp * (reference.pose[:3] - state.pose[:3])
        )
        turn = (
            reference.acceleration[3:]
            + kd * (reference.velocity[3:] - angular)
            + kp * pin.log3(R.T @ desired)
        )
        # d/dt (Rᵀ ṗ) = Rᵀ p̈ − ω × (Rᵀ ṗ)
        return np.concatenate([R.T @ world - np.cross(angular, linear), turn])

    def _foot_accelerations(
        self, reference: ContactReference, state: ContactState, terms: ContactTerms
    ) -> FloatArray:
        """Return the wanted accelerations (nc, 6) of the feet; angular ones bring them to rest."""
        kp, kd = self._gains(self.settings.foot_bandwidth)
        v = np.concatenate([state.twist, state.velocity])
        motion = self.dynamics.kinematics.at_ground(terms.jacobian) @ v
        wanted = -self.settings.contact_damping * motion
        swing = ~state.contacts
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
        # slight damping keeps stretched legs from asking for endless accelerations
        damping = 1e-6 * np.trace(legs @ legs.T) / len(legs) * np.eye(len(legs))
        joints = legs.T @ np.linalg.solve(legs @ legs.T + damping, right)
        return np.concatenate([base, joints])
