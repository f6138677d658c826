# SPDX-License-Identifier: Apache-2.0
"""A robot's total mass as its torques tell it, with its confidence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.errors import ParameterError
from sysid_core.estimation.estimate import Estimate
from sysid_core.robot.model import Robot

__all__ = ["TotalMass", "total_mass"]


class TotalMass(NamedTuple):
    """Total mass of a robot.

    Attributes
    ----------
    value : float [kg]
    std : float [kg]
        Standard deviation, the torque sensors' scale included.
    std_of_noise : float [kg]
        The share that noise and prior leave; more data lower it.
    """

    value: float
    std: float
    std_of_noise: float


def total_mass(robot: Robot, estimate: Estimate, *, effort_scale_std: float = 0.01) -> TotalMass:
    """Return the total mass of an estimate.

    A common error of all torques' scale (motor constants, gear efficiency) scales the mass
    alike, and no residual shows it; so it is added to what the posterior knows.

    Parameters
    ----------
    robot : Robot
    estimate : Estimate
        With its full covariance.
    effort_scale_std : float [-]
        Relative standard deviation of the torques' scale.

    Raises
    ------
    ParameterError
        If the estimate has no covariance or the scale's deviation is not usable.
    """
    if not (np.isfinite(effort_scale_std) and effort_scale_std >= 0.0):
        raise ParameterError(f"effort_scale_std must not be negative, got {effort_scale_std}")
    masses = robot.layout.masses
    value = float(estimate.parameters[masses].sum())
    variance = float(estimate.covariance[np.ix_(masses, masses)].sum())
    if not np.isfinite(variance):
        raise ParameterError(
            "the total mass needs the estimate's full covariance; solve with covariance='full'"
        )
    noise = float(np.sqrt(max(variance, 0.0)))
    return TotalMass(value, float(np.hypot(noise, effort_scale_std * value)), noise)
