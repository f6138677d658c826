# SPDX-License-Identifier: Apache-2.0
"""Torque residuals of a floating base in contact, carried back into joint space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.contact_kinematics import FloatingState, configuration
from sysid_core.dynamics.tree import friction_columns
from sysid_core.errors import DataError
from sysid_core.estimation.noise import effective_sample_factor
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot

__all__ = [
    "ProjectedResiduals",
    "contact_correlation",
    "generalised_forces",
    "projected_residuals",
    "projected_rmse",
]

_BASE = 6


@dataclass(frozen=True)
class ProjectedResiduals:
    """What the contacts cannot explain: ``P (Sᵀτ + Jᵀw − Y x)`` with P = I − J⁺J.

    Attributes
    ----------
    sample : (m,)
        Indices of the samples that were usable.
    residual, target : (m, nv) [N, N·m]
        Projected residual and projected force Sᵀτ + Jᵀw; base first, then joints.
    """

    sample: IndexArray
    residual: FloatArray
    target: FloatArray

    @property
    def rmse(self) -> FloatArray:
        """Root mean square residual (nj,) [N·m] per joint."""
        return np.sqrt(np.mean(self.residual[:, _BASE:] ** 2, axis=0))

    @property
    def r2(self) -> FloatArray:
        """1 − Σe²/Σy² (nj,) [-] per joint."""
        error = np.sum(self.residual[:, _BASE:] ** 2, axis=0)
        size = np.sum(self.target[:, _BASE:] ** 2, axis=0)
        return 1.0 - error / np.maximum(size, np.finfo(float).tiny)

    @property
    def total_rmse(self) -> float:
        """√Σ rmse² over joints [N·m], the figure of Khorshidi et al."""
        return float(np.linalg.norm(self.rmse))


def generalised_forces(robot: Robot, state: FloatingState, parameters: FloatArray) -> FloatArray:
    """Return the forces (n, nv) [N, N·m] that a motion needs: ``Y x + Sᵀ F x``.

    Raises
    ------
    ModelError
        If the parameters don't belong to the robot.
    """
    model = robot.with_parameters(parameters)
    # armature is a parameter of ours; Pinocchio must not add its own
    model.armature = np.zeros(model.nv)
    data = model.createData()
    force = np.empty((len(state.q), model.nv))
    for i, (q, v, a) in enumerate(zip(*state, strict=True)):
        force[i] = pin.rnea(model, data, q, v, a)
    first = model.nv - len(robot.joint_names)
    F = friction_columns(robot, state.v[:, first:], state.a[:, first:])
    force[:, first:] += F @ parameters[robot.layout.friction]
    return force


def projected_residuals(
    regression: ContactRegression, samples: Samples, parameters: FloatArray
) -> ProjectedResiduals:
    """Return the residuals of a parameter vector (p,) in joint space.

    Samples with a number that is not finite are left out. A regression with `noise_std` or
    ``rows="base"`` gives the residuals of its own rows: ``N r`` for the basis N that it uses.

    Raises
    ------
    DataError
        If odometry or contacts are missing, or no sample is usable.
    """
    state = configuration(regression.robot, samples)
    parts = list(regression.projections(samples))
    if not parts:
        raise DataError("no sample has finite motion and torque")
    sample = np.concatenate([part.sample for part in parts])
    order = np.argsort(sample)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    motion = FloatingState(*(values[sample[order]] for values in state))
    needed = generalised_forces(regression.robot, motion, parameters)
    residual, target = np.empty_like(needed), np.empty_like(needed)
    start = 0
    for part in parts:
        where = place[start : start + len(part.sample)]
        start += len(part.sample)
        residual[where] = _project(part.basis, part.force - needed[where])
        target[where] = _project(part.basis, part.force)
    return ProjectedResiduals(sample[order], residual, target)


def _project(N: FloatArray, force: FloatArray) -> FloatArray:
    return np.asarray((N @ (np.swapaxes(N, 1, 2) @ force[:, :, None]))[:, :, 0])


def projected_rmse(robot: Robot, samples: Samples, parameters: FloatArray) -> float:
    """Return √Σ rmse² over joints [N·m] of the torque residuals in the contact null space.

    Raises
    ------
    DataError
        If odometry or contacts are missing, or no sample is usable.
    """
    return projected_residuals(ContactRegression(robot), samples, parameters).total_rmse


def contact_correlation(residuals: ProjectedResiduals, used: BoolArray | None = None) -> float:
    """Return by what factor ≥ 1 coloured residuals count for less than their number of rows.

    The bases N of neighbouring samples are turned arbitrarily, so single rows look white even
    where the residuals are not; back in joint space they are continuous. The factor is the mean
    over the equations of motion, weighted by their share of the squared residuals.

    Parameters
    ----------
    residuals : ProjectedResiduals
    used : (nv,) bool, optional
        Equations to look at; default: all.
    """
    e = residuals.residual if used is None else residuals.residual[:, used]
    weight = np.sum(e**2, axis=0)
    if not weight.any():
        return 1.0
    factors = np.array([effective_sample_factor(column) for column in e.T])
    return float(factors @ weight / weight.sum())
