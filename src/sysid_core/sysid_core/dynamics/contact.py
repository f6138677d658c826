# SPDX-License-Identifier: Apache-2.0
"""Regression for a floating base in contact: rows in the null space of the contact Jacobian."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.dynamics.base_parameters import BaseParameters, find_base_parameters
from sysid_core.dynamics.contact_kinematics import (
    BASE,
    ContactKinematics,
    FloatingState,
    configuration,
    finite_samples,
    null_space,
    project,
    whitened,
)
from sysid_core.dynamics.friction import FRICTION
from sysid_core.dynamics.open_tree import OpenTree, random_states
from sysid_core.dynamics.rows import (
    OutsideWrench,
    Regression,
    RowBlock,
    Rows,
    effective_sample_factor,
)
from sysid_core.errors import DataError, ModelError, ParameterError
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.signals.rotation import rotate_into_body

__all__ = ["ContactRegression", "ProjectedResiduals", "Projection"]

_CHUNK = 128
"""Samples worked on at once: their regressors stay in the processor's cache."""
_HALVES = slice(0, 3), slice(3, BASE)  # Of the base's equations: forces and torques


class Projection(NamedTuple):
    """Samples that stand on the same feet, and how their rows are made."""

    sample: IndexArray  # (m,) indices of the samples
    basis: FloatArray  # (m, nv, r) basis N; rows are Nᵀ times the equations of motion
    force: FloatArray  # (m, nv) [N, N·m] their known part ``Sᵀτ + Jᵀw``


class ProjectedResiduals(NamedTuple):
    """What the contacts cannot explain: ``P (Sᵀτ + Jᵀw − Y x)`` with P = I − J⁺J."""

    sample: IndexArray  # (m,) indices of the samples that were usable
    # residual, target: (m, nv) [N, N·m] projected residual and projected force Sᵀτ + Jᵀw; base
    # first, then joints.
    residual: FloatArray
    target: FloatArray


class _Stance(NamedTuple):
    """Samples (m,) with the same contacts (nc,) to project out, and known wrenches (m, nc, 6)."""

    sample: IndexArray
    active: BoolArray
    wrenches: FloatArray | None


class ContactRegression(Regression):
    """Rows ``Nᵀ[Y | SᵀF] x = Nᵀ Sᵀτ`` that no contact force enters.

    N spans the null space of the stacked contact Jacobian (3 rows per point foot, 6 per flat
    one), so that ``‖NNᵀ r‖ = ‖P r‖`` with the projector P = I − J⁺J of Khorshidi et al. (2a, 6):
    the same cost with fewer rows. Measured wrenches replace the projection for the contacts
    that have them: they move to the right-hand side as Jᵀw. Samples with a number that is not
    finite give no rows.

    Raises
    ------
    ModelError
        If the robot is not floating, has loops, or describes no contacts.
    """

    groups = ("projected",)
    per_joint = False

    def __init__(self, robot: Robot) -> None:
        if robot.linked:
            raise ModelError(
                f"robot '{robot.name}' closes loops on a floating base, which has no regression "
                "yet; describe its legs one by one, or lock the joints that close the loops"
            )
        if not robot.floating:
            raise ModelError(
                f"robot '{robot.name}' needs a floating base; give 'base: floating' in its "
                "description"
            )
        super().__init__(robot)
        self.kinematics = ContactKinematics(robot)
        self._tree = OpenTree(robot)

    @cached_property
    def base(self) -> BaseParameters:
        """Structural base of the regressor."""
        size = self.layout.size
        count = max(60, 4 * size // self.robot.model.nv)
        A = self._tree.regressor(*random_states(self.robot, count))
        return find_base_parameters(A.reshape(-1, size), self.layout.labels)

    # -- rows -------------------------------------------------------------------------------

    def rows(self, samples: Samples, still_velocity: FloatArray | float = 0.0) -> Rows:
        """Return the rows of the samples, in the order of time; see `Regression.rows`.

        The torque of a joint at rest has a large error, its dry friction, which its bases mix
        into rows: they are whitened by the Cholesky factor of the error's covariance NᵀWN.

        Raises
        ------
        DataError
            If the base's odometry is missing, or both contact flags and wrenches are.
        ParameterError
            If a `still_velocity` is negative or not finite.
        """
        still = self._still_velocity(still_velocity)
        state = configuration(self.robot, samples)
        stances = self._stances(samples, state)
        sizes = np.zeros(len(samples), dtype=np.intp)
        for stance in stances:
            held = int(stance.active @ np.where(self.kinematics.flat, 6, 3))
            sizes[stance.sample] = max(self.robot.model.nv - held, 0)
        start = np.concatenate([[0], np.cumsum(sizes)])
        matrix = np.empty((start[-1], self.base.size))
        target = np.empty(start[-1])
        by_effort = np.empty((start[-1], samples.effort.shape[1]))
        for part, (own, N, force) in self._projected(samples, state, stances, still):
            NT = np.ascontiguousarray(np.swapaxes(N, 1, 2))
            where = start[own][:, None] + np.arange(NT.shape[1])
            matrix[where] = self._tree.projected(*part, self.base.columns, NT)
            target[where] = (NT @ force[:, :, None])[:, :, 0]
            by_effort[where] = NT[:, :, BASE:]
        sample = np.repeat(np.arange(len(samples)), sizes)
        by_effort[:, ~self.robot.actuated] = 0.0
        return Rows((RowBlock(matrix, target, sample),), by_effort=by_effort)

    def projections(self, samples: Samples) -> Iterator[Projection]:
        """Yield the bases of the usable samples, one stance after the other."""
        state = configuration(self.robot, samples)
        for _, found in self._projected(samples, state, self._stances(samples, state)):
            yield found

    def _projected(
        self,
        samples: Samples,
        state: FloatingState,
        stances: list[_Stance],
        still: FloatArray | float = 0.0,
    ) -> Iterator[tuple[FloatingState, Projection]]:
        """Yield the states and bases of samples; joints slower than `still` weigh less."""
        for chunk in self._chunks(stances):
            part = FloatingState(*(values[chunk.sample] for values in state))
            effort = self._effort(samples.effort[chunk.sample])
            force, N = self._force_and_basis(part, effort, chunk)
            yield part, Projection(chunk.sample, whitened(N, np.abs(part.v) < still), force)

    def _stances(self, samples: Samples, state: FloatingState) -> list[_Stance]:
        """Sort the usable samples by the contacts that are to be projected out."""
        flags, wrenches = self.contact_state(samples)
        usable = np.flatnonzero(finite_samples(self.robot, samples, state))
        code = flags[usable] @ 2.0 ** np.arange(flags.shape[1])  # sorts faster than rows do
        stances = []
        for value in np.unique(code):
            chosen = usable[code == value]
            known = None if wrenches is None else wrenches[chosen]
            stances.append(_Stance(chosen, flags[chosen[0]], known))
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
                "or complete the samples by sysid_core.contacts.condition_contacts"
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

    def _effort(self, measured: FloatArray) -> FloatArray:
        """Return torques (m, nj) of all joints; passive ones carry no motor, whatever data say."""
        return np.where(self.robot.actuated, measured, 0.0)

    def _force_and_basis(
        self, state: FloatingState, effort: FloatArray, stance: _Stance
    ) -> tuple[FloatArray, FloatArray]:
        force = np.pad(effort, ((0, 0), (BASE, 0)))
        if stance.wrenches is None:
            return force, null_space(self.kinematics.held(state.q, stance.active))
        geometry = self.kinematics.evaluate(state.q)
        force += geometry.generalised(stance.wrenches)
        return force, null_space(self.kinematics.constraint_rows(geometry.jacobian, stance.active))

    def _still_velocity(self, still_velocity: FloatArray | float) -> FloatArray:
        """Return speeds (nv,) below which dry friction is unknown; the base has none."""
        still = np.asarray(still_velocity, dtype=float)
        if not (np.isfinite(still).all() and (still >= 0.0).all()):
            raise ParameterError(
                f"still_velocity must be at least zero [rad/s], got {still_velocity}"
            )
        terms = self.robot.description.friction_terms
        has_dry = any(term.dry and term.name in terms for term in FRICTION)
        joints = np.broadcast_to(still if has_dry else 0.0, len(self.robot.joint_names))
        return np.concatenate([np.zeros(BASE), joints])

    # -- residuals --------------------------------------------------------------------------

    def residuals(self, samples: Samples, parameters: FloatArray) -> ProjectedResiduals:
        """Return the residuals of a parameter vector (p,) in joint space.

        Samples with a number that is not finite are left out.

        Raises
        ------
        DataError
            If odometry or contacts are missing, or no sample is usable.
        """
        state = configuration(self.robot, samples)
        parts = list(self.projections(samples))
        if not parts:
            raise DataError("no sample has finite motion and torque")
        sample = np.concatenate([part.sample for part in parts])
        tree = OpenTree(self.robot, parameters=parameters)
        needed = tree.torques(*(values[sample] for values in state))
        residual, target = np.empty_like(needed), np.empty_like(needed)
        start = 0
        for part in parts:
            where = slice(start, start + len(part.sample))
            start = where.stop
            residual[where] = project(part.basis, part.force - needed[where])
            target[where] = project(part.basis, part.force)
        order = np.argsort(sample)
        return ProjectedResiduals(sample[order], residual[order], target[order])

    def outside_wrenches(
        self, samples: Samples, parameters: FloatArray, still_velocity: FloatArray | float = 0.0
    ) -> Iterator[OutsideWrench]:
        """Yield what a wrench on the base would add to the rows; see `Regression`."""
        still = self._still_velocity(still_velocity)
        state = configuration(self.robot, samples)
        tree = OpenTree(self.robot, parameters=parameters)
        stances = self._stances(samples, state)
        for part, (own, N, force) in self._projected(samples, state, stances, still):
            left = np.einsum("mvr,mv->mr", N, force - tree.torques(*part))
            # the base's equations are in its own frame, a wrench that lasts in the world's
            axes = (np.tile(axis, (len(left), 1)) for axis in np.eye(3))
            turn = np.stack([rotate_into_body(part.q[:, 3:7], axis) for axis in axes], axis=2)
            columns = [N[:, half].swapaxes(1, 2) @ turn for half in _HALVES]
            yield OutsideWrench(own, np.concatenate(columns, axis=2), left)

    def correlation(self, rows: Rows, samples: Samples, parameters: FloatArray) -> FloatArray:
        """Return the factor (1,) of the residuals in joint space; see `Regression`.

        The bases N of neighbouring samples are turned arbitrarily, so single rows look white even
        where the residuals are not; back in joint space they are continuous. The mean over the
        equations of motion is weighted by their share of the squared residuals.
        """
        residual = self.residuals(samples, parameters).residual
        weight = np.sum(residual**2, axis=0)
        if not weight.any():
            return np.ones(1)
        factors = np.array([effective_sample_factor(column) for column in residual.T])
        return np.array([factors @ weight / weight.sum()])
