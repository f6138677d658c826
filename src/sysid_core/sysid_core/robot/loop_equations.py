# SPDX-License-Identifier: Apache-2.0
"""The equations of kinematic loops: residual, Jacobian, and what they leave undetermined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.errors import RobotError
from sysid_core.robot.description import FrameOnLink
from sysid_core.robot.model import Robot

__all__ = ["ClosedConfiguration", "ClosedMotion", "LoopEquations", "MotionMaps"]

_WORLD_ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
_RANK_TOLERANCE = 1e-8


class _Ends(NamedTuple):
    """Frame indices of one loop and whether its orientation is closed too."""

    a: int
    b: int
    fixed: bool


class LoopEquations:
    """The loops of a robot on a fixed base, as equations between its joints.

    The residual stacks, per loop, p_b − p_a in world axes and, for 6-D loops, the rotation
    vector from frame a to frame b. Rows may be redundant as long as they agree, as the
    out-of-plane rows of a planar linkage do. Last come joints that mimic others, one row each.

    Raises
    ------
    RobotError
        If the robot has a floating base, no loops, no passive or no actuated joints, or a
        passive joint that no loop goes through.
    """

    def __init__(self, robot: Robot) -> None:
        _check_kind(robot)
        loops = robot.description.loops
        self.robot = robot
        self.model = robot.model.copy()  # The robot's model with the loops' frames added
        mimics = robot.description.mimic
        # Names of the loops, then of joints that mimic others
        self.names = (*(loop.name for loop in loops), *mimics)
        self._ends = tuple(
            _Ends(
                self._add_frame(f"{loop.name}/a", loop.frame_a),
                self._add_frame(f"{loop.name}/b", loop.frame_b),
                loop.type == "fixed",
            )
            for loop in loops
        )
        self._data = self.model.createData()
        self._follow = np.zeros((len(mimics), len(robot.joint_names)))
        self._offset = np.array([mimic.offset for mimic in mimics.values()])
        for row, (joint, mimic) in zip(self._follow, mimics.items(), strict=True):
            row[robot.joint_names.index(joint)] = 1.0
            row[robot.joint_names.index(mimic.joint)] -= mimic.multiplier
        heights = [6 if ends.fixed else 3 for ends in self._ends] + [1] * len(mimics)
        stops = np.cumsum(heights).tolist()
        # Where the equations of each loop lie in the residual
        self.rows = tuple(slice(s - h, s) for s, h in zip(stops, heights, strict=True))
        self.size: int = stops[-1]  # Number m of equations
        # actuated, passive: (na,), (nu,) indices of the joints.
        self.actuated: IndexArray = np.flatnonzero(robot.actuated)
        self.passive: IndexArray = np.flatnonzero(robot.passive)
        self._check_topology()

    def _add_frame(self, name: str, frame: FrameOnLink) -> int:
        joint, placement = self.robot.place(frame)
        kind = pin.FrameType.OP_FRAME
        return int(self.model.addFrame(pin.Frame(name, joint, 0, placement, kind)))

    def _check_topology(self) -> None:
        """Check that some loop goes through every passive joint."""
        supports = self.model.supports
        moved = {self.robot.body_joint_ids[j] for j in np.flatnonzero(self._follow.any(axis=0))}
        for ends in self._ends:
            a, b = (set(supports[self.model.frames[f].parentJoint]) for f in (ends.a, ends.b))
            moved |= a ^ b
        idle = [j for j in self.passive if self.robot.body_joint_ids[j] not in moved]
        if idle:
            raise RobotError(
                f"no loop goes through passive joints {self._names(idle)}: describe the loops "
                "that move them, or declare them actuated or locked"
            )

    def _names(self, joints: Sequence[int]) -> list[str]:
        return [self.robot.joint_names[j] for j in joints]

    def residual(self, q: FloatArray) -> FloatArray:
        """Return the residual (m,) [m, rad] of the equations at a configuration (nq,)."""
        pin.forwardKinematics(self.model, self._data, q)
        return self._residual(q)

    def residual_and_jacobian(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the residual (m,) and the Jacobian (m, nv) at a configuration (nq,)."""
        J = self.jacobian(q)
        return self._residual(q), J

    def _residual(self, q: FloatArray) -> FloatArray:
        model, data, place = self.model, self._data, pin.updateFramePlacement
        r = np.empty(self.size)
        r[self.size - len(self._offset) :] = self._follow @ q - self._offset
        for rows, ends in zip(self.rows, self._ends, strict=False):
            A, B = place(model, data, ends.a), place(model, data, ends.b)
            r[rows.start : rows.start + 3] = B.translation - A.translation
            if ends.fixed:
                r[rows.start + 3 : rows.stop] = A.rotation @ pin.log3(A.rotation.T @ B.rotation)
        return r

    def jacobian(self, q: FloatArray) -> FloatArray:
        """Return the Jacobian J (m, nv) of the loops: J q̇ = 0 on closed motion."""
        pin.computeJointJacobians(self.model, self._data, q)
        J = self._stack(pin.getFrameJacobian)
        J[self.size - len(self._follow) :] = self._follow
        return J

    def jacobian_dot(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """Return the time derivative J̇ (m, nv) of `jacobian` along velocities v (nv,)."""
        pin.computeJointJacobiansTimeVariation(self.model, self._data, q, v)
        return self._stack(pin.getFrameJacobianTimeVariation)

    def _stack(self, jacobian_of: Callable[..., FloatArray]) -> FloatArray:
        model, data = self.model, self._data
        J = np.zeros((self.size, model.nv))
        for rows, ends in zip(self.rows, self._ends, strict=False):
            A = jacobian_of(model, data, ends.a, _WORLD_ALIGNED)
            B = jacobian_of(model, data, ends.b, _WORLD_ALIGNED)
            height = rows.stop - rows.start
            np.subtract(B[:height], A[:height], out=J[rows])
        return J

    def redundant_rows(self, q: FloatArray) -> dict[str, int]:
        """Count, per loop, the equations that repeat others at a closed state (nq,) [rad].

        Raises
        ------
        RobotError
            If the loops leave passive joints free, fix actuated ones, or if one loop only
            repeats what the others close already.
        """
        J = self.jacobian(q)
        J_u = J[:, self.passive]
        _, s, Vt = np.linalg.svd(J_u)
        rank_u = int((s > _RANK_TOLERANCE * s[0]).sum())
        if rank_u < len(self.passive):
            free = np.abs(Vt[rank_u:]).max(axis=0) > 1e-3
            raise RobotError(
                f"the loops leave passive joints {self._names(self.passive[free].tolist())} "
                f"free ({rank_u} independent closures for {len(self.passive)} passive joints): "
                "describe further loops, or declare some joints actuated or locked"
            )
        ranks = [0] + [_rank(J[: rows.stop]) for rows in self.rows]
        if ranks[-1] > rank_u:
            raise RobotError(
                f"the loops fix actuated joints: {ranks[-1]} independent closures for "
                f"{rank_u} passive joints; declare more joints passive, or close fewer directions"
            )
        redundant = {}
        for name, rows, gain in zip(self.names, self.rows, np.diff(ranks), strict=True):
            if gain == 0:
                raise RobotError(
                    f"loop '{name}' is redundant: it repeats what the loops before it close; "
                    "remove it"
                )
            if gain < rows.stop - rows.start:
                redundant[name] = int(rows.stop - rows.start - gain)
        return redundant


def _rank(matrix: FloatArray) -> int:
    s = np.linalg.svd(matrix, compute_uv=False)
    return int((s > _RANK_TOLERANCE * s[0]).sum())


def _check_kind(robot: Robot) -> None:
    if robot.floating:
        raise RobotError(
            "loops on a floating base are not supported: lock the joints of the loops"
        )
    if not robot.linked:
        passive = [n for n, p in zip(robot.joint_names, robot.passive, strict=True) if p]
        raise RobotError(
            f"passive joints {passive} belong to no loop: describe 'loops', or declare the "
            "joints actuated or locked"
        )
    if not robot.passive.any() or not robot.actuated.any():
        raise RobotError(
            "loops need both passive and actuated joints: list under 'joints.passive' those "
            "that the loops move"
        )


class ClosedConfiguration(NamedTuple):
    """A solution q of the loops, with the certificate of its convergence."""

    configuration: FloatArray  # (nq,) [rad]
    residual: float
    """[m, rad] largest absolute residual of the closure equations at `configuration`."""
    iterations: int
    converged: bool
    jacobian: FloatArray
    """(m, nv) of the closure equations at `configuration`: what G needs of kinematics."""


class MotionMaps(NamedTuple):
    """How the whole robot moves with its actuated joints at one closed state."""

    G: FloatArray  # (nv, na) [-]: q̇ = G q̇_a (Zhang et al. eq. 20).
    G_dot: FloatArray  # (nv, na) [1/s]: q̈ = G q̈_a + Ġ q̇_a
    condition: float
    """[-] condition number of J_u with columns of unit length, in the Frobenius norm; inf where it
    is singular."""


class ClosedMotion(NamedTuple):
    """States of the whole robot along actuated motion."""

    q: FloatArray  # (n, nv) [rad, rad/s, rad/s²]
    v: FloatArray  # (n, nv) [rad, rad/s, rad/s²]
    a: FloatArray  # (n, nv) [rad, rad/s, rad/s²]
    G: FloatArray  # (n, nv, na) [-]
    residual: FloatArray  # (n,) [m, rad]
    iterations: FloatArray  # (n,)
    condition: FloatArray  # (n,) [-]
    valid: BoolArray  # (n,) closed and not near singular; the other rows must not be used

    @classmethod
    def unknown(cls, n: int, nv: int, na: int) -> ClosedMotion:
        """Return motion of which nothing is known yet."""
        return cls(
            q=np.full((n, nv), np.nan),
            v=np.full((n, nv), np.nan),
            a=np.full((n, nv), np.nan),
            G=np.zeros((n, nv, na)),
            residual=np.full(n, np.inf),
            iterations=np.zeros(n),
            condition=np.full(n, np.inf),
            valid=np.zeros(n, dtype=bool),
        )
