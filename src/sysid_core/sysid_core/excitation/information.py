# SPDX-License-Identifier: Apache-2.0
"""What a motion tells about a robot's parameters, what it demands, and how both change with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.select import make_dynamics
from sysid_core.errors import ModelError, ParameterError
from sysid_core.excitation.fourier import States
from sysid_core.excitation.mechanism import make_mechanism
from sysid_core.priors import free_parameters, torque_scale
from sysid_core.robot.clearance import SelfClearance
from sysid_core.robot.model import Robot

__all__ = ["Demands", "Information", "Sensitivity"]

_STEP = 1e-6
"""Of the finite differences [rad, rad/s, rad/s²]."""
_CONDITION_WEIGHT = 0.2
"""Of the logarithm of the condition number, per base parameter."""
_TINY = 1e-30


class Demands(NamedTuple):
    """What a motion asks of the robot.

    Attributes
    ----------
    torque : (n, nj) [N·m]
        By the nominal model.
    height : (n, m) [m]
        Of the origins of all joint frames that move up or down, and of the tool.
    room : (n, k) [rad, m]
        Of passive joints to their limits, negative beyond or where loops do not close; or of
        bodies to each other, negative where they overlap.
    """

    torque: FloatArray
    height: FloatArray
    room: FloatArray


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
    room_by : (n, k, nj) [-]
    """

    merit: float
    merit_by: States
    demands: Demands
    torque_by: States
    height_by: FloatArray
    room_by: FloatArray


class Information:
    """Information that motions of a robot on a fixed base carry, linkages included.

    Rows are scaled by each joint's usual torque, which stands for its noise. Only what is to be
    identified, and what the moving joints can show, counts.

    Parameters
    ----------
    robot : Robot
    joints : sequence of str, optional
        Those that move; the others rest at `rest`. Default: all that are actuated.
    apart : bool
        Whether bodies must stay out of each other's capsules; those of linkages need not.

    Attributes
    ----------
    moving : (k,)
        Indices of the joints that move, among the actuated ones.
    rest : (na,) [rad]
        Positions in the middle of the ranges, or where the loops close.

    Raises
    ------
    ModelError
        If the robot has a floating base, or nothing to identify.
    ParameterError
        If a joint is unknown or not actuated.
    """

    def __init__(
        self, robot: Robot, joints: Sequence[str] | None = None, *, apart: bool = False
    ) -> None:
        self._mechanism = make_mechanism(robot)
        self.robot = robot
        self._nominal = make_dynamics(robot)
        self.rest: FloatArray = self._nominal.home
        self.moving = _moving(robot, joints)
        self._columns = self._base_columns()
        self._scale = torque_scale(robot)[robot.actuated]
        self._data = robot.model.createData()
        self._points = self._moving_points()
        self.clearance = SelfClearance(robot) if apart and not robot.description.loops else None
        self._known = np.zeros((self.size, self.size))

    def count(self, states: States) -> None:
        """Count what an earlier motion told: the next ones are judged by what they add."""
        rows = self.rows(states)
        self._known = self._known + rows.T @ rows

    def _scaled(self, A: FloatArray) -> FloatArray:
        """Return the base columns (n, na, b) in units of noise over √n."""
        scale = self._scale[:, None] * np.sqrt(len(A))
        return np.asarray(A.take(self._columns, axis=2) / scale)

    def _random(self, count: int) -> States:
        """Return random states in which only the moving joints move."""
        states = self._mechanism.random(count)
        if len(self.moving) == len(self.rest):
            return states
        still = np.setdiff1d(np.arange(len(self.rest)), self.moving)
        states.position[:, still] = self.rest[still]
        states.velocity[:, still] = states.acceleration[:, still] = 0.0
        return states

    def _base_columns(self) -> IndexArray:
        free = np.flatnonzero(free_parameters(self.robot))
        if not len(free):
            raise ModelError(f"nothing of robot '{self.robot.name}' is to be identified")
        count = max(60, 4 * self.robot.layout.size // len(self.rest))
        A = self._mechanism.columns(self._random(count))[:, :, free]
        labels = tuple(self.robot.layout.labels[k] for k in free)
        return free[self._mechanism.base(A.reshape(-1, len(free)), labels).columns]

    def _moving_points(self) -> IndexArray:
        model = self.robot.model
        frames = [model.getFrameId(name, pin.FrameType.JOINT) for name in self.robot.joint_names]
        frames.append(model.getFrameId(self.robot.tool_frame, pin.FrameType.BODY))
        everything = np.array(frames, dtype=np.intp)
        q = self._mechanism.configurations(self._random(20).position)
        return everything[np.ptp(self._heights(q, everything), axis=0) > 1e-6]

    def _heights(self, q: FloatArray, points: IndexArray) -> FloatArray:
        model, data = self.robot.model, self._data
        heights = np.empty((len(q), len(points)))
        for i, row in enumerate(q):
            pin.framesForwardKinematics(model, data, row)
            heights[i] = [data.oMf[int(k)].translation[2] for k in points]
        return heights

    def _geometry(self, position: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return heights (n, m) and room (n, k)."""
        q = self._mechanism.configurations(position)
        room = self._mechanism.room(q)
        if self.clearance is not None:
            room = np.hstack([room, self.clearance.gaps(q)])
        return self._heights(q, self._points), room

    @property
    def size(self) -> int:
        """Number of base parameters that can be identified."""
        return len(self._columns)

    def demands(self, states: States) -> Demands:
        """Return what a motion asks of the robot."""
        return Demands(self._nominal.torques(*states), *self._geometry(states.position))

    def rows(self, states: States) -> FloatArray:
        """Return the scaled base regressor (n·nj, b)."""
        return self._scaled(self._mechanism.columns(states)).reshape(-1, self.size)

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
        return _merit(self._known + rows.T @ rows)[0]

    def sharpness(self, states: States, other: States) -> float:
        """Return by what factor parameters come out more exactly than from another motion.

        The geometric mean of the ratio of standard deviations over all base parameters.
        """
        both = (self.rows(states), self.rows(other))
        log_det = [np.linalg.slogdet(self._known + r.T @ r)[1] for r in both]
        return float(np.exp(0.5 * (log_det[0] - log_det[1]) / self.size))

    def sensitivity(self, states: States) -> Sensitivity:
        """Return information, demands and their derivatives by forward differences."""
        n, nj = states.position.shape
        A = self._mechanism.columns(states, smooth=True)
        nominal = self.robot.consistent_nominal
        rows = self._scaled(A)
        flat = rows.reshape(-1, self.size)
        merit, slope = _merit(self._known + flat.T @ flat)
        pull = 2.0 * rows @ slope
        height, room = self._geometry(states.position)
        gradient = np.zeros((3, n, nj))
        jacobian = np.zeros((3, n, nj, nj))
        height_by, room_by = (np.zeros((*part.shape, nj)) for part in (height, room))
        for kind in range(3):
            for joint in self.moving.tolist():
                moved = [array.copy() for array in states]
                moved[kind][:, joint] += _STEP
                change = (self._mechanism.columns(States(*moved), smooth=True) - A) / _STEP
                gradient[kind, :, joint] = np.einsum("njb,njb->n", pull, self._scaled(change))
                jacobian[kind, :, :, joint] = change @ nominal
                if kind == 0 and (height.size or room.size):
                    raised, widened = self._geometry(moved[0])
                    height_by[:, :, joint] = (raised - height) / _STEP
                    room_by[:, :, joint] = (widened - room) / _STEP
        return Sensitivity(
            merit,
            States(*gradient),
            Demands(A @ nominal, height, room),
            States(*jacobian),
            height_by,
            room_by,
        )


def _moving(robot: Robot, joints: Sequence[str] | None) -> IndexArray:
    """Return where the joints are among the actuated ones."""
    names = robot.actuated_names
    if joints is None:
        return np.arange(len(names))
    unknown = [joint for joint in joints if joint not in names]
    if unknown or not joints:
        raise ParameterError(
            f"robot '{robot.name}' has no actuated joint {', '.join(map(repr, unknown))}; it has "
            f"{', '.join(names)}"
        )
    return np.array([k for k, name in enumerate(names) if name in joints])


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
