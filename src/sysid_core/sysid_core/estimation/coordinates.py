# SPDX-License-Identifier: Apache-2.0
"""Coordinates in which data and prior part: base parameters, and what no data can reveal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.dynamics.base_parameters import BaseParameters, find_base_parameters

__all__ = ["Coordinates"]


@dataclass(frozen=True)
class Coordinates:
    """Free parameters x written as base parameters β and null-space coordinates z.

    ``x = spread @ z`` with β added at `columns`; z are the values of the other free parameters.
    The data's information is then exactly ``blockdiag(0, H)`` in (z, β), so a data-to-prior
    ratio of 1e16 does no harm to a factorisation that eliminates z first.
    """

    free: IndexArray  # (n,) indices of the parameters that are not fixed
    # columns, others: (r,), (n − r,) positions within the free parameters.
    columns: IndexArray
    others: IndexArray
    mapping: FloatArray  # (r, n) β = mapping @ x; the identity on `columns`
    lift: FloatArray | None
    """(b, r) all base parameters are ``lift @ β + shift``; None for the identity."""
    shift: FloatArray  # (b,) what the fixed parameters contribute to the base parameters
    reference: FloatArray  # (p,) full vector that supplies the fixed parameters

    @staticmethod
    def of(base: BaseParameters, fixed: BoolArray, reference: FloatArray) -> Coordinates:
        """Return the coordinates of the parameters that are not `fixed` (p,)."""
        free = np.flatnonzero(~fixed)
        shift = base.mapping[:, fixed] @ reference[fixed]
        columns, mapping, lift = base.columns, base.mapping, None
        if fixed.any():
            columns, mapping = _independent(base, fixed.tobytes())
            lift = base.mapping[:, free[columns]]
            if np.array_equal(lift, np.eye(base.size)):
                lift = None
        keep = np.ones(len(free), dtype=bool)
        keep[columns] = False
        return Coordinates(free, columns, np.flatnonzero(keep), mapping, lift, shift, reference)

    @property
    def size(self) -> int:
        """Number n of free parameters."""
        return len(self.free)

    @property
    def rank(self) -> int:
        """Number r of base parameters among the free ones."""
        return len(self.columns)

    @cached_property
    def tied(self) -> FloatArray:
        """Change (r, n − r) of the parameters at `columns` with z at constant β."""
        return -self.mapping[:, self.others]

    @cached_property
    def moved(self) -> IndexArray:
        """Which of the parameters at `columns` z moves at constant β."""
        return np.flatnonzero(self.tied.any(axis=1))

    @cached_property
    def spread(self) -> FloatArray:
        """Change (n, n − r) of x with z at constant β."""
        spread = np.zeros((self.size, len(self.others)))
        spread[self.others, np.arange(len(self.others))] = 1.0
        spread[self.columns] = self.tied
        return spread

    @cached_property
    def picked(self) -> IndexArray | None:
        """Which base parameters (r,) the free ones β are, where each is one of them; else None."""
        if self.lift is None:
            return None
        ones = self.lift == 1.0
        single = (ones.sum(axis=0) == 1).all() and np.count_nonzero(self.lift) == self.rank
        return np.argmax(ones, axis=0) if single else None

    def full(self, x: FloatArray) -> FloatArray:
        """Return the full vector (p,) of free parameters (n,)."""
        vector = self.reference.copy()
        vector[self.free] = x
        return vector

    def base_vector(self, beta: FloatArray) -> FloatArray:
        """Return all base parameters (b,) of the free ones β (r,)."""
        return (beta if self.lift is None else self.lift @ beta) + self.shift

    def reduce(self, gram: FloatArray, moment: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Gram matrix (r, r) and moment (r,) of β from those of all base parameters."""
        rest = moment - gram @ self.shift if self.shift.any() else moment
        if self.lift is None:
            return gram, rest
        if self.picked is not None:
            return gram[self.picked[:, None], self.picked], rest[self.picked]
        return self.lift.T @ gram @ self.lift, self.lift.T @ rest

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
        z, dx = change[: len(self.others)], np.empty(self.size)
        dx[self.others] = z
        dx[self.columns] = self.tied @ z + change[len(self.others) :]
        return dx

    def gradient(self, gradient: FloatArray) -> FloatArray:
        """Return the gradient in (z, β) (n,) from that in x (n,)."""
        at_columns = gradient[self.columns]
        return np.concatenate([gradient[self.others] + at_columns @ self.tied, at_columns])


@lru_cache(maxsize=4)  # a window, or the stretches of a recording, ask for the same again
def _independent(base: BaseParameters, held: bytes) -> tuple[IndexArray, FloatArray]:
    """Find a base of the free columns of the mapping, old base columns first.

    `held` has the bytes of which parameters (p,) are fixed.
    """
    free = np.flatnonzero(~np.frombuffer(held, dtype=np.bool_))
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
    result = columns[ascending], mapping[ascending]
    for part in result:
        part.setflags(write=False)  # it is shared
    return result
