# SPDX-License-Identifier: Apache-2.0
"""What a motion tells about a robot's parameters, and what it demands of the robot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.select import make_dynamics
from sysid_core.errors import ModelError, ParameterError
from sysid_core.excitation.fourier import States
from sysid_core.excitation.mechanism import View, make_mechanism
from sysid_core.priors import free_parameters, torque_scale
from sysid_core.robot.clearance import NOTHING, Obstacles
from sysid_core.robot.model import Robot

__all__ = ["Demands", "Information"]

_CONDITION_WEIGHT = 0.2
"""Of the logarithm of the condition number, per base parameter."""
_TINY = 1e-30
_IDLE = re.compile(
    r"wheel|caster|suspension|rotor|propeller|finger|thumb|gripper(?!.*(yaw|roll|pitch))",
    re.IGNORECASE,
)
"""Names of joints that nobody identifies with the others."""
_LIGHT = 0.003
"""Share of the moving mass below which what a joint carries is a finger: wrists carry 0.5 %."""


class Demands(NamedTuple):
    """What a motion asks of the robot.

    Attributes
    ----------
    torque : (n, na) [N·m]
        By the nominal model.
    gaps : (n, g) [m, rad]
        To obstacles, and of passive joints to their limits; negative beyond.
    """

    torque: FloatArray
    gaps: FloatArray


class Information:
    """Information that motions of a robot on a fixed base carry, linkages included.

    Rows are scaled by each joint's usual torque, which stands for its noise. Only what is to be
    identified, and what the moving joints can show, counts.

    Parameters
    ----------
    robot : Robot
    joints : sequence of str, optional
        Those that move; the others rest at `rest`. Default: all that are actuated, but for wheels,
        fingers and joints without a range.
    obstacles : Obstacles, optional
        What bodies must stay clear of; of linkages, boxes and floor only.

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
        If a joint is unknown, not actuated or without a range.
    """

    def __init__(
        self,
        robot: Robot,
        joints: Sequence[str] | None = None,
        obstacles: Obstacles = NOTHING,
    ) -> None:
        self.robot = robot
        self.moving = _moving(robot, joints)
        self._mechanism = make_mechanism(robot, self.moving, obstacles)
        self._nominal = make_dynamics(robot)
        self.rest: FloatArray = self._nominal.home
        self._scale = torque_scale(robot)[robot.actuated][self.moving, None]
        self._mechanism.columns = self._base_columns()
        self._known = np.zeros((self.size, self.size))

    def count(self, states: States) -> None:
        """Count what an earlier motion told: the next ones are judged by what they add."""
        self._known = self._known + self.gained(states)

    def _base_columns(self) -> IndexArray:
        free = np.flatnonzero(free_parameters(self.robot))
        if not len(free):
            raise ModelError(f"nothing of robot '{self.robot.name}' is to be identified")
        states = self._mechanism.random(max(60, 4 * self.robot.layout.size // len(self.moving)))
        still = np.setdiff1d(np.arange(len(self.rest)), self.moving)
        states.position[:, still] = self.rest[still]
        states.velocity[:, still] = states.acceleration[:, still] = 0.0
        self._mechanism.columns = free
        A = self._mechanism.view(states).rows.reshape(-1, len(free))
        labels = tuple(self.robot.layout.labels[k] for k in free)
        return free[self._mechanism.base(A, labels).columns]

    @property
    def size(self) -> int:
        """Number of base parameters that can be identified."""
        return len(self._mechanism.columns)

    def demands(self, states: States) -> Demands:
        """Return what a motion asks of the robot."""
        gaps = self._mechanism.geometry(states.position)[1]
        return Demands(self._nominal.torques(*states), gaps)

    def lowest(self, states: States) -> float:
        """Return the least height [m] of any joint's frame and of the tool, if they have one."""
        q = self._mechanism.geometry(states.position)[0]
        return float(np.min(self._mechanism.clearance.heights(q), initial=np.inf))

    def obstacle(self, gap: int) -> str:
        """Say what is in the way where a gap is negative."""
        names = self._mechanism.clearance.names
        if gap < len(names):
            return names[gap]
        return "the linkage: its loops do not close, or its passive joints are at their limits"

    def gained(self, states: States) -> FloatArray:
        """Return the information (b, b) that a motion adds to what earlier ones told."""
        rows = self._scaled(self._mechanism.view(states).rows)
        return rows.T @ rows

    def _scaled(self, rows: FloatArray) -> FloatArray:
        """Return rows (n, k, b) in units of noise over √n, as (n·k, b)."""
        return (rows / (self._scale * np.sqrt(len(rows)))).reshape(-1, self.size)

    def condition(self, gained: FloatArray) -> float:
        """Return the condition number of the base regressor, its columns scaled to unit norm."""
        norms = np.sqrt(np.diagonal(gained))
        if not (norms > 0.0).all():
            return float("inf")
        return float(np.sqrt(np.linalg.cond(gained / np.outer(norms, norms))))

    def merit(self, gained: FloatArray) -> float:
        """Return how good a motion is: log det of its information, less where it is lopsided."""
        return _merit(self._known + gained)[0]

    def sharpness(self, gained: FloatArray, other: FloatArray) -> float:
        """Return by what factor parameters come out more exactly than from another motion.

        The geometric mean of the ratio of standard deviations over all base parameters.
        """
        log_det = [np.linalg.slogdet(self._known + part)[1] for part in (gained, other)]
        return float(np.exp(0.5 * (log_det[0] - log_det[1]) / self.size))

    def view(self, states: States) -> tuple[float, View, FloatArray]:
        """Return the merit with signs of velocity smoothed, the view, and its slope by rows."""
        view = self._mechanism.view(states, steer=True)
        rows = self._scaled(view.rows)
        merit, slope = _merit(self._known + rows.T @ rows)
        # scaled a second time: the slope by rows as they are
        by_rows = self._scaled(2.0 * (rows @ slope).reshape(view.rows.shape))
        return merit, view, by_rows.reshape(view.rows.shape)

    def pullback(self, states: States, by: View) -> States:
        """Return the gradient (n, k) of an objective by states from that by their view."""
        return self._mechanism.pullback(states, by)


def _moving(robot: Robot, joints: Sequence[str] | None) -> IndexArray:
    """Return where the joints that are to move are among the actuated ones."""
    names = robot.actuated_names
    fixed = dict(zip(robot.joint_names, robot.limits.lower >= robot.limits.upper, strict=True))
    movable = [name for name in names if not fixed[name]]
    if joints is None:
        joints = [n for n in movable if not (_IDLE.search(n) or _light(robot, n))] or movable
    unknown = [joint for joint in joints if joint not in names]
    if unknown:
        raise ParameterError(
            f"robot '{robot.name}' has no actuated joint {', '.join(map(repr, unknown))}; it has "
            f"{', '.join(names)}"
        )
    still = [joint for joint in joints or names if fixed[joint]]
    if still:
        raise ParameterError(
            f"joints without a range cannot move: {', '.join(still)}; correct their limits in the "
            "URDF, or give limits.lower and limits.upper in the description"
        )
    return np.array([k for k, name in enumerate(names) if name in joints])


def _light(robot: Robot, joint: str) -> bool:
    """Whether a joint carries next to nothing of what moves."""
    masses = [inertia.mass for inertia in robot.model.inertias]
    carried = robot.model.subtrees[robot.model.getJointId(joint)]
    return sum(masses[k] for k in carried) < _LIGHT * sum(masses[1:])


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
