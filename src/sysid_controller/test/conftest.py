# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the controller's tests; ROS is the real one where there is one."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.robot import Robot, load_robot

sys.path.append(str(Path(__file__).parent))  # for node_graph

try:
    importlib.import_module("rclpy")
except ImportError:
    with contextlib.suppress(ImportError):  # the tests that need ROS say so when they skip
        importlib.import_module("sysid_embedded").install()


@pytest.fixture(scope="session")
def panda() -> Robot:
    return load_robot("panda")


@pytest.fixture(scope="session")
def tx40() -> Robot:
    return load_robot("tx40")


@pytest.fixture(scope="session")
def perturbed() -> Callable[[Robot, int], FloatArray]:
    """Return a maker of consistent parameters that differ from a robot's nominal ones."""

    def make(robot: Robot, seed: int, spread: float = 0.4) -> FloatArray:
        rng = np.random.default_rng(seed)
        layout = robot.layout
        vector = robot.consistent_nominal.copy()
        # scaling a body's mass and all its moments keeps its pseudo-inertia positive definite
        layout.inertias(vector)[:] *= rng.uniform(
            1.0 - spread, 1.0 + spread, (len(layout.bodies), 1)
        )
        count = len(layout.joints)
        limits = robot.limits
        most = np.minimum(limits.effort / limits.velocity, 1.0)  # a motor's own, at full speed
        vector[layout.term("viscous")] += rng.uniform(0.1, 0.5, count) * most
        vector[layout.term("coulomb")] += rng.uniform(0.1, 0.5, count)
        vector[layout.term("armature")] += rng.uniform(0.02, 0.1, count)
        vector[layout.term("offset")] += rng.uniform(-0.2, 0.2, count)
        for term in ("viscous", "coulomb", "armature"):
            vector[layout.coupling_term(term)] += rng.uniform(0.01, 0.05, len(layout.couplings))
        return vector

    return make
