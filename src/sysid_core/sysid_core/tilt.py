# SPDX-License-Identifier: Apache-2.0
"""Whether gravity acts where a description says: robots stand on ramps and hang on walls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.batch import Batch, rest_speed, rows_of, training_rows
from sysid_core.contradiction import CERTAIN, log_evidence
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import Regression, Rows
from sysid_core.dynamics.select import make_regression
from sysid_core.errors import DataError
from sysid_core.estimation import Entropic, Estimate, Problem
from sysid_core.estimation.noise import row_weights
from sysid_core.estimation.setting import Setting

__all__ = ["OpposedEffortsError", "Tilt", "find_tilt"]

_SAMPLES = 1000
"""Most samples that are looked at: of two numbers' doubt, most is the model's error."""
_ROUNDS = 4
"""Most steps; from gravity upside down two were enough."""
_SETTLED = 1.0
"""Gain in log evidence below which a further step is not worth its time."""


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


class _Fit(NamedTuple):
    """A model that assumes one direction of gravity, and the log evidence for it."""

    regression: Regression
    rows: Rows
    problem: Problem
    estimate: Estimate
    evidence: float


def find_tilt(
    regression: Regression,
    batch: Batch,
    still: float,
    pose: Callable[[Regression, Rows], Problem],
    estimate: Estimate,
    correlation: FloatArray,
) -> Tilt | None:
    """Return in which direction gravity acts, where torques contradict the description's.

    Torques are linear in gravity: three columns, what the prior's bodies weigh along each axis,
    beside the model's own give a step from the described direction to the torques'. The model is
    fitted again for that direction, and so on. It counts where its evidence, errors of all joints
    and the prior's divergence together, is better by 20 nats; errors of the model are part of it.
    A floating base's world is what its odometry makes it. Takes `still` as in `rest_speed`, the
    estimate with the described direction, and the correlation (G,) of its residuals.

    Raises
    ------
    OpposedEffortsError
        If the torques are better explained by their opposite sign: it turns gravity, too, but also
        friction, which would then drive the joints.
    """
    step = max(1, -(-len(batch) // _SAMPLES))
    batch = batch.select(slice(0, None, step))
    rest = rest_speed(batch.samples, still)
    colour = np.maximum(correlation / step, 1.0)
    solver = Entropic(covariance="none")

    def in_gravity(gravity: FloatArray) -> Regression:
        return make_regression(regression.robot.in_gravity(gravity))

    def rows_by(regression: Regression) -> Rows:
        regression.assume_load(estimate.parameters)
        return training_rows(regression, rows_of(regression, batch), batch, rest)

    def fit(regression: Regression, sign: float = 1.0) -> _Fit:
        rows = rows_by(regression)
        for block in rows.blocks:
            block.target[:] *= sign
        problem = replace(pose(regression, rows), correlation=colour, rows=None)
        solved = solver.solve(problem)
        evidence = log_evidence(problem, solved)
        return _Fit(regression, rows, problem, solved, evidence)

    def torques(gravity: FloatArray) -> list[FloatArray]:
        """Return what the prior's bodies take (n,) [N·m] of each group in another gravity."""
        there = in_gravity(gravity)
        return [block.matrix @ there.base.project(mean) for block in rows_by(there).blocks]

    described = best = fit(regression)
    mean = described.problem.prior.mean
    std = 0.0
    for _ in range(_ROUNDS):
        gravity, deviation = _step(best, torques)
        turned = fit(in_gravity(gravity))
        if turned.evidence < max(best.evidence + _SETTLED, described.evidence + CERTAIN):
            break
        best, std = turned, deviation
    if _opposed(described.problem):
        reverse = fit(described.regression, -1.0).evidence
        if reverse > max(best.evidence, described.evidence + CERTAIN):
            raise OpposedEffortsError(
                "efforts have the opposite sign of the torques that move the robot, even of "
                "friction; turn the sign of 'effort.gain' in the description"
            )
    if best is described:
        return None
    was, now = (
        np.array(found.regression.robot.description.gravity) for found in (described, best)
    )
    return Tilt(now, was, std, regression.robot.floating)


def _opposed(problem: Problem) -> bool:
    """Whether torques are rather the opposite of what the prior's bodies ask for."""
    statistics, expected = problem.statistics, problem.base.project(problem.prior.mean)
    predicted = np.einsum("b,gbc,c->g", expected, statistics.gram, expected)
    size = np.sqrt(np.maximum(predicted * statistics.square, 1e-300))
    return float(np.sum(statistics.moment @ expected / size)) < 0.0


def _step(
    fit: _Fit, torques: Callable[[FloatArray], list[FloatArray]]
) -> tuple[FloatArray, float]:
    """Return the gravity (3,) [m/s²] to try next, and the deviation [rad] of its direction."""
    robot, problem, base = fit.regression.robot, fit.problem, fit.regression.base
    gravity = np.array(robot.description.gravity)
    size, mean = float(np.linalg.norm(gravity)), problem.prior.mean
    moved = [torques(gravity + size * axis) for axis in np.eye(3)]
    setting = Setting(problem, 0.0)
    mapping = base.mapping[:, setting.coordinates.free]
    values, axes = np.linalg.eigh(mapping @ setting.gaussian.covariance @ mapping.T)
    root = axes * np.sqrt(np.maximum(values, 0.0))
    known = base.project(mean)
    weights = np.sqrt(row_weights(fit.estimate.noise_std, problem.correlation))
    information, moment = np.eye(len(values) + 3), np.zeros(len(values) + 3)
    for j, (block, weight) in enumerate(zip(fit.rows.blocks, weights, strict=True)):
        present = block.matrix @ known
        along = np.stack([each[j] - present for each in moved], axis=1)
        columns = weight * np.hstack([block.matrix @ root, along])
        information += columns.T @ columns
        moment += columns.T @ (weight * (block.target - present))
    covariance = np.linalg.inv(information)
    turned = gravity / size + (covariance @ moment)[-3:]
    length = float(np.linalg.norm(turned))
    across = np.eye(3) - np.outer(turned, turned) / length**2
    deviation = np.sqrt(np.linalg.eigvalsh(across @ covariance[-3:, -3:] @ across)[-1]) / length
    return size * turned / length, float(deviation)
