# SPDX-License-Identifier: Apache-2.0
"""Base parameters: the combinations of parameters that torques can reveal at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.errors import ModelError

__all__ = ["BaseParameters", "find_base_parameters", "well_conditioned_base"]

_TOLERANCE = 1e-5
"""A scaled column whose part outside the span of the earlier ones is smaller is dependent: no
torque shows a hundred-thousandth of itself, but axes that a URDF turns by 1.5708 do."""
_UNSEEN = 1e-8
"""A column that is smaller beside the largest shows in no torque; their units may differ."""


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Structural base of a regressor: ``A = A[:, columns] @ mapping``."""

    columns: IndexArray  # (b,) indices of independent columns of the full regressor
    mapping: FloatArray
    """(b, p) base parameters are ``mapping @ x``; it is the identity on `columns`."""
    labels: tuple[str, ...]  # Names of all p parameters

    def __post_init__(self) -> None:
        self.columns.setflags(write=False)
        self.mapping.setflags(write=False)

    @property
    def size(self) -> int:
        """Number b of base parameters."""
        return len(self.columns)

    def places(self, columns: IndexArray) -> IndexArray:
        """Return which base parameters (m,) columns of the full regressor are, −1 where none."""
        where = np.full(len(self.labels), -1)
        where[self.columns] = np.arange(self.size)
        return where[columns]

    def project(self, vector: FloatArray) -> FloatArray:
        """Return the base parameters (b,) of a full parameter vector (p,)."""
        return self.mapping @ vector

    def expressions(self, digits: int = 4) -> tuple[str, ...]:
        """Write each base parameter as a readable sum, e.g. ``"a.Izz + 0.09·b.m + b.Izz"``."""
        texts = []
        for row, column in zip(self.mapping, self.columns, strict=True):
            text = self.labels[column]
            for other in np.flatnonzero(np.abs(row) > 0.5 * 10.0**-digits):
                if other == column:
                    continue
                size = abs(row[other])
                factor = "" if abs(size - 1.0) < 10.0**-digits else f"{size:.{digits}g}·"
                text += f" {'+' if row[other] > 0 else '−'} {factor}{self.labels[other]}"
            texts.append(text)
        return tuple(texts)


def find_base_parameters(regressor: FloatArray, labels: tuple[str, ...]) -> BaseParameters:
    """Find the base parameters by a rank-revealing QR (Gautier 1991).

    Of the regressor (m, p) at many random states, m ≥ p, only the column space matters. Columns
    are taken in the layout's order, so a dependent column is grouped into earlier ones.

    Raises
    ------
    ModelError
        If the regressor has fewer rows than columns or is not finite.
    """
    A = np.asarray(regressor, dtype=float)
    m, p = A.shape
    if m < p or not np.isfinite(A).all():
        raise ModelError(f"base parameters need a finite regressor of at least {p} rows, got {m}")
    scale = np.linalg.norm(A, axis=0)
    seen = scale > _UNSEEN * max(scale.max(initial=0.0), 1e-300)
    scale = np.where(seen, scale, 1.0)
    # an orthogonal map changes nothing that counts here, and leaves few rows
    A = scipy.linalg.qr(A / scale, mode="r", check_finite=False)[0][:p]
    independent: list[int] = []
    Q = np.zeros((p, p))
    for k in np.flatnonzero(seen):
        rest = A[:, k].copy()
        basis = Q[:, : len(independent)]
        for _ in range(2):  # twice is enough (Giraud et al. 2005)
            rest -= basis @ (basis.T @ rest)
        size = np.linalg.norm(rest)
        if size > _TOLERANCE:
            Q[:, len(independent)] = rest / size
            independent.append(int(k))
    columns = np.array(independent, dtype=np.intp)
    Qb = Q[:, : len(columns)]
    R = Qb.T @ A
    mapping = scipy.linalg.solve_triangular(R[:, columns], R)
    mapping *= scale[None, :] / scale[columns][:, None]
    mapping[:, columns] = np.eye(len(columns))
    mapping[:, ~seen] = 0.0
    significant = np.abs(mapping) * scale[columns][:, None] > 1e-10 * scale[None, :]
    return BaseParameters(columns, np.where(significant, mapping, 0.0), labels)


def well_conditioned_base(A: FloatArray, labels: tuple[str, ...]) -> BaseParameters:
    """Find the base of a regressor (m, p) in the columns that a pivoted QR prefers.

    Loops couple columns that trees keep apart, some only just: taken in the layout's order they
    would make a base whose grouping factors reach 1e4, and squared in Gram matrices 1e8.
    """
    scale = np.linalg.norm(A, axis=0)
    scaled = A / np.where(scale > 0.0, scale, 1.0)
    order = scipy.linalg.qr(scaled, mode="r", pivoting=True)[-1]
    found = find_base_parameters(A[:, order], tuple(labels[k] for k in order))
    columns = order[found.columns]
    mapping = np.empty_like(found.mapping)
    mapping[:, order] = found.mapping
    rows = np.argsort(columns)
    return BaseParameters(columns[rows], mapping[rows], labels)
