# SPDX-License-Identifier: Apache-2.0
"""Gradients of sums of regressor rows by positions, velocities and accelerations, in one sweep."""

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.excitation.fourier import States
from sysid_core.inertia import pseudo_inertia
from sysid_core.robot.model import Robot
from sysid_core.robot.poses import Poses, hat

__all__ = ["TreeGradient"]


def _bracket(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(x @ y - y @ x)


def _product(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the sums (…) of the products of all entries of matrices (…, 4, 4)."""
    return np.asarray(np.einsum("...xy,...xy->...", x, y))


class TreeGradient:
    """Gradient of ``L = Σ_j e_jᵀ Y(q, q̇, q̈) π_j`` with parameters of its own for every row.

    With the screws X_j, the pseudo-inertias ``W = H J Hᵀ`` of the parameters and ``D_b = Ḧ_b
    H_b⁻¹`` (gravity taken off), Lagrange's equations (Uicker 1967) read ``L = Σ_b Σ_{j≤b} ⟨X_j
    W_jb, D_b⟩``. A rigid motion of everything leaves a body's share as it is, so that the
    derivative by a joint's position needs only what it moves relative to the body. The gradient is
    taken by the joints j whose rows (k,) count, of a tree on a fixed base.
    """

    def __init__(self, robot: Robot, rows: IndexArray) -> None:
        self._model, self._rows = robot.model, rows
        self._parents = [int(p) - 1 for p in robot.model.parents[1:]]
        self._acceleration = -hat(np.r_[robot.model.gravity.linear, np.zeros(3)])
        moves = set(rows.tolist())
        above: list[list[int]] = []
        for k, parent in enumerate(self._parents):
            above.append((above[parent] if parent >= 0 else []) + ([k] if k in moves else []))
        ends = np.cumsum([len(joints) for joints in above])
        self._slices = [slice(e - len(a), e) for a, e in zip(above, ends, strict=True)]
        pairs = [(j, b) for b, joints in enumerate(above) for j in joints]
        self._joint, self._body = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        self._row = np.searchsorted(rows, self._joint)

    def __call__(self, states: States, pull: FloatArray) -> States:
        """Return the gradient (n, k) of L for parameters (n, k, nb, 10) of the rows."""
        poses = Poses(self._model, states.position)
        H, X = poses.bodies, poses.screws
        V, A, turning, bending = self._motion(states, X)
        D = A + V @ V
        W = pseudo_inertia(pull[:, self._row, self._body])
        pose = H[:, self._body]
        W = pose @ W @ np.swapaxes(pose, -1, -2)
        screw, force = X[:, self._joint], D[:, self._body] @ W
        N = self._per_body(screw @ W)
        NV = 2.0 * N @ np.swapaxes(V, -1, -2)
        screw = np.swapaxes(screw, -1, -2)
        turned = screw @ force - force @ screw
        self._gather(turned, N, NV)
        turned[:, self._joint == self._body] = 0.0
        T = self._per_body(turned)
        rows = self._rows
        return States(
            (_product(bending, N) + _product(turning, NV) + _product(X, T))[:, rows],
            (2.0 * _product(turning, N) + _product(X, NV))[:, rows],
            _product(X, N)[:, rows],
        )

    def _per_body(self, pairs: FloatArray) -> FloatArray:
        """Return the sums (n, nb, 4, 4) of pairs (n, k, 4, 4) of joints and bodies."""
        return np.stack([pairs[:, pairs_of].sum(axis=1) for pairs_of in self._slices], axis=1)

    def _motion(
        self, states: States, X: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return all bodies' velocities and accelerations, and Ψ̇ and Ψ̈ of all joints.

        Those are how a screw's motion with the bodies before it changes V and A beyond it
        (Singh, Russell & Wensing 2022).
        """
        V, A, turning, bending = np.zeros((4, *X.shape))
        first = np.broadcast_to(self._acceleration, X[:, 0].shape)
        for k, parent in enumerate(self._parents):
            v, a = (V[:, parent], A[:, parent]) if parent >= 0 else (np.zeros_like(first), first)
            turning[:, k] = _bracket(v, X[:, k])
            bending[:, k] = _bracket(a, X[:, k]) + _bracket(v, turning[:, k])
            rate, change = (part[:, k, None, None] for part in states[1:])
            V[:, k] = v + X[:, k] * rate
            A[:, k] = a + X[:, k] * change + turning[:, k] * rate
        return V, A, turning, bending

    def _gather(self, turned: FloatArray, *sums: FloatArray) -> None:
        """Add to every body what the bodies beyond it have."""
        for b in range(len(self._parents) - 1, -1, -1):
            parent = self._parents[b]
            if parent < 0:
                continue
            for part in sums:
                part[:, parent] += part[:, b]
            here, there = self._slices[b], self._slices[parent]
            width = there.stop - there.start
            turned[:, there] += turned[:, here.start : here.start + width]
