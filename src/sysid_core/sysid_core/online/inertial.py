# SPDX-License-Identifier: Apache-2.0
"""A floating base's motion from its inertial sensor as it comes, checked against odometry."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.recording import BoolArray, FloatArray, ImuMounting
from sysid_core.signals.inertial import InertialBias, inertial_acceleration
from sysid_core.signals.motion import BaseMotion

__all__ = ["InertialFusion", "Readings"]

_MEMORY = 5.0
"""Time constant [s] of the biases: long beside the odometry's noise, short beside their drift."""
_FIRST = 1.0
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
        self._decay = float(np.exp(-1.0 / (_MEMORY * rate)))
        # weight of the samples of the first second, under that decay
        self._enough = (1.0 - self._decay ** max(1, round(_FIRST * rate))) / (1.0 - self._decay)
        self.reset()

    def reset(self) -> None:
        """Forget the biases, as when time goes back."""
        self.trouble = ""
        self._weight = 0.0
        self._sum = np.zeros(6)
        self._squares = np.zeros(2)

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
        if not np.isfinite(readings.specific_force).any():
            return odometry, used
        gyro, turning, force = (values @ self.mounting.rotation.T for values in readings)
        velocity = odometry.twist[:, :3]
        linear = inertial_acceleration(orientation, velocity, gyro, turning, force, self.mounting)
        own = np.hstack([gyro, linear])
        other = np.hstack([odometry.twist[:, 3:], odometry.acceleration[:, :3]])
        bias = np.zeros_like(own)
        for i in np.flatnonzero(np.isfinite(own).all(axis=1)):
            used[i] = self._learn(own[i], other[i])
            bias[i] = self._sum / self._weight
        twist = np.hstack([velocity, gyro - bias[:, :3]])
        acceleration = np.hstack([linear - bias[:, 3:], turning])
        return BaseMotion(
            np.where(used[:, None], twist, odometry.twist),
            np.where(used[:, None], acceleration, odometry.acceleration),
        ), used

    def _learn(self, own: FloatArray, other: FloatArray) -> bool:
        """Take in one sample; return whether the sensor can be relied on."""
        difference = own - other
        self._weight = self._decay * self._weight + 1.0
        self._sum = self._decay * self._sum + difference
        squares = np.array([difference[:3] @ difference[:3], other[:3] @ other[:3]])
        self._squares = self._decay * self._squares + squares
        if self._weight < self._enough:
            return False
        bias = InertialBias(self._sum[:3] / self._weight, self._sum[3:] / self._weight)
        around, size = self._squares / self._weight
        spread = np.sqrt(max(0.0, around - bias.angular_velocity @ bias.angular_velocity) / 3.0)
        self.trouble = bias.trouble(float(spread / (np.sqrt(size / 3.0) + _MISMATCH_FLOOR)))
        return not self.trouble
