# SPDX-License-Identifier: Apache-2.0
"""Joint motions as finite Fourier series: from rest to rest, or faded in from rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError

__all__ = ["FadedMotion", "FourierMotion", "States", "quintic_step", "random_motion", "rest_basis"]


class States(NamedTuple):
    """A motion of joints at a time (nj,), or at some times (n, nj)."""

    position: FloatArray  # (…, nj) [rad]
    velocity: FloatArray  # (…, nj) [rad/s]
    acceleration: FloatArray  # (…, nj) [rad/s²]


@dataclass(frozen=True)
class FourierMotion:
    """A finite Fourier series per joint (Swevers et al. 1997, eq. 20).

    ``q(t) = c + Σ_k s_k/(kω) sin(kωt) − g_k/(kω) cos(kωt)`` with ``ω = 2π/T``. Velocity is zero at
    the ends where ``Σ s_k = 0``, acceleration where ``Σ k g_k = 0``.
    """

    period: float  # [s]
    centre: FloatArray  # (nj,) [rad]
    # sine, cosine: (nj, H) [rad/s] velocity amplitudes s and g of each harmonic.
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


def quintic_step(share: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the quintic from 0 to 1, at rest at both ends, and its two derivatives by `share`."""
    s = np.clip(share, 0.0, 1.0)
    return (
        s**3 * (10.0 - 15.0 * s + 6.0 * s**2),
        30.0 * s**2 * (1.0 - s) ** 2,
        60.0 * s * (1.0 - s) * (1.0 - 2.0 * s),
    )


@dataclass(frozen=True)
class FadedMotion:
    """A Fourier series that grows from rest at its centre: q(t) = c + w(t) (series(t) − c)."""

    series: FourierMotion
    fade: float  # [s] in which the weight w rises from 0 to 1

    def at(self, time: FloatArray) -> States:
        """Return the motion at times (n,) [s]; before time zero it rests at the centre."""
        time = np.asarray(time, dtype=float)
        q, v, a = self.series.states(time)
        f = q - self.series.centre
        w, dw, ddw = quintic_step(time[:, None] / self.fade)
        dw, ddw = dw / self.fade, ddw / self.fade**2
        return States(self.series.centre + w * f, dw * f + w * v, ddw * f + 2.0 * dw * v + w * a)

    def scaled(self, factor: FloatArray) -> FadedMotion:
        """Return the motion with the joints' amplitudes times factors (nj,)."""
        return replace(self, series=self.series.scaled(factor))


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
