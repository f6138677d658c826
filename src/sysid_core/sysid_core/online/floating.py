# SPDX-License-Identifier: Apache-2.0
"""Odometry and inertial readings of a floating base, in step with its joint states."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.online.inertial import InertialFusion, Readings
from sysid_core.recording import ImuMounting
from sysid_core.robot.model import Robot
from sysid_core.signals.companion import CompanionStream
from sysid_core.signals.motion import BaseMotion

__all__ = ["PATIENCE", "FloatingBase", "Joined"]

PATIENCE = 1.0
"""Time [s] of joint samples that wait for odometry before the oldest are given up."""

_INERTIAL_PATIENCE = 0.1
"""Time [s] that joint samples wait for an inertial sensor that was there just now."""

_ODOMETRY = 13  # position 3, quaternion 4, twist 6
_INERTIAL = 6  # angular velocity 3, specific force 3
_SLOWEST = 0.4
"""Longest period of the inertial readings, in periods of the cut-off."""
_LONGEST = 1.0
"""Longest interruption of them that is interpolated, in periods of the cut-off."""
_FOLLOWING = 0.05
"""Share that one interval has in the mean period of the inertial readings."""
_UNIT = 1e-3
"""Deviation of a quaternion's size that rounding explains."""


class Joined(NamedTuple):
    """Joint samples and what the base did at their times.

    Attributes
    ----------
    time : (n,) [s]
    joints : (n, nc)
    odometry : (n, 13)
        Position in the world, quaternion x, y, z, w, twist in the base frame.
    inertial : (n, 6)
        Angular velocity and specific force in the sensor's axes; NaN where unknown.
    """

    time: FloatArray
    joints: FloatArray
    odometry: FloatArray
    inertial: FloatArray


class FloatingBase:
    """Holds joint samples back until the base's motion at their times is known.

    Odometry must be there; the inertial sensor improves on it while it is.

    Parameters
    ----------
    robot : Robot
    longest : float [s]
        Longest interruption of the odometry that is interpolated.
    horizon : float [s]
        Age at which messages are forgotten.
    cutoff : float [Hz]
        Of the low-pass; slower inertial readings are not used.
    rate : float [Hz]
        Of the samples that come out.
    counts, tally : Counter
        Where faults, and where facts are counted.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        longest: float,
        horizon: float,
        cutoff: float,
        rate: float,
        counts: Counter[str],
        tally: Counter[str],
    ) -> None:
        self._counts, self._tally = counts, tally
        self._odometry = CompanionStream(_ODOMETRY, longest=longest, horizon=horizon)
        self._cutoff = cutoff
        self._inertial = CompanionStream(_INERTIAL, longest=_LONGEST / cutoff, horizon=horizon)
        self._fusion = InertialFusion(
            ImuMounting(
                robot.imu_rotation, robot.imu_position, np.array(robot.description.gravity)
            ),
            rate,
        )
        self._held: list[tuple[FloatArray, FloatArray]] = []
        self._quaternion: FloatArray | None = None
        self._newest = -np.inf
        self._sensed = False
        self._last_reading = np.nan
        self._period = 0.0

    @property
    def troubles(self) -> tuple[str, ...]:
        """What is missing or implausible at present, and how to mend it."""
        found = [self._fusion.trouble] if self._fusion.trouble else []
        if self._too_slow:
            found.append(
                f"'imu/data' comes at {1.0 / self._period:.3g} Hz, too slowly for a cut-off of "
                f"{self._cutoff:.3g} Hz: raise its rate to {self._cutoff / _SLOWEST:.3g} Hz, or "
                "halve the cut-off; the base's acceleration comes from the odometry instead"
            )
        if self._newest - self._odometry.known_until > PATIENCE:
            found.append(
                "joint states come without odometry of their time: publish 'odom' "
                "(nav_msgs/Odometry) for the floating base, by the same clock"
            )
        return tuple(found)

    @property
    def _too_slow(self) -> bool:
        return self._period > _SLOWEST / self._cutoff

    def reset(self) -> None:
        """Forget everything, as when time goes back."""
        self._odometry.reset()
        self._inertial.reset()
        self._fusion.reset()
        self._held.clear()
        self._quaternion = None
        self._newest = -np.inf
        self._last_reading, self._period = np.nan, 0.0

    def push_odometry(
        self, time: float, position: FloatArray, orientation: FloatArray, twist: FloatArray
    ) -> None:
        """Take a pose [m, quaternion xyzw] and a twist [m/s, rad/s] in the base frame."""
        size = float(np.linalg.norm(orientation))
        if not size > _UNIT:
            self._counts["odometry without a unit quaternion"] += 1
            return
        if abs(size - 1.0) > _UNIT:
            self._counts["odometry quaternions scaled to unit length"] += 1
        quaternion = orientation / size
        if self._quaternion is not None and quaternion @ self._quaternion < 0.0:
            quaternion = -quaternion
        row = np.concatenate([position, quaternion, twist])
        if self._odometry.push(time, row):
            self._quaternion = quaternion
        else:
            self._counts["odometry late or not finite"] += 1

    def push_imu(
        self, time: float, angular_velocity: FloatArray, specific_force: FloatArray
    ) -> None:
        """Take readings in the sensor's axes [rad/s, m/s²]."""
        if self._inertial.push(time, np.concatenate([angular_velocity, specific_force])):
            self._sensed = True
            self._follow(time)
        else:
            self._counts["imu late or not finite"] += 1

    def _follow(self, time: float) -> None:
        """Take an inertial reading's time into their mean period."""
        step = time - self._last_reading
        self._last_reading = time
        if np.isfinite(step):
            step = min(step, 2.0 * _LONGEST / self._cutoff)
            share = _FOLLOWING if self._period > 0.0 else 1.0
            self._period += share * (step - self._period)

    def join(self, time: FloatArray, joints: FloatArray) -> Joined:
        """Take joint samples (m, nc) and return those whose base's motion is known by now."""
        self._held.append((time, joints))
        time = np.concatenate([t for t, _ in self._held])
        joints = np.concatenate([v for _, v in self._held])
        newest = self._newest = float(time[-1])
        ready = time <= min(self._odometry.known_until, self._inertial_until(newest))
        late = time < newest - PATIENCE
        waiting = ~ready & ~late
        lost = late & ~ready
        self._held = [(time[waiting], joints[waiting])] if waiting.any() else []
        time, joints = time[ready], joints[ready]
        odometry = self._odometry.at(time)
        known = np.isfinite(odometry).all(axis=1)
        self._counts["joint states without odometry"] += int(lost.sum() + (~known).sum())
        time = time[known]
        inertial = self._inertial.at(time)
        if self._too_slow:
            inertial = np.full_like(inertial, np.nan)
        return Joined(time, joints[known], odometry[known], inertial)

    def _inertial_until(self, newest: float) -> float:
        """Return up to which time joint samples need not wait for inertial readings."""
        known = self._inertial.known_until
        return known if known > newest - _INERTIAL_PATIENCE else np.inf

    def motion(
        self, orientation: FloatArray, odometry: BaseMotion, readings: Readings
    ) -> BaseMotion:
        """Return the best motion of filtered odometry and readings."""
        motion, used = self._fusion.motion(orientation, odometry, readings)
        if self._fusion.trouble:
            self._counts["samples with an implausible imu"] += int((~used).sum())
        elif self._sensed:
            missing = ~np.isfinite(readings.specific_force).all(axis=1)
            self._counts["samples without imu"] += int(missing.sum())
        self._tally["samples by imu"] += int(used.sum())
        return motion
