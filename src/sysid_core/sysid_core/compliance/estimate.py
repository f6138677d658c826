# SPDX-License-Identifier: Apache-2.0
"""Stiffness and damping of joints in all six directions, never negative."""

from dataclasses import dataclass

import numpy as np
import scipy.optimize

from sysid_core.arrays import FloatArray
from sysid_core.compliance.poses import Poses, differentiate_poses
from sysid_core.compliance.wrenches import JointLoad, joint_loads
from sysid_core.dynamics.rows import effective_sample_factor
from sysid_core.estimation.conic import cvxpy, run
from sysid_core.robot.model import Robot

__all__ = ["AXES", "Compliance", "JointCompliance", "identify_compliance"]

AXES = ("x", "y", "z", "rx", "ry", "rz")
_TINY = 1e-300


@dataclass(frozen=True)
class JointCompliance:
    """A joint as a spring and damper: wrench on the child = −K (δ − δ₀) − D δ̇."""

    joint: str
    # stiffness, damping: (6, 6) [N/m, N·m/rad; N·s/m, N·m·s/rad] symmetric and positive
    # semidefinite; diagonal unless couplings were asked for.
    stiffness: FloatArray
    damping: FloatArray
    # stiffness_std, damping_std: (6,) standard deviations of the diagonals.
    stiffness_std: FloatArray
    damping_std: FloatArray
    rest: FloatArray  # (6,) [m, rad] deflection δ₀ without load; NaN where there is no stiffness
    r2: FloatArray  # (6,) [-] share of each wrench component's variance that is explained
    rmse: FloatArray  # (6,) [N, N·m]
    load: JointLoad

    def wrench(self) -> FloatArray:
        """Return the wrench (n, 6) that springs and dampers give, less its mean."""
        modelled = -self.load.deflection @ self.stiffness - self.load.rate @ self.damping
        return np.asarray(modelled - modelled.mean(axis=0))


@dataclass(frozen=True)
class Compliance:
    """Springs and dampers of all joints that the poses determine."""

    time: FloatArray  # (n,) [s]
    joints: tuple[JointCompliance, ...]
    rate: float  # [Hz] of the poses
    smoothing: float  # Spline coefficients per pose
    warnings: tuple[str, ...]


def identify_compliance(robot: Robot, poses: Poses, *, coupled: bool = False) -> Compliance:
    """Identify every joint's stiffness and damping from the poses of the links around it.

    Parameters
    ----------
    robot : Robot
        Its kinematics, inertias and gravity are taken as known; nothing but springs and dampers
        acts across its joints.
    coupled : bool
        Full matrices, positive semidefinite, instead of diagonal ones.

    Raises
    ------
    DataError
        If the poses are too few, or not of this robot's links.
    ModelError
        If the robot has a floating base or closed loops.
    EstimationError
        If the conic program of coupled matrices is not solved.
    """
    motion = differentiate_poses(poses)
    found, warnings = [], []
    rate = (len(poses) - 1) / float(poses.time[-1] - poses.time[0])
    if motion.strained:
        warnings.append(
            f"the links vibrate too quickly for poses at {rate:.4g} Hz: results are biased; "
            "record faster, or only what comes after the ringing"
        )
    for load in joint_loads(robot, motion, poses.links):
        result = _coupled(load) if coupled else _diagonal(load)
        found.append(result)
        warnings += _doubts(result)
    return Compliance(motion.time, tuple(found), rate, motion.ratio, tuple(warnings))


def _doubts(result: JointCompliance) -> list[str]:
    warnings = []
    poor = [axis for axis, r2 in zip(AXES, result.r2, strict=True) if not r2 > 0.8]
    if poor:
        warnings.append(
            f"{result.joint}: springs and dampers explain the wrench along {', '.join(poor)} "
            "badly; something else acts there, or the poses are too noisy"
        )
    for what, value, std in (
        ("stiffness", np.diag(result.stiffness), result.stiffness_std),
        ("damping", np.diag(result.damping), result.damping_std),
    ):
        loose = [a for a, v, s in zip(AXES, value, std, strict=True) if not s < 0.1 * v]
        if loose:
            warnings.append(
                f"{result.joint}: {what} along {', '.join(loose)} is known to no better than a "
                "tenth; excite it more"
            )
    return warnings


def _columns(load: JointLoad) -> tuple[FloatArray, FloatArray]:
    """Return −[δ, δ̇] (n, 12) and wrenches (n, 6), both without means: rest and preload go."""
    columns = -np.hstack([load.deflection, load.rate])
    return columns - columns.mean(axis=0), load.wrench - load.wrench.mean(axis=0)


def _diagonal(load: JointLoad) -> JointCompliance:
    """Solve for each axis' stiffness and damping by non-negative least squares."""
    columns, wrench = _columns(load)
    stiffness, damping, std = np.zeros((6, 6)), np.zeros((6, 6)), np.zeros((2, 6))
    for k in range(6):
        A = columns[:, [k, 6 + k]]
        scale = np.maximum(np.linalg.norm(A, axis=0), _TINY)
        solution, _ = scipy.optimize.nnls(A / scale, wrench[:, k])
        residual = wrench[:, k] - A / scale @ solution
        stiffness[k, k], damping[k, k] = solution / scale
        std[:, k] = _std(A / scale, residual) / scale
    return _result(load, stiffness, damping, std)


def _std(A: FloatArray, residual: FloatArray) -> FloatArray:
    """Return the standard deviations (m,) of least squares with coloured residuals."""
    n, m = A.shape
    variance = float(residual @ residual) / max(n - m, 1) * effective_sample_factor(residual)
    gram = A.T @ A
    return np.sqrt(variance * np.clip(np.diag(np.linalg.pinv(gram, hermitian=True)), 0.0, None))


def _coupled(load: JointLoad) -> JointCompliance:
    """Solve for full matrices by a semidefinite program; axes weighted by their residuals."""
    cp = cvxpy()
    columns, wrench = _columns(load)
    scale = np.maximum(np.linalg.norm(columns, axis=0), _TINY)
    Q, R = np.linalg.qr(columns / scale)
    free = np.linalg.lstsq(columns / scale, wrench, rcond=None)[0]
    left = np.linalg.norm(wrench - columns / scale @ free, axis=0)
    noise = np.maximum(left, 1e-9 * np.linalg.norm(wrench))
    # scaled from both sides the matrices stay symmetric: K = K̃ / (s sᵀ)
    K, D = cp.Variable((6, 6), PSD=True), cp.Variable((6, 6), PSD=True)
    half = np.ones((6, 1))
    scaled = cp.vstack(
        [cp.multiply(half / scale[None, :6], K), cp.multiply(half / scale[None, 6:], D)]
    )
    residual = cp.multiply(R @ scaled - Q.T @ wrench, np.ones((12, 1)) / noise[None, :])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(residual)))
    run(problem, "CLARABEL")
    stiffness = K.value / np.outer(scale[:6], scale[:6])
    damping = D.value / np.outer(scale[6:], scale[6:])
    modelled = columns @ np.vstack([stiffness, damping])
    std = np.zeros((2, 6))
    for k in range(6):
        each = _std(columns / scale, wrench[:, k] - modelled[:, k]) / scale
        std[:, k] = each[[k, 6 + k]]
    return _result(load, stiffness, damping, std)


def _result(
    load: JointLoad, stiffness: FloatArray, damping: FloatArray, std: FloatArray
) -> JointCompliance:
    columns, wrench = _columns(load)
    residual = wrench - columns @ np.vstack([stiffness, damping])
    power = np.maximum((wrench**2).sum(axis=0), _TINY)
    r2 = 1.0 - (residual**2).sum(axis=0) / power
    preload = load.wrench.mean(axis=0) + stiffness @ load.deflection.mean(axis=0)
    preload += damping @ load.rate.mean(axis=0)
    rest = np.linalg.pinv(stiffness, hermitian=True) @ preload
    rest[np.diag(stiffness) <= 0.0] = np.nan
    rmse = np.sqrt(np.mean(residual**2, axis=0))
    return JointCompliance(load.joint, stiffness, damping, std[0], std[1], rest, r2, rmse, load)
