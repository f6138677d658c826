# SPDX-License-Identifier: Apache-2.0
"""Coordinates in which data and prior part: base parameters, and what no data can reveal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.dynamics.base_parameters import BaseParameters, find_base_parameters

__all__ = ["Coordinates"]


@dataclass(frozen=True)
class Coordinates:
    """Free parameters x written as base parameters β and null-space coordinates z.

    ``x = spread @ z`` plus β added at `columns`; z are the values of the other free parameters.
    The data's information is then exactly ``blockdiag(0, H)`` in (z, β), so a data-to-prior
    ratio of 1e16 does no harm to a factorisation that eliminates z first.

    Attributes
    ----------
    free : (n,)
        Indices of the parameters that are not fixed.
    columns, others : (r,), (n − r,)
        Positions within the free parameters.
    mapping : (r, n)
        β = mapping @ x; the identity on `columns`.
    spread : (n, n − r)
        Change of x with z at constant β.
    lift : (b, r) or None
        All base parameters are ``lift @ β + shift``; None for the identity.
    shift : (b,)
        What the fixed parameters contribute to the base parameters.
    reference : (p,)
        Full vector that supplies the fixed parameters.
    """

    free: IndexArray
    columns: IndexArray
    others: IndexArray
    mapping: FloatArray
    spread: FloatArray
    lift: FloatArray | None
    shift: FloatArray
    reference: FloatArray

    @staticmethod
    def of(base: BaseParameters, fixed: BoolArray, reference: FloatArray) -> Coordinates:
        """Return the coordinates of the parameters that are not `fixed` (p,)."""
        free = np.flatnonzero(~fixed)
        shift = base.mapping[:, fixed] @ reference[fixed]
        if len(free) == len(fixed):
            columns, mapping, lift = base.columns, base.mapping, None
        else:
            columns, mapping = _independent(base, free)
            lift = base.mapping[:, free[columns]]
        keep = np.ones(len(free), dtype=bool)
        keep[columns] = False
        others = np.flatnonzero(keep)
        spread = np.zeros((len(free), len(others)))
        spread[others, np.arange(len(others))] = 1.0
        spread[columns] = -mapping[:, others]
        return Coordinates(free, columns, others, mapping, spread, lift, shift, reference)

    @property
    def size(self) -> int:
        """Number n of free parameters."""
        return len(self.free)

    @property
    def rank(self) -> int:
        """Number r of base parameters among the free ones."""
        return len(self.columns)

    @cached_property
    def picked(self) -> IndexArray | None:
        """Which base parameters (r,) the free ones β are, where each is one of them; else None."""
        if self.lift is None:
            return None
        ones = self.lift == 1.0
        single = (ones.sum(axis=0) == 1).all() and np.count_nonzero(self.lift) == self.rank
        return np.argmax(ones, axis=0) if single else None

    @cached_property
    def base_mapping(self) -> FloatArray:
        """Matrix (b, n) from the free parameters to what they change of all base parameters."""
        return self.mapping if self.lift is None else self.lift @ self.mapping

    def full(self, x: FloatArray) -> FloatArray:
        """Return the full vector (p,) of free parameters (n,)."""
        vector = self.reference.copy()
        vector[self.free] = x
        return vector

    def base_vector(self, beta: FloatArray) -> FloatArray:
        """Return all base parameters (b,) of the free ones β (r,)."""
        return beta if self.lift is None else self.lift @ beta + self.shift

    def reduce(self, gram: FloatArray, moment: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Gram matrix (r, r) and moment (r,) of β from those of all base parameters."""
        if self.lift is None:
            return gram, moment
        if self.picked is not None:
            rest = moment - gram @ self.shift if self.shift.any() else moment
            return gram[self.picked[:, None], self.picked], rest[self.picked]
        return self.lift.T @ gram @ self.lift, self.lift.T @ (moment - gram @ self.shift)

    def lifted(self, covariance: FloatArray) -> FloatArray:
        """Return the covariance (b, b) of all base parameters from that of β (r, r)."""
        if self.lift is None:
            return covariance
        if self.picked is None:
            return self.lift @ covariance @ self.lift.T
        result = np.zeros((len(self.lift), len(self.lift)))
        result[self.picked[:, None], self.picked] = covariance
        return result

    def step(self, change: FloatArray) -> FloatArray:
        """Return the change of x (n,) for a change of (z, β) (n,)."""
        split = len(self.others)
        dx = self.spread @ change[:split]
        dx[self.columns] += change[split:]
        return dx

    def gradient(self, gradient: FloatArray) -> FloatArray:
        """Return the gradient in (z, β) (n,) from that in x (n,)."""
        return np.concatenate([gradient @ self.spread, gradient[self.columns]])

    def covariance(self, covariance: FloatArray) -> FloatArray:
        """Return the covariance of x (n, n) from that of (z, β)."""
        split = len(self.others)
        half = self.spread @ covariance[:split]
        half[self.columns] += covariance[split:]
        result = half[:, :split] @ self.spread.T
        result[:, self.columns] += half[:, split:]
        return np.asarray(0.5 * (result + result.T))

    def variance(self, covariance: FloatArray) -> FloatArray:
        """Return the variances of x (n,) from the covariance of (z, β)."""
        split = len(self.others)
        K = self.spread[self.columns]
        zz, bz = covariance[:split, :split], covariance[split:, :split]
        result = np.empty(self.size)
        result[self.others] = np.diagonal(zz)
        result[self.columns] = np.diagonal(covariance)[split:] + ((K @ zz + 2.0 * bz) * K).sum(
            axis=1
        )
        return result


def _independent(base: BaseParameters, free: IndexArray) -> tuple[IndexArray, FloatArray]:
    """Find a base of the free columns of the mapping, old base columns first."""
    old = np.isin(free, base.columns)
    order = np.concatenate([np.flatnonzero(old), np.flatnonzero(~old)])
    ordered = base.mapping[:, free[order]]
    missing = max(0, len(free) - base.size)
    padded = np.vstack([ordered, np.zeros((missing, len(free)))])
    found = find_base_parameters(padded, tuple(base.labels[i] for i in free[order]))
    columns = order[found.columns]
    ascending = np.argsort(columns)
    mapping = np.empty((found.size, len(free)))
    mapping[:, order] = found.mapping
    return columns[ascending], mapping[ascending]
