# SPDX-License-Identifier: Apache-2.0
"""Whether gravity acts where a description says: robots stand on ramps and hang on walls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.contradiction import CERTAIN
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import Regression
from sysid_core.dynamics.select import make_regression
from sysid_core.errors import DataError
from sysid_core.estimation import Problem
from sysid_core.refit import SETTLED, Fit, Refit

__all__ = ["OpposedEffortsError", "Tilt", "find_tilt"]

_ROUNDS = 4
"""Most steps; from gravity upside down two were enough."""
_HOPELESS = 0.25 * CERTAIN
"""Gain in log evidence below which a first step is not tried: fits gained up to 16 times it."""
_FAR_OFF = 0.5
"""Share of the torques that the prior's bodies miss, from which on other mountings are tried."""


class OpposedEffortsError(DataError):
    """All efforts have the opposite sign of the torques that move the robot."""


@dataclass(frozen=True)
class Tilt:
    """Gravity in another direction than described."""

    gravity: FloatArray  # (3,) [m/s²] in the base frame, as strong as described
    described: FloatArray  # (3,) [m/s²]
    std: float  # [rad] of the angle between both
    floating: bool = False  # Whether it is odometry that has gravity elsewhere

    @property
    def angle(self) -> float:
        """Between the directions described and found [rad]."""
        across = np.linalg.norm(np.cross(self.described, self.gravity))
        return float(np.arctan2(across, self.described @ self.gravity))

    @property
    def finding(self) -> Diagnostic:
        """What to say of it."""
        why = (
            "the odometry's world is tilted"
            if self.floating
            else "the base is tilted or mounted otherwise"
        )
        message = (
            f"gravity acts {np.degrees(self.angle):.1f}° ± {np.degrees(self.std):.1g}° off the "
            f"description's direction: {why}"
        )
        vector = ", ".join(f"{g:.2f}" for g in self.gravity + 0.0)
        return Diagnostic("tilt", message, hint=f"set 'gravity: [{vector}]' in the description")


def find_tilt(refit: Refit, described: Fit) -> tuple[Tilt, Fit] | None:
    """Return the direction of gravity that torques tell, and a fit, where they contradict another.

    Torques are linear in gravity: three columns, what the prior's bodies weigh along each axis,
    beside the model's own give a step from the described direction to the torques'. The model is
    fitted again for that direction, and so on. It counts where its evidence, errors of all joints
    and the prior's divergence together, is better by 20 nats; errors of the model are part of it.
    A floating base's world is what its odometry makes it.

    Raises
    ------
    OpposedEffortsError
        If the torques are better explained by their opposite sign: it turns gravity, too, but also
        friction, which would then drive the joints.
    """

    def in_gravity(gravity: FloatArray) -> Regression:
        return make_regression(robot.in_gravity(gravity))

    def torques(gravity: FloatArray) -> list[FloatArray]:
        """Return what the prior's bodies take (n,) [N·m] of each group in another gravity."""
        there = in_gravity(gravity)
        return [block.matrix @ there.base.project(mean) for block in refit.rows(there).blocks]

    robot, mean = described.regression.robot, described.problem.prior.mean
    best, std = described, 0.0
    if _far_off(described.problem):  # from which a step may lead nowhere: on a wall, a ceiling?
        size = float(np.linalg.norm(robot.description.gravity))
        mounted = [refit.fit(in_gravity(size * axis)) for axis in (*np.eye(3), *-np.eye(3))]
        best = max(best, *mounted, key=lambda one: one.evidence + SETTLED * (one is described))
    for _ in range(_ROUNDS):
        gravity, std, hope = _step(refit, best, torques)
        if best is described and hope < _HOPELESS:
            break
        turned = refit.fit(in_gravity(gravity))
        if turned.evidence < max(best.evidence + SETTLED, described.evidence + CERTAIN):
            break
        best = turned
    if _opposed(described.problem):
        reverse = refit.fit(described.regression, sign=-1.0).evidence
        if reverse > max(best.evidence, described.evidence + CERTAIN):
            raise OpposedEffortsError(
                "efforts have the opposite sign of the torques that move the robot, even of "
                "friction; turn the sign of 'effort.gain' in the description"
            )
    if best.evidence < described.evidence + CERTAIN:
        return None
    was, now = (
        np.array(found.regression.robot.description.gravity) for found in (described, best)
    )
    return Tilt(now, was, std, robot.floating), best


def _far_off(problem: Problem) -> bool:
    """Whether what the prior's bodies ask for is not at all what was measured."""
    statistics = problem.statistics
    missed = statistics.rmse(problem.base.project(problem.prior.mean))
    return bool(np.linalg.norm(missed) > _FAR_OFF * np.linalg.norm(statistics.rms))


def _opposed(problem: Problem) -> bool:
    """Whether torques are rather the opposite of what the prior's bodies ask for."""
    statistics, expected = problem.statistics, problem.base.project(problem.prior.mean)
    predicted = np.einsum("b,gbc,c->g", expected, statistics.gram, expected)
    size = np.sqrt(np.maximum(predicted * statistics.square, 1e-300))
    return float(np.sum(statistics.moment @ expected / size)) < 0.0


def _step(
    refit: Refit, fit: Fit, torques: Callable[[FloatArray], list[FloatArray]]
) -> tuple[FloatArray, float, float]:
    """Return the gravity (3,) [m/s²] to try next, the deviation [rad] of its direction, the gain.

    That is in log evidence, as far as the torques are linear.
    """
    robot, base = fit.regression.robot, fit.regression.base
    gravity = np.array(robot.description.gravity)
    size, known = float(np.linalg.norm(gravity)), base.project(fit.problem.prior.mean)
    moved = [torques(gravity + size * axis) for axis in np.eye(3)]
    along = [
        np.stack([each[j] for each in moved], axis=1) - (block.matrix @ known)[:, None]
        for j, block in enumerate(fit.rows.blocks)
    ]
    step = refit.step(fit, along)
    mean, covariance = step
    turned = gravity / size + mean
    length = float(np.linalg.norm(turned))
    across = np.eye(3) - np.outer(turned, turned) / length**2
    deviation = np.sqrt(np.linalg.eigvalsh(across @ covariance @ across)[-1]) / length
    return size * turned / length, float(deviation), step.gain
