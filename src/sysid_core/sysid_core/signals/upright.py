# SPDX-License-Identifier: Apache-2.0
"""Which way is down: odometry may be tilted, and an inertial sensor feels gravity."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.recording import ImuMounting
from sysid_core.signals.rotation import rotate_into_body, turned

__all__ = ["USUAL_BIAS", "misalignment", "turn_products", "upright"]

USUAL_BIAS = 0.3  # [m/s²] what a sensor in working order has, and an odometry tilted by 2 degrees
_RATHER_BIAS = 0.15
"""Difference across gravity [m/s²] that is as likely a sensor's bias as an odometry's tilt of a
degree: the floor of a motion capture's world is often farther off, a sensor seldom."""
_MISALIGNED = 0.035
"""Angle [rad] by which axes are usually off that were not measured."""
_ALIKE = 10.0
"""Samples that stand for one independent one: the low-pass makes neighbours alike."""


def turn_products(own: FloatArray, other: FloatArray) -> FloatArray:
    """Return what `misalignment` takes the means of (n, 7), of angular velocities (n, 3) [rad/s].

    The products of the sensor's own along different axes, their vector product with what the
    odometry's have more, and the mean square of that.
    """
    more = other - own
    products = own[:, [0, 0, 1]] * own[:, [1, 2, 2]]
    return np.column_stack([products, np.cross(own, more), np.mean(more**2, axis=1)])


def misalignment(squares: FloatArray, turns: FloatArray, rows: FloatArray) -> FloatArray:
    """Return by which rotations (n, 3) [rad] the odometry's axes are off the sensor's.

    A small rotation ε adds ``ε×ω`` to an angular velocity: least squares, with what is usual as
    its prior, from means over so many samples (n,) of each axis's square (n, 3) and of
    `turn_products`.
    """
    (xy, xz, yz), cross, noise = turns[:, :3].T, turns[:, 3:6], turns[:, 6]
    normal, diagonal = np.zeros((len(turns), 3, 3)), [0, 1, 2]
    prior = np.maximum(noise * _ALIKE / np.maximum(rows, 1.0), 1e-12) / _MISALIGNED**2
    normal[:, diagonal, diagonal] = (squares.sum(axis=1) + prior)[:, None] - squares
    for value, i, j in ((xy, 0, 1), (xz, 0, 2), (yz, 1, 2)):
        normal[:, i, j] = normal[:, j, i] = -value
    return np.asarray(np.linalg.solve(normal, cross[:, :, None])[:, :, 0])


def upright(
    orientation: FloatArray, mounting: ImuMounting, shift: FloatArray, axes: FloatArray
) -> tuple[FloatArray, Diagnostic | None]:
    """Turn orientations (n, 4) so that gravity is where the sensor feels it; say if it is far off.

    They stay where the mounting says that the sensor levels no base. Of a mean difference `shift`
    (n, 3) [m/s²] of acceleration between sensor and odometry, in the base's axes, the odometry's
    tilt is what lies across gravity, where that is far larger than a sensor's bias. A rotation
    `axes` (n, 3) between the two sensors' axes that shows in the angular velocities as well is
    none: either's axes may be the wrong ones.
    """
    gravity = mounting.gravity
    square = float(gravity @ gravity)
    if square == 0.0 or not len(orientation):
        return orientation, None
    felt = rotate_into_body(orientation, np.broadcast_to(gravity, (len(orientation), 3)))
    across = shift - np.sum(shift * felt, axis=1, keepdims=True) / square * felt
    size = np.maximum(np.sum(across**2, axis=1, keepdims=True), 1e-12)
    alike = np.sum(np.cross(axes, felt) * across, axis=1, keepdims=True) / size
    askew = across * np.clip(alike, 0.0, 1.0)
    lean = (across - askew) * (size / (size + _RATHER_BIAS**2))
    told = _told(lean[-1], askew[-1], square**0.5, mounting.levels)
    return turned(orientation, felt, felt - lean) if mounting.levels else orientation, told


def _told(lean: FloatArray, askew: FloatArray, gravity: float, levels: bool) -> Diagnostic | None:
    """Say what is far off, of a tilt and of axes that are askew (3,) [m/s²]; None if neither."""
    tilt, turn = (float(np.linalg.norm(part)) for part in (lean, askew))
    if max(tilt, turn) <= USUAL_BIAS:
        return None
    angle = f"{np.degrees(np.arctan2(max(tilt, turn), gravity)):.1f}°"
    if tilt > turn:
        return Diagnostic(
            "base_tilted",
            f"gravity is {angle} off where the odometry has it, by the inertial sensor: level the "
            "odometry's world, or calibrate the sensor",
            hint="the base counts as turned to where the sensor feels gravity"
            if levels
            else "gravity is where torques tell",
        )
    return Diagnostic(
        "imu_askew",
        f"the axes of odometry and inertial sensor are {angle} off each other: turn the "
        "odometry's body frame, or give the sensor's axes as 'imu' in the robot's description",
        hint="gravity is where the odometry has it",
    )
