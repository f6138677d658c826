# SPDX-License-Identifier: Apache-2.0
"""The search for a motion: what is asked of it, and the objective within the limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.optimize

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.excitation.fourier import FourierMotion, States, random_motion, rest_basis
from sysid_core.excitation.information import Information, Sensitivity
from sysid_core.excitation.limits import MotionLimits, fit_into

__all__ = ["CHECK_RATE", "Design", "ExciteConfig"]

_LONGEST = 3600.0
"""Of a motion [s]: it is repeated rather than made longer."""
_MOST_HARMONICS = 50
_MOST_STARTS = 100
_MOST_ITERATIONS = 10_000
_PENALTY = 3e3
"""Weight of a squared relative violation at one sample, against a unit of merit."""
_POINTS_PER_HARMONIC = 12
_FEWEST_POINTS = 60
CHECK_RATE = 200.0
"""Rate at which the final motion is held against the limits [Hz]."""
_SHRINK = 0.98
_SMALLEST = 0.1
"""Share of a motion below which shrinking gives it up."""
_ATTEMPTS = 200


@dataclass(frozen=True)
class ExciteConfig:
    """How a motion is designed.

    Attributes
    ----------
    duration : float [s]
        One period, from rest to rest.
    harmonics : int or None
        Of the Fourier series; None: up to half a hertz, at least 5; up to 10, one hertz.
    starts : int
        Random motions that the optimisation starts from.
    iterations : int
        Most steps from each.
    floor : float or None [m]
        Least height of every joint's frame and of the tool in the world frame.
    seed : int
    joints : tuple[str, ...] or None
        Those that move; None: all that are actuated.
    apart : bool
        Whether bodies must stay out of each other's capsules.
    """

    duration: float = 10.0
    harmonics: int | None = None
    starts: int = 3
    iterations: int = 60
    floor: float | None = None
    seed: int = 0
    joints: tuple[str, ...] | None = None
    apart: bool = False

    def __post_init__(self) -> None:
        if not 1.0 <= self.duration <= _LONGEST:
            raise ParameterError(
                f"duration must lie between 1 and {_LONGEST:g} s, got {self.duration:g}"
            )
        if self.harmonics is not None and not 3 <= self.harmonics <= _MOST_HARMONICS:
            raise ParameterError(
                f"harmonics must lie between 3 and {_MOST_HARMONICS}, got {self.harmonics}"
            )
        for name, most in (("starts", _MOST_STARTS), ("iterations", _MOST_ITERATIONS)):
            if not 1 <= getattr(self, name) <= most:
                raise ParameterError(f"{name} must lie between 1 and {most}")
        if self.seed < 0:
            raise ParameterError(f"seed must be at least zero, got {self.seed}")
        if self.floor is not None and not np.isfinite(self.floor):
            raise ParameterError(f"floor must be a finite height [m], got {self.floor:g}")

    @property
    def used_harmonics(self) -> int:
        """Number of harmonics that the series gets."""
        if self.harmonics is not None:
            return self.harmonics
        slow, quick = round(0.5 * self.duration), min(round(self.duration), 10)
        return min(max(5, slow, quick), _MOST_HARMONICS)


class Design:
    """Motions within the limits, and the objective of the optimisation in scaled variables."""

    def __init__(
        self, information: Information, limits: MotionLimits, config: ExciteConfig
    ) -> None:
        self.information, self.limits, self.config = information, limits, config
        self.harmonics = config.used_harmonics
        self._moving = information.moving
        self._bases = rest_basis(self.harmonics)
        self._lower = limits.lower[self._moving]
        self._range = limits.upper[self._moving] - self._lower
        self._speed = limits.velocity[self._moving, None]
        points = _POINTS_PER_HARMONIC
        if information.robot.description.loops:
            points //= 2  # each takes a solution of the loops; the result is checked more densely
        count = max(_FEWEST_POINTS, points * self.harmonics)
        self._time = config.duration * np.arange(count) / count
        self._omega = 2.0 * np.pi / config.duration * np.arange(1, self.harmonics + 1)
        angle = np.outer(self._time, self._omega)
        self._sin, self._cos = np.sin(angle), np.cos(angle)

    def motion(self, x: FloatArray) -> FourierMotion:
        """Return the motion of scaled variables; joints that do not move rest."""
        count, moving = len(self._moving), self._moving
        amplitudes = x[count:].reshape(2, count, -1) * self._speed
        centre = self.information.rest.copy()
        centre[moving] = self._lower + x[:count] * self._range
        sine, cosine = np.zeros((2, len(centre), self.harmonics))
        sine[moving] = amplitudes[0] @ self._bases[0].T
        cosine[moving] = amplitudes[1] @ self._bases[1].T
        return FourierMotion(self.config.duration, centre, sine, cosine)

    def variables(self, motion: FourierMotion) -> FloatArray:
        """Return the scaled variables of a motion that is at rest at its ends."""
        moving = self._moving
        return np.concatenate(
            [
                (motion.centre[moving] - self._lower) / self._range,
                (motion.sine[moving] @ self._bases[0] / self._speed).ravel(),
                (motion.cosine[moving] @ self._bases[1] / self._speed).ravel(),
            ]
        )

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the merit plus penalties, and its gradient."""
        states = self.motion(x).states(self._time)
        found = self.information.sensitivity(states)
        penalty, by = self._penalty(states, found)
        by = States(*(p - g for p, g in zip(by, found.merit_by, strict=True)))
        return penalty - found.merit, self._back(by)

    def _back(self, by: States) -> FloatArray:
        """Return the gradient by scaled variables from that by states."""
        sine = (
            by.position.T @ (self._sin / self._omega)
            + by.velocity.T @ self._cos
            - by.acceleration.T @ (self._sin * self._omega)
        )
        cosine = (
            -by.position.T @ (self._cos / self._omega)
            + by.velocity.T @ self._sin
            + by.acceleration.T @ (self._cos * self._omega)
        )
        moving = self._moving
        return np.concatenate(
            [
                by.position.sum(axis=0)[moving] * self._range,
                (sine[moving] @ self._bases[0] * self._speed).ravel(),
                (cosine[moving] @ self._bases[1] * self._speed).ravel(),
            ]
        )

    def _penalty(self, states: States, found: Sensitivity) -> tuple[float, States]:
        """Return the weighted sum of squared relative violations and its gradient by states."""
        limits, q = self.limits, states.position
        total = 0.0
        above = np.maximum(q - limits.upper, 0.0) - np.maximum(limits.lower - q, 0.0)
        span = limits.upper - limits.lower
        by_q = above / span**2
        total += float((above**2 / span**2).sum())
        parts = []
        for values, limit in (
            (states.velocity, limits.velocity),
            (states.acceleration, limits.acceleration),
            (found.demands.torque, limits.effort),
        ):
            excess = np.sign(values) * np.maximum(np.abs(values) - limit, 0.0)
            total += float((excess**2 / limit**2).sum())
            parts.append(excess / limit**2)
        by_v, by_a, by_torque = parts
        back = [np.einsum("nj,njk->nk", by_torque, jacobian) for jacobian in found.torque_by]
        lacks = [(np.maximum(-found.demands.room, 0.0), found.room_by)]
        if self.config.floor is not None:
            below = np.maximum(self.config.floor - found.demands.height, 0.0)
            lacks.append((below, found.height_by))
        for lack, lack_by in lacks:
            total += float((lack**2).sum())
            back[0] = back[0] - np.einsum("nm,nmk->nk", lack, lack_by)
        gradient = (by_q + back[0], by_v + back[1], by_a + back[2])
        return _PENALTY * total, States(*(2.0 * _PENALTY * part for part in gradient))

    def random(self, rng: np.random.Generator) -> FourierMotion:
        """Return a random motion that fills the limits.

        Raises
        ------
        ParameterError
            If none is found.
        """
        limits, information = self.limits, self.information
        moves = np.isin(np.arange(len(information.rest)), self._moving)
        rest = np.clip(information.rest, limits.lower, limits.upper)
        reasons: Counter[str] = Counter()
        for _ in range(_ATTEMPTS):
            motion = random_motion(len(rest), self.config.duration, self.harmonics, rng)
            centre = rng.uniform(limits.lower, limits.upper)
            # a linkage reaches little of its joints' ranges, most of it around its rest
            near = rng.uniform() if information.robot.description.loops else 1.0
            centre = np.where(moves, rest + near * (centre - rest), information.rest)
            motion = replace(motion.scaled(moves.astype(float)), centre=centre)
            within = self.within(fit_into(motion, limits, fill=True, rate=CHECK_RATE), reasons)
            if within is not None:
                return within
        (reason, count), *_ = reasons.most_common(1)
        raise ParameterError(
            f"no motion within the limits found in {_ATTEMPTS} tries; in the way was {count} "
            f"times {reason}; widen it, or move fewer joints"
        )

    def within(
        self, motion: FourierMotion, reasons: Counter[str] | None = None
    ) -> FourierMotion | None:
        """Return the motion, shrunk until it keeps all limits; None if that fails.

        What was in the way is counted in `reasons`.
        """
        reasons = Counter() if reasons is None else reasons
        fitted, share = fit_into(motion, self.limits, rate=CHECK_RATE), 1.0
        coarse = _POINTS_PER_HARMONIC * motion.harmonics / motion.period
        obstacle = self._obstacle(fitted.scaled(_SMALLEST), coarse)
        for rate in () if obstacle else (coarse, CHECK_RATE):
            while obstacle := self._obstacle(fitted.scaled(share), rate):
                share *= _SHRINK
                if share < _SMALLEST:
                    break
        if obstacle:
            reasons[obstacle] += 1
            return None
        return fitted.scaled(share)

    def _lack_of_room(self, room: FloatArray) -> str:
        clearance = self.information.clearance
        if clearance is None:
            return "the linkage: its loops do not close, or its passive joints are at their limits"
        one, other = clearance.pairs[int(np.argmin(room.min(axis=0)))]
        return f"the robot itself: bodies '{one}' and '{other}' come too close"

    def _obstacle(self, motion: FourierMotion, rate: float) -> str:
        """Say what is in a motion's way besides what `fit_into` sees to; empty if nothing is."""
        demands, limit = self.information.demands(motion.states(motion.times(rate))), self.limits
        if not (demands.room >= 0.0).all():
            return self._lack_of_room(demands.room)
        beyond = ~(np.abs(demands.torque) <= limit.effort)
        if beyond.any():
            joint = int(np.argmax(beyond.sum(axis=0)))
            name = self.information.robot.actuated_names[joint]
            return f"the effort limit of joint '{name}', {limit.effort[joint]:.4g} N·m"
        floor = self.config.floor
        if floor is not None and demands.height.size and demands.height.min() < floor:
            return f"the floor at {floor:g} m"
        return ""

    def improved(
        self, start: FourierMotion, stepped: Callable[[FloatArray], None]
    ) -> FourierMotion | None:
        """Return where a search from another motion ends, None if that does not fit the limits.

        Parameters
        ----------
        start : FourierMotion
        stepped : callable
            Called after every step.
        """
        found = scipy.optimize.minimize(
            self,
            self.variables(start),
            jac=True,
            method="L-BFGS-B",
            callback=stepped,
            options={"maxiter": self.config.iterations},
        )
        return self.within(self.motion(found.x))
