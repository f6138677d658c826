# SPDX-License-Identifier: Apache-2.0
"""Synthetic robots of any size, and arms with random true parameters: their recordings."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.open_tree import random_states
from sysid_core.dynamics.statistics import Statistics
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.estimation import Problem
from sysid_core.excitation.fourier import FourierMotion, random_motion
from sysid_core.excitation.limits import fit_into, motion_limits
from sysid_core.inertia import from_pseudo_inertia, pseudo_inertia
from sysid_core.priors import default_constraints, default_prior, free_parameters
from sysid_core.recording import Recording, Samples
from sysid_core.robot import Robot, load_robot, parse_description

__all__ = [
    "Experiment",
    "Noise",
    "anywhere",
    "chain_urdf",
    "make_experiment",
    "perturbed",
    "robot_of",
    "synthetic_problem",
    "tree_urdf",
    "wide_motion",
]

PERIOD, HARMONICS = 10.0, 5  # [s, -]
MASSES = 12  # point masses per random body
SPEED = 0.6  # of the joints' limits
RATE = 100.0  # [Hz]
SPREAD = 0.15  # of the factors of pseudo-inertias near the nominal ones
_FOLDER = TemporaryDirectory()  # of URDFs that are made here, until the process ends


def robot_of(name: str, urdf: str) -> Robot:
    """Return a robot of that name, whose URDF is a file until the process ends."""
    path = Path(_FOLDER.name) / f"{name}.urdf"
    path.write_text(urdf, encoding="utf-8")
    return load_robot(parse_description({"name": name, "urdf": str(path)}))


def chain_urdf(joints: int, seed: int) -> str:
    """Return a URDF of an arm: revolute joints one after the other."""
    return _urdf(joints, seed, lambda i: i - 1)


def tree_urdf(bodies: int, seed: int) -> str:
    """Return a URDF of a binary tree of revolute joints with bodies of plausible inertia."""
    return _urdf(bodies, seed, lambda i: (i - 1) // 2)


def _urdf(bodies: int, seed: int, parent_of: Callable[[int], int]) -> str:
    rng = np.random.default_rng(seed)
    parts = ['<robot name="tree"><link name="base"/>']
    for i in range(bodies):
        parent = "base" if i == 0 else f"body{parent_of(i)}"
        mass, size = rng.uniform(0.5, 5.0), rng.uniform(0.05, 0.2, 3)
        inertia = mass / 3.0 * (size @ size - size**2)
        com = " ".join(f"{v:.4f}" for v in rng.uniform(-0.08, 0.08, 3))
        xyz = " ".join(f"{v:.4f}" for v in rng.uniform(-0.3, 0.3, 3))
        rpy = " ".join(f"{v:.4f}" for v in rng.uniform(-1.5, 1.5, 3))
        box = " ".join(f"{4.0 * v:.4f}" for v in size)
        parts.append(
            f'<link name="body{i}"><inertial><origin xyz="{com}"/><mass value="{mass:.4f}"/>'
            f'<inertia ixx="{inertia[0]:.6f}" ixy="0" ixz="0" iyy="{inertia[1]:.6f}" iyz="0" '
            f'izz="{inertia[2]:.6f}"/></inertial><collision><geometry><box size="{box}"/>'
            f'</geometry></collision></link><joint name="joint{i}" type="revolute">'
            f'<parent link="{parent}"/><child link="body{i}"/>'
            f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="0 0 1"/>'
            '<limit lower="-3" upper="3" velocity="5" effort="100"/></joint>'
        )
    return "".join(parts) + "</robot>"


def perturbed(robot: Robot, rng: np.random.Generator) -> FloatArray:
    """Return true parameters (p,) near the nominal ones, physically consistent, with friction."""
    layout, vector = robot.layout, robot.consistent_nominal.copy()
    for body in layout.bodies:
        L = np.linalg.cholesky(pseudo_inertia(vector[layout.body(body)]))
        D = np.eye(4) + SPREAD * np.tril(rng.normal(size=(4, 4)))
        vector[layout.body(body)] = from_pseudo_inertia(L @ D @ D.T @ L.T)
    joints = len(layout.joints)
    for term, low, high in (
        ("viscous", 0.5, 2.0),
        ("coulomb", 0.5, 2.0),
        ("armature", 0.05, 0.2),
        ("offset", -0.2, 0.2),
    ):
        vector[layout.term(term)] = rng.uniform(low, high, joints)
    return vector


def synthetic_problem(robot: Robot, seed: int) -> tuple[Problem, Statistics]:
    """Return a problem with known noise, and the statistics of its window some samples later.

    Random states of a perturbed robot, 1 % torque noise.
    """
    samples, moved = 1000, 20
    rng, regression = np.random.default_rng(seed), TreeRegression(robot)
    q, v, a = random_states(robot, samples + moved, seed)
    tau = regression.full(q, v, a) @ perturbed(robot, rng)
    noise = 0.01 * np.sqrt(np.mean(tau**2, axis=0))
    measured = tau + noise * rng.normal(size=tau.shape)
    everything = Samples(np.linspace(0.0, 10.0, len(q)), q, v, a, measured)
    windows = [
        Statistics.of(regression.rows(everything.select(slice(first, first + samples))))
        for first in (0, moved)
    ]
    problem = Problem(
        robot.layout,
        regression.base,
        regression.groups,
        windows[0],
        default_prior(robot),
        default_constraints(robot),
        noise_std=noise,
    )
    return problem, windows[1]


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


def wide_motion(
    robot: Robot, rng: np.random.Generator, period: float = PERIOD, **shares: float
) -> FourierMotion:
    """Return a random motion that fills the `motion_limits` of such shares."""
    motion = random_motion(len(robot.joint_names), period, HARMONICS, rng)
    return fit_into(motion, motion_limits(robot, **shares), fill=True)


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
    motions = [wide_motion(robot, rng, speed=SPEED) for _ in range(2)]
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
