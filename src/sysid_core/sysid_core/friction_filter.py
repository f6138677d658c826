# SPDX-License-Identifier: Apache-2.0
"""What the low-pass that torques go through makes of friction's columns."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.friction import FRICTION, FrictionTerm, JointMotion, smooth_sign
from sysid_core.dynamics.rows import PerJoint, Regression, RowBlock
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.signals.filters import low_pass, neighbourhood, support
from sysid_core.signals.prepare import PrepareReport

__all__ = ["filter_friction", "filtered_column", "joint_motion", "sign_factor"]

_ZERO = 1e-9
_STRAIGHT = 3.0
"""Scales of a term beyond which it hardly bends with the speed [-]."""


def sign_factor(robot: Robot, samples: Samples, report: PrepareReport) -> FloatArray:
    """Return what the low-pass does to the sign of every velocity, as a factor on the sign.

    A low-pass rounds off the step of a torque at a change of direction. Compared with an
    unfiltered sign, that looks like an error of the torque; filtering both sides of the regression
    alike takes it away (the parallel filtering of Gautier 1997).
    """
    speed, change = samples.velocity, samples.acceleration
    if robot.couplings:
        directions = np.array([coupling.direction for coupling in robot.couplings])
        speed, change = (np.hstack([x, x @ directions.T]) for x in (speed, change))
    factor = np.ones_like(speed)
    measured = np.isfinite(speed).all(axis=0)
    step = np.diff(samples.time)
    even = len(step) > 0 and np.ptp(step) < 0.5 / report.rate
    if not (even and measured.any()):
        return factor
    # torques at the ends rest on signs beyond them: there, velocities go on as they change
    beyond = np.arange(1, support(report.rate, report.cutoff) - 1)[:, np.newaxis] / report.rate
    speed, change = speed[:, measured], change[:, measured]
    ends = (speed[0] - beyond[::-1] * change[0], speed, speed[-1] + beyond * change[-1])
    signs = [smooth_sign(part, robot.description.coulomb_velocity) for part in ends]
    smooth = low_pass(np.concatenate(signs), report.rate, report.cutoff)
    certain = np.abs(signs[1]) > _ZERO
    factor[:, measured] = np.where(certain, smooth / np.where(certain, signs[1], 1.0), 1.0)
    return factor


def joint_motion(
    robot: Robot, samples: Samples, factor: FloatArray, rows: IndexArray, j: int
) -> JointMotion:
    """Return the motion (m,) of joint j at some samples; its sign has passed the filter.

    `factor` (n, nj + nc) is what `sign_factor` says of all samples.
    """
    velocity = samples.velocity[rows, j]
    return JointMotion(
        samples.position[rows, j],
        velocity,
        samples.acceleration[rows, j],
        smooth_sign(velocity, robot.description.coulomb_velocity) * factor[rows, j],
    )


def filter_friction(
    regression: Regression,
    blocks: tuple[RowBlock, ...],
    samples: Samples,
    factor: FloatArray,
    cutoff: float,
) -> None:
    """Let the columns of friction pass the filter that torques went through."""
    robot, columns = regression.robot, regression.base.columns
    for place, source in regression.layout.dry:
        column = np.flatnonzero(columns == place)
        for block in blocks:
            block.matrix[:, column] *= factor[block.sample, source, None]
    if not (isinstance(regression, PerJoint) and robot.is_tree):
        return
    for term, scales in zip(FRICTION, robot.friction_scales, strict=True):
        for j in np.flatnonzero(scales if term.scale_unit != "-" else 0.0):
            column = np.flatnonzero(columns == robot.layout.term(term.name).start + j)
            motion = joint_motion(robot, samples, factor, blocks[j].sample, int(j))
            motion = motion._replace(scale=float(scales[j]))
            blocks[j].matrix[:, column] = filtered_column(term, motion, cutoff)[:, None]


def filtered_column(term: FrictionTerm, motion: JointMotion, cutoff: float) -> FloatArray:
    """Return a term's column (m,) behind the low-pass that its torques went through.

    Where a term bends with the speed, it is averaged over the filter's neighbourhood, in which
    the velocity changes as the acceleration says. All but the step of its sign is smooth there,
    so that some places stand for all.

    Parameters
    ----------
    motion : JointMotion
        As of `joint_motion`.
    cutoff : float [Hz]
    """
    if term.column is None:
        return np.ones_like(motion.velocity)
    column = term.column(motion)
    if term.scale_unit == "-":
        return column
    time, weights = neighbourhood(cutoff)
    change = np.abs(motion.acceleration) * time[-1]
    bent = np.abs(motion.velocity) < change + _STRAIGHT * motion.scale
    velocity = motion.velocity[bent] + motion.acceleration[bent] * time[:, None]
    sign = np.sign(velocity)
    near = term.column(motion._replace(velocity=velocity, sign=sign))
    column[bent] = weights @ (near - sign * term.dry) + motion.sign[bent] * term.dry
    return column
