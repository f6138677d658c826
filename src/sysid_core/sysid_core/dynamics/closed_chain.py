# SPDX-License-Identifier: Apache-2.0
"""Regression for closed chains on a fixed base: ``A = Gᵀ[Y | F]``, ``b = u``."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import scipy.linalg

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.base_parameters import BaseParameters, find_base_parameters
from sysid_core.dynamics.rows import RowBlock, Rows
from sysid_core.dynamics.tree import friction_columns
from sysid_core.errors import ModelError
from sysid_core.parameters import ParameterLayout
from sysid_core.recording import Samples
from sysid_core.robot.loop_check import random_closed_configurations
from sysid_core.robot.loops import ClosedMotion, LoopClosure
from sysid_core.robot.model import Robot

__all__ = ["ClosedChainRegression", "LeftOut"]

_ROUNDING = 1e-11
"""Share of a column's largest entry below which entries are rounding of J_u's inverse [-]."""


class LeftOut(NamedTuple):
    """Samples without rows, because their state is not known well enough.

    Attributes
    ----------
    samples : int
        Samples looked at.
    open : int
        Those at which the loops did not close, or whose actuated motion is not finite.
    singular : int
        Those near a singular configuration of J_u.
    residual : float [m, rad]
        Largest residual of the samples in use.
    condition : float [-]
        Largest condition number of J_u of the samples in use.
    """

    samples: int
    open: int
    singular: int
    residual: float
    condition: float

    def merge(self, other: LeftOut) -> LeftOut:
        """Return the account of both."""
        return LeftOut(
            self.samples + other.samples,
            self.open + other.open,
            self.singular + other.singular,
            max(self.residual, other.residual),
            max(self.condition, other.condition),
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know, in words."""
        texts = []
        if self.open:
            texts.append(
                f"{self.open} of {self.samples} samples are left out: the loops do not close at "
                "their actuated positions; check position offsets and the loops' frames"
            )
        if self.singular:
            texts.append(
                f"{self.singular} of {self.samples} samples are left out: the linkage is near a "
                "singular configuration there, where passive motion cannot be told"
            )
        return tuple(texts)


class ClosedChainRegression:
    """Rows of a robot with kinematic loops, one group per actuated joint.

    Passive joints need no sensors: their positions are solved from the loops, their velocities
    and accelerations follow from q̇ = G q̇_a and q̈ = G q̈_a + Ġ q̇_a, and the constraint forces
    drop out of Gᵀτ (Zhang et al. eqs. 18–23 and 27–29). Measured passive positions only tell
    where to start.

    Parameters
    ----------
    robot : Robot
    closure : LoopClosure or None
        None: with default options.

    Attributes
    ----------
    left_out, left_out_ever : LeftOut
        Of the last call of `rows`, and of all calls so far.

    Raises
    ------
    RobotError
        If the robot has a passive joint that no loop determines, or loops that cannot close.
    """

    def __init__(self, robot: Robot, closure: LoopClosure | None = None) -> None:
        self.robot = robot
        self.closure = LoopClosure(robot) if closure is None else closure
        self.left_out = self.left_out_ever = LeftOut(0, 0, 0, 0.0, 0.0)
        self._data = robot.model.createData()
        self._last = self.closure.home

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the row groups: the actuated joints."""
        return self.robot.actuated_names

    @property
    def layout(self) -> ParameterLayout:
        """Layout of the parameters."""
        return self.robot.layout

    @property
    def base(self) -> BaseParameters:
        """Structural base of the regressor, found at random closed states."""
        return self._structure[0]

    @property
    def supports(self) -> tuple[IndexArray, ...]:
        """Per group the base columns that its rows can fill; the others hold rounding only."""
        return self._structure[1]

    @cached_property
    def _structure(self) -> tuple[BaseParameters, tuple[IndexArray, ...]]:
        p, na = self.layout.size, len(self.groups)
        count = max(60, 4 * p // na)
        q = random_closed_configurations(self.closure, count)
        if len(q) < count:
            raise ModelError(
                f"robot '{self.robot.name}' closes its loops at only {len(q)} of many random "
                "configurations within its limits; correct the limits of its joints"
            )
        rng = np.random.default_rng(0)
        v, a = rng.normal(size=(2, count, na))
        motion = self.closure.motion(q[:, self.robot.actuated], v, a, q)
        A = self.contract(motion, motion.valid.nonzero()[0], np.arange(p))
        base = _well_conditioned_base(A.reshape(-1, p), self.layout.labels)
        size = np.abs(A[:, :, base.columns]).max(axis=0)
        filled = size > _ROUNDING * size.max(axis=0)
        return base, tuple(np.flatnonzero(row) for row in filled)

    def contract(
        self, motion: ClosedMotion, samples: IndexArray, columns: IndexArray
    ) -> FloatArray:
        """Return the columns of Gᵀ[Y | F] (n, na, k) at some of the samples."""
        robot, data = self.robot, self._data
        q, v, a = motion.q[samples], motion.v[samples], motion.a[samples]
        W = np.empty((len(samples), robot.model.nv, self.layout.size))
        inertial = self.layout.inertial
        for i in range(len(samples)):
            W[i, :, inertial] = pin.computeJointTorqueRegressor(
                robot.model, data, q[i], v[i], a[i]
            )
        W[:, :, self.layout.friction] = friction_columns(robot, v, a)
        return np.swapaxes(motion.G[samples], 1, 2) @ W[:, :, columns]

    def passive_states(self, samples: Samples) -> ClosedMotion:
        """Return the states of all joints at the samples, solved from the actuated ones."""
        active = self.robot.actuated
        start = samples.position.copy()
        start[:, active] = np.nan
        if np.isnan(start).all():
            start = self._last
        motion = self.closure.motion(
            samples.position[:, active],
            samples.velocity[:, active],
            samples.acceleration[:, active],
            start,
        )
        valid = motion.valid.nonzero()[0]
        if len(valid):
            self._last = motion.q[valid[-1]]  # a warm start for the next batch, nothing more
        return motion

    def rows(self, samples: Samples) -> Rows:
        """Return the rows of the samples, one block per actuated joint.

        Samples whose loops do not close or whose J_u is near singular get no rows, so that
        estimates are held rather than spoiled; `left_out` counts them.
        """
        motion = self.passive_states(samples)
        used = motion.valid.nonzero()[0]
        closed = np.isfinite(motion.q).all(axis=1)
        self.left_out = LeftOut(
            len(samples),
            int((~closed).sum()),
            int((closed & ~motion.valid).sum()),
            float(motion.residual[used].max(initial=0.0)),
            float(motion.condition[used].max(initial=0.0)),
        )
        self.left_out_ever = self.left_out_ever.merge(self.left_out)
        A = self.contract(motion, used, self.base.columns)
        effort = samples.effort[:, self.robot.actuated][used]
        return Rows(
            tuple(
                RowBlock(np.ascontiguousarray(A[:, j]), effort[:, j], used)
                for j in range(len(self.groups))
            )
        )


def _well_conditioned_base(A: FloatArray, labels: tuple[str, ...]) -> BaseParameters:
    """Find the base of a regressor (m, p) in the columns that a pivoted QR prefers.

    Loops couple columns that trees keep apart, some only just: taken in the layout's order they
    would make a base whose grouping factors reach 1e4, and squared in Gram matrices 1e8.
    """
    scale = np.linalg.norm(A, axis=0)
    scaled = A / np.where(scale > 0.0, scale, 1.0)
    order = scipy.linalg.qr(scaled, mode="r", pivoting=True)[-1]
    found = find_base_parameters(A[:, order], tuple(labels[k] for k in order))
    columns = order[found.columns]
    mapping = np.empty_like(found.mapping)
    mapping[:, order] = found.mapping
    rows = np.argsort(columns)
    return BaseParameters(columns[rows], mapping[rows], labels)
