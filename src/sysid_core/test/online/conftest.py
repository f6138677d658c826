# SPDX-License-Identifier: Apache-2.0
"""Arms whose motion is known in closed form and whose torque is that of recursive Newton–Euler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.inertia import from_mass_com_inertia, transform_matrix
from sysid_core.recording import Samples
from sysid_core.robot import Robot, load_robot

_HARMONICS = 4
_FUNDAMENTAL = 2.0 * np.pi * 0.1


@dataclass(frozen=True)
class Arm:
    """A robot with true parameters on a sum of sines, seen without noise or with white noise."""

    robot: Robot
    truth: FloatArray
    seed: int = 0

    def states(self, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return positions, velocities and accelerations (n, nj) in closed form."""
        rng = np.random.default_rng(self.seed)
        nj = len(self.robot.joint_names)
        limits = self.robot.limits
        low, high = np.maximum(limits.lower, -2.0), np.minimum(limits.upper, 2.0)
        w = _FUNDAMENTAL * np.arange(1, _HARMONICS + 1)
        size = 0.25 * (high - low)[:, None] * rng.dirichlet(np.ones(_HARMONICS), nj)
        angle = w * time[:, None, None] + rng.uniform(0.0, 2.0 * np.pi, (nj, _HARMONICS))
        return (
            0.5 * (low + high) + (size * np.sin(angle)).sum(-1),
            (size * w * np.cos(angle)).sum(-1),
            -(size * w**2 * np.sin(angle)).sum(-1),
        )

    def samples(
        self,
        start: float,
        stop: float,
        *,
        rate: float = 100.0,
        noise: float = 0.0,
        load: FloatArray | None = None,
        still: bool = False,
    ) -> Samples:
        """Return the samples from `start` to `stop` [s]; `load` (10,) hangs at the tool frame."""
        time = np.arange(round(start * rate), round(stop * rate)) / rate
        q, v, a = self.states(time)
        if still:
            q, v, a = np.repeat(q[:1], len(q), axis=0), 0.0 * v, 0.0 * a
        truth = self.truth if load is None else self.loaded(load)
        effort = self.torque(truth, q, v, a)
        rng = np.random.default_rng([self.seed, round(start * rate)])
        effort += noise * rng.normal(size=effort.shape)
        return Samples(time, q, v, a, effort)

    def loaded(self, load: FloatArray) -> FloatArray:
        """Return the true parameters with a load (10,) added to the tool's body."""
        frame = self.robot.frame(self.robot.tool_frame)
        placement: pin.SE3 = frame.placement
        body = self.robot.layout.body(self.robot.body_joint_ids.index(frame.parentJoint))
        loaded = self.truth.copy()
        loaded[body] += transform_matrix(placement.rotation, placement.translation) @ load
        return loaded

    def torque(self, truth: FloatArray, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        model, layout = self.robot.with_parameters(truth), self.robot.layout
        data = model.createData()
        rigid = np.stack([pin.rnea(model, data, *row) for row in zip(q, v, a, strict=True)])
        friction: FloatArray = (
            v * truth[layout.term("viscous")]
            + np.sign(v) * truth[layout.term("coulomb")]
            + a * truth[layout.term("armature")]
            + truth[layout.term("offset")]
        )
        return rigid + friction

    def altered(self, **changes: float) -> Arm:
        """Return the same arm with friction terms of all joints multiplied."""
        truth = self.truth.copy()
        for term, factor in changes.items():
            truth[self.robot.layout.term(term)] *= factor
        return replace(self, truth=truth)


def _truth(robot: Robot, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    layout, truth = robot.layout, robot.consistent_nominal.copy()
    # scaling all ten numbers of a body keeps it possible
    layout.inertias(truth)[:] *= rng.uniform(0.6, 1.4, (len(layout.bodies), 1))
    count = len(layout.joints)
    truth[layout.term("viscous")] += rng.uniform(0.1, 0.6, count)
    truth[layout.term("coulomb")] += rng.uniform(0.1, 0.6, count)
    truth[layout.term("armature")] += rng.uniform(0.02, 0.1, count)
    truth[layout.term("offset")] += rng.uniform(-0.2, 0.2, count)
    truth.setflags(write=False)
    return truth


@pytest.fixture(scope="session")
def arm_of() -> Callable[[str], Arm]:
    """Return arms by the name of their robot; the truth is up to 40 % off the nominal."""

    @cache
    def make(name: str) -> Arm:
        robot = load_robot(name)
        return Arm(robot, _truth(robot, 5))

    return make


@pytest.fixture(scope="session")
def valkyrie(arm_of: Callable[[str], Arm]) -> Arm:
    """Return Valkyrie's four-joint arm."""
    return arm_of("valkyrie_arm")


@pytest.fixture(scope="session")
def load() -> FloatArray:
    """Return a load (10,) of 2 kg, off the tool frame's origin and axes."""
    inertia = np.array([[0.02, 0.002, 0.0], [0.002, 0.015, 0.001], [0.0, 0.001, 0.01]])
    parameters = from_mass_com_inertia(2.0, np.array([0.03, -0.02, 0.08]), inertia)
    parameters.setflags(write=False)
    return parameters
