# SPDX-License-Identifier: Apache-2.0
"""Direct measurements of combinations of parameters, such as a robot's total mass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.estimation.coordinates import Coordinates
from sysid_core.estimation.problem import Problem

__all__ = ["Measured"]


class Measured(NamedTuple):
    """Measurements ``rows @ x = value`` with independent errors.

    Attributes
    ----------
    rows : (d, n)
        Over the free parameters.
    value : (d,)
    weight : (d,)
        One over the variance.
    """

    rows: FloatArray
    value: FloatArray
    weight: FloatArray

    @staticmethod
    def total_mass(problem: Problem, coordinates: Coordinates) -> Measured:
        """Return a problem's known total mass as one measurement, or none.

        Raises
        ------
        ParameterError
            If mass or deviation is not positive.
        """
        known = problem.constraints.total_mass
        if known is None:
            return Measured(np.zeros((0, coordinates.size)), np.zeros(0), np.zeros(0))
        mass, std = known
        if not (np.isfinite(mass) and mass > 0.0 and np.isfinite(std) and std > 0.0):
            raise ParameterError(f"total mass and its deviation must be positive, got {known}")
        row = np.zeros(problem.layout.size)
        row[problem.layout.masses] = 1.0
        fixed = coordinates.full(np.zeros(coordinates.size))
        return Measured(
            row[None, coordinates.free],
            np.array([mass - row @ fixed]),
            np.array([1.0 / std**2]),
        )

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return the gradient (n,) of ½ Σ (rows·x − value)² weight."""
        return (self.weight * (self.rows @ x - self.value)) @ self.rows
