# SPDX-License-Identifier: Apache-2.0
"""Whether joints' positions count from where their description says."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.batch import Batch
from sysid_core.contradiction import CERTAIN
from sysid_core.diagnostics import Diagnostic
from sysid_core.refit import SETTLED, Fit, Refit, Step

__all__ = ["JointZeros", "find_joint_zeros"]

_ROUNDS = 6
"""Most steps: torques do not change with an angle along a straight line."""
_PASSES = 12
"""Most times that joints are moved, each alone."""
_FARTHEST = 0.5
"""Longest step [rad or m]."""
_CLEAR = 3.0
"""Standard deviations from which a joint among others is told."""
_SPAN = 1e-4
"""Angle [rad or m] over which torques' slopes are taken."""


@dataclass(frozen=True)
class JointZeros:
    """Joints whose positions count from elsewhere than described."""

    joints: tuple[str, ...]
    shifts: FloatArray  # (k,) [rad or m] that their positions are too small by
    prismatic: BoolArray  # (k,)

    @property
    def largest(self) -> float:
        """Shift of the joint that turns most [rad]."""
        return float(np.abs(self.shifts[~self.prismatic]).max(initial=0.0))

    @property
    def finding(self) -> Diagnostic:
        """What to say of them."""
        off = [
            f"{shift:+.2g} m" if slides else f"{np.degrees(shift):+.2g}°"
            for shift, slides in zip(self.shifts, self.prismatic, strict=True)
        ]
        message = (
            f"torques are those of positions about {', '.join(off)} from the ones that the driver "
            "gives; masses are bent to it"
        )
        which = "this joint's zero, or mend its origin"
        if len(self.joints) > 1:
            which = "these joints' zeros, or mend their origins"
        hint = f"calibrate {which} in the URDF"
        return Diagnostic("joint_zero", message, subject=", ".join(self.joints), hint=hint)


def find_joint_zeros(refit: Refit, described: Fit) -> tuple[JointZeros, Fit] | None:
    """Return joints whose torques are those of other positions than they had, and a fit.

    What the prior's bodies weigh changes with each joint's angle, which gives a step for each
    joint alone. The likeliest is moved, and the model fitted anew, until that gains no more; then
    the next. Where none is likely alone, all are moved together, and those within three standard
    deviations of where they were moved back. Each counts as a tilt does in `find_tilt`, and costs
    a nat more where all are moved.
    """
    robot, best = described.regression.robot, described
    joints = np.arange(len(robot.joint_names))
    shift = np.zeros(len(joints))
    for _ in range(_PASSES):
        step = _step(refit, best, shift, joints)
        alone = np.where(shift == 0.0, CERTAIN, SETTLED)
        joint = int(np.argmax(step.gains - alone))
        if step.gains[joint] >= alone[joint]:
            found, moved = _settled(refit, best, shift, joints[joint : joint + 1])
            needed = float(alone[joint])
        elif not shift.any() and step.gain >= CERTAIN + len(joints):
            found, moved = _together(refit, best, joints)
            needed = CERTAIN + np.count_nonzero(moved)
        else:
            break
        if found.evidence < best.evidence + needed:
            break
        best, shift = found, moved
    if best is described:
        return None
    off = np.flatnonzero(shift)
    names = tuple(np.array(robot.joint_names)[off].tolist())
    return JointZeros(names, shift[off], np.isin(names, robot.prismatic_names)), best


def _step(refit: Refit, fit: Fit, shift: FloatArray, joints: IndexArray) -> Step:
    """Return where joints (k,) should be, by a fit whose positions are moved by a shift (nj,)."""
    regression = fit.regression
    known = regression.base.project(fit.problem.prior.mean)
    slopes = []
    for joint in joints.tolist():
        there = shift + _SPAN * (np.arange(len(shift)) == joint)
        rows = refit.rows(regression, _moved(refit.batch, there))
        pairs = zip(rows.blocks, fit.rows.blocks, strict=True)
        slopes.append([(to.matrix - of.matrix) @ known / _SPAN for to, of in pairs])
    return refit.step(fit, [np.stack(columns, axis=1) for columns in zip(*slopes, strict=True)])


def _settled(
    refit: Refit, best: Fit, shift: FloatArray, joints: IndexArray
) -> tuple[Fit, FloatArray]:
    """Return the fit where joints are moved from shifts (nj,), and where it gains no more."""
    for _ in range(_ROUNDS):
        step = _step(refit, best, shift, joints)
        if step.gain < SETTLED:
            break
        further = shift.copy()
        further[joints] += np.clip(step.mean, -_FARTHEST, _FARTHEST)
        fitted = refit.fit(best.regression, _moved(refit.batch, further))
        if fitted.evidence < best.evidence + SETTLED:
            break
        best, shift = fitted, further
    return best, shift


def _together(refit: Refit, described: Fit, joints: IndexArray) -> tuple[Fit, FloatArray]:
    """Return the fit where all joints are moved that need to be, and by how much (nj,)."""
    best, shift = _settled(refit, described, np.zeros(len(joints)), joints)
    clear = np.abs(shift) > _CLEAR * _step(refit, best, shift, joints).std
    if clear.all() or not clear.any():
        return best, shift
    fewer = np.where(clear, shift, 0.0)
    start = refit.fit(described.regression, _moved(refit.batch, fewer))
    return _settled(refit, start, fewer, joints[clear])


def _moved(batch: Batch, shift: FloatArray) -> Batch:
    position = batch.samples.position + shift
    return replace(batch, samples=replace(batch.samples, position=position))
