# SPDX-License-Identifier: Apache-2.0
"""A floating base's motion from its inertial sensor as it comes, checked against odometry."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.recording import ImuMounting
from sysid_core.signals.inertial import InertialBias, inertial_acceleration
from sysid_core.signals.motion import BaseMotion

__all__ = ["InertialFusion", "Readings"]

_MEMORY = 5.0
"""Time constant [s] of the biases: long beside the odometry's noise, short beside their drift."""
_FIRST = 0.3
"""Time [s] of agreement with the odometry before the sensor is used."""
_MISMATCH_FLOOR = 0.2
"""Angular velocity [rad/s] below which a disagreement of the gyroscope is not held against it."""


class Readings(NamedTuple):
    """Filtered readings in the sensor's axes, each (n, 3); NaN where there are none.

    Attributes
    ----------
    angular_velocity : [rad/s]
    angular_acceleration : [rad/s²]
    specific_force : [m/s²]
    """

    angular_velocity: FloatArray
    angular_acceleration: FloatArray
    specific_force: FloatArray


class InertialFusion:
    """Takes angular velocity and acceleration from the sensor, biases off, while it is plausible.

    Odometry is noisy but does not drift, the sensor the other way round. Their mean difference
    over the last seconds is taken for the sensor's bias, so that means come from the odometry and
    changes from the sensor. What one sample gives depends on those before it alone, not on how
    they were cut into batches.

    Parameters
    ----------
    mounting : ImuMounting
    rate : float [Hz]
        Of the samples.

    Attributes
    ----------
    trouble : str
        Why the sensor is not used at present; empty if nothing is held against it.
    """

    def __init__(self, mounting: ImuMounting, rate: float) -> None:
        self.mounting = mounting
        self._enough = max(1, round(_FIRST * rate))
        decay = float(np.exp(-1.0 / (_MEMORY * rate)))
        self._turning = _RunningMean(3, decay)
        self._pushing = _RunningMean(3, decay)
        self._squares = _RunningMean(2, decay)
        self.reset()

    def reset(self) -> None:
        """Forget the biases, as when time goes back."""
        self.trouble = ""
        self._learned = 0
        for mean in (self._turning, self._pushing, self._squares):
            mean.reset()

    def motion(
        self, orientation: FloatArray, odometry: BaseMotion, readings: Readings
    ) -> tuple[BaseMotion, BoolArray]:
        """Return the base's motion, and which samples (n,) have it from the sensor.

        Parameters
        ----------
        orientation : (n, 4)
            Unit quaternion x, y, z, w of the base.
        odometry : BaseMotion
        readings : Readings
        """
        used = np.zeros(len(orientation), dtype=bool)
        gyro, turning, force = (values @ self.mounting.rotation.T for values in readings)
        known = np.flatnonzero(np.isfinite(np.hstack([gyro, turning, force])).all(axis=1))
        if len(known) == 0:
            return odometry, used
        twist, acceleration = odometry.twist.copy(), odometry.acceleration.copy()
        rate = gyro[known] - twist[known, 3:]
        bias = np.stack([self._turning.push(row) for row in rate])
        angular = gyro[known] - bias
        linear = inertial_acceleration(
            orientation[known],
            twist[known, :3],
            angular,
            turning[known],
            force[known],
            self.mounting,
        )
        for i, k in enumerate(known):
            shift = self._pushing.push(linear[i] - acceleration[k, :3])
            spread = self._squares.push(np.array([rate[i] @ rate[i], twist[k, 3:] @ twist[k, 3:]]))
            self._learned += 1
            if self._learned < self._enough:
                continue
            self.trouble = _trouble(InertialBias(bias[i], shift), *spread)
            if not self.trouble:
                used[k] = True
                twist[k, 3:] = angular[i]
                acceleration[k] = np.concatenate([linear[i] - shift, turning[k]])
        return BaseMotion(twist, acceleration), used


class _RunningMean:
    """Mean of rows (n,) in which older ones count for less."""

    def __init__(self, size: int, decay: float) -> None:
        self._size, self._decay = size, decay
        self.reset()

    def reset(self) -> None:
        self._sum, self._weight = np.zeros(self._size), 0.0

    def push(self, row: FloatArray) -> FloatArray:
        """Take in a row; return the mean."""
        self._sum = self._decay * self._sum + row
        self._weight = self._decay * self._weight + 1.0
        return self._sum / self._weight


def _trouble(bias: InertialBias, disagreement: float, size: float) -> str:
    """Say why the sensor cannot be the base's, from mean squares [rad²/s²]; empty if it can."""
    around = max(0.0, disagreement - float(bias.angular_velocity @ bias.angular_velocity))
    mismatch = float(np.sqrt(around / 3.0) / (np.sqrt(size / 3.0) + _MISMATCH_FLOOR))
    return bias.trouble(mismatch)
