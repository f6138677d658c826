# SPDX-License-Identifier: Apache-2.0
"""Experiments of Zhang, Haugk and Vasudevan on Digit: motions, forward simulation, tracking."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.integrate

from bench.digit_plant import STEP, Log, Policy, simulate
from sysid_controller.laws import FeedForward, Gains, Motion
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.closed_chain import ClosedChainDynamics
from sysid_core.dynamics.select import make_dynamics
from sysid_core.errors import EstimationError
from sysid_core.excitation.fourier import FadedMotion, FourierMotion
from sysid_core.robot import Robot

__all__ = [
    "CENTRE",
    "Tracking",
    "follow",
    "multi_sine",
    "simulate_segments",
    "track",
]

CENTRE = np.array([0.0, 0.0, 0.3, -0.1, 0.0, 0.0])
"""Middle of all motions [rad]: hip roll, yaw, pitch, knee, toe motors A and B."""
SIGN_WIDTH = 0.05
"""Width of the models' smooth sign of Coulomb friction [rad/s]."""


FADE = 2.0
"""Time in which all motions grow from rest [s]."""
_BASE_FREQUENCY, _HARMONICS = 0.13, 8  # [Hz, -]


def multi_sine(seed: int) -> FadedMotion:
    """Return a random sum of sines about `CENTRE` that stays within the linkage's reach.

    The toe motors move against each other (pitch of the foot) and together (its roll), the
    latter less: the rods' reach is a band about the first.
    """
    rng = np.random.default_rng(seed)
    omega = 2.0 * np.pi * _BASE_FREQUENCY * np.arange(1, _HARMONICS + 1)
    share = rng.uniform(0.3, 1.0, (6, _HARMONICS)) / np.sqrt(omega)
    amplitude = np.array([0.45, 0.4, 0.6, 0.6, 0.45, 0.12])[:, None]
    modes = amplitude * share / share.sum(axis=1, keepdims=True) * 1.6
    phase = rng.uniform(0.0, 2.0 * np.pi, (6, _HARMONICS))
    mix = np.eye(6)
    mix[4:, 4:] = [[1.0, 1.0], [-1.0, 1.0]]
    sine, cosine = mix @ (modes * np.cos(phase)), mix @ (modes * np.sin(phase))
    series = FourierMotion(1.0 / _BASE_FREQUENCY, CENTRE, omega * sine, -omega * cosine)
    return FadedMotion(series, FADE)


def sines(omega: float) -> FadedMotion:
    """Return the motion of all joints in sines of one angular frequency [rad/s]."""
    size = omega * np.array([0.25, 0.25, 0.4, 0.4, 0.25, -0.25])[:, None]
    phase = np.array([0.0, 0.7, 1.4, 2.1, 2.8, 2.8])[:, None]
    series = FourierMotion(
        2.0 * np.pi / omega, CENTRE, size * np.cos(phase), -size * np.sin(phase)
    )
    return FadedMotion(series, FADE)


def follow(
    robot: Robot, motion: FadedMotion, parameters: FloatArray, gains: Gains, seconds: float
) -> Policy:
    """Return the controller of Zhang et al. (34) with the parameters (p,) on a path."""
    dynamics = make_dynamics(robot, SIGN_WIDTH)
    dynamics.set_parameters(parameters)
    law = FeedForward(gains)
    desired = motion.at(np.linspace(0.0, seconds, round(seconds / STEP), endpoint=False))

    def policy(tick: int, position: FloatArray, velocity: FloatArray) -> FloatArray:
        return law(dynamics, Motion(*(x[tick] for x in desired)), position, velocity).effort

    return policy


class Tracking(NamedTuple):
    """Errors of the true positions after a run's fade-in, mean and largest, each (na,) [deg]."""

    mean: FloatArray
    maximum: FloatArray


def track(
    robot: Robot,
    truth: FloatArray,
    parameters: FloatArray,
    omega: float,
    gains: Gains,
    seed: int,
) -> Tracking:
    """Track sines of `omega` [rad/s] for three periods beyond the fade-in."""
    motion = sines(omega)
    seconds = 2.5 + 3.0 * 2.0 * np.pi / omega
    policy = follow(robot, motion, parameters, gains, seconds)
    log = simulate(robot, truth, policy, CENTRE, seconds, seed)
    error = np.degrees(motion.at(log.time).position - log.true_position)
    steady = np.abs(error[log.time >= 2.5])
    return Tracking(steady.mean(axis=0), steady.max(axis=0))


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
) -> FloatArray:
    """Return √∫ (q_simulated − q_measured)² dt of segments of a run, (count, na) [rad·√s].

    A run is simulated with parameters (p,) in segments of some `seconds` from its measured states
    under its measured torques. These are averaged over `hold` [s] and held; a stiff integrator
    (BDF) runs from one change to the next, as friction's sign needs.

    Raises
    ------
    EstimationError
        If the integrator fails.
    """
    model = ClosedChainDynamics(robot, SIGN_WIDTH)
    model.set_parameters(parameters)
    length, stride = round(seconds / STEP), round(hold / STEP)
    na = len(robot.actuated_names)
    l2 = []
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
    return np.array(l2)
