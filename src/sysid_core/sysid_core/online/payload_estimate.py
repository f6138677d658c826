# SPDX-License-Identifier: Apache-2.0
"""A load as it is known: mass, centre of mass and inertia with their standard deviations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.inertia import from_mass_com_inertia

__all__ = ["PayloadEstimate"]


@dataclass(frozen=True)
class PayloadEstimate:
    """A load at the tool frame, with standard deviations."""

    parameters: FloatArray  # (10,): m, m·c, I about the tool frame's origin [kg, kg·m, kg·m²]
    covariance: FloatArray  # (10, 10) of `parameters`
    mass: float  # [kg]
    mass_std: float  # [kg]
    # com, com_std: (3,) [m] in the tool frame.
    com: FloatArray
    com_std: FloatArray
    # inertia, inertia_std: (6,) [kg·m²]: Ixx Ixy Iyy Ixz Iyz Izz about the centre of mass.
    inertia: FloatArray
    inertia_std: FloatArray
    # odds, change_odds: log Bayes factors of the load against none, and of the likelier of the two
    # against the load until now; the latter is inf where there was none.
    odds: float
    change_odds: float
    unexplained: float  # [-] share that it leaves of what the errors are above usual ones

    @classmethod
    def of(
        cls,
        parameters: FloatArray,
        covariance: FloatArray,
        odds: float,
        change_odds: float,
        unexplained: float,
    ) -> PayloadEstimate:
        """Return the estimate with mass, centre of mass and central inertia of its parameters."""
        central, std = _central(parameters), _central_std(parameters, covariance)
        return cls(
            parameters=parameters,
            covariance=covariance,
            mass=float(central[0]),
            mass_std=float(std[0]),
            com=central[1:4],
            com_std=std[1:4],
            inertia=central[4:],
            inertia_std=std[4:],
            odds=odds,
            change_odds=change_odds,
            unexplained=unexplained,
        )


def _central_std(phi: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return the standard deviations (10,) of what `_central` returns."""
    step = 1e-6 * np.maximum(np.abs(phi), 1e-6)
    jacobian = np.stack(
        [
            (_central(phi + d) - _central(phi - d)) / (2.0 * s)
            for s, d in zip(step, np.diag(step), strict=True)
        ],
        axis=1,
    )
    return np.asarray(np.sqrt(np.diag(jacobian @ covariance @ jacobian.T).clip(0.0)))


def _central(parameters: FloatArray) -> FloatArray:
    """Return mass, centre of mass and central inertia (10,) of inertial parameters (10,)."""
    mass, first = parameters[0], parameters[1:4]
    com = first / mass
    shift = from_mass_com_inertia(mass, com, np.zeros((3, 3)))
    return np.concatenate([[mass], com, parameters[4:] - shift[4:]])
