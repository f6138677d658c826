# SPDX-License-Identifier: Apache-2.0
"""Bases of what constraints leave free, and how forces and their errors pass through them."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray

__all__ = ["null_space", "project", "whitened"]

_STICTION = 1e4
"""Variance of the torque error of a joint that stands still, relative to the others."""


def null_space(jacobian: FloatArray) -> FloatArray:
    """Return orthonormal bases N (n, nv, nv − k) with ``J N = 0`` of Jacobians J (n, k, nv).

    From a full QR of Jᵀ. Where a Jacobian loses rank the basis still satisfies J N = 0; it only
    leaves out the additional directions, which noise would turn arbitrarily.
    """
    n, k, nv = jacobian.shape
    if k == 0:
        return np.broadcast_to(np.eye(nv), (n, nv, nv))
    if k >= nv:
        return np.zeros((n, nv, 0))
    Q = np.linalg.qr(np.swapaxes(jacobian, 1, 2), mode="complete")[0]
    return np.asarray(Q[:, :, k:])


def project(N: FloatArray, force: FloatArray) -> FloatArray:
    """Return ``N Nᵀ`` times forces (n, nv) for orthonormal bases N (n, nv, r)."""
    return np.asarray((N @ (np.swapaxes(N, 1, 2) @ force[:, :, None]))[:, :, 0])


def _divide(N: FloatArray, variance: FloatArray) -> FloatArray:
    """Whiten bases N (n, nv, r) by the Cholesky factor of ``Nᵀ diag(variance) N``."""
    NT = np.swapaxes(N, 1, 2)
    L = np.linalg.cholesky(NT @ (variance[..., None] * N))
    return np.asarray(np.swapaxes(np.linalg.solve(L, NT), 1, 2))


def whitened(N: FloatArray, still: BoolArray) -> FloatArray:
    """Return bases (n, nv, r) whose rows have errors of the same size; `still` is (n, nv)."""
    stuck = np.flatnonzero(still.any(axis=1))
    if len(stuck) and N.shape[2]:
        N = np.array(N)
        N[stuck] = _divide(N[stuck], np.where(still[stuck], 1.0 + _STICTION, 1.0))
    return N
