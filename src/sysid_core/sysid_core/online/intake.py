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

__all__ = ["MODEL_ERROR", "noise_of", "usable_samples"]

MODEL_ERROR = 0.05
"""Share of a joint's torque that no rigid body with friction explains: gears lose some percent of
what they carry, and torque constants are known no better [-]."""

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


def noise_of(statistics: Statistics, anchor: Statistics, base_vector: FloatArray) -> FloatArray:
    """Return the error (G,) [N·m] to expect of a row: what base parameters (b,) leave, and more.

    A motion shows errors of the model only where it goes, so that small residuals say little of
    another motion: a share of the torque is expected to be wrong in any case. `anchor` tells the
    usual torque of a joint that hardly moved.
    """
    usual = np.maximum(_mean_square(statistics), _mean_square(anchor))
    return np.sqrt(statistics.rmse(base_vector) ** 2 + MODEL_ERROR**2 * usual) + 1e-12


def _mean_square(statistics: Statistics) -> FloatArray:
    return statistics.square / np.maximum(statistics.count, 1e-12)
