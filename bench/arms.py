# SPDX-License-Identifier: Apache-2.0
"""Simulated recordings of arms with random true parameters, and exact states to be judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.trees import perturbed
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.excitation.fourier import random_motion
from sysid_core.excitation.limits import fit_into, motion_limits
from sysid_core.inertia import from_pseudo_inertia
from sysid_core.priors import free_parameters
from sysid_core.recording import Recording, Samples
from sysid_core.robot import Robot

__all__ = ["Experiment", "Noise", "anywhere", "make_experiment"]

PERIOD, HARMONICS = 10.0, 5  # [s, -]
MASSES = 12  # point masses per random body
SPEED = 0.6  # of the joints' limits
RATE = 100.0  # [Hz]


@dataclass(frozen=True)
class Noise:
    """White noise of the sensors."""

    position: float = 1e-4  # [rad]
    torque: float = 0.01  # [-] relative to each joint's root mean square torque


@dataclass(frozen=True)
class Experiment:
    """A recording to learn from, and exact states and torques to be judged by."""

    truth: FloatArray  # (p,)
    recording: Recording  # Positions and efforts with noise; no velocities
    # learned, judged: exact states and torques of the recorded motion, and of another one.
    learned: Samples
    judged: Samples


def nearby(robot: Robot, rng: np.random.Generator) -> FloatArray:
    """Return random true parameters (p,) near the nominal ones."""
    return np.where(free_parameters(robot), perturbed(robot, rng), robot.consistent_nominal)


def anywhere(robot: Robot, rng: np.random.Generator) -> FloatArray:
    """Return random true parameters (p,) that can exist inside the bounding ellipsoids."""
    layout, vector = robot.layout, robot.consistent_nominal.copy()
    for phi, ellipsoid in zip(layout.inertias(vector), robot.ellipsoids, strict=True):
        direction = rng.normal(size=(MASSES, 3))
        radius = rng.uniform(size=MASSES) ** (1.0 / 3.0) / np.linalg.norm(direction, axis=1)
        ball = direction * radius[:, None]
        points = np.ones((MASSES, 4))
        points[:, :3] = ellipsoid.center + ball @ np.linalg.cholesky(ellipsoid.shape).T
        share = rng.dirichlet(np.ones(MASSES)) * phi[0] * rng.uniform(0.5, 2.0)
        phi[:] = from_pseudo_inertia((points * share[:, None]).T @ points)
    joints = len(layout.joints)
    for term, low, high in (
        ("viscous", 0.1, 2.0),
        ("coulomb", 0.1, 2.0),
        ("armature", 0.01, 0.2),
        ("offset", -0.5, 0.5),
    ):
        vector[layout.term(term)] = rng.uniform(low, high, joints)
    return np.where(free_parameters(robot), vector, robot.consistent_nominal)


def make_experiment(
    robot: Robot,
    seed: int,
    noise: Noise,
    truth_of: Callable[[Robot, np.random.Generator], FloatArray] = nearby,
    *,
    samples: int = 2000,
) -> Experiment:
    """Simulate an arm with random true parameters on two random motions."""
    rng = np.random.default_rng(seed)
    truth, regression = truth_of(robot, rng), TreeRegression(robot)
    limits = motion_limits(robot, speed=SPEED)
    joints = len(robot.joint_names)
    motions = [
        fit_into(random_motion(joints, PERIOD, HARMONICS, rng), limits, fill=True)
        for _ in range(2)
    ]
    exact = []
    for motion, time in zip(
        motions, (np.arange(samples) / RATE, motions[1].times(RATE)), strict=True
    ):
        states = motion.states(time)
        exact.append(Samples(time, *states, regression.full(*states) @ truth))
    learned, judged = exact
    scale = noise.torque * np.sqrt(np.mean(learned.effort**2, axis=0))
    recording = Recording(
        learned.time,
        robot.joint_names,
        learned.position + noise.position * rng.normal(size=learned.effort.shape),
        None,
        learned.effort + scale * rng.normal(size=learned.effort.shape),
        source=f"{robot.name}, seed {seed}",
    )
    return Experiment(truth, recording, learned, judged)
