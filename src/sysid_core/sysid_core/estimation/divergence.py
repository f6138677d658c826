# SPDX-License-Identifier: Apache-2.0
"""The prior as a function: log-det divergence of bodies, its scalar twin, and offsets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.errors import ParameterError
from sysid_core.estimation.coordinates import Coordinates
from sysid_core.estimation.problem import Problem
from sysid_core.inertia import pseudo_inertia, pseudo_inertia_basis, smallest_eigenvalue
from sysid_core.parameters import INERTIAL_TERMS

__all__ = ["Divergence"]

_WIDTH = len(INERTIAL_TERMS)


@dataclass(frozen=True)
class Divergence:
    """Minus the logarithm of the prior density of free parameters x (n,).

    Σ_bodies κ (tr(J₀⁻¹J) − log det(J₀⁻¹J) − 4) with κ = 1/(4ρ²) (Lee, Wensing & Park 2020),
    plus Σ_friction (f/f₀ − log(f/f₀) − 1)/ρ² and Σ_offsets ½(β − β₀)²/σ².
    Free parameters hold whole bodies first, then scalars.
    """

    bodies: IndexArray  # (k,) indices of the free bodies in the layout
    mean: FloatArray  # (n,) the prior's mean
    inverse: FloatArray  # (k, 4, 4): J₀⁻¹
    weight: FloatArray  # (k,) κ
    logarithmic: FloatArray  # (s,): 1/ρ² of each scalar that must stay positive, 0 for offsets
    quadratic: FloatArray  # (s,): 1/σ² of each offset, 0 for the others

    @staticmethod
    def of(problem: Problem, coordinates: Coordinates) -> Divergence:
        """Return the divergence from a problem's prior.

        Raises
        ------
        ParameterError
            If a body is fixed in part, a body of the prior cannot exist, or a free parameter's
            prior has no scale.
        """
        layout, prior = problem.layout, problem.prior
        eigenvalues = smallest_eigenvalue(layout.inertias(prior.mean))
        if not (eigenvalues > 0.0).all():
            body = layout.bodies[int(np.argmin(eigenvalues))]
            raise ParameterError(f"the prior of body {body} is not physically consistent")
        held = problem.constraints.fixed[layout.inertial].reshape(-1, _WIDTH)
        if (held.any(axis=1) != held.all(axis=1)).any():
            body = layout.bodies[int(np.argmax(held.any(axis=1) != held.all(axis=1)))]
            raise ParameterError(f"body {body} is fixed in part; fix all ten parameters or none")
        bodies = np.flatnonzero(~held.any(axis=1))
        mean = prior.mean[coordinates.free]
        scalars = coordinates.free[_WIDTH * len(bodies) :]
        std, centre = prior.scalar_std[scalars], mean[_WIDTH * len(bodies) :]
        positive = np.isin(scalars, layout.nonnegative)
        bad = ~(np.isfinite(std) & (std > 0.0)) | (positive & (centre <= 0.0))
        if bad.any():
            label = layout.labels[int(scalars[np.argmax(bad)])]
            raise ParameterError(
                f"parameter {label} needs a positive prior standard deviation and, unless it is "
                "an offset, a positive prior value; give them or fix the parameter"
            )
        body_std = prior.body_std[bodies]
        if not (np.isfinite(body_std) & (body_std > 0.0)).all():
            raise ParameterError("prior standard deviations of bodies must be positive")
        root = np.linalg.inv(
            np.linalg.cholesky(pseudo_inertia(layout.inertias(prior.mean)[bodies]))
        )
        return Divergence(
            bodies,
            mean,
            np.swapaxes(root, 1, 2) @ root,
            0.25 / body_std**2,
            np.where(positive, 1.0 / std**2, 0.0),
            np.where(positive, 0.0, 1.0 / std**2),
        )

    @cached_property
    def split(self) -> int:
        """Number of inertial parameters among the free ones."""
        return _WIDTH * len(self.bodies)

    @cached_property
    def positive(self) -> IndexArray:
        """Positions among the scalars of those that must stay positive."""
        return np.flatnonzero(self.logarithmic > 0.0)

    @cached_property
    def _basis(self) -> FloatArray:
        return pseudo_inertia_basis().reshape(_WIDTH, 16)

    @cached_property
    def _pairs(self) -> tuple[IndexArray, IndexArray, FloatArray]:
        """Pairs (55,) of entries of a symmetric S, and what (55, 100) gives tr(S E_k S E_l)."""
        E = pseudo_inertia_basis()
        entry = np.zeros((4, 4), dtype=int)
        entry[np.triu_indices(4)] = np.arange(_WIDTH)
        entry = np.maximum(entry, entry.T)
        first, second = np.triu_indices(_WIDTH)
        place = np.zeros((_WIDTH, _WIDTH), dtype=int)
        place[first, second] = place[second, first] = np.arange(len(first))
        contracted = np.zeros((len(first), _WIDTH**2))
        products = np.einsum("ajk,bli->ijklab", E, E).reshape(256, _WIDTH**2)
        np.add.at(contracted, place[entry.ravel()[:, None], entry.ravel()].ravel(), products)
        flat = np.flatnonzero(np.triu(np.ones((4, 4))))
        return flat[first], flat[second], contracted

    @cached_property
    def _slope(self) -> FloatArray:
        """The constant part (n,) of the gradient."""
        slope = np.empty(len(self.mean))
        k = len(self.bodies)
        traces = self.inverse.reshape(k, 16) @ self._basis.T
        slope[: self.split] = (self.weight[:, None] * traces).ravel()
        centre = self.mean[self.split :]
        reference = np.where(self.logarithmic > 0.0, centre, 1.0)
        slope[self.split :] = self.logarithmic / reference - self.quadratic * centre
        return slope

    def pseudo_inertias(self, x: FloatArray) -> FloatArray:
        """Return J (k, 4, 4) of the free bodies."""
        k = len(self.bodies)
        return (x[: self.split].reshape(k, _WIDTH) @ self._basis).reshape(k, 4, 4)

    def contains(self, x: FloatArray) -> bool:
        """Return whether x (n,) lies strictly within the domain."""
        if (x[self.split + self.positive] <= 0.0).any():
            return False
        try:
            np.linalg.cholesky(self.pseudo_inertias(x))
        except np.linalg.LinAlgError:
            return False
        return True

    def value(self, x: FloatArray) -> float:
        """Return the divergence; inf outside the domain."""
        if not self.contains(x):
            return float("inf")
        scalars, centre = x[self.split :], self.mean[self.split :]
        log = self.positive
        relative = self.inverse @ self.pseudo_inertias(x)
        bodies = np.trace(relative, axis1=1, axis2=2) - np.linalg.slogdet(relative)[1] - 4.0
        ratio = scalars[log] / centre[log]
        friction = self.logarithmic[log] @ (ratio - np.log(ratio) - 1.0)
        offsets = 0.5 * self.quadratic @ (scalars - centre) ** 2
        return float(self.weight @ bodies + friction + offsets)

    def gradient(self, x: FloatArray, inverse: FloatArray) -> FloatArray:
        """Return the gradient (n,), given J⁻¹ (k, 4, 4) at x."""
        gradient = self._slope.copy()
        k = len(self.bodies)
        traces = inverse.reshape(k, 16) @ self._basis.T
        gradient[: self.split] -= (self.weight[:, None] * traces).ravel()
        scalars = x[self.split :]
        gradient[self.split :] += self.quadratic * scalars
        log = self.positive
        gradient[self.split + log] -= self.logarithmic[log] / scalars[log]
        return gradient

    def squares(self, matrices: FloatArray) -> FloatArray:
        """Return tr(S E_k S E_l) (k, 10, 10) for symmetric matrices S (k, 4, 4)."""
        flat = matrices.reshape(-1, 16)
        first, second, contracted = self._pairs
        return (flat[:, first] * flat[:, second] @ contracted).reshape(-1, _WIDTH, _WIDTH)

    def curvature(self, x: FloatArray, inverse: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the Hessian: blocks (k, 10, 10) of bodies and the diagonal (s,) of scalars."""
        blocks = self.weight[:, None, None] * self.squares(inverse)
        diagonal = self.quadratic.copy()
        log = self.positive
        diagonal[log] = self.logarithmic[log] / x[self.split + log] ** 2
        return blocks, diagonal
