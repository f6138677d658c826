# SPDX-License-Identifier: Apache-2.0
"""Loads: what bodies carry beyond their nominal inertia, before and after the data speak."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.estimation import Estimate, Prior
from sysid_core.inertia import from_mass_com_inertia
from sysid_core.robot.model import Robot

__all__ = ["Load", "expecting_loads", "find_loads"]

_LOAD_SHARE = 0.05
"""Mass of a load thought likely, as a share of the robot's [-]."""
_LOAD_DENSITY = 500.0
"""Density of that load [kg/m³]: a gripper or a filled box."""
_LOAD_STD = 5.0
"""Relative standard deviation of a body that may carry a load of unknown size [-]."""


@dataclass(frozen=True)
class Load:
    """What a body carries beyond its nominal inertia.

    Attributes
    ----------
    body : str
    mass, mass_std : float [kg]
    com, com_std : (3,) [m]
        In the body's joint frame.
    """

    body: str
    mass: float
    mass_std: float
    com: FloatArray
    com_std: FloatArray


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


def find_loads(
    robot: Robot, estimate: Estimate, nominal: FloatArray, bodies: tuple[str, ...]
) -> list[Load]:
    """Return what bodies gained over nominal parameters (p,), with standard deviations.

    An error of all effort gains scales the mass, and leaves the centre of mass.
    """
    loads = []
    for body in bodies:
        where = robot.layout.body(body)
        gained = estimate.parameters[where] - nominal[where]
        covariance = estimate.covariance[where, where]
        mass = float(gained[0])
        com = gained[1:4] / mass if abs(mass) > 1e-9 else np.full(3, np.nan)
        # first order: d(mc/m) = (d(mc) − c dm) / m
        jacobian = np.hstack([-com[:, None], np.eye(3)]) / mass
        variance = np.diag(jacobian @ covariance[:4, :4] @ jacobian.T)
        mass_std = np.hypot(estimate.std[where][0], robot.description.effort_gain_std * mass)
        loads.append(Load(body, mass, float(mass_std), com, np.sqrt(variance.clip(min=0.0))))
    return loads
