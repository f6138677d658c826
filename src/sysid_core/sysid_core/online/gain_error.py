# SPDX-License-Identifier: Apache-2.0
"""By how much drive gains may be wrong, and what the nominal masses say of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.rows import Regression
from sysid_core.dynamics.statistics import Statistics
from sysid_core.priors import default_prior
from sysid_core.robot.model import Robot

__all__ = ["GainError", "GainPrior"]


class GainError(NamedTuple):
    """Error of every group's gain: mean and variance (G,) [-]."""

    mean: FloatArray
    variance: FloatArray


def _entered(robot: Robot) -> BoolArray:
    """Return which actuated joints have a torque constant in the robot's description (G,)."""
    gain = robot.description.effort_gain
    if isinstance(gain, float):
        return np.full(len(robot.actuated_names), gain != 1.0)
    return np.array([gain.get(name, 1.0) != 1.0 for name in robot.actuated_names])


class GainPrior:
    """What is known of drive gains: their tolerance, and the nominal masses.

    Where efforts are currents times a constant, an error of the constant scales all torques of
    the joint, and so the bodies that are identified from them. How much larger these are than the
    nominal ones says so, as far as the nominal masses are trusted.

    Parameters
    ----------
    regression : Regression
    """

    def __init__(self, regression: Regression) -> None:
        robot, layout, base = regression.robot, regression.layout, regression.base
        self.uncertain = regression.per_joint and bool(_entered(robot).any())
        self._variance = robot.description.effort_gain_std**2 * _entered(robot)
        inertial = np.zeros(layout.size, dtype=bool)
        bodies = np.zeros((layout.size, len(layout.bodies)))
        for b in range(len(layout.bodies)):
            inertial[layout.body(b)] = True
            bodies[layout.body(b), b] = robot.consistent_nominal[layout.body(b)]
        self._bodies = base.mapping @ bodies
        self._inertial = inertial[base.columns]
        # the marginal standard deviation of a mass is twice that of the divergence
        self._trust = (2.0 * default_prior(robot).body_std) ** 2

    def posterior(
        self, statistics: Statistics, base_vector: FloatArray, covariance: FloatArray
    ) -> GainError:
        """Return the gains' errors, as a model (b,) without load shows them on some motion."""
        nominal, found = self._bodies.sum(axis=1), np.where(self._inertial, base_vector, 0.0)
        usual = statistics.gram @ nominal
        power = np.maximum(usual @ nominal, 1e-300)
        ratio = (usual @ found) / power
        doubt = ((usual @ self._bodies) / power[:, None]) ** 2 @ self._trust
        seen = usual * self._inertial
        doubt += np.einsum("gi,ij,gj->g", seen, covariance, seen) / power**2
        share = self._variance / np.maximum(self._variance + doubt, 1e-300)
        return GainError(share * (ratio - 1.0), self._variance * (1.0 - share))
