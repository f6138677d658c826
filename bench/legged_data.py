# SPDX-License-Identifier: Apache-2.0
"""What the legged benchmark learns from and is scored on: walks of the simulated Solo12."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.batch import Batch, batch_of
from sysid_core.robot import Robot, load_robot
from sysid_core.signals.options import SignalConfig
from sysid_sim.run import Run, run_scenario
from sysid_sim.scenarios import find_scenario
from sysid_sim.sensors import SensorConfig

__all__ = ["MOTIONS", "Data", "pick", "simulate"]

ROBOT = "solo12"
LEARN = "solo12_trot"
MOTIONS = {"validation": LEARN, "new trot": "solo12_new_trot", "jump": "solo12_jump"}
"""Scenario of each motion that is scored; validation is the trot that was learned from."""

_STRETCH = 1.0
"""Length of the trot's stretches [s]: longer than a step, so that none of it is known."""
_HELD_OUT = 5
"""One stretch in so many of the trot is kept for validation."""
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
