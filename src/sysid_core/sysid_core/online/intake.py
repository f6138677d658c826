# SPDX-License-Identifier: Apache-2.0
"""What an online identifier learns from: samples, rows, and the noise that it expects of them."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.online.stream_config import TORQUE_LIMITS
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot

__all__ = ["noise_of", "usable_samples"]


def usable_samples(robot: Robot, samples: Samples) -> Samples:
    """Leave out samples that are not finite or exceed twice the effort limit."""
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
    usable = np.hstack([np.isfinite(values), within[:, actuated]]).all(axis=1)
    return samples.select(np.flatnonzero(usable))


def noise_of(statistics: Statistics, base_vector: FloatArray) -> FloatArray:
    """Return the noise (G,) [N·m] that base parameters (b,) leave, never quite zero."""
    count = np.maximum(statistics.count, 1.0)
    floor = 1e-4 * np.sqrt(statistics.square / count)
    return np.maximum(statistics.rmse(base_vector), floor + 1e-12)
