# SPDX-License-Identifier: Apache-2.0
"""What an online identifier learns from: samples, rows, and the noise that it expects of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import LeftOut
from sysid_core.dynamics.statistics import Statistics
from sysid_core.online.stream_config import TORQUE_LIMITS
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.robot.plausibility import BEYOND_RANGE, BEYOND_SPEED

__all__ = ["LEAST_CORRELATION", "MODEL_ERROR", "expected_errors", "usable_samples"]

MODEL_ERROR = 0.05
"""Share of a joint's torque that no rigid body with friction explains: gears lose some percent of
what they carry, and torque constants are known no better [-]."""

LEAST_CORRELATION = 20.0
"""Samples that stand for an independent one until their colour shows, and at least: recordings
have 9 to 63 [-]."""

_FARTHEST = 1e4
"""Range [rad] of a joint without limits: a sine of more has lost digits that a torque needs."""


def usable_samples(robot: Robot, samples: Samples) -> tuple[Samples, LeftOut]:
    """Leave out samples that are not finite, or where no such robot can be, and say why.

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
    finite: BoolArray = np.asarray(np.isfinite(values).all(axis=1))
    beyond = _beyond(robot, samples)
    unfit = np.stack([mask[:, actuated].any(axis=1) for *_, mask in beyond]).any(axis=0)
    left = LeftOut(int(np.count_nonzero(unfit | ~finite)))
    if left.samples:
        left = LeftOut(left.samples, tuple(_causes(robot, finite, beyond)))
    return samples.select(np.flatnonzero(finite & ~unfit)), left


def _beyond(robot: Robot, samples: Samples) -> tuple[tuple[str, str, BoolArray], ...]:
    """Return where (N, n) a signal cannot be that of the robot's joint: kind, reason, mask."""
    limits = robot.limits
    lower = np.maximum(limits.lower, -_FARTHEST) - BEYOND_RANGE
    upper = np.minimum(limits.upper, _FARTHEST) + BEYOND_RANGE
    with np.errstate(invalid="ignore"):
        return (
            (
                "position_beyond",
                "positions lie half a turn or more out of range",
                (samples.position < lower) | (samples.position > upper),
            ),
            (
                "velocity_beyond",
                f"velocities exceed {BEYOND_SPEED:g} times the limit",
                np.abs(samples.velocity) > BEYOND_SPEED * limits.velocity,
            ),
            (
                "torque_beyond",
                f"torques exceed {TORQUE_LIMITS:g} times the limit",
                np.abs(samples.effort) > TORQUE_LIMITS * limits.effort,
            ),
        )


def _causes(
    robot: Robot, finite: BoolArray, beyond: tuple[tuple[str, str, BoolArray], ...]
) -> Iterator[tuple[Diagnostic, int]]:
    """Yield why samples are left out, and how many: each counts for its first cause only."""
    lost = "{share} of the samples are left out: "
    if not finite.all():
        broken = Diagnostic("not_finite", lost + "not all of their numbers are finite")
        yield broken, int(np.count_nonzero(~finite))
    left = finite.copy()
    for kind, reason, mask in beyond:
        for joint in np.flatnonzero(mask.any(axis=0) & robot.actuated):
            here = left & mask[:, joint]
            left &= ~here
            cause = Diagnostic(
                kind,
                lost + reason,
                subject=robot.joint_names[joint],
                hint="check the units, and the limits in the robot's description",
            )
            yield cause, int(np.count_nonzero(here))


def expected_errors(
    statistics: Statistics, anchor: Statistics, base_vector: FloatArray, colour: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the error (G,) [N·m] to expect of a row, and rows (G,) that stand for one.

    Base parameters (b,) leave a part of it, whose `colour` (G,) is the residuals'. A motion shows
    errors of the model only where it goes, so that small residuals say little of another motion: a
    share of the torque is expected to be wrong in any case, of which residuals do not tell how
    long it lasts. `anchor` tells the usual torque of a joint that hardly moved.
    """
    usual = np.maximum(_mean_square(statistics), _mean_square(anchor))
    left, more = statistics.rmse(base_vector) ** 2, MODEL_ERROR**2 * usual + 1e-24
    lasting = colour * left + LEAST_CORRELATION * more
    return np.sqrt(left + more), lasting / (left + more)


def _mean_square(statistics: Statistics) -> FloatArray:
    return statistics.square / np.maximum(statistics.count, 1e-12)
