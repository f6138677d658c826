# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics with exchangeable parameters, in the coordinates of the actuated joints."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pinocchio as pin

from sysid_controller.contact_torque import ContactTorque
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.closed_dynamics import ClosedChainDynamics
from sysid_core.errors import ModelError
from sysid_core.robot import Robot

__all__ = ["Dynamics", "TreeDynamics", "make_dynamics"]


class Dynamics(Protocol):
    """What a control law asks of a model; all arrays (na,) are in the actuated joints' order.

    A closed chain solves its passive joints from the actuated ones and projects with ``Gᵀ``
    (Zhang et al. 27–29); a robot in contact projects into the null space of its contacts. Both
    do so behind this interface. Where there is no solution, results are NaN and `trouble` says
    why: a control loop looks, it does not catch. `home` (na,) [rad] is a position that the robot
    can take, in the middle of its range if possible.
    """

    home: FloatArray
    joint_names: tuple[str, ...]
    sign_width: float
    trouble: str

    def set_parameters(self, parameters: FloatArray) -> None:
        """Use a parameter vector (p,) of the robot's layout from now on."""

    def torque(
        self,
        position: FloatArray,
        velocity: FloatArray,
        acceleration: FloatArray,
        sign_velocity: FloatArray,
    ) -> FloatArray:
        """Return the torque (na,) [N·m] of a motion.

        Parameters
        ----------
        position : (na,) [rad]
        velocity : (na,) [rad/s]
        acceleration : (na,) [rad/s²]
        sign_velocity : (na,) [rad/s]
            Velocity whose smoothed sign Coulomb friction takes.
        """

    def gravity(self, position: FloatArray) -> FloatArray:
        """Return the torque (na,) [N·m] that holds a configuration at rest."""

    def inertia(self, position: FloatArray) -> FloatArray:
        """Return the joint-space inertia (na, na) [kg·m²], rotors included."""

    def unreachable(self, positions: FloatArray) -> str:
        """Say why the robot cannot follow positions (n, na) [rad]; empty if it can."""


def _spatial_inertia(phi: FloatArray) -> pin.Inertia:
    if phi[0] > 0.0:
        return pin.Inertia.FromDynamicParameters(phi)
    if not phi.any():
        return pin.Inertia.Zero()
    raise ModelError(
        "a body without mass cannot have other inertial parameters; "
        "use physically consistent parameters"
    )


class TreeDynamics:
    """Inverse dynamics of a fully actuated tree on a fixed base.

    ``τ = RNEA(q, q̇, q̈) + Fc·tanh(q̇ₛ/w) + Fv·q̇ + Ia·q̈ + β`` (Zhang et al. eq. 7 with a smooth
    sign): the regressor times the parameters at a small part of its cost.

    Parameters
    ----------
    robot : Robot
    sign_width : float [rad/s]
        Width w of the smoothed sign.

    Raises
    ------
    ModelError
        If the robot has a floating base or passive joints.
    """

    def __init__(self, robot: Robot, sign_width: float) -> None:
        if robot.floating or robot.passive.any():
            raise ModelError(
                f"robot '{robot.name}' is no fully actuated tree on a fixed base, "
                "which this controller needs; control its arms or legs as robots of their own"
            )
        lower, upper = (np.clip(bounds, -np.pi, np.pi) for bounds in robot.limits[:2])
        self.home = 0.5 * (lower + upper)
        self.joint_names = robot.joint_names
        self.sign_width = sign_width
        self.trouble = ""
        self._robot = robot
        self._layout = robot.layout
        self._model = robot.model.copy()
        # armature is a parameter of ours; Pinocchio must not add its own
        self._model.armature = np.zeros(self._model.nv)
        self._data = self._model.createData()
        self._directions = np.array([c.direction for c in robot.couplings]).reshape(
            len(robot.couplings), len(robot.joint_names)
        )
        self.set_parameters(robot.consistent_nominal)

    def set_parameters(self, parameters: FloatArray) -> None:
        """Use a parameter vector (p,) from now on; the caller vouches for its consistency.

        Raises
        ------
        ModelError
            If its length is not that of the layout or a number is not finite.
        """
        self._robot.check_parameters(parameters)
        layout = self._layout
        inertias = [_spatial_inertia(phi) for phi in layout.inertias(parameters)]
        for index, inertia in zip(self._robot.body_joint_ids, inertias, strict=True):
            self._model.inertias[index] = inertia
        self._viscous, self._coulomb, self._armature, self._offset = (
            parameters[layout.term(term)].copy()
            for term in ("viscous", "coulomb", "armature", "offset")
        )
        self._coupling_viscous, self._coupling_coulomb, self._coupling_armature = (
            parameters[layout.coupling_term(term)].copy()
            for term in ("viscous", "coulomb", "armature")
        )

    def torque(
        self,
        position: FloatArray,
        velocity: FloatArray,
        acceleration: FloatArray,
        sign_velocity: FloatArray,
    ) -> FloatArray:
        """Return the torque (nj,) [N·m] of a motion; see `Dynamics.torque`."""
        torque = pin.rnea(self._model, self._data, position, velocity, acceleration)
        friction = (
            self._coulomb * np.tanh(sign_velocity / self.sign_width)
            + self._viscous * velocity
            + self._armature * acceleration
            + self._offset
        )
        if len(self._directions):
            friction += self._coupling_torque(velocity, acceleration, sign_velocity)
        return torque + friction

    def _coupling_torque(
        self, velocity: FloatArray, acceleration: FloatArray, sign_velocity: FloatArray
    ) -> FloatArray:
        """Return what motors that turn with several joints add; their own joint has the rest."""
        D = self._directions
        sign = np.tanh(D @ sign_velocity / self.sign_width)
        torque: FloatArray = D.T @ (self._coupling_coulomb * sign)
        for values, motion in (
            (self._coupling_viscous, velocity),
            (self._coupling_armature, acceleration),
        ):
            torque += D.T @ (values * (D @ motion)) - (values @ D**2) * motion
        return torque

    def gravity(self, position: FloatArray) -> FloatArray:
        """Return the torque (nj,) [N·m] that holds a configuration at rest."""
        torque: FloatArray = pin.computeGeneralizedGravity(self._model, self._data, position)
        return torque + self._offset

    def inertia(self, position: FloatArray) -> FloatArray:
        """Return the joint-space inertia (nj, nj) [kg·m²], rotors included."""
        M = np.triu(pin.crba(self._model, self._data, position))
        M += np.triu(M, 1).T
        D = self._directions
        coupled = (D.T * self._coupling_armature) @ D
        return M + np.diag(self._armature) + coupled - np.diag(np.diag(coupled))

    def unreachable(self, positions: FloatArray) -> str:
        """Return an empty text: a tree reaches whatever its joints' limits allow."""
        return ""


def make_dynamics(robot: Robot, sign_width: float) -> Dynamics:
    """Return the inverse dynamics that fits a robot.

    Raises
    ------
    ModelError
        If the robot's class is not supported.
    RobotError
        If it has loops that cannot close, or a passive joint that no loop determines.
    """
    if robot.floating:
        return ContactTorque(robot, sign_width)
    if robot.description.loops:
        return ClosedChainDynamics(robot, sign_width)
    return TreeDynamics(robot, sign_width)
