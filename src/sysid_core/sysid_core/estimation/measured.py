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
    """Measurements ``rows @ x = value`` with independent errors."""

    rows: FloatArray  # (d, n) over the free parameters
    value: FloatArray  # (d,)
    weight: FloatArray  # (d,) one over the variance

    @staticmethod
    def of(problem: Problem, coordinates: Coordinates) -> Measured:
        """Return what a problem's constraints know of its parameters.

        Raises
        ------
        ParameterError
            If a mass or a deviation is not positive.
        """
        size = problem.layout.size
        rows, values, stds = problem.constraints.known or (
            np.zeros((0, size)),
            np.zeros(0),
            np.zeros(0),
        )
        total = problem.constraints.total_mass
        if total is not None:
            if not (np.isfinite(total).all() and min(total) > 0.0):
                raise ParameterError(f"total mass and its deviation must be positive, got {total}")
            row = np.zeros(size)
            row[problem.layout.masses] = 1.0
            rows, values = np.vstack([rows, row]), np.append(values, total[0])
            stds = np.append(stds, total[1])
        if not (stds > 0.0).all():
            raise ParameterError("what is known of parameters needs deviations above zero")
        free = rows[:, coordinates.free]
        values = values - rows @ coordinates.full(np.zeros(coordinates.size))
        tells = free.any(axis=1)
        return Measured(free[tells], values[tells], 1.0 / stds[tells] ** 2)

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return the gradient (n,) of ½ Σ (rows·x − value)² weight."""
        return (self.weight * (self.rows @ x - self.value)) @ self.rows
