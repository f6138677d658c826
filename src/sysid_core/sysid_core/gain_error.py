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


_SHARED = 0.5
"""Share of the gains' variance that all joints have in common: drives of one make may err alike or
each by itself, and nothing says which [-]."""


class GainError(NamedTuple):
    """Errors of all groups' gains: mean (G,) and covariance (G, G) [-]."""

    mean: FloatArray
    covariance: FloatArray


def _entered(robot: Robot) -> BoolArray:
    """Return which actuated joints have a torque constant in the robot's description (G,)."""
    gain = robot.description.effort_gain
    if isinstance(gain, float):
        return np.full(len(robot.actuated_names), gain != 1.0)
    return np.array([gain.get(name, 1.0) != 1.0 for name in robot.actuated_names])


class GainPrior:
    """What is known of drive gains: their tolerance, and the nominal masses.

    Where efforts are currents times a constant, an error of the constant scales all torques of the
    joint, and so the bodies that are identified from them. How much larger these are than the
    nominal ones says so, as far as the nominal masses are trusted. If `entered`, only gains count
    that the description enters; rows are per joint.
    """

    def __init__(self, regression: Regression, *, entered: bool) -> None:
        robot, layout, base = regression.robot, regression.layout, regression.base
        uncertain = _entered(robot) if entered else np.ones(len(robot.actuated_names), dtype=bool)
        self.uncertain = regression.per_joint and bool(uncertain.any())
        std = robot.description.effort_gain_std * uncertain
        own = _SHARED + (1.0 - _SHARED) * np.eye(len(std))
        self._covariance = np.outer(std, std) * own
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
        self,
        statistics: Statistics,
        base_vector: FloatArray,
        covariance: FloatArray,
        error: FloatArray,
    ) -> GainError:
        """Return the gains' errors, as a model (b,) without load shows them on some motion.

        An error of the model that looks like the bodies' torque is thought to be as large as what
        the model leaves of the torques, `error` (G,) [N·m].
        """
        nominal, found = self._bodies.sum(axis=1), np.where(self._inertial, base_vector, 0.0)
        usual = statistics.gram @ nominal
        power = usual @ nominal
        seen = np.flatnonzero(power > 0.0)
        usual, power = usual[seen], power[seen]
        usual /= power[:, None]
        shares, inertial = usual @ self._bodies, usual * self._inertial
        doubt = shares * self._trust @ shares.T + inertial @ covariance @ inertial.T
        doubt += np.diag(error[seen] ** 2 * statistics.count[seen] / power)
        prior = self._covariance
        told = np.linalg.lstsq(prior[np.ix_(seen, seen)] + doubt, prior[seen], rcond=None)[0].T
        return GainError(told @ (usual @ found - 1.0), prior - told @ prior[seen])

    def alone(self) -> GainError:
        """Return the gains' errors where no model was identified with them."""
        return GainError(np.zeros(len(self._covariance)), self._covariance)
