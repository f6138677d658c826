# SPDX-License-Identifier: Apache-2.0
"""Regression for trees on a fixed base: ``A = [Y | F]``, ``b = τ``, one group per joint."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.base_parameters import BaseParameters, find_base_parameters
from sysid_core.dynamics.rows import RowBlock, Rows
from sysid_core.errors import ModelError
from sysid_core.parameters import ParameterLayout
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot

__all__ = ["TreeRegression", "coulomb_sign", "friction_columns", "random_states"]


def coulomb_sign(velocity: FloatArray, width: float) -> FloatArray:
    """Return sign(q̇) (…), smoothed as tanh(q̇/width) where `width` [rad/s] is above zero."""
    return np.sign(velocity) if width == 0.0 else np.tanh(velocity / width)


def friction_columns(robot: Robot, velocity: FloatArray, acceleration: FloatArray) -> FloatArray:
    """Return the friction part F of the regressor, ``τ_friction = F x[friction]``.

    Zhang et al. eq. (7): ``Fc·sign(q̇) + Fv·q̇ + Ia·q̈ + β`` per joint. A motor that turns with
    several joints adds, per coupling with direction d, Coulomb friction ``d·sign(dᵀq̇)`` and the
    off-diagonal share of its viscous friction and inertia; their diagonal share is each joint's
    own (Gautier's TX40 model, as in Pham, Gautier & Poignet 1999).

    Parameters
    ----------
    velocity : (n, nj) [rad/s]
    acceleration : (n, nj) [rad/s²]

    Returns
    -------
    (n, nj, pf)
        In the layout's order of friction and coupling parameters.
    """
    layout, width = robot.layout, robot.description.coulomb_velocity
    n, nj = velocity.shape
    start = layout.friction.start
    F = np.zeros((n, nj, layout.size - start))
    joints = np.arange(nj)
    for term, values in (
        ("viscous", velocity),
        ("coulomb", coulomb_sign(velocity, width)),
        ("armature", acceleration),
        ("offset", 1.0),
    ):
        F[:, joints, layout.term(term).start - start + joints] = values
    for c, coupling in enumerate(robot.couplings):
        d = coupling.direction
        for term, rate in (("viscous", velocity), ("armature", acceleration)):
            others = (rate @ d)[:, None] - rate * d
            F[:, :, layout.coupling_term(term).start - start + c] = d * others
        sign = coulomb_sign(velocity @ d, width)
        F[:, :, layout.coupling_term("coulomb").start - start + c] = sign[:, None] * d
    return F


def random_states(robot: Robot, count: int, seed: int = 0) -> tuple[FloatArray, ...]:
    """Return random configurations (n, nq), velocities (n, nv) and accelerations (n, nv)."""
    rng = np.random.default_rng(seed)
    nj = len(robot.joint_names)
    q = rng.uniform(*robot.sampling_range, (count, nj))
    if robot.floating:
        quaternion = rng.normal(size=(count, 4))
        quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
        q = np.hstack([rng.normal(size=(count, 3)), quaternion, q])
    nv = robot.model.nv
    return q, rng.normal(size=(count, nv)), rng.normal(size=(count, nv))


class TreeRegression:
    """Rows of a fixed-base tree whose joints are all actuated.

    Parameters
    ----------
    robot : Robot

    Raises
    ------
    ModelError
        If the robot has a floating base or passive joints.
    """

    def __init__(self, robot: Robot) -> None:
        if robot.floating or robot.passive.any():
            raise ModelError(
                f"robot '{robot.name}' is no fully actuated tree on a fixed base; "
                "use the regression of its class"
            )
        self.robot = robot
        self._data = robot.model.createData()

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the row groups: the joints."""
        return self.robot.joint_names

    @property
    def layout(self) -> ParameterLayout:
        """Layout of the parameters."""
        return self.robot.layout

    @cached_property
    def base(self) -> BaseParameters:
        """Structural base of the regressor."""
        count = max(60, 4 * self.layout.size // self.robot.model.nv)
        A = self.full(*random_states(self.robot, count))
        return find_base_parameters(A.reshape(-1, self.layout.size), self.layout.labels)

    @cached_property
    def supports(self) -> tuple[IndexArray, ...]:
        """Per group the base columns of the joint and of the bodies that it carries."""
        A = self.full(*random_states(self.robot, 20))[:, :, self.base.columns]
        return tuple(np.flatnonzero(np.abs(A[:, j]).max(axis=0)) for j in range(A.shape[1]))

    def full(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Return the full regressor (n, nv, p) at states q (n, nq), v, a (n, nv)."""
        model, data = self.robot.model, self._data
        regressor: Callable[..., FloatArray] = pin.computeJointTorqueRegressor
        A = np.empty((len(q), model.nv, self.layout.size))
        inertial = self.layout.inertial
        for i in range(len(q)):
            A[i, :, inertial] = regressor(model, data, q[i], v[i], a[i])
        A[:, :, self.layout.friction] = friction_columns(self.robot, v, a)
        return A

    def rows(self, samples: Samples) -> Rows:
        """Return the rows of the samples, one block per joint."""
        A = self.full(samples.position, samples.velocity, samples.acceleration)
        index = np.arange(len(samples))
        columns = self.base.columns
        return Rows(
            tuple(
                RowBlock(A[:, j].take(columns, axis=1), samples.effort[:, j], index)
                for j in range(A.shape[1])
            )
        )
