# SPDX-License-Identifier: Apache-2.0
"""Simulated recordings of arms: encoders with noise, torques with noise, nothing else measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.trees import perturbed
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.excitation import fit_into, motion_limits, random_motion
from sysid_core.priors import free_parameters
from sysid_core.recording import Recording
from sysid_core.robot import Robot

__all__ = ["Experiment", "Noise", "make_experiment"]

PERIOD, HARMONICS = 10.0, 5  # [s, -]
SPEED = 0.6  # of the joints' limits


@dataclass(frozen=True)
class Noise:
    """White noise of the sensors.

    Attributes
    ----------
    position : float [rad]
    torque : float [-]
        Relative to each joint's root mean square torque.
    """

    position: float = 1e-4
    torque: float = 0.01


@dataclass(frozen=True)
class Experiment:
    """A recording to learn from, and exact states and torques to be judged by.

    Attributes
    ----------
    truth : (p,)
    recording : Recording
        Positions and efforts; no velocities.
    position, velocity, acceleration : (n, nj) [rad, rad/s, rad/s²]
        Of another motion, exact.
    torque : (n, nj) [N·m]
        Its torques, free of noise.
    """

    truth: FloatArray
    recording: Recording
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    torque: FloatArray


def true_parameters(robot: Robot, rng: np.random.Generator) -> FloatArray:
    """Return random parameters near the nominal ones; what is not identified is nominal."""
    free = free_parameters(robot)
    return np.where(free, perturbed(robot, rng), robot.consistent_nominal)


def make_experiment(
    robot: Robot, seed: int, noise: Noise, *, samples: int = 2000, rate: float = 100.0
) -> Experiment:
    """Simulate an arm with random true parameters on two random motions.

    Parameters
    ----------
    robot : Robot
    seed : int
    noise : Noise
    samples : int
        Of the recording.
    rate : float [Hz]
    """
    rng = np.random.default_rng(seed)
    truth, regression = true_parameters(robot, rng), TreeRegression(robot)
    limits = motion_limits(robot, speed=SPEED)
    joints = len(robot.joint_names)
    learned, held = (
        fit_into(random_motion(joints, PERIOD, HARMONICS, rng), limits, fill=True)
        for _ in range(2)
    )
    time = np.arange(samples) / rate
    states = learned.states(time)
    torque = regression.full(*states) @ truth
    scale = noise.torque * np.sqrt(np.mean(torque**2, axis=0))
    recording = Recording(
        time,
        robot.joint_names,
        states.position + noise.position * rng.normal(size=torque.shape),
        None,
        torque + scale * rng.normal(size=torque.shape),
        source=f"{robot.name}, seed {seed}",
    )
    judged = held.states(held.times(rate))
    return Experiment(truth, recording, *judged, regression.full(*judged) @ truth)
