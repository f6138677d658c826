# SPDX-License-Identifier: Apache-2.0
"""The models that the legged benchmark compares, and how it scores them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.batch import Batch, rows_of
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.rows import Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation import Entropic, Estimate, Problem, estimator
from sysid_core.priors import default_constraints, default_prior
from sysid_core.recording import Samples
from sysid_core.robot import Robot

__all__ = ["Projector", "careful_rows", "features", "fit_consistent", "fit_svd", "time_offline"]

STILL = 0.01
"""Share of its top speed below which a joint is at rest, as in `sysid identify`."""


class Projector(NamedTuple):
    """Scores torques in the contact null space, √Σ rmse² over the joints."""

    regression: ContactRegression
    samples: Samples
    rows: Rows

    @staticmethod
    def of(regression: ContactRegression, batch: Batch) -> Projector:
        """Return the scorer of samples."""
        return Projector(regression, batch.samples, rows_of(regression, batch))

    def size(self, values: FloatArray) -> float:
        """Return the size [N·m] in joint space of what rows (m,) hold."""
        start = np.searchsorted(self.rows.blocks[0].sample, np.arange(len(self.samples)))
        square = np.zeros(len(self.samples))
        for sample, basis, _ in self.regression.projections(self.samples):
            chosen = values[start[sample][:, None] + np.arange(basis.shape[2])]
            joints = (basis @ chosen[:, :, None])[:, 6:, 0]
            square[sample] = np.sum(joints**2, axis=1)
        return float(np.sqrt(np.mean(square)))

    def predicted(self, base_vector: FloatArray) -> FloatArray:
        """Return what base parameters (b,) say of the rows."""
        return np.asarray(self.rows.blocks[0].matrix @ base_vector)

    def projected(self, torques: FloatArray) -> FloatArray:
        """Return joint torques (n, nj) as rows."""
        block = self.rows.blocks[0]
        start = np.searchsorted(block.sample, np.arange(len(self.samples)))
        values = np.zeros(len(block.target))
        for sample, basis, _ in self.regression.projections(self.samples):
            where = start[sample][:, None] + np.arange(basis.shape[2])
            rows = np.swapaxes(basis[:, 6:], 1, 2) @ torques[sample][:, :, None]
            values[where] = rows[:, :, 0]
        return values


def careful_rows(robot: Robot, batch: Batch) -> Rows:
    """Return rows in which dry friction at rest does not count, as in `sysid identify`."""
    top = np.abs(batch.samples.velocity).max(axis=0)
    return rows_of(ContactRegression(robot), batch, still_velocity=STILL * top)


def fit_consistent(
    regression: ContactRegression, batch: Batch, rows: Rows, method: str = "entropic"
) -> Estimate:
    """Return the physically consistent estimate, total mass unknown, as `sysid identify` does."""
    robot = regression.robot
    problem = Problem(
        layout=robot.layout,
        base=regression.base,
        groups=regression.groups,
        statistics=Statistics.of(rows),
        prior=default_prior(robot),
        constraints=replace(default_constraints(robot), total_mass=None),
    )
    first = Entropic(covariance="none").solve(problem)
    correlation = regression.correlation(rows, batch.samples, first.parameters)
    problem = replace(problem, correlation=correlation)
    return estimator(method).solve(problem, first.parameters)


def fit_svd(rows: Rows) -> FloatArray:
    """Return the pseudo-inverse solution (b,) in base parameters, without constraints."""
    block = rows.blocks[0]
    return np.asarray(np.linalg.lstsq(block.matrix, block.target, rcond=None)[0])


def features(samples: Samples) -> FloatArray:
    """Return what the network sees: configuration without place, velocities, accelerations, feet.

    Height, orientation and joints; twist and joint rates; their derivatives; contact flags.
    """
    parts = (
        np.asarray(samples.base_pose)[:, 2:],
        samples.position,
        np.asarray(samples.base_twist),
        samples.velocity,
        np.asarray(samples.base_acceleration),
        samples.acceleration,
        np.asarray(samples.contacts, dtype=np.float64),
    )
    return np.hstack(parts)


def time_offline(robot: Robot, batch: Batch) -> float:
    """Return the time [s] of a whole offline identification from all samples of a batch."""
    begin = time.perf_counter()
    fit_consistent(ContactRegression(robot), batch, careful_rows(robot, batch))
    return time.perf_counter() - begin
