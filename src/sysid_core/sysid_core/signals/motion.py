# SPDX-License-Identifier: Apache-2.0
"""Velocities and accelerations of joints and of a floating base from filtered samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.signals.differences import differentiate
from sysid_core.signals.filters import low_pass
from sysid_core.signals.rotation import angular_motion, rotate_into_body

__all__ = [
    "BaseMotion",
    "JointMotion",
    "VelocityAgreement",
    "base_motion",
    "joint_motion",
    "velocity_agreement",
]

_WORST_ERROR = 0.1
_WORST_DELAY = 0.5
_CLEARLY_SMOOTHER = 0.95
_AT_REST = 1e-9


class JointMotion(NamedTuple):
    """Positions, velocities and accelerations, each (n, nj)."""

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray


class BaseMotion(NamedTuple):
    """Twist (n, 6) [m/s, rad/s] in the base frame and the derivative of its components."""

    twist: FloatArray
    acceleration: FloatArray


class VelocityAgreement(NamedTuple):
    """How measured velocities compare with the derivative of the positions.

    Attributes
    ----------
    error : float
        Largest RMS difference of a joint, relative to its RMS velocity.
    delay : float [samples]
        Largest delay of a joint's measured velocity.
    roughness : float
        RMS of the measured velocities' second derivative over that of the differentiated ones,
        the geometric mean of the joints: how much noise accelerations would have.
    preferable : bool
        Whether the measured velocities agree and are the smoother ones.
    """

    error: float
    delay: float
    roughness: float
    preferable: bool


def joint_motion(position: FloatArray, velocity: FloatArray | None, dt: float) -> JointMotion:
    """Differentiate filtered positions; where velocities are given, take and differentiate these.

    Parameters
    ----------
    position : (n, nj)
    velocity : (n, nj) or None
        Filtered like the positions; NaN where not measured.
    dt : float [s]
    """
    first = differentiate(position, dt)
    second = differentiate(position, dt, derivative=2)
    if velocity is not None:
        measured = np.isfinite(velocity).all(axis=0)
        first[:, measured] = velocity[:, measured]
        second[:, measured] = differentiate(velocity[:, measured], dt)
    return JointMotion(position, first, second)


def velocity_agreement(
    position: FloatArray, velocity: FloatArray, rate: float, cutoff: float
) -> VelocityAgreement:
    """Compare measured velocities with the derivative of the positions, both filtered.

    The regression of their difference on the acceleration gives the delay of the measured ones,
    which drivers that filter them cause.

    Parameters
    ----------
    position, velocity : (n, nj)
        Uniform samples; NaN columns are left out.
    """
    both = np.isfinite(position).all(axis=0) & np.isfinite(velocity).all(axis=0)
    if not both.any():
        return VelocityAgreement(np.inf, np.inf, np.inf, False)
    smooth = low_pass(position[:, both], rate, cutoff)
    expected = differentiate(smooth, 1.0 / rate)
    acceleration = differentiate(smooth, 1.0 / rate, derivative=2)
    measured = low_pass(velocity[:, both], rate, cutoff)
    difference = measured - expected
    scale = np.sqrt(np.mean(expected**2, axis=0))
    moving = scale > max(_AT_REST, 1e-3 * float(scale.max()))
    if not moving.any():
        return VelocityAgreement(0.0, 0.0, 1.0, False)
    error = np.sqrt(np.mean(difference[:, moving] ** 2, axis=0)) / scale[moving]
    slope = np.sum(difference * acceleration, axis=0)[moving]
    delay = -slope / np.sum(acceleration[:, moving] ** 2, axis=0) * rate
    jerk = [
        np.sqrt(np.mean(differentiate(v[:, moving], 1.0 / rate, derivative=2) ** 2, axis=0))
        for v in (measured, expected)
    ]
    floor = np.finfo(np.float64).tiny
    roughness = float(np.exp(np.mean(np.log((jerk[0] + floor) / (jerk[1] + floor)))))
    worst = float(error.max()), float(np.abs(delay).max())
    agrees = worst[0] <= _WORST_ERROR and worst[1] <= _WORST_DELAY
    return VelocityAgreement(*worst, roughness, agrees and roughness < _CLEARLY_SMOOTHER)


def base_motion(base: FloatArray, dt: float, *, measured: bool) -> BaseMotion:
    """Return the twist of a floating base and its derivative.

    Parameters
    ----------
    base : (n, 13)
        Filtered position in the world, quaternion x, y, z, w (continuous), measured twist in the
        base frame (NaN if not measured).
    dt : float [s]
    measured : bool
        Use the measured twist where there is one.
    """
    twist = base[:, 7:]
    if measured and np.isfinite(twist).all():
        return BaseMotion(twist, differentiate(twist, dt))
    quaternion = base[:, 3:7]
    angular = angular_motion(
        quaternion, differentiate(quaternion, dt), differentiate(quaternion, dt, derivative=2)
    )
    unit = quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True)
    linear = rotate_into_body(unit, differentiate(base[:, :3], dt))
    # d/dt (Rᵀ ṗ) = Rᵀ p̈ − ω × (Rᵀ ṗ)
    linear_rate = rotate_into_body(unit, differentiate(base[:, :3], dt, derivative=2))
    linear_rate = linear_rate - np.cross(angular.velocity, linear)
    return BaseMotion(
        np.hstack([linear, angular.velocity]), np.hstack([linear_rate, angular.acceleration])
    )
