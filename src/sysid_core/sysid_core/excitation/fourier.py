# SPDX-License-Identifier: Apache-2.0
"""Periodic joint motions as finite Fourier series that start and end at rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError

__all__ = ["FourierMotion", "States", "random_motion", "rest_basis"]


class States(NamedTuple):
    """A motion at some times.

    Attributes
    ----------
    position : (n, nj) [rad]
    velocity : (n, nj) [rad/s]
    acceleration : (n, nj) [rad/s²]
    """

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray


@dataclass(frozen=True)
class FourierMotion:
    """A finite Fourier series per joint (Swevers et al. 1997, eq. 20).

    ``q(t) = c + Σ_k s_k/(kω) sin(kωt) − g_k/(kω) cos(kωt)`` with ``ω = 2π/T``. Velocity is zero at
    the ends where ``Σ s_k = 0``, acceleration where ``Σ k g_k = 0``.

    Attributes
    ----------
    period : float [s]
    centre : (nj,) [rad]
    sine, cosine : (nj, H) [rad/s]
        Velocity amplitudes s and g of each harmonic.
    """

    period: float
    centre: FloatArray
    sine: FloatArray
    cosine: FloatArray

    def __post_init__(self) -> None:
        if not (np.isfinite(self.period) and self.period > 0.0):
            raise ParameterError(f"the period of a motion must be positive, not {self.period} s")
        if self.sine.shape != self.cosine.shape or self.sine.shape[:1] != self.centre.shape:
            raise ParameterError(
                f"amplitudes of shapes {self.sine.shape} and {self.cosine.shape} do not fit "
                f"{self.centre.size} joints"
            )

    @property
    def harmonics(self) -> int:
        """Number H of harmonics."""
        return int(self.sine.shape[1])

    def states(self, time: FloatArray) -> States:
        """Return the motion at times (n,) [s]."""
        omega = 2.0 * np.pi / self.period * np.arange(1, self.harmonics + 1)
        angle = np.outer(time, omega)
        sin, cos = np.sin(angle), np.cos(angle)
        return States(
            self.centre + (sin / omega) @ self.sine.T - (cos / omega) @ self.cosine.T,
            cos @ self.sine.T + sin @ self.cosine.T,
            (cos * omega) @ self.cosine.T - (sin * omega) @ self.sine.T,
        )

    def scaled(self, factor: FloatArray | float) -> FourierMotion:
        """Return the motion with amplitudes times a factor, one number or one per joint (nj,)."""
        by = np.broadcast_to(np.asarray(factor, dtype=float), self.centre.shape)[:, None]
        return replace(self, sine=self.sine * by, cosine=self.cosine * by)

    def times(self, rate: float) -> FloatArray:
        """Return the times (n,) [s] of one period, both ends included, at about a rate [Hz]."""
        return np.linspace(0.0, self.period, max(round(self.period * rate), 1) + 1)


def rest_basis(harmonics: int) -> tuple[FloatArray, FloatArray]:
    """Return orthonormal bases (H, H − 1) of sine and cosine amplitudes that are at rest at 0.

    Raises
    ------
    ParameterError
        If there are fewer than two harmonics: one alone cannot start at rest.
    """
    if harmonics < 2:
        raise ParameterError(f"a motion from rest to rest needs 2 harmonics, not {harmonics}")
    bases = []
    for weights in (np.ones(harmonics), np.arange(1.0, harmonics + 1.0)):
        _, _, rows = np.linalg.svd(weights[None, :])
        bases.append(rows[1:].T)
    return bases[0], bases[1]


def random_motion(
    joints: int, period: float, harmonics: int, rng: np.random.Generator
) -> FourierMotion:
    """Return a motion around zero with amplitudes of unit normal distribution, ends at rest."""
    first, second = rest_basis(harmonics)
    free = rng.normal(size=(2, joints, harmonics - 1))
    return FourierMotion(period, np.zeros(joints), free[0] @ first.T, free[1] @ second.T)
