# SPDX-License-Identifier: Apache-2.0
"""The nominal model's torques on a wide motion, which hold what the data leave open: an anchor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import lapack

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.open_tree import random_states
from sysid_core.dynamics.rows import Regression
from sysid_core.dynamics.statistics import Statistics
from sysid_core.dynamics.sums import Places, Sums
from sysid_core.estimation import Estimate, Problem
from sysid_core.estimation.noise import WeightedSums, row_weights
from sysid_core.estimation.setting import Setting
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.threads import one_thread

__all__ = ["Unanchored", "WideMotion", "wide_motion"]

_STATES = 200
"""Random states that stand for a wide motion: several times the number of base parameters of an
arm; the mean over more of them differs by a few percent."""

_WEIGHT = 0.1
"""Weight of the motion as a share of one independent sample: ten times as much costs accuracy
where data are rich, a tenth leaves small motions to the prior, which knows no torques [-]."""

_SPEED = 0.3
"""Root mean square speed of a wide motion, as a share of the limit [-]."""

_RATE = 3.0
"""Acceleration per speed, and speed per travel, of such a motion: half a turn per second [rad/s].
A limit may be a placeholder, or lie far beyond what a joint's range lets it reach."""


def wide_motion(robot: Robot, regression: Regression) -> Statistics:
    """Return statistics of a motion through the robot's range, without torques, as a faint sample.

    Let the identified model minimise its error on the data plus its distance from the nominal
    torques on this motion. Where the data determine the torques, they outweigh it; where they do
    not, nothing else pulls the model away. Among the models that explain the data it is then
    the projection of the nominal one, in the metric of the error on a wide motion, on a set that
    holds the true one: no farther from the truth than the nominal model is, whatever moved.
    """
    q, v, a = random_states(robot, _STATES)
    base = v.shape[1] - len(robot.joint_names)
    limit = robot.limits.velocity
    joints = q[:, -len(limit) :].copy()
    speed = np.minimum(_SPEED * limit, _RATE * joints.std(axis=0))
    joints[:, ~robot.actuated] = np.nan  # solved from the loops
    nothing = np.zeros_like(joints)
    samples = Samples(
        np.arange(_STATES, dtype=float),
        joints,
        v[:, base:] * speed,
        a[:, base:] * _RATE * speed,
        nothing,
    )
    if robot.floating:
        samples = replace(
            samples,
            base_pose=q[:, :7],
            base_twist=v[:, :base],
            base_acceleration=a[:, :base],
            contacts=np.ones((_STATES, len(robot.description.contacts)), dtype=bool),
        )
    rows = regression.rows(samples)
    used = len(np.unique(np.concatenate([block.sample for block in rows.blocks])))
    return Statistics.of(rows).scaled(_WEIGHT / max(used, 1))


class WideMotion:
    """The motion of `wide_motion`, on which the torques of any parameters are told quickly."""

    def __init__(self, robot: Robot, regression: Regression) -> None:
        self._still, self._base = wide_motion(robot, regression), regression.base
        self._sums = Sums.of(self._still, Places.of(regression))

    def torques(self, parameters: FloatArray) -> Statistics:
        """Return the statistics of the motion with the torques of parameters (p,)."""
        base_vector, still = self._base.project(parameters), self._still
        moment, square = np.zeros_like(still.moment), np.zeros_like(still.square)
        for g, (support, gram, _) in enumerate(self._sums.parts):
            own = base_vector[support]
            moment[g, support] = along = gram @ own
            square[g] = along @ own
        return replace(still, moment=moment, square=square)


class Unanchored:
    """How far parameters are known without an anchor, which pulls but tells nothing.

    Its pull leaves little deviation where data are silent, and so does the curvature of
    friction's prior beside zero. Here both give way to what was likely before the data.
    """

    def __init__(self, problem: Problem) -> None:
        setting = Setting(problem, 0.0)
        self._coordinates = c = setting.coordinates
        spread = setting.likely_spread()
        self.likely = c.lifted(spread)  # (b, b) spread of the base parameters without data
        self._precision, self._summed = np.linalg.inv(spread), WeightedSums()
        # Friction is what free base parameters end with; which of it are by themselves
        first = int(np.searchsorted(c.columns, setting.divergence.split))
        self._own = np.setdiff1d(np.arange(first, c.rank), c.moved) - first
        self._friction = c.free[c.columns[first:]]

    def expected(self, nominal: FloatArray, estimate: Estimate) -> FloatArray:
        """Return nominal parameters (p,) with the friction that an estimate shows to be another.

        A description's friction may be wrong by any factor, and would pull as hard as it is
        wrong. Its distance from the estimate counts less what chance makes of it (James and
        Stein 1961: 1 − σ²/Δ², or zero).
        """
        own, expected = self._friction[self._own], nominal.copy()
        distance = estimate.parameters[own] - nominal[own]
        chance = estimate.std[own] ** 2 / np.maximum(distance**2, 1e-300)
        expected[own] += np.fmax(1.0 - chance, 0.0) * distance
        return expected

    @one_thread()
    def deviations(self, problem: Problem, estimate: Estimate) -> FloatArray:
        """Return the standard deviations (p,) of an estimate, with those of friction as here.

        Where rounding prevents that, they stay as they are.
        """
        if not len(self._own):
            return estimate.std
        weights = row_weights(estimate.noise_std, problem.correlation)
        known, _ = self._coordinates.reduce(*self._summed(problem.statistics, weights))
        factor, failed = lapack.dpotrf((known + self._precision).T, lower=1, overwrite_a=1)
        if failed:
            return estimate.std
        first = len(factor) - len(self._friction)
        root, _ = lapack.dtrtri(factor[first:, first:], lower=1)
        std, own = estimate.std.copy(), self._friction[self._own]
        likely = np.linalg.norm(np.tril(root), axis=0)[self._own]
        std[own] = np.fmax(std[own], likely)
        return std
