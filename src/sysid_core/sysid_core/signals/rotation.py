# SPDX-License-Identifier: Apache-2.0
"""Orientations as quaternions (x, y, z, w): continuity, and velocities from a sequence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError

__all__ = [
    "AngularMotion",
    "angular_motion",
    "continuous",
    "normalised",
    "rotate_into_body",
    "turned",
]

_TINY = 1e-6


class AngularMotion(NamedTuple):
    """Angular velocity and acceleration in the body frame."""

    velocity: FloatArray  # (n, 3) [rad/s]
    acceleration: FloatArray  # (n, 3) [rad/s²]


def normalised(quaternions: FloatArray) -> FloatArray:
    """Scale quaternions (n, 4) to unit length.

    Raises
    ------
    DataError
        If one is zero.
    """
    norm = np.linalg.norm(quaternions, axis=-1, keepdims=True)
    if np.any(norm < _TINY):
        row = int(np.argmax(norm[..., 0] < _TINY))
        raise DataError(f"orientation {row + 1} is a zero quaternion; mend its publisher")
    return np.asarray(quaternions / norm)


def continuous(quaternions: FloatArray) -> FloatArray:
    """Choose between q and −q, the same rotation, so that neighbours (n, 4) are close.

    NaN rows stay and do not interrupt the chain.
    """
    result = np.array(quaternions, dtype=np.float64)
    present = np.flatnonzero(np.isfinite(result).all(axis=1))
    if len(present) < 2:
        return result
    chain = result[present]
    flips = np.where(np.sum(chain[1:] * chain[:-1], axis=1) < 0.0, -1.0, 1.0)
    result[present[1:]] *= np.cumprod(flips)[:, np.newaxis]
    return result


def angular_motion(q: FloatArray, dq: FloatArray, ddq: FloatArray) -> AngularMotion:
    """Return the angular motion of a quaternion (n, 4) of any length and its derivatives.

    With the unit quaternion u = q/|q|, ω = 2 Im(u* u̇) = 2 Im(q* q̇)/|q|²; u̇* u̇ is real, so
    ω̇ = 2 Im(q* q̈)/|q|² − 2 ω (q·q̇)/|q|².
    """
    square = np.sum(q * q, axis=-1, keepdims=True)
    velocity = 2.0 * _imaginary_of_product(q, dq) / square
    growth = 2.0 * np.sum(q * dq, axis=-1, keepdims=True) / square
    acceleration = 2.0 * _imaginary_of_product(q, ddq) / square - velocity * growth
    return AngularMotion(velocity, acceleration)


def rotate_into_body(quaternions: FloatArray, vectors: FloatArray) -> FloatArray:
    """Express world vectors (n, 3) in the body frame of unit quaternions (n, 4)."""
    axis, w = -quaternions[:, :3], quaternions[:, 3:]
    twice = 2.0 * np.cross(axis, vectors)
    return np.asarray(vectors + w * twice + np.cross(axis, twice))


def turned(quaternions: FloatArray, before: FloatArray, after: FloatArray) -> FloatArray:
    """Turn orientations (n, 4) the shortest way that brings body vectors (n, 3) onto others.

    What `rotate_into_body` made `before` is along `after` with the orientations returned.
    """
    size = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    w = size + np.sum(before * after, axis=1)
    turn = normalised(np.column_stack([-np.cross(before, after), w]))
    back = quaternions * [-1.0, -1.0, -1.0, 1.0]
    real = np.sum(back * turn, axis=1, keepdims=True)
    return np.hstack([_imaginary_of_product(back, turn), real])


def _imaginary_of_product(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the vector part of a* b."""
    av, aw, bv, bw = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    return np.asarray(aw * bv - bw * av - np.cross(av, bv))
