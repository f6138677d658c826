# SPDX-License-Identifier: Apache-2.0
"""Contact forces and accelerations inside friction cones and torque limits, by OSQP."""

import warnings
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.contact_dynamics import ContactTerms
from sysid_core.dynamics.contact_kinematics import BASE, ContactKinematics

__all__ = ["ContactForceQp", "QpSolution"]


_SOLE = (0.05, 0.03)
"""Half length and half width of a flat foot, which bound its centre of pressure [m]."""
_JOINT_WEIGHT = 0.01  # Weight of the joints' acceleration errors against the base's
_MAX_ITERATIONS = 2000


class QpSolution(NamedTuple):
    """Torques (nj,), wrenches (nc, 6), accelerations (nv,), and why they are not usable, if so."""

    effort: FloatArray
    wrenches: FloatArray
    acceleration: FloatArray
    failure: Diagnostic | None


def _cone(flat: bool, friction: float) -> FloatArray:
    """Return rows C with C w ≤ 0 for wrenches that a horizontal foot can carry."""
    mu = friction / np.sqrt(2.0)  # the pyramid inside the cone
    rows = [[1, 0, -mu], [-1, 0, -mu], [0, 1, -mu], [0, -1, -mu], [0, 0, -1]]
    if not flat:
        return np.array(rows, dtype=float)
    length, width = _SOLE
    cone = np.zeros((11, 6))
    cone[:5, :3] = rows
    for row, (axis, bound) in enumerate(((3, width), (4, length), (5, mu * min(length, width)))):
        for sign in (0, 1):
            cone[5 + 2 * row + sign, axis] = 1.0 - 2.0 * sign
            cone[5 + 2 * row + sign, 2] = -bound
    return cone


class ContactForceQp:
    """min ½‖v̇ − v̇*‖² + ½ε‖w‖² subject to the equations of motion, cones and torque limits.

    Variables are the acceleration and all contacts' forces; those in the air are held at zero
    by their bounds, so that the problem keeps its shape and each solve starts from the last.
    Torque limits are (nj,) [N·m]; the pyramid inside it stands for the cone of a friction
    coefficient; ε weighs squared forces [N²] against squared accelerations [m²/s⁴, rad²/s⁴].
    """

    def __init__(
        self,
        nv: int,
        kinematics: ContactKinematics,
        limit: FloatArray,
        *,
        friction: float,
        force_weight: float,
    ) -> None:
        self._force_weight = force_weight
        self._nv, self._kinematics, self._limit = nv, kinematics, limit
        flat = kinematics.flat
        sizes = np.where(flat, 6, 3)
        self._owner = np.repeat(np.arange(len(flat)), sizes)
        self._component = np.concatenate([np.arange(size) for size in sizes])
        cones = [_cone(bool(is_flat), friction) for is_flat in flat]
        self._cone_owner = np.repeat(np.arange(len(flat)), [len(cone) for cone in cones])
        self._cones = scipy.sparse.block_diag(cones).toarray()
        weight = np.full(nv, _JOINT_WEIGHT)
        weight[:BASE] = 1.0
        self._weight = weight
        self._solver: Any = None

    def solve(
        self, terms: ContactTerms, wanted: FloatArray, feet: FloatArray, active: BoolArray
    ) -> QpSolution:
        """Solve one tick for an acceleration v̇* (nv,).

        Those of the active feet (nc,) have the accelerations (nc, 6) [m/s², rad/s²] of `feet`.
        """
        A, low, high, J = self._constraints(terms, feet, active)
        forces = len(self._owner)
        linear = np.concatenate([-self._weight * wanted, np.zeros(forces)])
        result = self._run(A, linear, low, high)
        nv = self._nv
        acceleration, force = result.x[:nv], result.x[nv:]
        solved = str(result.info.status) == "solved"
        failure = None
        if not solved:
            failure = Diagnostic("qp", f"the contact force QP ended '{result.info.status}'")
            acceleration, force = wanted, np.zeros(forces)
        effort = terms.inertia @ acceleration + terms.bias - J.T @ force
        wrenches = self._kinematics.wrenches(force, np.ones_like(active))
        return QpSolution(effort[BASE:], wrenches, acceleration, failure)

    def _constraints(
        self, terms: ContactTerms, feet: FloatArray, active: BoolArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return rows, lower and upper bounds, and the Jacobian of all contact forces."""
        nv, forces = self._nv, len(self._owner)
        J = self._kinematics.at_ground(terms.jacobian)[self._owner, self._component]
        drift = self._kinematics.at_ground(terms.drift[:, :, None])[:, :, 0]
        held = (feet - drift)[self._owner, self._component]
        motion = np.hstack([terms.inertia, -J.T])
        fixed = np.hstack([J, np.zeros((forces, forces))])
        cones = np.hstack([np.zeros((len(self._cones), nv)), self._cones])
        on, loaded = active[self._owner], active[self._cone_owner]
        free = np.hstack([np.zeros((forces, nv)), np.eye(forces)])
        endless = np.full(forces, np.inf)
        low = [
            np.concatenate([np.zeros(BASE), -self._limit]) - terms.bias,
            np.where(on, held, -endless),
            np.full(len(cones), -np.inf),
            np.where(on, -endless, 0.0),
        ]
        high = [
            np.concatenate([np.zeros(BASE), self._limit]) - terms.bias,
            np.where(on, held, endless),
            np.where(loaded, 0.0, np.inf),
            np.where(on, endless, 0.0),
        ]
        A = np.vstack([motion, fixed, cones, free])
        return A, np.concatenate(low), np.concatenate(high), J

    def _run(self, A: FloatArray, linear: FloatArray, low: FloatArray, high: FloatArray) -> Any:
        if self._solver is None:
            osqp: Any = import_module("osqp")
            self._solver = osqp.OSQP()
            weights = np.concatenate([self._weight, np.full(len(self._owner), self._force_weight)])
            pattern = self._structure(A)
            self._entries = (
                pattern.indices,
                np.repeat(np.arange(len(weights)), np.diff(pattern.indptr)),
            )
            self._solver.setup(
                P=scipy.sparse.diags(weights, format="csc"),
                q=linear,
                A=scipy.sparse.csc_matrix((A[self._entries], pattern.indices, pattern.indptr)),
                l=low,
                u=high,
                verbose=False,
                eps_abs=1e-5,
                eps_rel=1e-5,
                max_iter=_MAX_ITERATIONS,
            )
        else:
            self._solver.update(q=linear, l=low, u=high, Ax=A[self._entries])
        with warnings.catch_warnings():
            # OSQP 1 announces a default that older versions do not know
            warnings.simplefilter("ignore", PendingDeprecationWarning)
            return self._solver.solve()

    def _structure(self, A: FloatArray) -> scipy.sparse.csc_matrix:
        """Return which entries can ever differ from zero: kinematics do, cones don't."""
        nv, forces = self._nv, len(self._owner)
        mask = A != 0.0
        mask[: nv + forces, :nv] = True
        mask[:nv, nv:] = True
        return scipy.sparse.csc_matrix(mask)
