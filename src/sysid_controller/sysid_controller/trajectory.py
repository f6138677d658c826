# SPDX-License-Identifier: Apache-2.0
"""Piecewise quintic joint trajectories, twice continuously differentiable."""

from bisect import bisect_right

import numpy as np
from scipy.interpolate import CubicSpline

from sysid_controller.laws import Motion
from sysid_core.arrays import FloatArray

__all__ = ["Quintics", "derive_accelerations", "derive_velocities", "rest"]


def rest(position: FloatArray) -> Motion:
    """Return the motion that stays at a position (na,) [rad]."""
    return Motion(position, np.zeros_like(position), np.zeros_like(position))


class Quintics:
    """Quintic polynomials through knots; at rest beyond the last knot.

    Times (n,) [s] ascend strictly; positions and their derivatives are (n, na) [rad, rad/s,
    rad/s²].
    """

    def __init__(
        self,
        time: FloatArray,
        position: FloatArray,
        velocity: FloatArray,
        acceleration: FloatArray,
    ) -> None:
        self._times: list[float] = time.tolist()
        self.start, self.end = self._times[0], self._times[-1]
        self._last = rest(position[-1].copy())
        self._first = position[0], velocity[0], acceleration[0]
        h = np.diff(time)[:, None]
        p0, p1 = position[:-1], position[1:]
        v0, v1 = velocity[:-1] * h, velocity[1:] * h
        a0, a1 = acceleration[:-1] * h**2, acceleration[1:] * h**2
        step = p1 - p0
        self._coefficients = np.stack(
            [
                p0,
                v0,
                0.5 * a0,
                10.0 * step - 6.0 * v0 - 4.0 * v1 - 1.5 * a0 + 0.5 * a1,
                -15.0 * step + 8.0 * v0 + 7.0 * v1 + 1.5 * a0 - a1,
                6.0 * step - 3.0 * (v0 + v1) - 0.5 * (a0 - a1),
            ],
            axis=1,
        )

    def at(self, time: float) -> Motion:
        """Return the motion at a time [s]; before the first knot, the first knot's."""
        if time >= self.end:
            return self._last
        if time <= self.start:
            return Motion(*self._first)
        i = bisect_right(self._times, time) - 1
        h = self._times[i + 1] - self._times[i]
        u = (time - self._times[i]) / h
        u2, u3, u4 = u * u, u**3, u**4
        h2 = h * h
        weights = np.array(
            (
                (1.0, u, u2, u3, u4, u4 * u),
                (0.0, 1.0 / h, 2.0 * u / h, 3.0 * u2 / h, 4.0 * u3 / h, 5.0 * u4 / h),
                (0.0, 0.0, 2.0 / h2, 6.0 * u / h2, 12.0 * u2 / h2, 20.0 * u3 / h2),
            )
        )
        position, velocity, acceleration = weights @ self._coefficients[i]
        return Motion(position, velocity, acceleration)

    def dense(self, per_segment: int) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities (k, na) at `per_segment` even steps of each segment."""
        u = np.arange(1, per_segment + 1) / per_segment
        powers = u[:, None] ** np.arange(6)
        slopes = np.arange(6) * u[:, None] ** np.maximum(np.arange(6) - 1, 0)
        h = np.diff(self._times)[:, None, None]
        position = np.einsum("ku,nuj->nkj", powers, self._coefficients)
        velocity = np.einsum("ku,nuj->nkj", slopes, self._coefficients) / h
        na = position.shape[-1]
        return position.reshape(-1, na), velocity.reshape(-1, na)


def derive_velocities(
    time: FloatArray, position: FloatArray, first: FloatArray | None
) -> FloatArray:
    """Return velocities (n, na) [rad/s] of the cubic spline that ends at rest.

    The first one (na,) may be given; else the spline runs free there.
    """
    if len(time) == 1:
        return np.zeros_like(position)
    zero = np.zeros(position.shape[1])
    start = (2, zero) if first is None else (1, first)
    return CubicSpline(time, position, bc_type=(start, (1, zero)))(time, 1)


def derive_accelerations(
    time: FloatArray, position: FloatArray, velocity: FloatArray
) -> FloatArray:
    """Return accelerations (n, na) [rad/s²], the mean of the cubic Hermite pieces on both sides.

    Exact where the knots lie on one cubic. An end at rest gets zero, so that it stays at rest
    without a jump.
    """
    acceleration = np.zeros_like(position)
    if len(time) == 1:
        return acceleration
    h = np.diff(time)[:, None]
    slope = np.diff(position, axis=0) / h
    after = (6.0 * slope - 4.0 * velocity[:-1] - 2.0 * velocity[1:]) / h
    before = (-6.0 * slope + 2.0 * velocity[:-1] + 4.0 * velocity[1:]) / h
    acceleration[:-1] += after
    acceleration[1:] += before
    acceleration[1:-1] *= 0.5
    acceleration[-1][velocity[-1] == 0.0] = 0.0
    return acceleration
