# SPDX-License-Identifier: Apache-2.0
"""Experiments of Zhang, Haugk and Vasudevan on Digit: motions, forward simulation, tracking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.integrate

from bench.digit_plant import STEP, Log, Path, Plant, Policy, simulate
from sysid_controller.dynamics import make_dynamics
from sysid_controller.laws import FeedForward, Gains, Motion
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.closed_dynamics import ClosedChainDynamics
from sysid_core.errors import EstimationError
from sysid_core.robot import Robot

__all__ = [
    "CENTRE",
    "MultiSine",
    "Segments",
    "Sine",
    "Tracking",
    "follow",
    "simulate_segments",
    "track",
]

CENTRE = np.array([0.0, 0.0, 0.3, -0.1, 0.0, 0.0])
"""Middle of all motions [rad]: hip roll, yaw, pitch, knee, toe motors A and B."""
SIGN_WIDTH = 0.05
"""Width of the models' smooth sign of Coulomb friction [rad/s]."""


def _fade(t: float, duration: float) -> tuple[float, float, float]:
    """Return a smooth rise from 0 to 1 within `duration`, with its derivatives."""
    s = min(max(t / duration, 0.0), 1.0)
    return (
        s**3 * (10.0 - 15.0 * s + 6.0 * s * s),
        30.0 * s * s * (1.0 - s) ** 2 / duration,
        60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / duration**2,
    )


class MultiSine:
    """A random sum of sines about `CENTRE` that starts and stays within the linkage's reach.

    The toe motors move against each other (pitch of the foot) and together (its roll), the
    latter less: the rods' reach is a band about the first.

    Parameters
    ----------
    seed : int
    base_frequency : float [Hz]
    harmonics : int
    """

    def __init__(self, seed: int, base_frequency: float = 0.13, harmonics: int = 8) -> None:
        rng = np.random.default_rng(seed)
        self.omega = 2.0 * np.pi * base_frequency * np.arange(1, harmonics + 1)
        share = rng.uniform(0.3, 1.0, (6, harmonics)) / np.sqrt(self.omega)
        amplitude = np.array([0.45, 0.4, 0.6, 0.6, 0.45, 0.12])[:, None]
        modes = amplitude * share / share.sum(axis=1, keepdims=True) * 1.6
        phase = rng.uniform(0.0, 2.0 * np.pi, (6, harmonics))
        mix = np.eye(6)
        mix[4:, 4:] = [[1.0, 1.0], [-1.0, 1.0]]
        self.cosine = mix @ (modes * np.cos(phase))
        self.sine = mix @ (modes * np.sin(phase))

    def __call__(self, t: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return positions, velocities and accelerations (6,) at a time [s]."""
        c, s, w = np.cos(self.omega * t), np.sin(self.omega * t), self.omega
        q = self.cosine @ s + self.sine @ c
        v = self.cosine @ (w * c) - self.sine @ (w * s)
        a = -self.cosine @ (w * w * s) - self.sine @ (w * w * c)
        f, fd, fdd = _fade(t, 2.0)
        return CENTRE + f * q, f * v + fd * q, f * a + 2.0 * fd * v + fdd * q


class Sine:
    """All joints in sines of one angular frequency [rad/s], faded in within 2 s."""

    AMPLITUDE = np.array([0.25, 0.25, 0.4, 0.4, 0.25, -0.25])

    def __init__(self, omega: float) -> None:
        self.omega = omega
        self.phase = np.array([0.0, 0.7, 1.4, 2.1, 2.8, 2.8])

    def __call__(self, t: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return positions, velocities and accelerations (6,) at a time [s]."""
        w, angle = self.omega, self.omega * t + self.phase
        q, v = self.AMPLITUDE * np.sin(angle), self.AMPLITUDE * w * np.cos(angle)
        f, fd, fdd = _fade(t, 2.0)
        return CENTRE + f * q, f * v + fd * q, -f * w * w * q + 2.0 * fd * v + fdd * q


def follow(robot: Robot, path: Path, parameters: FloatArray, gains: Gains) -> Policy:
    """Return the controller of Zhang et al. (34) with the parameters (p,) on a path."""
    dynamics = make_dynamics(robot, SIGN_WIDTH)
    dynamics.set_parameters(parameters)
    law = FeedForward(gains, measured_sign=False)

    def policy(t: float, position: FloatArray, velocity: FloatArray) -> FloatArray:
        return law(dynamics, Motion(*path(t)), position, velocity).effort

    return policy


class Tracking(NamedTuple):
    """Errors of a run after its fade-in, of the true positions, per joint (na,) [deg].

    Attributes
    ----------
    mean, maximum : (na,) [deg]
    time : (n,) [s]
    error : (n, na) [deg]
    """

    mean: FloatArray
    maximum: FloatArray
    time: FloatArray
    error: FloatArray


def track(
    plant: Plant, robot: Robot, parameters: FloatArray, omega: float, gains: Gains, seed: int
) -> Tracking:
    """Track sines of `omega` [rad/s] for three periods beyond the fade-in."""
    path = Sine(omega)
    seconds = 2.5 + 3.0 * 2.0 * np.pi / omega
    log = simulate(plant, follow(robot, path, parameters, gains), path(0.0)[0], seconds, seed)
    desired = np.array([path(float(t))[0] for t in log.time])
    error = np.degrees(desired - log.true_position)
    steady = np.abs(error[log.time >= 2.5])
    return Tracking(steady.mean(axis=0), steady.max(axis=0), log.time, error)


@dataclass(frozen=True)
class Segments:
    """Forward simulations of segments of a run.

    Attributes
    ----------
    l2 : (s, na) [rad·s^½]
        √∫ (q_simulated − q_measured)² dt of every segment and joint.
    time : (s, k) [s]
    position : (s, k, na) [rad]
        As simulated.
    """

    l2: FloatArray
    time: FloatArray
    position: FloatArray


def _advance(
    model: ClosedChainDynamics, state: FloatArray, effort: FloatArray, seconds: float
) -> FloatArray:
    """Return the state (2 na,) after a time under constant torques (na,)."""
    na = len(effort)

    def rates(_: float, y: FloatArray) -> FloatArray:
        return np.concatenate([y[na:], model.acceleration(y[:na], y[na:], effort)])

    solved = scipy.integrate.solve_ivp(
        rates, (0.0, seconds), state, method="BDF", rtol=1e-5, atol=1e-7
    )
    if not solved.success:
        raise EstimationError(f"forward simulation failed: {solved.message}")
    return np.asarray(solved.y[:, -1], dtype=float)


def simulate_segments(
    robot: Robot, parameters: FloatArray, log: Log, *, count: int, seconds: float, hold: float
) -> Segments:
    """Simulate a run in segments from its measured states under its measured torques.

    The torques are averaged over `hold` and held; a stiff integrator (BDF) runs from one change
    to the next, as friction's sign needs.

    Parameters
    ----------
    robot : Robot
    parameters : (p,)
    log : Log
    count : int
    seconds : float
        Length of a segment.
    hold : float [s]
        Period of the zero-order hold.

    Raises
    ------
    EstimationError
        If the integrator fails.
    """
    model = ClosedChainDynamics(robot, SIGN_WIDTH)
    model.set_parameters(parameters)
    length, stride = round(seconds / STEP), round(hold / STEP)
    na = len(robot.actuated_names)
    l2, times, positions = [], [], []
    for begin in range(0, count * length, length):
        state = np.concatenate([log.position[begin], log.velocity[begin]])
        path = [state[:na]]
        for at in range(begin, begin + length, stride):
            state = _advance(model, state, log.effort[at : at + stride].mean(axis=0), hold)
            path.append(state[:na])
        q = np.array(path)
        index = begin + stride * np.arange(len(q))
        error = q - log.position[np.minimum(index, len(log.position) - 1)]
        l2.append(np.sqrt(scipy.integrate.trapezoid(error**2, dx=hold, axis=0)))
        times.append(index * STEP)
        positions.append(q)
    return Segments(np.array(l2), np.array(times), np.array(positions))
