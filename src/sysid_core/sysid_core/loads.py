# SPDX-License-Identifier: Apache-2.0
"""Loads: what bodies carry beyond their nominal inertia, before and after the data speak."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.rows import Regression
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import ModelError
from sysid_core.estimation import Estimate, Prior, Problem
from sysid_core.estimation.noise import row_weights
from sysid_core.gain_error import GainError, GainPrior
from sysid_core.inertia import from_mass_com_inertia
from sysid_core.parameters import INERTIAL_TERMS
from sysid_core.robot.model import Robot

__all__ = ["Bare", "Load", "expecting_loads", "find_loads"]

_LOAD_SHARE = 0.05
"""Mass of a load thought likely, as a share of the robot's [-]."""
_LOAD_DENSITY = 500.0
"""Density of that load [kg/m³]: a gripper or a filled box."""
_LOAD_STD = 5.0
"""Relative standard deviation of a body that may carry a load of unknown size [-]."""


@dataclass(frozen=True)
class Load:
    """What a body carries beyond its nominal inertia."""

    body: str
    mass: float  # [kg]
    mass_std: float  # [kg]
    # com, com_std: (3,) [m] in the body's joint frame.
    com: FloatArray
    com_std: FloatArray
    taken: float
    """[kg] what the gains' errors, as far as they are known, would have added to the mass."""


def expecting_loads(robot: Robot, prior: Prior, loaded: BoolArray) -> Prior:
    """Give bodies that may be loaded a wide prior around a load of common size.

    A wide prior around the bare body would do the same, but a wrist weighs so little that its
    curvature there spans more magnitudes than a factorisation bears.
    """
    mean = prior.mean.copy()
    phi = robot.layout.inertias(mean)
    mass = _LOAD_SHARE * float(phi[:, 0].sum())
    radius = (3.0 * mass / (4.0 * np.pi * _LOAD_DENSITY)) ** (1.0 / 3.0)
    for index in np.flatnonzero(loaded):
        com = phi[index, 1:4] / phi[index, 0]
        ball = 0.4 * mass * radius**2 * np.eye(3)
        phi[index] += from_mass_com_inertia(mass, com, ball)
    return replace(prior, mean=mean, body_std=np.where(loaded, _LOAD_STD, prior.body_std))


@dataclass(frozen=True)
class Bare:
    """A robot without load, as it was identified."""

    parameters: FloatArray  # (p,)
    covariance: FloatArray | None = None  # (b, b) of its base parameters; None: not known
    error: FloatArray | None = None
    """(G,) [N·m] what it leaves of torques that it did not learn from."""

    def check(self, regression: Regression) -> None:
        """Check that it belongs to a regression.

        Raises
        ------
        ModelError
            If it has another number of base parameters or of torques.
        """
        sizes = [None if a is None else len(a) for a in (self.covariance, self.error)]
        if sizes not in ([None, None], [regression.base.size, len(regression.groups)]):
            raise ModelError(
                "the robot without load was identified with other parameters: identify it again"
            )


def find_loads(
    regression: Regression,
    problem: Problem,
    estimate: Estimate,
    widened: Estimate,
    nominal: FloatArray,
    bare: Bare | None,
) -> list[Load]:
    """Return what free bodies gained over nominal parameters (p,), with standard deviations.

    Efforts of gain s show ``y = a·x + s a·l`` for a bare robot x that was identified from such
    efforts. One Newton step takes the load l from s = 1 to what is known of the gains.

    Parameters
    ----------
    problem : Problem
        Where nothing but the inertias of loaded bodies is free.
    estimate, widened : Estimate
        Its solution, whose covariance makes the step, and the same with the model's error.
    nominal : (p,)
    bare : Bare or None
        The robot that was identified without the loads; None: it is the nominal one.
    """
    layout, statistics = regression.layout, problem.statistics
    free = np.flatnonzero(~problem.constraints.fixed)
    columns, base = regression.base.mapping[:, free], regression.base.project(nominal)
    gained = estimate.parameters[free] - nominal[free]
    weights = row_weights(estimate.noise_std, problem.correlation)
    curvature = weights[:, None, None] * (columns.T @ statistics.gram @ columns)
    moment = weights[:, None] * ((statistics.moment - statistics.gram @ base) @ columns)
    own = np.nan_to_num(estimate.covariance[np.ix_(free, free)])

    def with_error(error: FloatArray) -> FloatArray:
        """Return what was gained, with efforts too large by a share (G,)."""
        s = 1.0 + error
        more = np.einsum("g,gij->ij", s**2 - 1.0, curvature)
        pull = (s - 1.0) @ moment - more @ gained
        change: FloatArray = np.linalg.solve(np.eye(len(free)) + own @ more, own @ pull)
        return gained + change

    gains = _gain_error(regression, statistics, bare)
    load, values, axes = with_error(gains.mean), *np.linalg.eigh(gains.covariance)
    errors = axes.T * np.sqrt(np.maximum(values, 0.0))[:, None]
    moves = np.array([with_error(gains.mean + error) - load for error in errors])
    covariance = np.nan_to_num(widened.covariance[np.ix_(free, free)]) + moves.T @ moves
    if bare is not None and bare.covariance is not None:
        moved = own @ np.einsum("g,bi,gbc->ic", weights, columns, statistics.gram)
        covariance += moved @ bare.covariance @ moved.T
    size = len(INERTIAL_TERMS)
    return [
        _load(
            layout.bodies[free[at] // size],
            load[at : at + 4],
            covariance[at : at + 4, at : at + 4],
            float(gained[at] - load[at]),
        )
        for at in range(0, len(free), size)
    ]


def _load(body: str, moments: FloatArray, covariance: FloatArray, taken: float) -> Load:
    """Return the load of mass and first moments (4,)."""
    mass = float(moments[0])
    com = moments[1:] / mass if abs(mass) > 1e-9 else np.full(3, np.nan)
    # first order: d(mc/m) = (d(mc) − c dm) / m
    jacobian = np.hstack([-com[:, None], np.eye(3)]) / mass
    com_std = np.sqrt(np.diag(jacobian @ covariance @ jacobian.T).clip(min=0.0))
    return Load(body, mass, float(np.sqrt(covariance[0, 0])), com, com_std, taken)


def _gain_error(regression: Regression, statistics: Statistics, bare: Bare | None) -> GainError:
    if not regression.per_joint:
        alike = np.ones(len(regression.groups)) * regression.robot.description.effort_gain_std
        return GainError(0.0 * alike, np.outer(alike, alike))
    known = GainPrior(regression, entered=False)
    if bare is None or bare.covariance is None or bare.error is None:
        return known.alone()
    model = regression.base.project(bare.parameters)
    return known.posterior(statistics, model, bare.covariance, bare.error)
