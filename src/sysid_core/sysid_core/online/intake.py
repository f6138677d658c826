# SPDX-License-Identifier: Apache-2.0
"""What an online identifier learns from: samples, rows, and the noise that it expects of them."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.online.stream_config import TORQUE_LIMITS
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.robot.plausibility import BEYOND_RANGE, BEYOND_SPEED

__all__ = ["noise_of", "usable_samples"]

_FARTHEST = 1e4
"""Range [rad] of a joint without limits: a sine of more has lost digits that a torque needs."""


def usable_samples(robot: Robot, samples: Samples) -> Samples:
    """Leave out samples that are not finite, or where no such robot can be.

    Positions half a turn out of range, velocities beyond ten times and torques beyond twice the
    limit are not measurements: one of them would outweigh all others in the window.
    """
    actuated = robot.actuated
    signals = (samples.effort, samples.position, samples.velocity, samples.acceleration)
    base = (samples.base_pose, samples.base_twist, samples.base_acceleration)
    values = np.hstack(
        [samples.time[:, None]]
        + [signal[:, actuated] for signal in signals]
        + [signal for signal in base if signal is not None]
    )
    with np.errstate(invalid="ignore"):
        within = np.abs(samples.effort) <= TORQUE_LIMITS * robot.limits.effort
        within &= samples.position >= np.maximum(robot.limits.lower, -_FARTHEST) - BEYOND_RANGE
        within &= samples.position <= np.minimum(robot.limits.upper, _FARTHEST) + BEYOND_RANGE
        within &= np.abs(samples.velocity) <= BEYOND_SPEED * robot.limits.velocity
    usable = np.hstack([np.isfinite(values), within[:, actuated]]).all(axis=1)
    return samples.select(np.flatnonzero(usable))


def noise_of(statistics: Statistics, base_vector: FloatArray) -> FloatArray:
    """Return the noise (G,) [N·m] that base parameters (b,) leave, never quite zero."""
    count = np.maximum(statistics.count, 1.0)
    floor = 1e-4 * np.sqrt(statistics.square / count)
    return np.maximum(statistics.rmse(base_vector), floor + 1e-12)
