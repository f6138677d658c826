# SPDX-License-Identifier: Apache-2.0
"""Walks of a simulated Solo12, the models that learn from them, and how these are scored."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.batch import Batch, batch_of, rows_of
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.rows import Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation import Entropic, Estimate, Problem, estimator
from sysid_core.priors import default_constraints, default_prior
from sysid_core.recording import Samples
from sysid_core.robot import Robot, load_robot
from sysid_core.signals.options import SignalConfig
from sysid_sim.run import Run, run_scenario
from sysid_sim.scenarios import find_scenario
from sysid_sim.sensors import SensorConfig

__all__ = [
    "MOTIONS",
    "Data",
    "Projector",
    "careful_rows",
    "features",
    "fit_consistent",
    "fit_svd",
    "pick",
    "simulate",
    "time_offline",
]

ROBOT = "solo12"
LEARN = "solo12_trot"
MOTIONS = {"validation": LEARN, "new trot": "solo12_new_trot", "jump": "solo12_jump"}
"""Scenario of each motion that is scored; validation is the trot that was learned from."""

_STRETCH = 1.0  # [s] of the trot's stretches: longer than a step, so that none of it is known
_HELD_OUT = 5  # One stretch in so many of the trot is kept for validation
_START = 1.5  # [s] in which robots stand before they walk


class Data(NamedTuple):
    """One seed's samples."""

    robot: Robot
    truth: FloatArray  # (p,) true parameters, drawn by the seed
    train: Batch  # Measured, to learn from
    measured: dict[str, Batch]  # Per motion, with the sensors' noise
    exact: dict[str, Batch]  # Per motion, by sensors without noise


def pick(batch: Batch, index: np.ndarray) -> Batch:
    """Return some of the samples, in the order of time."""
    index = np.sort(index)
    return replace(
        batch, samples=batch.samples.select(index), sign_factor=batch.sign_factor[index]
    )


def _scaled(sensors: SensorConfig, level: float) -> SensorConfig:
    noisy = {name: level * value for name, value in vars(sensors).items() if name != "wrenches"}
    return replace(sensors, **noisy)


def _run(scenario: str, seed: int, seconds: float, level: float) -> Run:
    chosen = find_scenario(scenario)
    sensors = _scaled(chosen.config.sensors, level)
    chosen = replace(chosen, config=replace(chosen.config, sensors=sensors))
    return run_scenario(chosen, seed=seed, duration=_START + seconds)


def _batch(robot: Robot, run: Run) -> Batch:
    batch = batch_of(robot, run.recording, SignalConfig())
    return pick(batch, np.flatnonzero(batch.samples.time >= _START))


def simulate(seed: int, seconds: float, level: float = 1.0) -> Data:
    """Simulate a seed's robot: its trot to learn from, and motions of a quarter to be scored on.

    The scenario's sensor noise is taken times `level`.
    """
    robot = load_robot(ROBOT)
    run = _run(LEARN, seed, seconds, level)
    everything = _batch(robot, run)
    held = _held_out(everything)
    measured = {"validation": pick(everything, np.flatnonzero(held))}
    exact = {}
    for motion, scenario in MOTIONS.items():
        exact[motion] = _batch(robot, _run(scenario, seed, 0.25 * seconds, 0.0))
        if motion not in measured:
            measured[motion] = _batch(robot, _run(scenario, seed, 0.25 * seconds, level))
    exact["validation"] = pick(exact["validation"], np.flatnonzero(_held_out(exact["validation"])))
    return Data(robot, run.truth, pick(everything, np.flatnonzero(~held)), measured, exact)


def _held_out(batch: Batch) -> BoolArray:
    """Return which samples (n,) lie in the stretches that are kept for validation."""
    stretch = np.floor((batch.samples.time - _START) / _STRETCH)
    return np.asarray(stretch % _HELD_OUT == _HELD_OUT - 1)


STILL = 0.01  # Share of its top speed below which a joint is at rest, as in `sysid identify`


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
