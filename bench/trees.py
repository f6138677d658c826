# SPDX-License-Identifier: Apache-2.0
"""Synthetic robots of any size, and identification problems on them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.open_tree import random_states
from sysid_core.dynamics.statistics import Statistics
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.estimation import Problem
from sysid_core.inertia import from_pseudo_inertia, pseudo_inertia
from sysid_core.priors import default_constraints, default_prior
from sysid_core.recording import Samples
from sysid_core.robot import Robot

__all__ = ["chain_urdf", "perturbed", "synthetic_problem", "tree_urdf"]


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


def perturbed(robot: Robot, rng: np.random.Generator, spread: float = 0.15) -> FloatArray:
    """Return true parameters (p,) near the nominal ones, physically consistent, with friction."""
    layout, vector = robot.layout, robot.consistent_nominal.copy()
    for body in layout.bodies:
        L = np.linalg.cholesky(pseudo_inertia(vector[layout.body(body)]))
        D = np.eye(4) + spread * np.tril(rng.normal(size=(4, 4)))
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
