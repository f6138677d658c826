# SPDX-License-Identifier: Apache-2.0
"""Piecewise quintic paths of joints, and trajectories that are checked and become such paths."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.errors import ParameterError
from sysid_core.exchange import TrajectoryPoints, check_point_count
from sysid_core.excitation.fourier import States
from sysid_core.robot.limits import Limits

__all__ = [
    "CLOSEST_POINTS",
    "Planner",
    "Quintics",
    "Reach",
    "Waypoints",
    "anywhere",
    "derive_accelerations",
    "derive_velocities",
    "rest",
]


def rest(position: FloatArray) -> States:
    """Return the motion that stays at a position (na,) [rad]."""
    return States(position, np.zeros_like(position), np.zeros_like(position))


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

    def at(self, time: float) -> States:
        """Return the motion at a time [s]; before the first knot, the first knot's."""
        if time >= self.end:
            return self._last
        if time <= self.start:
            return States(*self._first)
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
        return States(position, velocity, acceleration)

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


Reach = Callable[[FloatArray], Diagnostic | None]
"""Says why positions (n, na) [rad] cannot be followed one after another; None if they can."""

_LONGEST_LEAD = 60.0  # [s] before its start that a trajectory is believed
CLOSEST_POINTS = 1e-6  # Smallest time between two points [s]
_SAMPLES_PER_SEGMENT = 8
_POSITION_TOLERANCE = 1e-3  # [rad] that paths may bulge out of the range between points
_VELOCITY_TOLERANCE = 1.01  # [-]
_REACH_CHECKS = 24  # positions of a path whose reach is checked; each takes 0.1 ms with loops


def anywhere(positions: FloatArray) -> Diagnostic | None:
    """Return None: nothing but the joints' limits bounds the positions."""
    return None


class Waypoints(NamedTuple):
    """Checked points of a trajectory, in the order of the joints; see `TrajectoryPoints`.

    `time` (n,) counts from where the controller's time does; `start` [s] is when the motion to
    the first point may begin.
    """

    start: float
    time: FloatArray
    position: FloatArray
    velocity: FloatArray | None
    acceleration: FloatArray | None

    def after(self, first: int) -> Waypoints:
        """Return the points from one on."""
        left: list[Any] = [None if part is None else part[first:] for part in self[2:]]
        return Waypoints(self.start, self.time[first:], *left)


class Planner:
    """Turns received points into paths of the actuated joints, in their order.

    `reach` says what bounds them besides their limits, as the loops of a linkage do; aliases lead
    to their names.
    """

    def __init__(
        self,
        joint_names: tuple[str, ...],
        limits: Limits,
        aliases: Mapping[str, str],
        reach: Reach = anywhere,
    ) -> None:
        self.joint_names = joint_names
        self.limits = limits
        self._aliases = dict(aliases)
        self._reach = reach

    def waypoints(self, points: TrajectoryPoints, now: float) -> Waypoints:
        """Return the points, checked and in order.

        Raises
        ------
        ParameterError
            If they cannot be followed, whatever the motion before.
        """
        columns = self._columns(points)
        self._check_shape(points, columns)
        start = now if points.start is None else points.start
        time = start + points.time
        if time[-1] < now:
            raise ParameterError(
                f"ended {now - time[-1]:.3g} s ago; check the clocks of both sides"
            )
        if time[0] > now + _LONGEST_LEAD:
            raise ParameterError(
                f"starts {time[0] - now:.3g} s from now, more than {_LONGEST_LEAD:g} s; "
                "check the clocks of both sides and use_sim_time"
            )
        position = points.position[:, columns]
        velocity = None if points.velocity is None else points.velocity[:, columns]
        acceleration = None if points.acceleration is None else points.acceleration[:, columns]
        self.check_range(position)
        return Waypoints(max(start, now), time, position, velocity, acceleration)

    def path(self, points: Waypoints, begin: float, old: States, stop_time: float) -> Quintics:
        """Return a path through points; where it begins before them, it leads up from `old`.

        Derivatives that are not given are derived; a path that does not end at rest is brought
        to rest in `stop_time` [s].

        Raises
        ------
        ParameterError
            If it leaves the limits.
        """
        _, time, position, velocity, acceleration = points
        joins, leads = begin <= time[0], begin < time[0]
        if leads:
            time = np.concatenate([[begin], time])
            position = np.vstack([old.position, position])
            velocity = None if velocity is None else np.vstack([old.velocity, velocity])
            if acceleration is not None:
                acceleration = np.vstack([old.acceleration, acceleration])
        if velocity is None:
            velocity = derive_velocities(time, position, old.velocity if joins else None)
        if acceleration is None:
            acceleration = derive_accelerations(time, position, velocity)
            if leads:
                acceleration[0] = old.acceleration
        if velocity[-1].any() or acceleration[-1].any():
            rest = np.zeros((1, len(old.position)))
            time = np.append(time, time[-1] + stop_time)
            position = np.vstack([position, position[-1] + 0.5 * stop_time * velocity[-1]])
            velocity, acceleration = (np.vstack([v, rest]) for v in (velocity, acceleration))
        path = Quintics(time, position, velocity, acceleration)
        dense, speed = path.dense(_SAMPLES_PER_SEGMENT)
        if len(dense):
            self.check_range(dense)
            self.check_speed(speed, _VELOCITY_TOLERANCE)
            self.check_reach(np.vstack([position[:1], dense]))
        return path

    def check_range(self, position: FloatArray) -> None:
        """Check positions (n, na) against the limits.

        Raises
        ------
        ParameterError
            If one lies outside or is not finite; the message names joint, value and limits.
        """
        lower, upper = self.limits.lower, self.limits.upper
        low, high = position.min(axis=0), position.max(axis=0)
        for values, good in (
            (low, (low >= lower - _POSITION_TOLERANCE) & np.isfinite(low)),
            (high, (high <= upper + _POSITION_TOLERANCE) & np.isfinite(high)),
        ):
            if not good.all():  # said this way, NaN from an overflow is bad too
                j = int(np.argmin(good))
                raise ParameterError(
                    f"takes joint '{self.joint_names[j]}' to {values[j]:.4g} rad, outside its "
                    f"limits [{lower[j]:.4g}, {upper[j]:.4g}]"
                )

    def check_reach(self, position: FloatArray) -> None:
        """Check some of the positions (n, na) of a path, its ends among them.

        Raises
        ------
        ParameterError
            If the robot cannot follow them; the message says why.
        """
        count = min(len(position), _REACH_CHECKS)
        reason = self._reach(position[np.linspace(0, len(position) - 1, count).astype(int)])
        if reason is not None:
            raise ParameterError(str(reason))

    def check_speed(self, velocity: FloatArray, tolerance: float) -> None:
        """Check velocities (n, na) against `tolerance` times the limits.

        Raises
        ------
        ParameterError
            If one is faster; the message names joint, value and limit.
        """
        fastest = np.abs(velocity).max(axis=0)
        good = (fastest <= self.limits.velocity * tolerance) & np.isfinite(fastest)
        if not good.all():
            j = int(np.argmin(good))
            raise ParameterError(
                f"moves joint '{self.joint_names[j]}' at {fastest[j]:.4g} rad/s, its limit is "
                f"{self.limits.velocity[j]:.4g}; give it more time"
            )

    def _columns(self, points: TrajectoryPoints) -> list[int]:
        names = [self._aliases.get(name, name) for name in points.joint_names]
        missing = [name for name in self.joint_names if name not in names]
        if missing:
            raise ParameterError(
                f"lacks the joints {', '.join(missing)}; give all actuated joints"
            )
        return [names.index(name) for name in self.joint_names]

    def _check_shape(self, points: TrajectoryPoints, columns: list[int]) -> None:
        check_point_count(len(points.time))
        shape = (len(points.time), len(points.joint_names))
        if shape[0] == 0:
            raise ParameterError("has no points")
        for kind in ("position", "velocity", "acceleration"):
            values = getattr(points, kind)
            if values is None:
                continue
            if values.shape != shape:
                raise ParameterError(
                    f"needs {shape[1]} {kind} values at each of its {shape[0]} points"
                )
            finite = np.isfinite(values[:, columns]).all(axis=0)
            if not finite.all():
                joint = self.joint_names[int(np.argmin(finite))]
                raise ParameterError(f"has a {kind} of joint '{joint}' that is not finite")
        start = 0.0 if points.start is None else points.start
        if not np.isfinite(points.time).all() or not np.isfinite(start):
            raise ParameterError("has a time that is not finite")
        if points.time[0] < 0.0 or (np.diff(points.time) < CLOSEST_POINTS).any():
            raise ParameterError("has times that do not ascend from 0 s on")
