# SPDX-License-Identifier: Apache-2.0
"""The tree of a robot with its loops cut and its feet free: what all classes of robot share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.friction import FrictionLaw
from sysid_core.dynamics.presliding import of_motion
from sysid_core.inertia import spatial_inertia
from sysid_core.robot.model import Robot

__all__ = ["OpenTree", "random_states"]

_BATCH = 16
"""Samples whose rows are put in order at once: they stay in the processor's cache."""


def random_states(
    robot: Robot, count: int, seed: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return random configurations (n, nq), velocities (n, nv) and accelerations (n, nv)."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(*robot.sampling_range, (count, len(robot.joint_names)))
    if robot.floating:
        quaternion = rng.normal(size=(count, 4))
        quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
        q = np.hstack([rng.normal(size=(count, 3)), quaternion, q])
    nv = robot.model.nv
    return q, rng.normal(size=(count, nv)), rng.normal(size=(count, nv))


class OpenTree:
    """Regressor, torque, gravity and inertia of a tree, friction included.

    ``τ = RNEA(q, q̇, q̈) + Sᵀ τ_friction`` is the regressor times the parameters at a small part
    of its cost. A floating base comes first in all arrays over the velocities. Parameters (p,) are
    the consistent nominal ones, and the width of the smoothed sign of dry friction [rad/s] the
    description's, unless given.
    """

    def __init__(
        self,
        robot: Robot,
        sign_width: float | None = None,
        parameters: FloatArray | None = None,
    ) -> None:
        self.robot = robot
        nj = len(robot.joint_names)
        self.base_size = robot.model.nv - nj
        """Degrees of freedom of the base: 0 or 6."""
        self._driven = slice(self.base_size, None)
        directions = np.array([c.direction for c in robot.couplings]).reshape(-1, nj)
        width = robot.description.coulomb_velocity if sign_width is None else sign_width
        self.friction = FrictionLaw(directions, width, robot.friction_scales)
        self.model = robot.model.copy()
        # armature is a parameter of ours; Pinocchio must not add its own
        self.model.armature = np.zeros(self.model.nv)
        self.data = self.model.createData()
        self.set_parameters(robot.consistent_nominal if parameters is None else parameters)

    def set_parameters(self, parameters: FloatArray, scales: FloatArray | None = None) -> None:
        """Use a parameter vector (p,) from now on; the caller vouches for its consistency.

        Its friction has the scales of `Robot.friction_scales`, or others of that shape.

        Raises
        ------
        ModelError
            If its length is not that of the layout, a number is not finite, or a body without
            mass has other inertial parameters.
        """
        self.robot.check_parameters(parameters)
        layout = self.robot.layout
        self.parameters = parameters
        inertias = [spatial_inertia(phi) for phi in layout.inertias(parameters)]
        for index, inertia in zip(self.robot.body_joint_ids, inertias, strict=True):
            self.model.inertias[index] = inertia
        self.friction.set_parameters(parameters[layout.friction], scales)

    # -- rows -------------------------------------------------------------------------------

    def regressor(
        self,
        q: FloatArray,
        v: FloatArray,
        a: FloatArray,
        deflection: FloatArray | None = None,
    ) -> FloatArray:
        """Return the regressor ``[Y | SᵀF]`` (n, nv, p) at n states.

        Friction that depends on the load takes the load of the parameters in use; presliding
        friction a deflection (n, nj) [-], by default that of joints that slide.
        """
        inertial: Callable[..., FloatArray] = pin.computeJointTorqueRegressor
        layout = self.robot.layout
        A = np.empty((len(q), self.model.nv, layout.size))
        A[:, : self.base_size, layout.friction] = 0.0
        bodies = A[:, :, layout.inertial]
        for i in range(len(q)):
            bodies[i] = inertial(self.model, self.data, q[i], v[i], a[i])
        rigid: FloatArray | float = 0.0
        if self.friction.depends_on_load:
            rigid = bodies[:, self._driven] @ self.parameters[layout.inertial]
        joints = self._joints(q, v, a)
        A[:, self._driven, layout.friction] = self.friction.columns(*joints, rigid, deflection)
        return A

    def projected(
        self, q: FloatArray, v: FloatArray, a: FloatArray, columns: IndexArray, N: FloatArray
    ) -> FloatArray:
        """Return k columns of the regressors times matrices N (n, r, nv): (n, r, k)."""
        model, data = self.model, self.data
        regressor: Callable[..., FloatArray] = pin.computeJointTorqueRegressor
        start = self.robot.layout.friction.start
        inertial, friction = columns[columns < start], columns[columns >= start] - start
        rows, split = np.empty((*N.shape[:2], len(columns))), len(inertial)
        bodies = np.empty((_BATCH, N.shape[1], start))
        for first in range(0, len(q), _BATCH):
            part = range(first, min(first + _BATCH, len(q)))
            for i, out in zip(part, bodies, strict=False):
                Y = regressor(model, data, q[i], v[i], a[i]).reshape(model.nv, -1)
                np.dot(N[i], Y, out=out)  # while it is in the processor's cache
            rows[first : part.stop, :, :split] = bodies[: len(part)].take(inertial, axis=2)
        if len(friction):
            F = self.friction.columns(*self._joints(q, v, a))
            rows[:, :, split:] = N[:, :, self._driven] @ F[:, :, friction]
        return rows

    def _joints(
        self, q: FloatArray, v: FloatArray, a: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the joints' part (…, nj) of states."""
        if not self.base_size:
            return q, v, a
        return q[..., self.base_size + 1 :], v[..., self._driven], a[..., self._driven]

    # -- torques ----------------------------------------------------------------------------

    def torque(
        self,
        q: FloatArray,
        v: FloatArray,
        a: FloatArray,
        sliding: FloatArray | None = None,
    ) -> FloatArray:
        """Return the generalised force (nv,) [N, N·m] of a motion at one state.

        `sliding` (nj,) [rad/s] is the velocity that friction sees, by default that of `v`.
        """
        rigid: FloatArray = pin.rnea(self.model, self.data, q, v, a)
        joints = self._joints(q, v, a)
        friction = self.friction.torque(*joints, sliding, rigid[self._driven])
        if not self.base_size:
            return rigid + friction
        force = np.array(rigid)
        force[self._driven] += friction
        return force

    def torques(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Return the generalised forces (n, nv) [N, N·m] of n states.

        Presliding friction takes the states for one motion if they follow each other, else joints
        for sliding.
        """
        rows = [pin.rnea(self.model, self.data, *state) for state in zip(q, v, a, strict=True)]
        force = np.reshape(rows, v.shape)
        rigid, joints = force[:, self._driven], self._joints(q, v, a)
        deflection: FloatArray | None = None
        if self.friction.distance.any():
            deflection = of_motion(*joints[:2], self.friction.distance)
        friction = self.friction.torque(*joints, rigid=rigid, deflection=deflection)
        force[:, self._driven] += friction
        return force

    def bias(self, q: FloatArray, v: FloatArray, sliding: FloatArray | None = None) -> FloatArray:
        """Return the generalised force (nv,) [N, N·m] of zero acceleration."""
        force = np.array(pin.nonLinearEffects(self.model, self.data, q, v))
        joints = self._joints(q, v, np.zeros(len(v)))
        force[self._driven] += self.friction.torque(*joints, sliding, force[self._driven])
        return force

    def gravity(self, q: FloatArray) -> FloatArray:
        """Return the generalised force (nv,) [N, N·m] that holds a configuration at rest."""
        force = np.array(pin.computeGeneralizedGravity(self.model, self.data, q))
        rest = np.zeros(len(force))
        force[self._driven] += self.friction.torque(*self._joints(q, rest, rest))
        return force

    def inertia(self, q: FloatArray) -> FloatArray:
        """Return the inertia (nv, nv), rotors included."""
        M = np.triu(pin.crba(self.model, self.data, q))
        M += np.triu(M, 1).T
        M[self._driven, self._driven] += self.friction.inertia
        return M
