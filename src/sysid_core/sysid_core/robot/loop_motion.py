# SPDX-License-Identifier: Apache-2.0
"""What solving kinematic loops takes and returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray

__all__ = ["ClosedConfiguration", "ClosedMotion", "MotionMaps"]


class ClosedConfiguration(NamedTuple):
    """A solution q of the loops, with the certificate of its convergence.

    Attributes
    ----------
    configuration : (nq,) [rad]
    residual : float [m, rad]
        Largest absolute residual of the closure equations at `configuration`.
    jacobian : (m, nv)
        Of the closure equations at `configuration`: what G needs of kinematics.
    """

    configuration: FloatArray
    residual: float
    iterations: int
    converged: bool
    jacobian: FloatArray


class MotionMaps(NamedTuple):
    """How the whole robot moves with its actuated joints at one closed state.

    Attributes
    ----------
    G : (nv, na) [-]
        q̇ = G q̇_a (Zhang et al. eq. 20).
    G_dot : (nv, na) [1/s]
        q̈ = G q̈_a + Ġ q̇_a.
    condition : float [-]
        Condition number of J_u with columns of unit length, in the Frobenius norm; inf where it
        is singular.
    """

    G: FloatArray
    G_dot: FloatArray
    condition: float


class ClosedMotion(NamedTuple):
    """States of the whole robot along actuated motion.

    Attributes
    ----------
    q, v, a : (n, nv) [rad, rad/s, rad/s²]
    G : (n, nv, na) [-]
    residual : (n,) [m, rad]
    iterations : (n,)
    condition : (n,) [-]
    valid : (n,) bool
        Closed and not near singular; the other rows must not be used.
    """

    q: FloatArray
    v: FloatArray
    a: FloatArray
    G: FloatArray
    residual: FloatArray
    iterations: FloatArray
    condition: FloatArray
    valid: BoolArray

    @classmethod
    def unknown(cls, n: int, nv: int, na: int) -> ClosedMotion:
        """Return motion of which nothing is known yet."""
        return cls(
            q=np.full((n, nv), np.nan),
            v=np.full((n, nv), np.nan),
            a=np.full((n, nv), np.nan),
            G=np.zeros((n, nv, na)),
            residual=np.full(n, np.inf),
            iterations=np.zeros(n),
            condition=np.full(n, np.inf),
            valid=np.zeros(n, dtype=bool),
        )
