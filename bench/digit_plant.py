# SPDX-License-Identifier: Apache-2.0
"""A Digit leg in MuJoCo that differs from its description; no model shares its dynamics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.inertia import transform_matrix
from sysid_core.recording import Recording
from sysid_core.robot import Robot
from sysid_core.robot.loops import LoopClosure
from sysid_sim.sensors import SensorConfig
from sysid_sim.simulation import Simulation, SimulationConfig, Stribeck

__all__ = ["EFFECTS", "STEP", "Log", "Policy", "draw_parameters", "simulate"]

STEP = 1e-3
"""Period of the controller and the sensors [s]; Digit's low-level interface runs at 1 kHz."""


EFFECTS = SimulationConfig(
    period=STEP,
    latency=1,
    sensors=SensorConfig(position_noise=1e-4, velocity_noise=5e-3, effort_noise=2e-3),
    stribeck=Stribeck(level=0.2, velocity=0.1),
)
"""What the plant has and no model knows: noise, a period's latency, a Stribeck effect, and dry
friction that jumps where the models' sign is smooth."""


class Policy(Protocol):
    """A controller."""

    def __call__(self, tick: int, position: FloatArray, velocity: FloatArray) -> FloatArray:
        """Return torques (na,) [N·m] at a period for measured positions and velocities."""


@dataclass(frozen=True)
class Log:
    """A run, sampled at every period."""

    time: FloatArray  # (n,) [s]
    # position, velocity, effort: (n, na) [rad, rad/s, N·m] as measured.
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    true_position: FloatArray  # (n, na) [rad]

    def recording(self, robot: Robot) -> Recording:
        """Return what a bag of the run would hold."""
        return Recording(
            self.time, robot.actuated_names, self.position, self.velocity, self.effort
        )


def draw_parameters(robot: Robot, seed: int) -> tuple[FloatArray, dict[str, Any]]:
    """Draw the parameters (p,) of one copy of the robot, and report the draw.

    Motors' viscous and Coulomb friction differ by factors of 0.4 to 2.5, rotor inertias by 0.7 to
    1.4, sensor offsets by 0.3 N·m; passive joints rub 0.5 to 2 times as much; links are 0.9 to
    1.1 times as heavy, with centres of mass shifted by 3 mm.
    """
    rng = np.random.default_rng(seed)
    layout, x = robot.layout, robot.consistent_nominal.copy()
    motors, passive = np.flatnonzero(robot.actuated), np.flatnonzero(robot.passive)

    def factors(low: float, high: float, count: int) -> FloatArray:
        return np.exp(rng.uniform(np.log(low), np.log(high), count))

    drawn: dict[str, Any] = {"seed": seed, "motors": {}, "bodies": {}}
    changes = {
        "viscous": factors(0.4, 2.5, len(motors)),
        "coulomb": factors(0.4, 2.5, len(motors)),
        "armature": factors(0.7, 1.4, len(motors)),
    }
    for term, change in changes.items():
        x[layout.term(term).start + motors] *= change
    x[layout.term("offset").start + motors] = rng.normal(0.0, 0.3, len(motors))
    x[layout.term("viscous").start + passive] *= factors(0.5, 2.0, len(passive))
    for j, name in zip(motors, robot.actuated_names, strict=True):
        drawn["motors"][name] = {
            term: float(x[layout.term(term).start + j])
            for term in ("viscous", "coulomb", "armature", "offset")
        }
    phi = layout.inertias(x)
    for index, body in enumerate(layout.bodies):
        shift = np.zeros(3) if body.endswith("cross_link") else rng.normal(0.0, 3e-3, 3)
        scale = rng.uniform(0.9, 1.1)
        phi[index] = scale * transform_matrix(np.eye(3), shift) @ phi[index]
        drawn["bodies"][body] = {"mass_factor": scale, "com_shift": shift.tolist()}
    return x, drawn


def simulate(
    robot: Robot,
    parameters: FloatArray,
    policy: Policy,
    start: FloatArray,
    seconds: float,
    seed: int,
) -> Log:
    """Run a controller from rest at `start` (na,) [rad] on a leg that MuJoCo simulates."""
    closed = LoopClosure(robot).solve(start).configuration
    plant = Simulation(robot, parameters, EFFECTS, seed=seed, start=closed)
    n, moved = round(seconds / STEP), robot.actuated
    rows = np.empty((n, 4, int(moved.sum())))
    for tick in range(n):
        position, velocity = (values[moved] for values in plant.sense())
        reading = plant.step(policy(tick, position, velocity))
        rows[tick] = position, velocity, reading.effort[moved], plant.state.q[moved]
    return Log(STEP * np.linspace(0.0, n - 1.0, n), *np.moveaxis(rows, 1, 0))
