# SPDX-License-Identifier: Apache-2.0
"""Synthetic identification problems of a real robot, shared by the tests of the estimators."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, distribution

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.base_parameters import BaseParameters, find_base_parameters
from sysid_core.dynamics.friction import FRICTION
from sysid_core.dynamics.rows import RowBlock, Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation.problem import Constraints, Prior, Problem
from sysid_core.inertia import from_pseudo_inertia, pseudo_inertia
from sysid_core.parameters import ParameterLayout

CHOSEN = [term.name for term in FRICTION if term.chosen and term.lower == 0.0]


@dataclass(frozen=True)
class Synthetic:
    """A fixed-base robot with known parameters.

    Attributes
    ----------
    model : pinocchio.Model
    layout, base
    truth : (p,)
    """

    model: pin.Model
    layout: ParameterLayout
    base: BaseParameters
    truth: FloatArray

    def matrices(self, count: int, seed: int) -> FloatArray:
        """Return full regressors (count, nv, p) at random states."""
        rng = np.random.default_rng(seed)
        model, data = self.model, self.model.createData()
        nv, p = model.nv, self.layout.size
        result = np.zeros((count, nv, p))
        others = np.random.default_rng([seed, 1])  # columns that are unlike all others
        for A in result:
            q = pin.integrate(model, pin.neutral(model), rng.uniform(-2.0, 2.0, nv))
            v, a = rng.uniform(-2.0, 2.0, (2, nv))
            A[:, self.layout.inertial] = pin.computeJointTorqueRegressor(model, data, q, v, 3 * a)
            for term, column in (
                ("viscous", v),
                ("coulomb", np.sign(v)),
                ("armature", 3 * a),
                ("offset", np.ones(nv)),
                *zip(CHOSEN, others.normal(size=(len(CHOSEN), nv)), strict=True),
            ):
                A[:, self.layout.term(term)] = np.diag(column)
        return result

    def rows(self, count: int, seed: int, noise: float | FloatArray = 0.0) -> Rows:
        """Return rows of `count` random samples, with white noise [N·m] on the torques."""
        A = self.matrices(count, seed)
        rng = np.random.default_rng(seed + 1)
        torque = A @ self.truth
        torque = torque + noise * rng.standard_normal(torque.shape)
        base = A[:, :, self.base.columns]
        sample = np.arange(count)
        return Rows(
            tuple(RowBlock(base[:, j], torque[:, j], sample) for j in range(self.model.nv))
        )

    def problem(self, count: int = 300, seed: int = 1, noise: float | FloatArray = 0.0) -> Problem:
        """Return a problem with random rows and a prior that is off by some 20 %."""
        layout = self.layout
        rows = self.rows(count, seed, noise)
        rng = np.random.default_rng(3)
        mean = self.truth.copy()
        mean[layout.inertial] = loosely(layout.inertias(self.truth), rng).ravel()
        mean[layout.friction] *= rng.uniform(0.6, 1.5, mean[layout.friction].shape)
        mean[layout.term("offset")] = 0.0
        std = np.ones(layout.size)
        std[layout.term("offset")] = 0.5
        return Problem(
            layout=layout,
            base=self.base,
            groups=layout.joints,
            statistics=Statistics.of(rows),
            prior=Prior(mean, np.full(len(layout.bodies), 0.3), std),
            constraints=unconstrained(layout),
            rows=rows,
        )


def synthetic(model: pin.Model) -> Synthetic:
    """Return a robot with friction, its base found numerically."""
    names = tuple(model.names[1:])
    layout = ParameterLayout(names, names)
    nv = model.nv
    truth = np.zeros(layout.size)
    phi = np.array([inertia.toDynamicParameters() for inertia in model.inertias[1:]])
    truth[layout.inertial] = phi.ravel()
    rng = np.random.default_rng(7)
    truth[layout.term("viscous")] = rng.uniform(0.1, 1.0, nv)
    truth[layout.term("coulomb")] = rng.uniform(0.2, 2.0, nv)
    truth[layout.term("armature")] = rng.uniform(0.05, 0.2, nv)
    truth[layout.term("offset")] = rng.uniform(-0.3, 0.3, nv)
    for term in CHOSEN:
        truth[layout.term(term)] = rng.uniform(0.1, 0.3, nv)
    blank = Synthetic(model, layout, BaseParameters(np.arange(1), np.eye(1), ("",)), truth)
    full = blank.matrices(layout.size // 2 + 20, seed=11).reshape(-1, layout.size)
    return replace(blank, base=find_base_parameters(full, layout.labels))


def loosely(phi: FloatArray, rng: np.random.Generator, size: float = 0.2) -> FloatArray:
    """Return physically consistent inertias (nb, 10) near others."""
    J = pseudo_inertia(phi)
    L = np.linalg.cholesky(J)
    bend = np.eye(4) + size * rng.uniform(-1.0, 1.0, J.shape)
    return from_pseudo_inertia(L @ bend @ np.swapaxes(bend, 1, 2) @ np.swapaxes(L, 1, 2))


def unconstrained(layout: ParameterLayout) -> Constraints:
    """Return constraints that say nothing beyond physical consistency."""
    p = layout.size
    lower = np.full(p, -np.inf)
    lower[layout.masses] = lower[layout.nonnegative] = 0.0
    return Constraints(
        fixed=np.zeros(p, dtype=bool),
        ellipsoids=(None,) * len(layout.bodies),
        lower=lower,
        upper=np.full(p, np.inf),
        linear_matrix=np.zeros((0, p)),
        linear_bound=np.zeros(0),
    )


def example(path: str) -> pin.Model:
    """Return the fixed-base model of a URDF of example-robot-data, or skip the test."""
    try:
        package = distribution("example-robot-data")
    except PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    folder = package.locate_file("cmeel.prefix/share/example-robot-data/robots")
    return pin.buildModelFromUrdf(f"{folder}/{path}")


@pytest.fixture(scope="session")
def panda() -> Synthetic:
    """Return a 7-joint arm, its fingers locked."""
    model = example("panda_description/urdf/panda.urdf")
    fingers = [model.getJointId(name) for name in model.names if "finger" in name]
    return synthetic(pin.buildReducedModel(model, fingers, pin.neutral(model)))
