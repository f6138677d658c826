# SPDX-License-Identifier: Apache-2.0
"""Motion of a floating base from its inertial sensor, which odometry keeps from drifting."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.recording import ImuMounting
from sysid_core.signals.motion import BaseMotion
from sysid_core.signals.rotation import rotate_into_body
from sysid_core.signals.upright import USUAL_BIAS, misalignment, turn_products, upright

__all__ = [
    "FIRST",
    "INSTEAD",
    "SLOWEST_PERIOD",
    "Biases",
    "InertialMotion",
    "Readings",
    "RunningMean",
    "inertial_acceleration",
    "inertial_motion",
    "too_slow",
]

INSTEAD = "the base's acceleration comes from the odometry instead"
SLOWEST_PERIOD = 0.4
"""Longest period of the sensor, in periods of the cut-off: slower ones alias into the band."""

_MEMORY = 5.0
"""Time constant [s] of the biases: long beside the odometry's noise, short beside their drift."""
FIRST = 0.3
"""Time [s] of agreement with the odometry before the sensor is used."""
_WORST_ACCELERATION = 1.0
"""Bias [m/s²] that no sensor in working order has; a tilt of six degrees looks like it."""
_WORST_RATE = 0.2
"""Bias [rad/s] that no gyroscope in working order has."""
_WORST_MISMATCH = 0.75
"""Share of an axis's angular velocity by gyroscope or odometry that the other may not show: one
that turns at 3 Hz and is 70 ms late shows a quarter, one along another axis nothing."""
_SLOW = 0.05
"""Angular velocity [rad/s] that proves no mismatch: gyroscopes' noise and twice as much."""
_PIECE = 256
"""Samples whose weights are formed at once: few beside the memory, so that none underflows."""


class Readings(NamedTuple):
    """Filtered readings in the sensor's axes, each (n, 3); NaN where there are none."""

    angular_velocity: FloatArray  # [rad/s]
    angular_acceleration: FloatArray  # [rad/s²]
    specific_force: FloatArray  # [m/s²]


class RunningMean(NamedTuple):
    """Mean of rows in which older ones count for less: its weighted sum (k,) and its weight."""

    total: FloatArray
    weight: float = 0.0

    def over(self, rows: FloatArray, decay: float) -> tuple[FloatArray, RunningMean]:
        """Return the mean after each of the rows (n, k), and the state after the last."""
        total, weight = self
        means = np.empty_like(rows)
        for start in range(0, len(rows), _PIECE):
            piece = rows[start : start + _PIECE]
            power = decay ** np.arange(1, len(piece) + 1)
            totals = power[:, None] * (total + np.cumsum(piece / power[:, None], axis=0))
            weights = power * (weight + np.cumsum(1.0 / power))
            means[start : start + _PIECE] = totals / weights[:, None]
            total, weight = totals[-1], float(weights[-1])
        return means, RunningMean(total, weight)


class Biases(NamedTuple):
    """What was learned of a sensor's constant errors against the odometry."""

    # rate, acceleration: of the differences of angular velocity [rad/s] and acceleration [m/s²].
    rate: RunningMean = RunningMean(np.zeros(3))
    acceleration: RunningMean = RunningMean(np.zeros(3))
    scatter: RunningMean = RunningMean(np.zeros(3))  # Of the squares of the latter [m²/s⁴]
    squares: RunningMean = RunningMean(np.zeros(6))
    """Of each axis's squared angular velocity, and its product with the odometry's [rad²/s²]."""
    turns: RunningMean = RunningMean(np.zeros(7))  # See `turn_products`
    seen: int = 0  # Samples


class InertialMotion(NamedTuple):
    """The base's motion, and which samples (n,) have it from the sensor."""

    motion: BaseMotion
    orientation: FloatArray  # (n, 4) unit quaternion, upright as the sensor feels it
    used: BoolArray
    biases: Biases
    diagnostic: Diagnostic | None  # Why the last sample has not
    doubt: Diagnostic | None  # What the sensor says of the odometry where the last sample has


def too_slow(rate: float, cutoff: float) -> Diagnostic | None:
    """Return why a sensor of this rate [Hz] is too slow for a cut-off [Hz]; None if it is not."""
    if cutoff <= SLOWEST_PERIOD * rate:
        return None
    return Diagnostic(
        "imu_slow",
        f"'imu/data' comes at {rate:.3g} Hz, too slowly for a cut-off of {cutoff:.3g} Hz: raise "
        f"its rate to {cutoff / SLOWEST_PERIOD:.3g} Hz, or halve the cut-off",
        hint=INSTEAD,
    )


def inertial_acceleration(
    orientation: FloatArray,
    linear_velocity: FloatArray,
    angular_velocity: FloatArray,
    angular_acceleration: FloatArray,
    specific_force: FloatArray,
    mounting: ImuMounting,
) -> FloatArray:
    """Return the derivative (n, 3) [m/s²] of the base's linear velocity in its own axes.

    With the sensor at r in the base, ``v̇ = f + Rᵀg − ω̇×r − ω×(ω×r) − ω×v``.

    Parameters
    ----------
    orientation : (n, 4)
        Unit quaternion x, y, z, w of the base.
    linear_velocity, angular_velocity, angular_acceleration : (n, 3)
        Of the base, in its axes.
    specific_force : (n, 3) [m/s²]
        In the base's axes.
    """
    w, r = angular_velocity, np.broadcast_to(mounting.position, angular_velocity.shape)
    gravity = np.broadcast_to(mounting.gravity, specific_force.shape)
    proper = specific_force - np.cross(angular_acceleration, r) - np.cross(w, np.cross(w, r))
    return np.asarray(
        proper + rotate_into_body(orientation, gravity) - np.cross(w, linear_velocity)
    )


def inertial_motion(
    readings: Readings,
    orientation: FloatArray,
    odometry: BaseMotion,
    mounting: ImuMounting,
    biases: Biases,
    rate: float,
) -> InertialMotion:
    """Return the base's motion as the inertial sensor tells it while it agrees with odometry.

    Angular velocity is the gyroscope's, its derivative the angular acceleration; the linear
    acceleration is the accelerometer's, the linear velocity the odometry's. Odometry is noisy but
    does not drift, the sensor the other way round: their mean difference over the last seconds is
    taken for the sensor's bias, and where it is large for one, for a tilt of the odometry: then
    gravity is where the sensor feels it, unless torques told where it is. What one sample gives
    depends on those before it alone.

    Parameters
    ----------
    orientation : (n, 4)
        Unit quaternion x, y, z, w of the base.
    biases : Biases
        As learned so far.
    rate : float [Hz]
        Of the samples.
    """
    used = np.zeros(len(orientation), dtype=np.bool_)
    gyro, turning, force = (values @ mounting.rotation.T for values in readings)
    known = np.flatnonzero(np.isfinite(np.hstack([gyro, turning, force])).all(axis=1))
    if len(known) == 0:
        return InertialMotion(odometry, orientation, used, biases, None, None)
    decay = float(np.exp(-1.0 / (_MEMORY * rate)))
    twist, acceleration = odometry.twist[known], odometry.acceleration[known]
    difference = gyro[known] - twist[:, 3:]
    bias, rate_mean = biases.rate.over(difference, decay)
    angular = gyro[known] - bias
    linear = inertial_acceleration(
        orientation[known], twist[:, :3], angular, turning[known], force[known], mounting
    )
    off = linear - acceleration[:, :3]
    shift, shift_mean = biases.acceleration.over(off, decay)
    scatter, scatter_mean = biases.scatter.over(off**2, decay)
    seen = biases.seen + np.arange(1, len(known) + 1)
    # the odometry's noise must not pass for a bias
    rows = np.minimum(seen, 1.0 / (1.0 - decay))
    chance = (scatter - shift**2) / rows[:, None]
    shift = shift / (1.0 + np.maximum(chance, 0.0) / USUAL_BIAS**2)
    squares, squares_mean = biases.squares.over(
        np.hstack([angular**2, angular * twist[:, 3:]]), decay
    )
    turns, turns_mean = biases.turns.over(turn_products(angular, twist[:, 3:]), decay)
    figures = np.stack(
        [np.abs(bias).max(axis=1), _mismatch(squares), np.abs(shift).max(axis=1)], axis=1
    )
    worst = np.array([_WORST_RATE, _WORST_MISMATCH, _WORST_ACCELERATION])
    agrees: BoolArray = np.asarray((figures <= worst).all(axis=1))
    learned: BoolArray = np.asarray(seen >= max(1, round(FIRST * rate)))
    good: BoolArray = agrees & learned
    used[known[good]] = True
    motion = BaseMotion(odometry.twist.copy(), odometry.acceleration.copy())
    motion.twist[used, 3:] = angular[good]
    motion.acceleration[used] = np.hstack([linear - shift, turning[known]])[good]
    axes = misalignment(squares[good, :3], turns[good], rows[good])
    level = orientation.copy()
    level[used], doubt = upright(orientation[used], mounting, shift[good], axes)
    after = Biases(rate_mean, shift_mean, scatter_mean, squares_mean, turns_mean, int(seen[-1]))
    refused = learned[-1] and not agrees[-1]
    diagnostic = _disagreement(*figures[-1]) if refused else None
    return InertialMotion(motion, level, used, after, diagnostic, doubt if good[-1] else None)


def _mismatch(squares: FloatArray) -> FloatArray:
    """Return the largest share (n,) of an axis's angular velocity that one sensor alone shows.

    By the slope of the odometry's over the gyroscope's, which the odometry's noise leaves as it
    is, for mean squares and products (n, 6) as in `Biases`.
    """
    own, product = np.hsplit(squares + _SLOW**2, 2)
    slope = product / own
    share = np.where(slope > 1.0, 1.0 - 1.0 / np.maximum(slope, 1.0), 1.0 - slope)
    return np.asarray(share.max(axis=1))


def _disagreement(rate: float, mismatch: float, acceleration: float) -> Diagnostic:
    """Say why the sensor cannot be the base's: the cause, where one spoils another figure."""
    if rate > _WORST_RATE:
        kind, text = (
            "imu_rate",
            f"the gyroscope is off the odometry by {rate:.2g} rad/s on average: give its axes as "
            "'imu' in the robot's description and publish rad/s",
        )
    elif mismatch > _WORST_MISMATCH:
        kind, text = (
            "imu_mismatch",
            f"gyroscope and odometry differ by {mismatch:.0%} of the base's angular velocity: "
            "give the sensor's axes as 'imu' in the robot's description, publish rad/s, and check "
            "both clocks",
        )
    else:
        kind, text = (
            "imu_acceleration",
            f"the IMU's acceleration is off the odometry's by {acceleration:.2g} m/s² on average: "
            "give its place and axes as 'imu' in the robot's description, publish m/s² with "
            "gravity in them, and check the odometry's orientation",
        )
    return Diagnostic(kind, text, hint=INSTEAD)
