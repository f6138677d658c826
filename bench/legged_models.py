# SPDX-License-Identifier: Apache-2.0
"""The models that the legged benchmark compares, and how it scores them."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from sysid_core.estimation import Estimate, EstimatorOptions, Problem, solve
from sysid_core.inertia import pseudo_inertia_basis
from sysid_core.priors import default_constraints, default_prior
from sysid_core.recording import FloatArray, Samples
from sysid_core.regression.contact import ContactRegression
from sysid_core.regression.rows import Rows
from sysid_core.regression.statistics import Statistics

__all__ = ["Projector", "features", "fit_consistent", "fit_svd", "time_offline"]

CORRELATION = 4.0


class Projector(NamedTuple):
    """Scores torque errors in the contact null space, √Σ rmse² over the joints.

    Attributes
    ----------
    regression : ContactRegression
    samples : Samples
    rows : Rows
    """

    regression: ContactRegression
    samples: Samples
    rows: Rows

    @staticmethod
    def of(regression: ContactRegression, samples: Samples) -> Projector:
        """Return the scorer of samples."""
        return Projector(regression, samples, regression.rows(samples))

    def model(self, base_vector: FloatArray) -> float:
        """Return the error [N·m] of base parameters (b,)."""
        residual = self.rows.residuals(base_vector)[0]
        start = np.searchsorted(self.rows.blocks[0].sample, np.arange(len(self.samples)))
        square = np.zeros(len(self.samples))
        for sample, basis, _ in self.regression.projections(self.samples):
            rows = residual[start[sample][:, None] + np.arange(basis.shape[2])]
            joints = (basis @ rows[:, :, None])[:, 6:, 0]
            square[sample] = np.sum(joints**2, axis=1)
        return float(np.sqrt(np.mean(square)))

    def torques(self, predicted: FloatArray) -> float:
        """Return the error [N·m] of predicted torques (n, nj), projected like the models'."""
        error = self.samples.effort - predicted
        square = np.zeros(len(self.samples))
        for sample, basis, _ in self.regression.projections(self.samples):
            rows = np.swapaxes(basis[:, 6:], 1, 2) @ error[sample][:, :, None]
            square[sample] = np.sum((basis @ rows)[:, 6:, 0] ** 2, axis=1)
        return float(np.sqrt(np.mean(square)))


def _problem(regression: ContactRegression, rows: Rows) -> Problem:
    robot = regression.robot
    return Problem(
        layout=robot.layout,
        base=regression.base,
        groups=regression.groups,
        statistics=Statistics.of(rows),
        prior=default_prior(robot),
        constraints=replace(default_constraints(robot), total_mass=None),
        correlation=np.array([CORRELATION]),
    )


def fit_consistent(
    regression: ContactRegression, rows: Rows, method: str = "entropic"
) -> Estimate:
    """Return the physically consistent estimate, total mass unknown."""
    return solve(_problem(regression, rows), EstimatorOptions(method=method))


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


def _raw_program(regression: ContactRegression, rows: Rows) -> float:
    """Return the time [s] that CVXPY takes for the stacked rows with pseudo-inertias ⪰ 0."""
    cp: Any = import_module("cvxpy")
    layout, block = regression.layout, rows.blocks[0]
    x = cp.Variable(layout.size)
    A = block.matrix @ regression.base.mapping
    prior = default_prior(regression.robot).mean
    scale = np.maximum(np.abs(prior), 1e-4)
    noise = 0.1
    cost = cp.sum_squares((A @ x - block.target) / noise) + cp.sum_squares((x - prior) / scale)
    E = pseudo_inertia_basis()
    bodies: list[Any] = [
        sum((x[layout.body(b)][k] * E[k] for k in range(1, 10)), x[layout.body(b)][0] * E[0])
        for b in range(len(layout.bodies))
    ]
    begin = time.perf_counter()
    problem = cp.Problem(cp.Minimize(cost), [J >> 0 for J in bodies])
    problem.solve(solver=cp.CLARABEL)
    return time.perf_counter() - begin


def time_offline(
    regression: ContactRegression, samples: Samples, raw_samples: int
) -> dict[str, Any]:
    """Time the whole offline identification, and CVXPY on the raw stacked problem.

    Parameters
    ----------
    samples : Samples
        All of them are used.
    raw_samples : int
        As many go into the stacked problem; 0 leaves it out. Its time grows with their number.
    """
    fresh = ContactRegression(regression.robot)
    begin = time.perf_counter()
    rows = fresh.rows(samples)
    regressed = time.perf_counter()
    fit_consistent(fresh, rows)
    end = time.perf_counter()
    result = {
        "samples": len(samples),
        "rows_s": regressed - begin,
        "solve_s": end - regressed,
        "whole_s": end - begin,
    }
    if raw_samples:
        part = samples.select(slice(0, raw_samples))
        rows = fresh.rows(part)
        begin = time.perf_counter()
        fit_consistent(fresh, rows)
        ours = time.perf_counter() - begin
        raw = _raw_program(fresh, rows)
        result |= {"raw_samples": len(part), "raw_s": raw, "raw_ratio": raw / ours}
    return result
