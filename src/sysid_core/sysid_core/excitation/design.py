# SPDX-License-Identifier: Apache-2.0
"""The search for a motion: what is asked of it, and the objective within the limits."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.optimize

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.excitation.fourier import FourierMotion, States, random_motion, rest_basis
from sysid_core.excitation.information import FOCUSES, Information
from sysid_core.excitation.limits import MotionLimits, fit_into
from sysid_core.excitation.mechanism import View
from sysid_core.robot.clearance import NOTHING, Obstacles

__all__ = ["CHECK_RATE", "Design", "ExciteConfig"]

_LONGEST = 3600.0  # Of a motion [s]: it is repeated rather than made longer
_MOST_HARMONICS = 50
_MOST_STARTS = 100
_STARTS, _ITERATIONS = 2, 200
_FEWER, _MANY = 60, 10  # Iterations from one start with linkages, and with more joints
_MOST_ITERATIONS = 10_000
_PENALTIES = ((300.0, 0.75), (1e4, 0.25))
"""Weights of a squared relative violation at one sample, against a unit of merit, in turn.

The first leaves the search its freedom, the second brings it back within the limits: what is left
shrinks the whole motion. With each, its share of the steps.
"""
_DEPTH = 0.1  # [m, rad] in an obstacle that counts as much as a limit that is passed by its size
_POINTS_PER_HARMONIC = 12
_FEWEST_POINTS = 60
CHECK_RATE = 200.0  # Rate at which the final motion is held against the limits [Hz]
_SHRINK = 0.98
_SMALLEST = 0.1  # Share of a motion below which shrinking gives it up
_ATTEMPTS = 200
_TINY = 1e-12


@dataclass(frozen=True)
class ExciteConfig:
    """How a motion is designed."""

    duration: float = 10.0  # [s] one period, from rest to rest
    harmonics: int | None = None
    """Of the Fourier series; None: up to half a hertz, at least 5; up to 10, one hertz."""
    starts: int | None = None
    """Random motions that the optimisation starts from; None: 2, of linkages and of more than 10
    joints 1."""
    iterations: int | None = None
    """Most steps from each; None: 200, of linkages and of more than 10 joints 60."""
    seed: int = 0
    joints: tuple[str, ...] | None = None
    """Those that move; None: all that are actuated but for wheels and fingers."""
    obstacles: Obstacles = NOTHING
    focus: str = "all"  # What is to be told best, one of `FOCUSES`

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
            value = getattr(self, name)
            if value is not None and not 1 <= value <= most:
                raise ParameterError(f"{name} must lie between 1 and {most}")
        if self.focus not in FOCUSES:
            raise ParameterError(f"focus must be one of {', '.join(FOCUSES)}, got '{self.focus}'")
        if self.seed < 0:
            raise ParameterError(f"seed must be at least zero, got {self.seed}")

    @property
    def used_harmonics(self) -> int:
        """Number of harmonics that the series gets."""
        if self.harmonics is not None:
            return self.harmonics
        slow, quick = round(0.5 * self.duration), min(round(self.duration), 10)
        return min(max(5, slow, quick), _MOST_HARMONICS)


def _beyond(values: FloatArray, limit: FloatArray) -> FloatArray:
    """Return by how much values (n, k) go beyond limits to both sides."""
    return values - np.clip(values, -limit, limit)


class Design:
    """Motions within the limits, and the objective of the optimisation in scaled variables.

    Attributes
    ----------
    starts, iterations : int
        Random motions that the optimisation starts from, and most steps from each.
    """

    def __init__(
        self, information: Information, limits: MotionLimits, config: ExciteConfig
    ) -> None:
        self.information, self.limits, self.config = information, limits, config
        self.harmonics = config.used_harmonics
        self._weight = _PENALTIES[0][0]
        self._moving = information.moving
        self._bases = rest_basis(self.harmonics)
        self._lower = limits.lower[self._moving]
        self._range = limits.upper[self._moving] - self._lower
        self._speed = limits.velocity[self._moving, None]
        linkage = information.robot.linked
        slow = linkage or len(self._moving) > _MANY
        self.starts = config.starts or (1 if slow else _STARTS)
        self.iterations = config.iterations or (_FEWER if slow else _ITERATIONS)
        points = _POINTS_PER_HARMONIC
        if linkage:
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
        merit, view, slope = self.information.view(states)
        limits, moving = self.limits, self._moving
        effort = limits.effort[moving]
        span = limits.upper - limits.lower + _TINY
        total, parts = 0.0, []
        above = np.maximum(states.position - limits.upper, 0.0)
        for excess, limit in (
            (above - np.maximum(limits.lower - states.position, 0.0), span),
            (_beyond(states.velocity, limits.velocity), limits.velocity),
            (_beyond(states.acceleration, limits.acceleration), limits.acceleration),
            (_beyond(view.torque, effort), effort),
            (np.minimum(view.gaps, 0.0), _DEPTH),
        ):
            total += self._weight * float(((excess / limit) ** 2).sum())
            parts.append(2.0 * self._weight * excess / limit**2)
        *own, by_torque, by_gaps = parts
        found = self.information.pullback(states, View(-slope, by_torque, by_gaps))
        by = States(*(g + part[:, moving] for g, part in zip(found, own, strict=True)))
        return total - merit, self._back(by)

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
        return np.concatenate(
            [
                by.position.sum(axis=0) * self._range,
                (sine @ self._bases[0] * self._speed).ravel(),
                (cosine @ self._bases[1] * self._speed).ravel(),
            ]
        )

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
            near = rng.uniform() if information.robot.linked else 1.0
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

    def _obstacle(self, motion: FourierMotion, rate: float) -> str:
        """Say what is in a motion's way besides what `fit_into` sees to; empty if nothing is."""
        demands, limit = self.information.demands(motion.states(motion.times(rate))), self.limits
        if not (demands.gaps >= 0.0).all():
            return self.information.obstacle(int(np.argmin(demands.gaps.min(axis=0))))
        beyond = ~(np.abs(demands.torque) <= limit.effort) & self.information.bearing
        if beyond.any():
            joint = int(np.argmax(beyond.sum(axis=0)))
            name = self.information.robot.actuated_names[joint]
            return f"the effort limit of joint '{name}', {limit.effort[joint]:.4g} N·m"
        return ""

    def improved(
        self, start: FourierMotion, stepped: Callable[[FloatArray], None]
    ) -> FourierMotion | None:
        """Return where a search from another motion ends, None if that does not fit the limits."""
        x = self.variables(start)
        for self._weight, share in _PENALTIES:
            x = scipy.optimize.minimize(
                self,
                x,
                jac=True,
                method="L-BFGS-B",
                callback=stepped,
                options={"maxiter": max(round(share * self.iterations), 1)},
            ).x
        return self.within(self.motion(x))
