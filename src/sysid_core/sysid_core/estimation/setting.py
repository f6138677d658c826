# SPDX-License-Identifier: Apache-2.0
"""A problem in its free parameters: what all estimators share."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation.coordinates import Coordinates
from sysid_core.estimation.divergence import Divergence
from sysid_core.estimation.gaussian import (
    Gaussian,
    believable_floor,
    likely_spread,
    prior_covariance,
)
from sysid_core.estimation.measured import Measured
from sysid_core.estimation.noise import (
    WeightedSums,
    fitted_degrees,
    residual_std,
    row_weights,
)
from sysid_core.estimation.objective import Data
from sysid_core.estimation.problem import Problem

__all__ = ["Setting"]


class Setting:
    """Coordinates and prior of a problem, and the way from its statistics to weighted data.

    The noise's floor [-] is as in `Estimator`; the problem's data and anchor are not used.
    """

    def __init__(self, problem: Problem, noise_floor: float) -> None:
        self.problem, self._noise_floor = problem, noise_floor
        self.coordinates = Coordinates.of(
            problem.base, problem.constraints.fixed, problem.prior.mean
        )
        self.divergence = Divergence.of(problem, self.coordinates)
        self.measured = Measured.of(problem, self.coordinates)
        self._summed, self._anchored = WeightedSums(), WeightedSums()

    @cached_property
    def gaussian(self) -> Gaussian:
        """Gaussian approximation of the prior in the free parameters."""
        return Gaussian(self.divergence.mean, prior_covariance(self.divergence))

    def likely_spread(self) -> FloatArray:
        """Return how far β (r, r) is thought to be off the prior's mean, without data.

        Measurements of parameters count, inequalities and an anchor do not.
        """
        spread, mapping = likely_spread(self.divergence), self.coordinates.mapping
        if len(rows := self.measured.rows):
            cross = spread @ rows.T
            shown = rows @ cross + np.diag(1.0 / self.measured.weight)
            spread -= cross @ np.linalg.solve(shown, cross.T)
        return np.asarray(mapping @ spread @ mapping.T)

    def floor(self, statistics: Statistics, correlation: FloatArray | None) -> FloatArray:
        """Return the smallest noise (G,) [N·m] that residuals can be trusted to show."""
        return believable_floor(
            statistics, correlation, self.coordinates, self.gaussian, self._noise_floor
        )

    def data(
        self,
        statistics: Statistics,
        noise: FloatArray,
        correlation: FloatArray | None,
        anchor: Statistics | None = None,
    ) -> Data:
        """Return data and anchor on the free base parameters for this noise (G,) [N·m]."""
        gram, moment = self._summed(statistics, row_weights(noise, correlation))
        if anchor is None:
            return Data(*self.coordinates.reduce(gram, moment), gram)
        known, pull = self._anchored(anchor, row_weights(noise, None))
        return Data(*self.coordinates.reduce(gram + known, moment + pull), gram)

    def residual_noise(
        self,
        statistics: Statistics,
        x: FloatArray,
        noise: FloatArray,
        base_covariance: FloatArray,
        floor: FloatArray,
    ) -> FloatArray:
        """Return the noise (G,) [N·m] that the residuals of parameters x (n,) show.

        `base_covariance` (b, b) is their posterior's under weights of `noise` (G,).
        """
        degrees = fitted_degrees(statistics, noise, base_covariance)
        base_vector = self.coordinates.base_vector(self.coordinates.mapping @ x)
        return residual_std(statistics, base_vector, floor, degrees)
