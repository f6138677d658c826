# SPDX-License-Identifier: Apache-2.0
"""The linear inequalities of a problem, in free parameters and prior standard deviations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import EstimationError, ParameterError
from sysid_core.estimation.coordinates import Coordinates
from sysid_core.estimation.divergence import Divergence
from sysid_core.estimation.gaussian import prior_covariance
from sysid_core.estimation.problem import Problem
from sysid_core.inertia import pseudo_inertia_basis
from sysid_core.parameters import INERTIAL_TERMS

__all__ = ["Inequalities"]


@dataclass(frozen=True)
class Inequalities:
    """Inequalities ``matrix @ x > bound`` beyond positive inertias and friction.

    Each row is divided by the prior standard deviation of its left side. The density of a body
    with a bounding ellipsoid is realizable, tr(JQ) ≥ 0 (Khorshidi et al. eq. 13). That implies
    that its centre of mass lies in the ellipsoid (eq. 9): with second moment Σ_c ⪰ 0 about the
    centre of mass c, tr(JQ) = m (1 − ‖c − c_e‖²) − tr(Q_s⁻¹ Σ_c) in the ellipsoid's norm.
    """

    matrix: FloatArray  # (q, n)
    bound: FloatArray  # (q,)
    labels: tuple[str, ...]

    @staticmethod
    def of(problem: Problem, coordinates: Coordinates, divergence: Divergence) -> Inequalities:
        """Collect a problem's inequalities.

        Raises
        ------
        ParameterError
            If bounds are shaped wrongly or cross.
        EstimationError
            If an inequality between fixed parameters is broken.
        """
        parts = [
            _realizability(problem, coordinates, divergence),
            _bounds(problem, coordinates),
            _linear(problem, coordinates),
        ]
        matrix = np.vstack([part.matrix for part in parts])
        bound = np.concatenate([part.bound for part in parts])
        spread = np.einsum("qi,ij,qj->q", matrix, prior_covariance(divergence), matrix)
        scale = np.sqrt(spread)
        labels = tuple(label for part in parts for label in part.labels)
        return Inequalities(matrix / scale[:, None], bound / scale, labels)

    @property
    def size(self) -> int:
        """Number q of inequalities."""
        return len(self.bound)

    def slack(self, x: FloatArray) -> FloatArray:
        """Return by how much (q,) each inequality holds, in prior standard deviations."""
        return self.matrix @ x - self.bound


def _realizability(
    problem: Problem, coordinates: Coordinates, divergence: Divergence
) -> Inequalities:
    ellipsoids = problem.constraints.ellipsoids
    if len(ellipsoids) != len(problem.layout.bodies):
        raise ParameterError(
            f"{len(ellipsoids)} ellipsoids for {len(problem.layout.bodies)} bodies; "
            "give one per body, or None"
        )
    width = len(INERTIAL_TERMS)
    rows, labels = [], []
    for position, body in enumerate(divergence.bodies):
        ellipsoid = ellipsoids[body]
        if ellipsoid is None:
            continue
        row = np.zeros(coordinates.size)
        row[width * position : width * (position + 1)] = np.einsum(
            "kij,ji->k", pseudo_inertia_basis(), ellipsoid.quadric
        )
        rows.append(row)
        labels.append(f"{problem.layout.bodies[body]} within its ellipsoid")
    matrix = np.array(rows).reshape(len(rows), coordinates.size)
    return Inequalities(matrix, np.zeros(len(rows)), tuple(labels))


def _bounds(problem: Problem, coordinates: Coordinates) -> Inequalities:
    layout, free = problem.layout, coordinates.free
    lower, upper = problem.constraints.lower, problem.constraints.upper
    if lower.shape != (layout.size,) or upper.shape != (layout.size,):
        raise ParameterError(f"bounds need {layout.size} entries each")
    wrong = ~(lower[free] < upper[free])
    if wrong.any():
        label = layout.labels[int(free[np.argmax(wrong)])]
        raise ParameterError(f"the bounds of {label} leave no room; fix the parameter instead")
    positive = np.isin(free, np.concatenate([layout.masses, layout.nonnegative]))
    below = np.flatnonzero(np.isfinite(lower[free]) & ~(positive & (lower[free] <= 0.0)))
    above = np.flatnonzero(np.isfinite(upper[free]))
    identity = np.eye(coordinates.size)
    names = [layout.labels[i] for i in free]
    return Inequalities(
        np.vstack([identity[below], -identity[above]]),
        np.concatenate([lower[free[below]], -upper[free[above]]]),
        tuple(f"{names[i]} ≥ {lower[free[i]]:g}" for i in below)
        + tuple(f"{names[i]} ≤ {upper[free[i]]:g}" for i in above),
    )


def _linear(problem: Problem, coordinates: Coordinates) -> Inequalities:
    matrix, bound = problem.constraints.linear_matrix, problem.constraints.linear_bound
    if matrix.shape != (len(bound), problem.layout.size):
        raise ParameterError(
            f"linear inequalities need a matrix of shape {(len(bound), problem.layout.size)}, "
            f"got {matrix.shape}"
        )
    fixed = coordinates.reference.copy()
    fixed[coordinates.free] = 0.0
    left, right = matrix[:, coordinates.free], bound - matrix @ fixed
    empty = ~left.any(axis=1)
    if (right[empty] > 0.0).any():
        raise EstimationError("an inequality between fixed parameters is broken; free one of them")
    keep = np.flatnonzero(~empty)
    return Inequalities(left[keep], right[keep], tuple(f"inequality {k}" for k in keep))
