# SPDX-License-Identifier: Apache-2.0
"""Inverse and forward dynamics of closed chains in the coordinates of the actuated joints."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.tree import coulomb_sign
from sysid_core.robot.loops import ClosedConfiguration, LoopClosure
from sysid_core.robot.model import Robot

__all__ = ["ClosedChainDynamics"]

_SLACK = 0.01  # [rad] that references may take passive joints beyond their limits


class ClosedChainDynamics:
    """Dynamics of a robot with kinematic loops, u = Gᵀ(q) W(q, q̇, q̈) θ (Zhang et al. eq. 29).

    All arrays (na,) are in the order of the actuated joints. Each call starts the loops' solution
    from that of the call before, so that motion in small steps costs least.

    Where the loops do not close, or near a singular configuration, results are NaN and `trouble`
    says why: a caller in a control loop must look, not catch.

    Parameters
    ----------
    robot : Robot
    sign_width : float or None [rad/s]
        Width of the smoothed sign of Coulomb friction; None: the description's.
    closure : LoopClosure or None
        None: with default options.

    Attributes
    ----------
    joint_names : tuple[str, ...]
        The actuated joints.
    home : (na,) [rad]
        Positions that the linkage can take: the middle of their ranges, or the closure's home.
    configuration : (nq,) [rad]
        Of all joints, as last solved.
    trouble : str
        Why the last result is NaN, else empty.

    Raises
    ------
    RobotError
        If the robot has a passive joint that no loop determines, or loops that cannot close.
    """

    def __init__(
        self, robot: Robot, sign_width: float | None = None, closure: LoopClosure | None = None
    ) -> None:
        self.closure = LoopClosure(robot) if closure is None else closure
        self.joint_names = robot.actuated_names
        self.sign_width = robot.description.coulomb_velocity if sign_width is None else sign_width
        self.configuration = self.closure.home
        self.trouble = ""
        self.home = self._find_home(robot)
        self._tangent = np.zeros((robot.model.nv, len(self.joint_names)))
        self._jacobian: FloatArray | None = None  # at `configuration`, where it is known
        self._closed = True
        self._robot = robot
        self._model = robot.model.copy()
        # armature is a parameter of ours; Pinocchio must not add its own
        self._model.armature = np.zeros(self._model.nv)
        self._data = self._model.createData()
        shape = (len(robot.couplings), len(robot.joint_names))
        self._directions = np.array([c.direction for c in robot.couplings]).reshape(shape)
        self.set_parameters(robot.consistent_nominal)

    def _find_home(self, robot: Robot) -> FloatArray:
        lower, upper = (np.clip(bounds, -np.pi, np.pi) for bounds in robot.limits[:2])
        middle = 0.5 * (lower + upper)[robot.actuated]
        found = self.closure.solve(middle)
        if found.converged and self.closure.inside(found.configuration):
            return middle
        return self.closure.home[self.closure.equations.actuated]

    def set_parameters(self, parameters: FloatArray) -> None:
        """Use a parameter vector (p,) from now on; the caller vouches for its consistency.

        Raises
        ------
        ModelError
            If its length is not that of the layout or a number is not finite.
        """
        robot, layout = self._robot, self._robot.layout
        robot.check_parameters(parameters)
        for index, phi in zip(robot.body_joint_ids, layout.inertias(parameters), strict=True):
            self._model.inertias[index] = (
                pin.Inertia.FromDynamicParameters(phi) if phi[0] > 0.0 else pin.Inertia.Zero()
            )
        self._viscous, self._coulomb, self._armature, self._offset = (
            parameters[layout.term(term)].copy()
            for term in ("viscous", "coulomb", "armature", "offset")
        )
        self._coupling_viscous, self._coupling_coulomb, self._coupling_armature = (
            parameters[layout.coupling_term(term)].copy()
            for term in ("viscous", "coulomb", "armature")
        )

    def close(self, position: FloatArray) -> bool:
        """Solve the loops at actuated positions (na,) [rad]; False, with `trouble`, if they fail.

        Raises
        ------
        ModelError
            If `position` is not one finite number per actuated joint.
        """
        start = self.configuration
        if position.shape == (len(self.joint_names),):
            start = self.closure.predict(start, self._tangent, position)
        # out of reach, one failure in full is enough: the way back leads past where it closed last
        found = self.closure.solve(position, start, persist=self._closed)
        self.trouble, self._closed = "", found.converged
        if found.converged:
            self.configuration, self._jacobian = found.configuration, found.jacobian
        else:
            self._tangent = np.zeros_like(self._tangent)
            self.trouble = self._gap(found, position)
        return found.converged

    def _gap(self, found: ClosedConfiguration, position: FloatArray) -> str:
        return (
            f"the loops of '{self._robot.name}' leave a gap of {found.residual:.2g} m or rad "
            f"at actuated positions {np.round(position, 4).tolist()}: keep references within "
            "the linkage's reach"
        )

    def unreachable(self, positions: FloatArray) -> str:
        """Say why the linkage cannot follow actuated positions (n, na) [rad]; empty if it can.

        Each position is solved from the one before. Passive joints that start beyond their limits
        may stay there, but go no further. What other methods return is not affected.
        """
        closure, last = self.closure, self.configuration
        allowed = np.full(len(closure.equations.passive), _SLACK)
        for k, position in enumerate(positions):
            found = closure.newton(position, last)
            if not found.converged:
                found = closure.newton(position, closure.home)
            if not found.converged:
                return self._gap(found, position)
            last = found.configuration
            beyond = closure.excess(last)
            if k == 0:
                allowed = np.maximum(allowed, beyond + _SLACK)
            if (beyond > allowed).any():
                return self._beyond(position, beyond)
            condition = closure.map(last, found.jacobian)[1]
            if condition > closure.options.max_condition:
                return self._near_singular(condition)
        return ""

    def _beyond(self, position: FloatArray, beyond: FloatArray) -> str:
        worst = int(np.argmax(beyond))
        joint = self._robot.joint_names[self.closure.equations.passive[worst]]
        return (
            f"actuated positions {np.round(position, 4).tolist()} of '{self._robot.name}' drive "
            f"passive joint '{joint}' {beyond[worst]:.2g} rad beyond its limits: keep references "
            "within the linkage's reach"
        )

    def _regular(self, G: FloatArray, condition: float) -> bool:
        limit = self.closure.options.max_condition
        self._tangent = G if condition <= limit else np.zeros_like(G)
        if condition > limit:
            self.trouble = self._near_singular(condition)
        return condition <= limit

    def _near_singular(self, condition: float) -> str:
        return (
            f"the linkage of '{self._robot.name}' is near a singular configuration (condition "
            f"{condition:.2g} of J_u, at most {self.closure.options.max_condition:.2g} is "
            "allowed): keep away from it"
        )

    def torque(
        self,
        position: FloatArray,
        velocity: FloatArray,
        acceleration: FloatArray,
        sign_velocity: FloatArray | None = None,
    ) -> FloatArray:
        """Return the torque (na,) [N·m] of a motion; NaN, with `trouble`, where there is none.

        Parameters
        ----------
        position : (na,) [rad]
        velocity : (na,) [rad/s]
        acceleration : (na,) [rad/s²]
        sign_velocity : (na,) [rad/s] or None
            Velocity whose sign Coulomb friction takes; None: `velocity`.
        """
        if not self.close(position):
            return np.full(len(position), np.nan)
        q = self.configuration
        G, G_dot, condition = self.closure.maps(q, velocity, self._jacobian)
        if not self._regular(G, condition):
            return np.full(len(position), np.nan)
        v, a = G @ velocity, G @ acceleration + G_dot @ velocity
        sign = v if sign_velocity is None else G @ sign_velocity
        torque = pin.rnea(self._model, self._data, q, v, a) + self.friction(v, a, sign)
        return np.asarray(G.T @ torque, dtype=float)

    def friction(
        self, velocity: FloatArray, acceleration: FloatArray, sign_velocity: FloatArray
    ) -> FloatArray:
        """Return the friction torque (nj,) [N·m] of all joints (Zhang et al. eq. 7)."""
        width, D = self.sign_width, self._directions
        torque: FloatArray = (
            self._coulomb * coulomb_sign(sign_velocity, width)
            + self._viscous * velocity
            + self._armature * acceleration
            + self._offset
        )
        if len(D):
            torque += D.T @ (self._coupling_coulomb * coulomb_sign(D @ sign_velocity, width))
            for values, rate in (
                (self._coupling_viscous, velocity),
                (self._coupling_armature, acceleration),
            ):
                torque += D.T @ (values * (D @ rate)) - (values @ D**2) * rate
        return torque

    def gravity(self, position: FloatArray) -> FloatArray:
        """Return the torque (na,) [N·m] that holds a configuration at rest."""
        if not self.close(position):
            return np.full(len(position), np.nan)
        G, condition = self.closure.map(self.configuration, self._jacobian)
        if not self._regular(G, condition):
            return np.full(len(position), np.nan)
        torque = pin.computeGeneralizedGravity(self._model, self._data, self.configuration)
        return np.asarray(G.T @ (torque + self._offset), dtype=float)

    def inertia(self, position: FloatArray) -> FloatArray:
        """Return the inertia Gᵀ(M + Ia)G (na, na) [kg·m²] that the actuated joints feel."""
        if not self.close(position):
            return np.full((len(position), len(position)), np.nan)
        G, condition = self.closure.map(self.configuration, self._jacobian)
        if not self._regular(G, condition):
            return np.full((len(position), len(position)), np.nan)
        return np.asarray(G.T @ self._full_inertia() @ G, dtype=float)

    def _full_inertia(self) -> FloatArray:
        """Return M + Ia (nj, nj) [kg·m²] of the open tree at the present configuration."""
        M = np.triu(pin.crba(self._model, self._data, self.configuration))
        M = M + np.triu(M, 1).T + np.diag(self._armature)
        if len(self._directions):
            coupled = (self._directions.T * self._coupling_armature) @ self._directions
            M += coupled - np.diag(np.diag(coupled))
        return np.asarray(M, dtype=float)

    def acceleration(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> FloatArray:
        """Return the actuated acceleration (na,) [rad/s²] that torques (na,) [N·m] cause.

        From u = Gᵀ(M(G q̈_a + Ġ q̇_a) + …): what drives q̈_a is u less the torque at q̈_a = 0.
        """
        if not self.close(position):
            return np.full(len(position), np.nan)
        q = self.configuration
        G, G_dot, condition = self.closure.maps(q, velocity, self._jacobian)
        if not self._regular(G, condition):
            return np.full(len(position), np.nan)
        v, a = G @ velocity, G_dot @ velocity
        bias = G.T @ (pin.rnea(self._model, self._data, q, v, a) + self.friction(v, a, v))
        return np.asarray(
            np.linalg.solve(G.T @ self._full_inertia() @ G, effort - bias), dtype=float
        )
