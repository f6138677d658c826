# SPDX-License-Identifier: Apache-2.0
"""What a motion tells about a robot's parameters, and what it demands of the robot."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.dynamics.base_parameters import BaseParameters
from sysid_core.dynamics.select import make_dynamics, make_regression
from sysid_core.errors import ModelError, ParameterError
from sysid_core.excitation.fourier import States
from sysid_core.excitation.mechanism import View, make_mechanism
from sysid_core.loads import Bare
from sysid_core.parameters import FRICTION_TERMS
from sysid_core.priors import free_parameters
from sysid_core.robot.clearance import NOTHING, Obstacles
from sysid_core.robot.model import Robot
from sysid_core.robot.strength import torque_scale

__all__ = ["FOCUSES", "Demands", "Information"]

FOCUSES = ("all", "friction", "gravity", "payload")

_ASIDE = 0.1  # Weight of parameters that are not asked for: they must be told from the others
_ROUNDING = 1e-12
_TINY = 1e-30
_FIRST_MOMENTS = ("m", "mcx", "mcy", "mcz")
_LEAST = 1e-3  # Error of a joint's torque, per that of the worst, below which it counts as luck
_IDLE = re.compile(
    r"wheel|caster|suspension|rotor|propeller|finger|thumb|gripper(?!.*(yaw|roll|pitch))",
    re.IGNORECASE,
)
"""Names of joints that nobody identifies with the others."""
_LIGHT = 0.003
"""Share of the moving mass below which what a joint carries is a finger: wrists carry 0.5 %."""


class Demands(NamedTuple):
    """What a motion asks of the robot."""

    torque: FloatArray  # (n, na) [N·m] by the nominal model
    gaps: FloatArray
    """(n, g) [m, rad] to obstacles, and of passive joints to their limits; negative beyond."""


class Information:
    """Information that motions of a robot on a fixed base carry, linkages included.

    Rows are scaled by each joint's usual torque, which stands for its noise. Only what is to be
    identified, and what the moving joints can show, counts.

    Parameters
    ----------
    joints : sequence of str, optional
        Those that move; the others rest at `rest`. Default: all that are actuated, but for wheels,
        fingers and joints without a range.
    obstacles : Obstacles, optional
        What bodies must stay clear of; of linkages, boxes and floor only.
    focus : str
        What is to be told best, one of `FOCUSES`; a payload, of a robot that is known.

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
        focus: str = "all",
    ) -> None:
        self.robot = robot
        # (k,) indices of the joints that move, among the actuated ones
        self.moving = _moving(robot, joints)
        # (na,) whether the motion changes what they bear
        self.bearing = _bearing(robot, self.moving)
        self._mechanism = make_mechanism(robot, self.moving, obstacles)
        self._nominal = make_dynamics(robot)
        # (na,) [rad] positions in the middle of the ranges, or where the loops close
        self.rest: FloatArray = self._nominal.home
        self._scale = torque_scale(robot)[robot.actuated][self.moving, None]
        base = self._base_parameters()
        self._interest, self._weight = np.eye(self.size), self._weights(focus)
        if focus == "payload":
            tool = robot.frame(robot.tool_frame).parentJoint - 1
            tools = robot.layout.labels[robot.layout.body(tool)]
            self._interest = base.mapping[:, np.isin(base.labels, tools)]
            self._weight = np.ones(self._interest.shape[1])
        self._known = np.zeros((self.size, self.size))

    def count(self, states: States) -> None:
        """Count what an earlier motion told: the next ones are judged by what they add."""
        self._known = self._known + self.gained(states)

    def count_estimate(self, bare: Bare, samples: float) -> None:
        """Count what was identified: its errors stand for the noise of independent samples.

        Raises
        ------
        ParameterError
            If the covariance of the estimate is not known.
        """
        if bare.covariance is None or bare.error is None:
            raise ParameterError("the estimate does not tell its covariance; identify again")
        regression = make_regression(self.robot)
        bare.check(regression)
        self._scale = np.maximum(bare.error, _LEAST * bare.error.max())[self.moving, None]
        share = regression.base.mapping[:, self._mechanism.columns]
        told = share.T @ np.linalg.pinv(bare.covariance, hermitian=True) @ share
        self._known = self._known + told / samples

    def _base_parameters(self) -> BaseParameters:
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
        base = self._mechanism.base(A, labels)
        self._mechanism.columns = free[base.columns]
        return base

    def _weights(self, focus: str) -> FloatArray:
        """Return the weights (b,) of the base parameters."""
        terms = [label.rsplit(".", 1)[1] for label in self.labels]
        asked = {"friction": FRICTION_TERMS, "gravity": _FIRST_MOMENTS}.get(focus, terms)
        return np.where(np.isin(terms, asked), 1.0, _ASIDE)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the base parameters, by the first of each."""
        return tuple(self.robot.layout.labels[k] for k in self._mechanism.columns)

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
        """Return how good a motion is: minus the weighted sum of the logarithms of variances.

        It takes all parameters of interest for equal, whatever their units, and, other than the
        determinant, counts that they are told apart.
        """
        return self._merit(gained)[0]

    def sharpness(self, gained: FloatArray, other: FloatArray) -> float:
        """Return by what factor parameters come out more exactly than from another motion.

        The geometric mean of the ratio of standard deviations over all base parameters.
        """
        log_det = [np.linalg.slogdet(self._known + part)[1] for part in (gained, other)]
        return float(np.exp(0.5 * (log_det[0] - log_det[1]) / self.size))

    def _merit(self, gained: FloatArray) -> tuple[float, FloatArray]:
        """Return the merit of what a motion adds, and its gradient (b, b)."""
        T = self._interest
        information = T.T @ (self._known + gained) @ T
        scale = 1.0 / np.sqrt(np.maximum(np.diagonal(information), _TINY))
        scaled = scale[:, None] * information * scale + _ROUNDING * np.eye(len(scale))
        covariance = scale[:, None] * np.linalg.inv(scaled) * scale
        variance = np.diagonal(covariance)
        half = T @ covariance
        return -float(self._weight @ np.log(variance)), (half * (self._weight / variance)) @ half.T

    def view(self, states: States) -> tuple[float, View, FloatArray]:
        """Return the merit with signs of velocity smoothed, the view, and its slope by rows."""
        view = self._mechanism.view(states, steer=True)
        rows = self._scaled(view.rows)
        merit, slope = self._merit(rows.T @ rows)
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
            "URDF, or give limits.position in the description"
        )
    return np.array([k for k, name in enumerate(names) if name in joints])


def _bearing(robot: Robot, moving: IndexArray) -> BoolArray:
    """Return which actuated joints (na,) move or carry what moves; with linkages, all may."""
    model, names = robot.model, robot.actuated_names
    if robot.linked:
        return np.ones(len(names), dtype=bool)
    moved = {model.getJointId(names[k]) for k in moving}
    return np.array([bool(moved & set(model.subtrees[model.getJointId(n)])) for n in names])


def _light(robot: Robot, joint: str) -> bool:
    """Whether a joint carries next to nothing of what moves."""
    masses = [inertia.mass for inertia in robot.model.inertias]
    carried = robot.model.subtrees[robot.model.getJointId(joint)]
    return sum(masses[k] for k in carried) < _LIGHT * sum(masses[1:])
