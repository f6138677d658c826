# SPDX-License-Identifier: Apache-2.0
"""What a motion tells about a robot's parameters, what it demands, and how both change with it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.base_parameters import find_base_parameters
from sysid_core.dynamics.open_tree import random_states
from sysid_core.dynamics.tree import TreeDynamics, TreeRegression
from sysid_core.errors import ModelError
from sysid_core.excitation.fourier import States
from sysid_core.priors import free_parameters, torque_scale
from sysid_core.robot.library import load_robot
from sysid_core.robot.model import Robot

__all__ = ["Demands", "Information", "Sensitivity"]

_STEP = 1e-6
"""Of the finite differences [rad, rad/s, rad/s²]."""
_CONDITION_WEIGHT = 0.2
"""Of the logarithm of the condition number, per base parameter."""
_TINY = 1e-30
_SMOOTH = 0.05
"""Width of the smoothed sign of velocity in derivatives [rad/s]."""


class Demands(NamedTuple):
    """What a motion asks of the robot.

    Attributes
    ----------
    torque : (n, nj) [N·m]
        By the nominal model.
    height : (n, m) [m]
        Of the origins of all joint frames that move up or down, and of the tool.
    """

    torque: FloatArray
    height: FloatArray


class Sensitivity(NamedTuple):
    """A motion's information and demands with their derivatives by state.

    Attributes
    ----------
    merit : float
        See `Information.merit`.
    merit_by : States
        Its gradient by positions, velocities and accelerations, each (n, nj).
    demands : Demands
    torque_by : States
        Jacobians, each (n, nj, nj): torque by state.
    height_by : (n, m, nj) [m/rad]
    """

    merit: float
    merit_by: States
    demands: Demands
    torque_by: States
    height_by: FloatArray


class Information:
    """Information that motions of a fully actuated tree on a fixed base carry.

    Rows are scaled by each joint's usual torque, which stands for its noise. Only what is to be
    identified counts.

    Parameters
    ----------
    robot : Robot

    Raises
    ------
    ModelError
        If the robot has a floating base or passive joints, or nothing to identify.
    """

    def __init__(self, robot: Robot) -> None:
        if robot.floating or robot.passive.any() or robot.description.loops:
            kind = "a floating base" if robot.floating else "closed loops or passive joints"
            raise ModelError(
                f"robot '{robot.name}' has {kind}; exciting motions are designed for fully "
                "actuated trees on a fixed base only"
            )
        self.robot = robot
        self._exact = TreeRegression(robot)
        smooth = max(_SMOOTH, robot.description.coulomb_velocity)
        self._smooth = TreeRegression(
            load_robot(replace(robot.description, coulomb_velocity=smooth))
        )
        self._columns = self._base_columns()
        self._scale = torque_scale(robot)
        self._nominal = TreeDynamics(robot)
        self._data = robot.model.createData()
        self._points = self._moving_points()

    def _base_columns(self) -> IndexArray:
        free = np.flatnonzero(free_parameters(self.robot))
        if not len(free):
            raise ModelError(f"nothing of robot '{self.robot.name}' is to be identified")
        count = max(60, 4 * self.robot.layout.size // self.robot.model.nv)
        A = self._exact.full(*random_states(self.robot, count))[:, :, free]
        labels = tuple(self.robot.layout.labels[k] for k in free)
        return free[find_base_parameters(A.reshape(-1, len(free)), labels).columns]

    def _moving_points(self) -> IndexArray:
        model = self.robot.model
        frames = [model.getFrameId(name) for name in self.robot.joint_names]
        frames.append(model.getFrameId(self.robot.tool_frame, pin.FrameType.BODY))
        everything = np.array(frames, dtype=np.intp)
        q = random_states(self.robot, 20)[0]
        return everything[np.ptp(self._heights(q, everything), axis=0) > 1e-6]

    def _heights(self, q: FloatArray, points: IndexArray) -> FloatArray:
        model, data = self.robot.model, self._data
        heights = np.empty((len(q), len(points)))
        for i, row in enumerate(q):
            pin.framesForwardKinematics(model, data, row)
            heights[i] = [data.oMf[int(k)].translation[2] for k in points]
        return heights

    @property
    def size(self) -> int:
        """Number of base parameters that can be identified."""
        return len(self._columns)

    def demands(self, states: States) -> Demands:
        """Return what a motion asks of the robot."""
        return Demands(
            self._nominal.torques(*states), self._heights(states.position, self._points)
        )

    def rows(self, states: States) -> FloatArray:
        """Return the scaled base regressor (n·nj, b)."""
        A = self._exact.full(*states).take(self._columns, axis=2) / self._scale[:, None]
        return A.reshape(-1, self.size)

    def condition(self, states: States) -> float:
        """Return the condition number of the base regressor, its columns scaled to unit norm."""
        rows = self.rows(states)
        norms = np.linalg.norm(rows, axis=0)
        if not (norms > 0.0).all():
            return float("inf")
        return float(np.linalg.cond(rows / norms))

    def merit(self, states: States) -> float:
        """Return how good a motion is: log det of its information, less where it is lopsided."""
        rows = self.rows(states)
        return _merit(rows.T @ rows)[0]

    def sharpness(self, states: States, other: States) -> float:
        """Return by what factor parameters come out more exactly than from another motion.

        The geometric mean of the ratio of standard deviations over all base parameters.
        """
        log_det = [np.linalg.slogdet(r.T @ r)[1] for r in (self.rows(states), self.rows(other))]
        return float(np.exp(0.5 * (log_det[0] - log_det[1]) / self.size))

    def sensitivity(self, states: States) -> Sensitivity:
        """Return information, demands and their derivatives by forward differences."""
        n, nj = states.position.shape
        A = self._smooth.full(*states)
        nominal = self.robot.consistent_nominal
        rows = A.take(self._columns, axis=2) / self._scale[:, None]
        flat = rows.reshape(-1, self.size)
        merit, slope = _merit(flat.T @ flat)
        pull = 2.0 * rows @ slope
        torque, height = A @ nominal, self._heights(states.position, self._points)
        gradient = np.zeros((3, n, nj))
        jacobian = np.zeros((3, n, nj, nj))
        height_by = np.zeros((n, len(self._points), nj))
        for kind in range(3):
            for joint in range(nj):
                moved = [array.copy() for array in states]
                moved[kind][:, joint] += _STEP
                change = (self._smooth.full(*moved) - A) / _STEP
                by = change.take(self._columns, axis=2) / self._scale[:, None]
                gradient[kind, :, joint] = np.einsum("njb,njb->n", pull, by)
                jacobian[kind, :, :, joint] = change @ nominal
                if kind == 0 and len(self._points):
                    raised = self._heights(moved[0], self._points)
                    height_by[:, :, joint] = (raised - height) / _STEP
        return Sensitivity(
            merit, States(*gradient), Demands(torque, height), States(*jacobian), height_by
        )


def _merit(information: FloatArray) -> tuple[float, FloatArray]:
    """Return ``log det M − w·log cond C`` and its gradient (b, b).

    C is M scaled to a unit diagonal. The determinant alone would trade one badly seen
    combination for many well seen ones.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(information), _TINY))
    values, vectors = np.linalg.eigh(scale[:, None] * information * scale)
    values = np.maximum(values, _TINY)
    axes = scale[:, None] * vectors
    weight = _CONDITION_WEIGHT * len(values)
    log_condition = float(np.log(values[-1] / values[0]))
    merit = float(np.log(values).sum() - 2.0 * np.log(scale).sum()) - weight * log_condition
    gradient = (axes / values) @ axes.T
    for which, sign in ((-1, -1.0), (0, 1.0)):
        axis = axes[:, which]
        change = np.outer(axis, axis) / values[which] - np.diag(axis**2)
        gradient += sign * weight * change
    return merit, gradient
