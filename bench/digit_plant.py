# SPDX-License-Identifier: Apache-2.0
"""A simulated Digit leg that differs from its description, with noise, Stribeck and latency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.closed_chain import ClosedChainDynamics
from sysid_core.dynamics.friction import FrictionLaw
from sysid_core.inertia import smallest_eigenvalue, transform_matrix
from sysid_core.recording import Recording
from sysid_core.robot import Robot

__all__ = ["STEP", "Effects", "Log", "Plant", "Policy", "draw_parameters", "simulate"]

STEP = 1e-3
"""Period of the controller and the sensors [s]; Digit's low-level interface runs at 1 kHz."""


@dataclass(frozen=True)
class Effects:
    """What the plant has and no model knows.

    Attributes
    ----------
    encoder_noise : float [rad]
    velocity_noise : float [rad/s]
    torque_noise : float [N·m]
        Standard deviations of the measurements.
    stribeck : float [-]
        Breakaway friction beyond Coulomb's, as a share of it.
    stribeck_velocity : float [rad/s]
        Speed at which that has fallen to 1/e.
    sign_width : float [rad/s]
        Width of the friction's smooth sign in the plant.
    latency : int
        Periods between a command and its torque.
    """

    encoder_noise: float = 1e-4
    velocity_noise: float = 5e-3
    torque_noise: float = 0.2
    stribeck: float = 0.2
    stribeck_velocity: float = 0.1
    sign_width: float = 0.05
    latency: int = 1


class Policy(Protocol):
    """A controller."""

    def __call__(self, tick: int, position: FloatArray, velocity: FloatArray) -> FloatArray:
        """Return torques (na,) [N·m] at a period for measured positions and velocities."""


@dataclass(frozen=True)
class Log:
    """A run, sampled at every period.

    Attributes
    ----------
    time : (n,) [s]
    position, velocity, effort : (n, na) [rad, rad/s, N·m]
        As measured.
    true_position : (n, na) [rad]
    true_velocity : (n, na) [rad/s]
    """

    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    true_position: FloatArray
    true_velocity: FloatArray

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
        "viscous": factors(0.4, 2.5, 6),
        "coulomb": factors(0.4, 2.5, 6),
        "armature": factors(0.7, 1.4, 6),
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
    assert (smallest_eigenvalue(phi) > 0.0).all()
    return x, drawn


class _StribeckFriction(FrictionLaw):
    """Friction with a Stribeck part `breakaway` (nj,) [N·m] beyond the law's."""

    def __init__(self, directions: FloatArray, effects: Effects, breakaway: FloatArray) -> None:
        self.effects, self.breakaway = effects, breakaway
        super().__init__(directions, effects.sign_width)

    def torque(
        self,
        position: FloatArray,
        velocity: FloatArray,
        acceleration: FloatArray,
        sign_velocity: FloatArray | None = None,
    ) -> FloatArray:
        """Return the friction torque (…, nj) [N·m], Stribeck's part included."""
        decay = np.exp(-((velocity / self.effects.stribeck_velocity) ** 2))
        extra = self.breakaway * np.tanh(velocity / self.effects.sign_width) * decay
        return super().torque(position, velocity, acceleration, sign_velocity) + extra


class Plant(ClosedChainDynamics):
    """The leg's true dynamics: drawn parameters, and a Stribeck part of its motors' friction."""

    def __init__(self, robot: Robot, parameters: FloatArray, effects: Effects) -> None:
        super().__init__(robot, effects.sign_width)
        self.effects = effects
        motors = np.where(robot.actuated, parameters[robot.layout.term("coulomb")], 0.0)
        directions, breakaway = self.friction.directions, effects.stribeck * motors
        self.tree.friction = _StribeckFriction(directions, effects, breakaway)
        self.set_parameters(parameters)

    def advance(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the state after one period under constant torque (Runge–Kutta of order 4)."""
        h, accelerate = STEP, self.acceleration
        k1 = accelerate(position, velocity, effort)
        v2 = velocity + 0.5 * h * k1
        k2 = accelerate(position + 0.5 * h * velocity, v2, effort)
        v3 = velocity + 0.5 * h * k2
        k3 = accelerate(position + 0.5 * h * v2, v3, effort)
        v4 = velocity + h * k3
        k4 = accelerate(position + h * v3, v4, effort)
        return (
            position + h / 6.0 * (velocity + 2.0 * (v2 + v3) + v4),
            velocity + h / 6.0 * (k1 + 2.0 * (k2 + k3) + k4),
        )


def simulate(plant: Plant, policy: Policy, start: FloatArray, seconds: float, seed: int) -> Log:
    """Run a controller on the plant from rest.

    Parameters
    ----------
    plant : Plant
    policy : Policy
    start : (na,) [rad]
    seconds : float
    seed : int
        Of the measurement noise.
    """
    rng, effects = np.random.default_rng(seed), plant.effects
    n, na = round(seconds / STEP), len(start)
    sizes = [effects.encoder_noise, effects.velocity_noise, effects.torque_noise]
    noise: FloatArray = rng.normal(size=(3, n, na)) * np.reshape(sizes, (3, 1, 1))
    position, velocity = start.copy(), np.zeros(na)
    true_position, true_velocity, effort = np.empty((3, n, na))
    pending = [plant.gravity(start)] * effects.latency
    for i in range(n):
        true_position[i], true_velocity[i] = position, velocity
        pending.append(policy(i, position + noise[0, i], velocity + noise[1, i]))
        effort[i] = pending.pop(0)
        position, velocity = plant.advance(position, velocity, effort[i])
    return Log(
        np.linspace(0.0, (n - 1) * STEP, n),
        true_position + noise[0],
        true_velocity + noise[1],
        effort + noise[2],
        true_position,
        true_velocity,
    )
