# SPDX-License-Identifier: Apache-2.0
"""Trees on a fixed base whose joints are all actuated: rows ``[Y | F] x = τ``, and torques."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.base_parameters import BaseParameters, find_base_parameters
from sysid_core.dynamics.open_tree import OpenTree, random_states
from sysid_core.dynamics.rows import PerJoint, RowBlock, Rows
from sysid_core.errors import ModelError
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot

__all__ = ["TreeDynamics", "TreeRegression"]


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
        self.robot = robot
        self._tree = OpenTree(robot)

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
        return self._tree.regressor(q, v, a)

    def all_rows(self, samples: Samples) -> Rows:
        """Return the rows of the samples, one block per joint."""
        A = self.full(samples.position, samples.velocity, samples.acceleration)
        index = np.arange(len(samples))
        return Rows(
            tuple(
                RowBlock(A[:, j].take(self.base.columns, axis=1), samples.effort[:, j], index)
                for j in range(A.shape[1])
            )
        )


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
