# SPDX-License-Identifier: Apache-2.0
"""Trees on a fixed base whose joints are all actuated: rows ``[Y | F] x = τ``, and torques."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.base_parameters import BaseParameters, find_base_parameters
from sysid_core.dynamics.friction import FRICTION
from sysid_core.dynamics.open_tree import OpenTree, random_states
from sysid_core.dynamics.rows import LeftOut, PerJoint, Rows, joint_rows
from sysid_core.errors import ModelError
from sysid_core.parameters import FRICTION_TERMS
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot

__all__ = ["TreeDynamics", "TreeRegression"]

_FEW = 20
"""Random states that show which columns differ from zero, and each friction term's own."""


def _check_class(robot: Robot) -> None:
    if robot.floating or robot.passive.any():
        raise ModelError(
            f"robot '{robot.name}' is not a fully actuated tree on a fixed base; "
            "use the regression and the dynamics of its class"
        )


class TreeRegression(PerJoint):
    """Rows of a tree, one group per joint.

    Raises
    ------
    ModelError
        If the robot has a floating base or passive joints.
    """

    def __init__(self, robot: Robot) -> None:
        _check_class(robot)
        super().__init__(robot)
        self._tree = OpenTree(robot)

    @cached_property
    def base(self) -> BaseParameters:
        """Structural base of the regressor."""
        A = self._anywhere(max(60, 4 * self.layout.size // self.robot.model.nv))
        return find_base_parameters(A.reshape(-1, self.layout.size), self.layout.labels)

    @cached_property
    def supports(self) -> tuple[IndexArray, ...]:
        """Per group the base columns of the joint and of the bodies that it carries."""
        A = self._anywhere(_FEW)[:, :, self.base.columns]
        return tuple(np.flatnonzero(np.abs(A[:, j]).max(axis=0)) for j in range(A.shape[1]))

    def _anywhere(self, count: int) -> FloatArray:
        """Return the full regressor at random states, also at the speeds where friction bends.

        Joints slide there, or are somewhere in between.
        """
        q, v, a = random_states(self.robot, count)
        speeds = [np.where(row > 0.0, row, 1.0) for row in self._bends if row.any()]
        parts = [self.full(q, v, a)]
        q, v, a = q[:_FEW], v[:_FEW], a[:_FEW]
        parts += [self.full(q, v * speed, a) for speed in speeds]
        if self.robot.friction_scales[FRICTION_TERMS.index("presliding")].any():
            parts.append(self._tree.regressor(q, v, a, np.sin(np.pi * a)))
        return np.concatenate(parts)

    @property
    def _bends(self) -> FloatArray:
        scaled = [term.scale_unit == "rad/s" for term in FRICTION]
        return self.robot.friction_scales[scaled]

    def full(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Return the full regressor (n, nv, p) at states q (n, nq), v, a (n, nv)."""
        return self._tree.regressor(q, v, a)

    def with_friction(self, chosen: Mapping[str, Mapping[str, float]]) -> TreeRegression:
        """Return the same of the robot with other chosen terms; the load assumed stays."""
        found = TreeRegression(self.robot.with_friction(chosen))
        found.assume_load(self._tree.parameters)
        return found

    def assume_load(self, parameters: FloatArray) -> None:
        """Let friction of later rows take the load of parameters (p,)."""
        self._tree.set_parameters(parameters)

    def with_load(self, rows: Rows, parameters: FloatArray | None = None) -> Rows:
        """Return rows whose friction takes the load of parameters (p,), or the one assumed."""
        if parameters is None:
            parameters = self._tree.parameters
        loads = self.robot.friction_scales[FRICTION_TERMS.index("load")] > 0.0
        if not loads.any():
            return rows
        layout, blocks = self.layout, list(rows.blocks)
        own = self.base.places(np.arange(layout.size)[layout.term("load")])
        for j, friction in enumerate(self.load_friction(rows, parameters)):
            # a joint that never bears a load has no such column
            if loads[j] and own[j] >= 0:
                matrix = blocks[j].matrix.copy()
                matrix[:, own[j]] = friction
                blocks[j] = blocks[j]._replace(matrix=matrix)
        return rows._replace(blocks=tuple(blocks))

    def all_rows(self, samples: Samples) -> Rows:
        """Return the rows of the samples, one block per joint."""
        A = self.full(samples.position, samples.velocity, samples.acceleration)
        pushed = self.pushed(samples, samples.position)
        matrices = (A[:, j].take(self.base.columns, axis=1) for j in range(A.shape[1]))
        index = np.arange(len(samples))
        rows = joint_rows(matrices, samples.effort, pushed, index, LeftOut())
        return rows if pushed is None else self.with_load(rows)


class TreeDynamics(OpenTree):
    """Torques of a tree; a `Dynamics`.

    Raises
    ------
    ModelError
        If the robot has a floating base or passive joints.
    """

    failure: Diagnostic | None = None

    def __init__(self, robot: Robot, sign_width: float | None = None) -> None:
        _check_class(robot)
        super().__init__(robot, sign_width)
        self.joint_names = robot.joint_names
        self.home: FloatArray = np.mean(robot.sampling_range, axis=0)

    def torques(
        self, q: FloatArray, v: FloatArray, a: FloatArray, slack: float = np.inf
    ) -> FloatArray:
        """Return the torques (n, nj) [N·m] of states (n, nj); `slack` is for closed chains."""
        return super().torques(q, v, a)

    def unreachable(self, positions: FloatArray) -> Diagnostic | None:
        """Return None: a tree reaches whatever its joints' limits allow."""
        return None
