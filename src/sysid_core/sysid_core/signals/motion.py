# SPDX-License-Identifier: Apache-2.0
"""Velocities and accelerations of joints and of a floating base from filtered samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.signals.differences import differentiate
from sysid_core.signals.filters import Smoothed, smoothed
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
    """How measured velocities compare with the derivative of the positions."""

    error: float  # Largest RMS difference of a joint, relative to its RMS velocity
    delay: float  # [samples] largest delay of a joint's measured velocity
    roughness: float
    """RMS of the measured velocities' second derivative over that of the differentiated ones, the
    geometric mean of the joints: how much noise accelerations would have."""
    preferable: bool  # Whether the measured velocities agree and are the smoother ones


def joint_motion(position: Smoothed, velocity: Smoothed | None) -> JointMotion:
    """Return the derivatives of positions (n, nj), or of velocities where these were measured.

    Parameters
    ----------
    velocity : Smoothed or None
        NaN where not measured.
    """
    first, second = position.first, position.second
    if velocity is not None:
        measured = np.isfinite(velocity.value).all(axis=0)
        first = np.where(measured, velocity.value, first)
        second = np.where(measured, velocity.first, second)
    return JointMotion(position.value, first, second)


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
    _, expected, acceleration = smoothed(position[:, both], rate, cutoff)
    measured, _, jerk = smoothed(velocity[:, both], rate, cutoff)
    difference = measured - expected
    scale = np.sqrt(np.mean(expected**2, axis=0))
    moving = scale > max(_AT_REST, 1e-3 * float(scale.max()))
    if not moving.any():
        return VelocityAgreement(0.0, 0.0, 1.0, False)
    error = np.sqrt(np.mean(difference[:, moving] ** 2, axis=0)) / scale[moving]
    slope = np.sum(difference * acceleration, axis=0)[moving]
    delay = -slope / np.sum(acceleration[:, moving] ** 2, axis=0) * rate
    rough, smooth = (
        np.sqrt(np.mean(bends[:, moving] ** 2, axis=0))
        for bends in (jerk, differentiate(acceleration, 1.0 / rate))
    )
    floor = np.finfo(np.float64).tiny
    roughness = float(np.exp(np.mean(np.log((rough + floor) / (smooth + floor)))))
    worst = float(error.max()), float(np.abs(delay).max())
    agrees = worst[0] <= _WORST_ERROR and worst[1] <= _WORST_DELAY
    return VelocityAgreement(*worst, roughness, agrees and roughness < _CLEARLY_SMOOTHER)


def base_motion(base: Smoothed, *, measured: bool) -> BaseMotion:
    """Return the twist of a floating base and its derivative.

    Parameters
    ----------
    base : Smoothed
        Of (n, 13): position in the world, quaternion x, y, z, w (continuous), measured twist in
        the base frame (NaN if not measured).
    measured : bool
        Use the measured twist where there is one: messages that lack it have zeros.
    """
    twist = base.value[:, 7:]
    if measured and twist.any() and not np.isnan(twist).all(axis=0).any():
        return BaseMotion(twist, base.first[:, 7:])
    position, turn = slice(0, 3), slice(3, 7)
    quaternion = base.value[:, turn]
    angular = angular_motion(quaternion, base.first[:, turn], base.second[:, turn])
    unit = quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True)
    linear = rotate_into_body(unit, base.first[:, position])
    # d/dt (Rᵀ ṗ) = Rᵀ p̈ − ω × (Rᵀ ṗ)
    linear_rate = rotate_into_body(unit, base.second[:, position])
    linear_rate = linear_rate - np.cross(angular.velocity, linear)
    return BaseMotion(
        np.hstack([linear, angular.velocity]), np.hstack([linear_rate, angular.acceleration])
    )
