# SPDX-License-Identifier: Apache-2.0
"""Whether a joint's positions count from where its description says."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.batch import Batch
from sysid_core.contradiction import CERTAIN
from sysid_core.diagnostics import Diagnostic
from sysid_core.refit import SETTLED, Fit, Refit

__all__ = ["JointZero", "find_joint_zero"]

_ROUNDS = 6
"""Most steps: torques do not change with an angle along a straight line."""
_FARTHEST = 0.5
"""Longest step [rad or m]."""
_STEP = 1e-4
"""Angle [rad or m] over which torques' slopes are taken."""


@dataclass(frozen=True)
class JointZero:
    """A joint whose positions count from elsewhere than described."""

    joint: str
    shift: float  # [rad or m] that its positions are too small by
    prismatic: bool

    @property
    def finding(self) -> Diagnostic:
        """What to say of it."""
        off = f"{self.shift:+.2g} m" if self.prismatic else f"{np.degrees(self.shift):+.2g}°"
        message = (
            f"torques are those of positions about {off} from the ones that the driver gives; "
            "masses are bent to it"
        )
        hint = "calibrate this joint's zero, or mend its origin in the URDF"
        return Diagnostic("joint_zero", message, subject=self.joint, hint=hint)


def find_joint_zero(refit: Refit, described: Fit) -> tuple[JointZero, Fit] | None:
    """Return the joint whose torques are those of other positions than it had, and its fit.

    What the prior's bodies weigh changes with each joint's angle, which gives a step for each
    joint alone. The likeliest is moved, and the model fitted anew, until that gains no more. It
    counts as in `find_tilt`.
    """
    regression, best = described.regression, described
    joints = np.arange(len(regression.robot.joint_names))
    gains, steps = _steps(refit, best, refit.batch, joints)
    joint, shift = int(np.argmax(gains)), 0.0
    gain, step = gains[joint], steps[joint]
    for _ in range(_ROUNDS):
        if gain < (SETTLED if shift else CERTAIN):
            break
        further = shift + float(np.clip(step, -_FARTHEST, _FARTHEST))
        there = _moved(refit.batch, joint, further)
        fitted = refit.fit(regression, there)
        if fitted.evidence < best.evidence + SETTLED:
            break
        best, shift = fitted, further
        (gain,), (step,) = _steps(refit, best, there, joints[joint : joint + 1])
    if best.evidence < described.evidence + CERTAIN:
        return None
    name, slides = regression.robot.joint_names[joint], regression.robot.prismatic_names
    return JointZero(name, shift, name in slides), best


def _moved(batch: Batch, joint: int, shift: float) -> Batch:
    position = batch.samples.position.copy()
    position[:, joint] += shift
    return replace(batch, samples=replace(batch.samples, position=position))


def _steps(
    refit: Refit, fit: Fit, batch: Batch, joints: IndexArray
) -> tuple[FloatArray, FloatArray]:
    """Return of joints (k,), each moved alone, the gain (k,) in log evidence and the step (k,)."""
    regression = fit.regression
    known = regression.base.project(fit.problem.prior.mean)
    slopes = []
    for joint in joints.tolist():
        rows = refit.rows(regression, _moved(batch, joint, _STEP))
        pairs = zip(rows.blocks, fit.rows.blocks, strict=True)
        slopes.append([(to.matrix - of.matrix) @ known / _STEP for to, of in pairs])
    along = [np.stack(columns, axis=1) for columns in zip(*slopes, strict=True)]
    mean, covariance = refit.step(fit, along)
    information = np.linalg.inv(covariance)
    moment, own = information @ mean, np.diagonal(information)
    return 0.5 * moment**2 / own, moment / own
