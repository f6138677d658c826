# SPDX-License-Identifier: Apache-2.0
"""Robots and true parameters that several tests share; ROS is the real one where there is one."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.robot import Robot, load_robot
from sysid_sim.truth import draw_truth

try:
    importlib.import_module("rclpy")
except ImportError:
    with contextlib.suppress(ImportError):  # the tests that need ROS say so when they skip
        importlib.import_module("sysid_embedded").install()

SEED = 3


@pytest.fixture(scope="session")
def robot_of() -> Callable[[str], Robot]:
    return cache(load_robot)


@pytest.fixture(scope="session")
def truth_of(robot_of: Callable[[str], Robot]) -> Callable[[str], FloatArray]:
    @cache
    def truth(name: str) -> FloatArray:
        drawn = draw_truth(robot_of(name), SEED)
        drawn.setflags(write=False)
        return drawn

    return truth


@pytest.fixture(scope="session")
def panda(robot_of: Callable[[str], Robot]) -> Robot:
    return robot_of("panda")


@pytest.fixture(scope="session")
def panda_truth(truth_of: Callable[[str], FloatArray]) -> FloatArray:
    return truth_of("panda")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
