# SPDX-License-Identifier: Apache-2.0
"""Which joint's efforts have another scale, where rows mix the torques of joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.batch import Batch, rest_speed
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import Regression, Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation.problem import Problem
from sysid_core.online.anchor import Unanchored
from sysid_core.online.innovations import STILL
from sysid_core.online.torque_checks import (
    FIT_ERROR,
    GROSS,
    TorqueVerdict,
    refusing,
    stuck_torque,
    wrong_scale,
)
from sysid_core.online.torque_scale import TOLERANCE, inverse
from sysid_core.robot.model import Robot

__all__ = ["EffortChecks", "EffortScales", "EffortSums", "RecentEfforts", "find_wrong_effort"]

_EXPLAINS = 0.1
"""Log ratio of square errors by which an intolerable scale must beat all that are tolerable.
Delays, noise, joint zeros and friction of simulated quadrupeds reach 0.07, a factor of 1.5 on the
weakest of their joints 0.2, a turned sign 3."""
_NOTHING = 0.3
"""Share of its efforts that a joint's torque may be, either way, where they are only noise [-]."""
_BARELY = 0.02
"""Log ratio that tells such noise: one knee's in place of its efforts reaches 0.06 to 0.3, as its
torque is missed either way. Faults that reach as much leave more of a joint's torque than that,
but for offsets, clipping and low-passes that take all of it."""
_SAMPLES = 2000
"""Samples of a recording that scales are told from."""


@dataclass(frozen=True)
class EffortSums:
    """Sums over rows in which each joint's effort has a column of its own."""

    products: FloatArray
    """(b + nj + 1, b + nj + 1) σ ccᵀ of the base columns, then of the efforts and of what else the
    targets hold."""
    count: float  # Number of rows
    power: FloatArray  # (nj,) [N²·m²] σ τ² over the samples of the rows
    samples: float  # Number of these

    @staticmethod
    def of(rows: Rows, effort: FloatArray) -> EffortSums:
        """Return the sums over rows of one group that know the joints' efforts apart.

        `effort` (n, nj) [N·m] are the samples'.
        """
        ((A, target, sample),), by_effort = rows.blocks, rows.by_effort
        if by_effort is None:
            raise ValueError("these rows do not know joints' efforts apart")
        effort = np.nan_to_num(effort)
        own = by_effort * effort[sample]
        columns = np.column_stack([A, own, target - own.sum(axis=1)])
        used = effort[np.unique(sample)]
        power = np.asarray((used**2).sum(axis=0))
        return EffortSums(columns.T @ columns, float(len(target)), power, float(len(used)))

    def __add__(self, other: EffortSums) -> EffortSums:
        return EffortSums(
            self.products + other.products,
            self.count + other.count,
            self.power + other.power,
            self.samples + other.samples,
        )

    def scaled(self, factor: float) -> EffortSums:
        """Return the sums with every row weighted by `factor` (forgetting)."""
        return EffortSums(
            factor * self.products,
            factor * self.count,
            factor * self.power,
            factor * self.samples,
        )


class _Fit(NamedTuple):
    """Square errors over their usual size, ``uᵀ Q u``, with scales u (k,) of the efforts."""

    form: FloatArray  # (k, k): Q
    least: float  # What any model leaves

    def error(self, j: int, scale: float) -> float:
        """Return the error with another scale of joint j alone."""
        u = np.ones(len(self.form))
        u[j] = scale
        return float(u @ self.form @ u) + self.least

    def best(self, j: int) -> float:
        """Return the scale of joint j that leaves least; one where it has no effort."""
        own = float(self.form[j, j])
        return 1.0 - float(self.form[j].sum()) / own if own > 0.0 else 1.0

    def ratio(self, j: int, scale: float) -> float:
        """Return the log ratio of a scale's error to the least of joint j."""
        return float(np.log(self.error(j, scale) / self.error(j, self.best(j))))


class EffortScales:
    """Compares scales u of one joint's effort, u τ, with the bodies fitted anew to each.

    Rows of a robot in contact mix the torques of its joints: one with another sign or unit makes
    the others contradict what bodies can do. The bodies' prior is that of the `problem`, without
    its data.
    """

    def __init__(self, robot: Robot, problem: Problem) -> None:
        self._driven = [(int(j), robot.joint_names[j]) for j in np.flatnonzero(robot.actuated)]
        self._limits = robot.limits.effort
        self._mean = problem.base.project(problem.prior.mean)
        self._precision, _ = inverse(Unanchored(problem).likely)

    def judge(self, sums: EffortSums, colour: float) -> dict[int, TorqueVerdict]:
        """Judge all joints' efforts; `colour` is how many rows count for one."""
        power = sums.power / max(sums.samples, 1.0)
        least = FIT_ERROR**2 * float(power.mean())
        if not least > 0.0:
            return {}
        left = self._fit(sums, least, least).error(0, 1.0) * least / sums.count
        fit = self._fit(sums, left, least)
        rows = sums.count / colour
        # a finger may be so weak beside a knee
        still = (STILL * np.minimum(self._limits, power.max() ** 0.5)) ** 2
        return {
            j: stuck_torque(name, float(power[j]) ** 0.5, float(still[j]) ** 0.5)
            if power[j] < still[j]
            else _verdict(name, fit, j, rows)
            for j, name in self._driven
        }

    def _fit(self, sums: EffortSums, noise: float, least: float) -> _Fit:
        """Average out the bodies for rows with a mean square error of `noise` [N²·m²].

        Of it, any model leaves the `least`.
        """
        products, bodies = sums.products, len(self._mean)
        gram, cross = products[:bodies, :bodies], products[:bodies, bodies:].copy()
        square = products[bodies:, bodies:].copy()
        # the last column takes the torque that the bodies' mean explains
        square[-1] -= self._mean @ cross
        square[:-1, -1] = square[-1, :-1]
        cross[:, -1] -= gram @ self._mean
        square[-1, -1] -= self._mean @ cross[:, -1]
        information = gram / noise + self._precision
        gained = cross.T @ np.linalg.solve(information, cross) / noise
        return _Fit((square - gained) / noise, sums.count * least / noise)


def _verdict(name: str, fit: _Fit, j: int, rows: float) -> TorqueVerdict:
    best = fit.best(j)
    ratio = fit.ratio(j, float(np.clip(best, 1.0 / TOLERANCE, TOLERANCE)))
    if abs(best) < _NOTHING and ratio > _BARELY:
        message = "the torque has nothing of what masses and the other joints say of it"
        hint = "check the sensor, its cable and its joint's place in the message"
        found = Diagnostic("torque_noise", message, subject=name, hint=hint)
        return TorqueVerdict(found, 0.5 * rows * (ratio - _BARELY))
    if ratio <= _EXPLAINS and fit.ratio(j, GROSS * best) <= _EXPLAINS:
        return TorqueVerdict(None)  # these rows do not show it
    weight = 0.5 * rows * (ratio - _EXPLAINS)
    return TorqueVerdict(wrong_scale(name, 1.0 / best) if ratio > _EXPLAINS else None, weight)


class RecentEfforts:
    """Sums over the newest rows, and what they say of joints' efforts.

    Rows count half after so many samples, the `half_life`.
    """

    def __init__(self, half_life: float) -> None:
        self._forget = 0.5 ** (1.0 / half_life)
        self._sums: EffortSums | None = None

    def push(self, rows: Rows, effort: FloatArray) -> None:
        """Take in the rows of some samples, and their efforts (n, nj) [N·m]."""
        new = EffortSums.of(rows, effort)
        if self._sums is not None:
            new += self._sums.scaled(self._forget**new.samples)
        self._sums = new

    def clear(self) -> None:
        """Forget all."""
        self._sums = None

    def checks(self, scales: EffortScales) -> EffortChecks | None:
        """Return what judges the rows so far, whatever comes meanwhile."""
        return None if self._sums is None else EffortChecks(scales, self._sums)


class EffortChecks(NamedTuple):
    """Judges joints' efforts as `TorqueChecks` does, by sums of its own."""

    scales: EffortScales
    sums: EffortSums

    def judge(
        self, statistics: Statistics, correlation: FloatArray, joints: Sequence[int]
    ) -> dict[int, TorqueVerdict]:
        """Judge the torques of all joints if any are asked for; see `TorqueChecks.judge`."""
        return self.scales.judge(self.sums, float(correlation[0])) if joints else {}


def find_wrong_effort(
    regression: Regression, problem: Problem, learned: Batch, still: float
) -> tuple[Diagnostic, ...]:
    """Return the joint of a robot in contact whose efforts have another scale, if one has.

    `learned` are samples to look at; `still` as in `rest_speed`.
    """
    few = learned.select(slice(None, None, max(1, len(learned) // _SAMPLES))).samples
    rows = regression.rows(few, rest_speed(few, still))
    colour = 1.0 if problem.correlation is None else float(problem.correlation[0])
    verdicts = EffortScales(regression.robot, problem).judge(
        EffortSums.of(rows, few.effort), colour
    )
    found = [verdict.finding for verdict in refusing(verdicts, in_use=True).values()]
    # an effort that never changes was told of before its rows were left out
    return tuple(one for one in found if one is not None and one.kind != "torque_stuck")
