# SPDX-License-Identifier: Apache-2.0
"""Regression for a floating base in contact: rows in the null space of the contact Jacobian."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.dynamics.base_parameters import BaseParameters, find_base_parameters
from sysid_core.dynamics.contact_kinematics import (
    ContactKinematics,
    FloatingState,
    configuration,
    finite_samples,
)
from sysid_core.dynamics.rows import RowBlock, Rows
from sysid_core.dynamics.tree import friction_columns, random_states
from sysid_core.errors import DataError, ModelError, ParameterError
from sysid_core.parameters import ParameterLayout
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot

__all__ = ["ContactRegression", "Projection", "base_null_space", "null_space"]

_BASE = 6
_CHUNK = 128
"""Samples worked on at once: their regressors stay in the processor's cache."""
_STICTION = 1e4
"""Variance of the torque error of a joint that stands still, relative to the others."""


def null_space(jacobian: FloatArray) -> FloatArray:
    """Return orthonormal bases N (n, nv, nv − k) with ``J N = 0`` of Jacobians J (n, k, nv).

    From a full QR of Jᵀ. Where a Jacobian loses rank the basis still satisfies J N = 0; it only
    leaves out the additional directions, which noise would turn arbitrarily.
    """
    n, k, nv = jacobian.shape
    if k == 0:
        return np.broadcast_to(np.eye(nv), (n, nv, nv))
    if k >= nv:
        return np.zeros((n, nv, 0))
    Q = np.linalg.qr(np.swapaxes(jacobian, 1, 2), mode="complete")[0]
    return np.asarray(Q[:, :, k:])


def base_null_space(jacobian: FloatArray, constrained: int) -> FloatArray:
    """Return bases N (n, nv, 6 − c) of base motions that the contacts allow with rigid joints.

    The rows that they give hold no joint torque at all (Ayusawa, Venture & Nakamura 2014,
    extended to unmeasured contact forces): all six in flight, three on one point foot, the turn
    about the line between the feet on two.

    Parameters
    ----------
    jacobian : (n, k, nv)
    constrained : int
        Number c of the base's degrees of freedom that the contacts take.
    """
    n, k, nv = jacobian.shape
    basis = np.zeros((n, nv, _BASE - constrained))
    if k == 0:
        basis[:, :_BASE] = np.eye(_BASE)
    elif constrained < _BASE:
        V = np.linalg.svd(jacobian[:, :, :_BASE])[2]
        basis[:, :_BASE] = np.swapaxes(V[:, constrained:], 1, 2)
    return basis


class Projection(NamedTuple):
    """Samples that stand on the same feet, and how their rows are made.

    Attributes
    ----------
    sample : (m,)
        Indices of the samples.
    basis : (m, nv, r)
        Basis N; rows are Nᵀ times the equations of motion.
    force : (m, nv) [N, N·m]
        Their known part ``Sᵀτ + Jᵀw``.
    """

    sample: IndexArray
    basis: FloatArray
    force: FloatArray


class _Stance(NamedTuple):
    """Samples (m,) with the same contacts (nc,) to project out, and known wrenches (m, nc, 6)."""

    sample: IndexArray
    active: BoolArray
    wrenches: FloatArray | None


def _divide(N: FloatArray, variance: FloatArray) -> FloatArray:
    """Whiten bases N (n, nv, r) by the Cholesky factor of ``Nᵀ diag(variance) N``."""
    NT = np.swapaxes(N, 1, 2)
    L = np.linalg.cholesky(NT @ (variance[..., None] * N))
    return np.asarray(np.swapaxes(np.linalg.solve(L, NT), 1, 2))


class ContactRegression:
    """Rows ``Nᵀ[Y | SᵀF] x = Nᵀ Sᵀτ`` that no contact force enters.

    N spans the null space of the stacked contact Jacobian (3 rows per point foot, 6 per flat
    one), so that ``‖NNᵀ r‖ = ‖P r‖`` with the projector P = I − J⁺J of Khorshidi et al. (2a, 6):
    the same cost with fewer rows. Measured wrenches replace the projection for the contacts
    that have them: they move to the right-hand side as Jᵀw. Samples with a number that is not
    finite give no rows.

    Parameters
    ----------
    robot : Robot
        Floating, with contacts.
    rows : str
        ``"all"``, or ``"base"`` for the equations of the base alone, which hold no joint
        torques; they identify the inertias where torques are poor or missing.
    noise_std : (nv,) [N, N·m], optional
        Standard deviation of the error of each equation of motion, base first. The projected
        equations then share an error covariance NᵀWN, W = diag(noise_std²), and are whitened by
        its Cholesky factor (generalised least squares), then scaled by the root mean square of
        `noise_std` so that residuals stay torques. Default: all alike, which leaves the rows
        as they are.

    Raises
    ------
    ModelError
        If the robot is not floating, has loops, or describes no contacts.
    ParameterError
        If `rows` or `noise_std` is not usable.
    """

    groups: tuple[str, ...] = ("projected",)

    def __init__(
        self,
        robot: Robot,
        *,
        rows: str = "all",
        noise_std: FloatArray | None = None,
        still_velocity: float | FloatArray = 0.0,
    ) -> None:
        if robot.description.loops:
            raise ModelError(
                f"robot '{robot.name}' closes loops on a floating base, which has no regression "
                "yet; describe its legs one by one, or lock the joints that close the loops"
            )
        if rows not in ("all", "base"):
            raise ParameterError(f"rows must be 'all' or 'base', got '{rows}'")
        still = np.broadcast_to(np.asarray(still_velocity, dtype=float), len(robot.joint_names))
        if not (np.isfinite(still).all() and (still >= 0.0).all()):
            raise ParameterError(
                f"still_velocity must be at least zero [rad/s], got {still_velocity}"
            )
        self.robot = robot
        self.kinematics = ContactKinematics(robot)
        self.base_only = rows == "base"
        self._data = robot.model.createData()
        self._noise_std = self._checked_noise(noise_std)
        dry = "coulomb" in robot.description.friction_terms
        self._still_velocity = np.concatenate([np.zeros(_BASE), still if dry else 0.0 * still])

    def _checked_noise(self, noise_std: FloatArray | None) -> FloatArray | None:
        if noise_std is None:
            return None
        values = np.asarray(noise_std, dtype=float)
        if values.shape != (self.robot.model.nv,) or not (
            np.isfinite(values).all() and (values > 0.0).all()
        ):
            raise ParameterError(
                f"noise_std needs {self.robot.model.nv} positive numbers, the base's six first"
            )
        return values

    @property
    def layout(self) -> ParameterLayout:
        """Layout of the parameters."""
        return self.robot.layout

    @cached_property
    def base(self) -> BaseParameters:
        """Structural base of the regressor."""
        count = max(60, 4 * self.layout.size // self.robot.model.nv)
        everything = np.arange(self.layout.size)
        A = np.swapaxes(
            self._equations(FloatingState(*random_states(self.robot, count)), everything), 1, 2
        )
        return find_base_parameters(A.reshape(-1, self.layout.size), self.layout.labels)

    # -- rows -------------------------------------------------------------------------------

    def rows(self, samples: Samples) -> Rows:
        """Return the rows of the samples, in the order of time.

        Raises
        ------
        DataError
            If the base's odometry is missing, or both contact flags and wrenches are.
        """
        state = configuration(self.robot, samples)
        stances = self._stances(samples, state)
        sizes = np.zeros(len(samples), dtype=np.intp)
        for stance in stances:
            sizes[stance.sample] = self._row_count(stance.active)
        start = np.concatenate([[0], np.cumsum(sizes)])
        matrix = np.empty((start[-1], self.base.size))
        target = np.empty(start[-1])
        for chunk in self._chunks(stances):
            part = FloatingState(*(values[chunk.sample] for values in state))
            force, N = self._force_and_basis(part, samples.effort, chunk)
            NT = np.ascontiguousarray(np.swapaxes(N, 1, 2))
            columns = self._equations(part, self.base.columns)
            where = start[chunk.sample][:, None] + np.arange(NT.shape[1])
            matrix[where] = NT @ np.swapaxes(columns, 1, 2)
            target[where] = (NT @ force[:, :, None])[:, :, 0]
        sample = np.repeat(np.arange(len(samples)), sizes)
        return Rows((RowBlock(matrix, target, sample),))

    def projections(self, samples: Samples) -> Iterator[Projection]:
        """Yield the bases of the usable samples, one stance after the other.

        Raises
        ------
        DataError
            As for `rows`.
        """
        state = configuration(self.robot, samples)
        for chunk in self._chunks(self._stances(samples, state)):
            part = FloatingState(*(values[chunk.sample] for values in state))
            force, N = self._force_and_basis(part, samples.effort, chunk)
            yield Projection(chunk.sample, N, force)

    def _stances(self, samples: Samples, state: FloatingState) -> list[_Stance]:
        """Sort the usable samples by the contacts that are to be projected out."""
        flags, wrenches = self.contact_state(samples)
        usable = np.flatnonzero(finite_samples(self.robot, samples, state))
        patterns, member = np.unique(flags[usable], axis=0, return_inverse=True)
        member = member.reshape(-1)  # numpy 2.0 gives it two dimensions
        stances = []
        for p, active in enumerate(patterns):
            chosen = usable[member == p]
            known = None if wrenches is None else wrenches[chosen]
            stances.append(_Stance(chosen, active, known))
        return stances

    def _chunks(self, stances: list[_Stance]) -> Iterator[_Stance]:
        for stance in stances:
            for first in range(0, len(stance.sample), _CHUNK):
                part = slice(first, first + _CHUNK)
                known = None if stance.wrenches is None else stance.wrenches[part]
                yield _Stance(stance.sample[part], stance.active, known)

    def contact_state(self, samples: Samples) -> tuple[BoolArray, FloatArray | None]:
        """Return which contacts are projected out (n, nc), and known wrenches (n, nc, 6).

        A contact whose wrench is finite isn't projected out; unknown wrenches return as zero.

        Raises
        ------
        DataError
            If there are neither contact flags nor wrenches, or not one per contact.
        """
        shape = (len(samples), len(self.kinematics.names))
        flags, wrenches = samples.contacts, samples.wrenches
        if flags is None and wrenches is None:
            raise DataError(
                f"robot '{self.robot.name}' stands on unknown contact forces: record 'contacts', "
                "or estimate them with sysid_core.contacts.estimate_contacts"
            )
        for value in (flags, wrenches):
            if value is not None and value.shape[:2] != shape:
                raise DataError(
                    f"contacts have shape {value.shape[:2]}, expected {shape}: one column each "
                    f"for {', '.join(self.kinematics.names)}"
                )
        # without flags, a contact whose wrench went missing may well carry load
        active: BoolArray = np.ones(shape, bool) if flags is None else flags.astype(bool)
        if wrenches is None:
            return active, None
        missing = np.asarray(~np.isfinite(wrenches).all(axis=2))
        return active & missing, np.where(missing[:, :, None], 0.0, wrenches)

    def _equations(self, state: FloatingState, columns: IndexArray) -> FloatArray:
        """Return chosen columns of the unprojected regressor, transposed, (n, columns, nv)."""
        model, data, layout = self.robot.model, self._data, self.layout
        inertial = columns[columns < layout.inertial.stop]
        friction = columns[columns >= layout.inertial.stop]
        A = np.empty((len(state.q), len(columns), model.nv))
        split = len(inertial)  # columns ascend, so inertial ones come first
        for i, (q, v, a) in enumerate(zip(*state, strict=True)):
            Y = pin.computeJointTorqueRegressor(model, data, q, v, a)
            np.take(Y.T, inertial, axis=0, out=A[i, :split], mode="clip")
        if len(friction):
            F = friction_columns(self.robot, state.v[:, _BASE:], state.a[:, _BASE:])
            F = F[:, :, friction - layout.friction.start]
            A[:, split:, :_BASE] = 0.0
            A[:, split:, _BASE:] = np.swapaxes(F, 1, 2)
        return A

    def _force_and_basis(
        self, state: FloatingState, effort: FloatArray, stance: _Stance
    ) -> tuple[FloatArray, FloatArray]:
        geometry = self.kinematics.evaluate(state.q)
        force = np.zeros((len(state.q), self.robot.model.nv))
        # passive joints carry no motor: their torque is zero, whatever the data say
        force[:, _BASE:] = np.where(self.robot.actuated, effort[stance.sample], 0.0)
        if stance.wrenches is not None:
            force += geometry.generalised(stance.wrenches)
        J = self.kinematics.constraint_rows(geometry.jacobian, stance.active)
        if self.base_only:
            N = base_null_space(J, self._constrained_base(stance.active))
        else:
            N = null_space(J)
        return force, self._whitened(N, state.v)

    def _whitened(self, N: FloatArray, velocity: FloatArray) -> FloatArray:
        """Return bases (n, nv, r) whose rows have errors of the same size."""
        if N.shape[2] == 0:
            return N
        still = np.abs(velocity) < self._still_velocity  # never true of the base
        if self._noise_std is not None:
            usual = float(np.mean(self._noise_std**2))
            variance = self._noise_std**2 / usual + np.where(still, _STICTION, 0.0)
            return _divide(N, variance)
        stuck = np.flatnonzero(still.any(axis=1))
        if len(stuck):
            N = np.array(N)
            N[stuck] = _divide(N[stuck], np.where(still[stuck], 1.0 + _STICTION, 1.0))
        return N

    def _constrained_base(self, active: BoolArray) -> int:
        """Return how many of the base's freedoms the contacts (nc,) take, with rigid joints."""
        if (active & self.kinematics.flat).any():
            return _BASE
        return (0, 3, 5, _BASE)[min(int(active.sum()), 3)]

    def _row_count(self, active: BoolArray) -> int:
        if self.base_only:
            return _BASE - self._constrained_base(active)
        held = int(active @ np.where(self.kinematics.flat, 6, 3))
        return max(self.robot.model.nv - held, 0)
