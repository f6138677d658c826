# SPDX-License-Identifier: Apache-2.0
"""Motion of a floating base from its inertial sensor, which odometry keeps from drifting."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.recording import ImuMounting, ImuRecording, Samples
from sysid_core.signals.differences import differentiate
from sysid_core.signals.filters import low_pass
from sysid_core.signals.interpolation import hermite
from sysid_core.signals.motion import BaseMotion
from sysid_core.signals.rotation import rotate_into_body

__all__ = [
    "InertialBias",
    "InertialSignal",
    "find_bias",
    "inertial_acceleration",
    "inertial_motion",
    "with_inertial",
]

_WORST_ACCELERATION = 1.0
"""Bias [m/s²] that no sensor in working order has; a tilt of six degrees looks like it."""
_WORST_RATE = 0.2
"""Bias [rad/s] that no gyroscope in working order has."""
_WORST_MISMATCH = 0.5
"""Share of the base's angular velocity that gyroscope and odometry may differ by."""
_FASTEST = 0.4
"""Share of the sensor's rate that the cut-off may reach."""
_INSTEAD = "; the base's acceleration comes from the odometry instead"


class InertialBias(NamedTuple):
    """Constant errors of an inertial sensor, in the base's axes.

    Attributes
    ----------
    angular_velocity : (3,) [rad/s]
    acceleration : (3,) [m/s²]
        What is left of gravity by a tilted odometry counts, too.
    """

    angular_velocity: FloatArray
    acceleration: FloatArray

    def trouble(self, mismatch: float) -> str:
        """Say why the sensor cannot be the base's; empty if it can.

        Parameters
        ----------
        mismatch : float [-]
            RMS difference of the angular velocities, relative to that of the odometry.
        """
        # a wrong angular velocity spoils the acceleration, too: say the cause, not the effect
        worst = float(np.abs(self.angular_velocity).max())
        if worst > _WORST_RATE:
            return (
                f"the gyroscope is off the odometry by {worst:.2g} rad/s on average: give its "
                "axes as 'imu' in the robot's description and publish rad/s"
            )
        if mismatch > _WORST_MISMATCH:
            return (
                f"gyroscope and odometry differ by {mismatch:.0%} of the base's angular velocity: "
                "give the sensor's axes as 'imu' in the robot's description, publish rad/s, and "
                "check both clocks"
            )
        worst = float(np.abs(self.acceleration).max())
        if worst > _WORST_ACCELERATION:
            return (
                f"the IMU's acceleration is off the odometry's by {worst:.2g} m/s² on average: "
                "give its place and axes as 'imu' in the robot's description, publish m/s² with "
                "gravity in them, and check the odometry's orientation"
            )
        return ""


class InertialSignal:
    """An inertial sensor's readings, low-passed at their own rate.

    Parameters
    ----------
    recording : ImuRecording
    cutoff : float [Hz]
    order : int
        Of each of the low-pass's two passes.
    gap : float
        Longest interruption that is interpolated, in the sensor's periods.

    Attributes
    ----------
    trouble : str
        Why the readings cannot be used; empty if they can.
    """

    def __init__(
        self, recording: ImuRecording, cutoff: float, order: int = 4, gap: float = 5.0
    ) -> None:
        self.mounting = recording.mounting or ImuMounting()
        self.trouble = ""
        self._slack = 0.25 / cutoff  # within the filter's edges, which are trimmed anyway
        self._runs: list[tuple[FloatArray, FloatArray]] = []
        values = np.hstack([recording.angular_velocity, recording.linear_acceleration])
        usable = np.isfinite(values).all(axis=1) & np.isfinite(recording.time)
        time, values = recording.time[usable], values[usable]
        steps = np.diff(time)
        if len(time) < 2 or np.any(steps < 0.0):
            what = "clock goes back" if len(time) > 1 else "messages hold no numbers"
            self.trouble = f"the IMU's {what}{_INSTEAD}"
            return
        fresh = np.concatenate([[True], steps > 0.0])
        time, values = time[fresh], values[fresh]
        period = float(np.median(np.diff(time)))
        if cutoff > _FASTEST / period:
            self.trouble = (
                f"the IMU's {1.0 / period:.3g} Hz are too slow for a cut-off of {cutoff:.3g} Hz: "
                f"raise its rate{_INSTEAD}"
            )
            return
        breaks = np.flatnonzero(np.diff(time) > gap * period) + 1
        for start, stop in zip([0, *breaks], [*breaks, len(time)], strict=True):
            grid = np.arange(time[start], time[stop - 1], period)
            if len(grid) < 4 * (order + 1):
                continue
            even = hermite(time[start:stop], values[start:stop], grid)
            self._runs.append((grid, low_pass(even, 1.0 / period, cutoff, order=order)))

    def at(self, time: FloatArray) -> FloatArray | None:
        """Return angular velocity and specific force (n, 6) in the sensor's axes.

        None where the sensor was silent for a part of `time` (n,) [s].
        """
        for grid, values in self._runs:
            if grid[0] <= time[0] + self._slack and grid[-1] >= time[-1] - self._slack:
                return hermite(grid, values, np.clip(time, grid[0], grid[-1]))
        return None


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
    mounting : ImuMounting
    """
    w, r = angular_velocity, np.broadcast_to(mounting.position, angular_velocity.shape)
    gravity = np.broadcast_to(mounting.gravity, specific_force.shape)
    proper = specific_force - np.cross(angular_acceleration, r) - np.cross(w, np.cross(w, r))
    return np.asarray(
        proper + rotate_into_body(orientation, gravity) - np.cross(w, linear_velocity)
    )


def find_bias(measured: BaseMotion, odometry: BaseMotion) -> tuple[InertialBias, float]:
    """Return the mean difference of inertial and odometric motion, and the gyroscope's mismatch.

    Odometry is noisy but does not drift, so its mean acceleration over a second or more is far
    better than an accelerometer's bias.
    """
    rate = measured.twist[:, 3:] - odometry.twist[:, 3:]
    bias = InertialBias(
        rate.mean(axis=0), (measured.acceleration - odometry.acceleration)[:, :3].mean(axis=0)
    )
    scale = np.sqrt(np.mean(odometry.twist[:, 3:] ** 2)) + _WORST_RATE
    return bias, float(np.sqrt(np.mean((rate - bias.angular_velocity) ** 2)) / scale)


def inertial_motion(
    readings: FloatArray,
    orientation: FloatArray,
    odometry: BaseMotion,
    mounting: ImuMounting,
    dt: float,
) -> tuple[BaseMotion, str]:
    """Return the base's motion as the inertial sensor tells it, and why it should not be used.

    Angular velocity is the gyroscope's, its derivative the angular acceleration; the linear
    acceleration is the accelerometer's, the linear velocity the odometry's. Constant biases
    against the odometry are taken off both.

    Parameters
    ----------
    readings : (n, 6)
        Angular velocity [rad/s] and specific force [m/s²] in the sensor's axes, filtered like
        everything else.
    orientation : (n, 4)
        Unit quaternion x, y, z, w of the base.
    odometry : BaseMotion
    mounting : ImuMounting
    dt : float [s]

    Returns
    -------
    motion : BaseMotion
    trouble : str
        Empty if sensor and odometry agree.
    """
    gyroscope = readings[:, :3] @ mounting.rotation.T
    force = readings[:, 3:] @ mounting.rotation.T
    turning = differentiate(gyroscope, dt)
    velocity = odometry.twist[:, :3]
    drifting = BaseMotion(np.hstack([velocity, gyroscope]), odometry.acceleration)
    bias, mismatch = find_bias(drifting, odometry)
    angular = gyroscope - bias.angular_velocity
    linear = inertial_acceleration(orientation, velocity, angular, turning, force, mounting)
    motion = BaseMotion(np.hstack([velocity, angular]), np.hstack([linear, turning]))
    shift = find_bias(motion, odometry)[0].acceleration
    motion.acceleration[:, :3] -= shift
    return motion, InertialBias(bias.angular_velocity, shift).trouble(mismatch)


def with_inertial(samples: Samples, signal: InertialSignal, dt: float) -> tuple[Samples, str]:
    """Take the base's motion from the inertial sensor, unless that is silent or implausible.

    Parameters
    ----------
    samples : Samples
        Uniform, with the base's motion by odometry.
    signal : InertialSignal
    dt : float [s]

    Returns
    -------
    samples : Samples
    trouble : str
        Why the odometry's motion was kept; empty if it was not.
    """
    pose, twist, acceleration = samples.base_pose, samples.base_twist, samples.base_acceleration
    if pose is None or twist is None or acceleration is None:
        return samples, ""
    readings = signal.at(samples.time)
    if readings is None:
        return samples, f"the IMU is silent for a part of the recording{_INSTEAD}"
    odometry = BaseMotion(twist, acceleration)
    motion, trouble = inertial_motion(readings, pose[:, 3:], odometry, signal.mounting, dt)
    if trouble:
        return samples, trouble + _INSTEAD
    return replace(samples, base_twist=motion.twist, base_acceleration=motion.acceleration), ""
