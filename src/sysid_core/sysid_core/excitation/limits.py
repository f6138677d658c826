# SPDX-License-Identifier: Apache-2.0
"""The limits that an exciting motion stays within, and how a motion is fitted into them."""

from dataclasses import dataclass, replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.excitation.fourier import FourierMotion, States
from sysid_core.robot.model import Robot
from sysid_core.robot.strength import working_limits

__all__ = ["MotionLimits", "fit_into", "motion_limits"]

_MOST_ACCELERATION = 1e6
_RISE_TIME = 0.25  # Time in which a joint may gain its top speed, where nobody says better [s]
_TURN = np.pi  # Positions are kept within half a turn to either side of the middle [rad]
_TINY = 1e-12


@dataclass(frozen=True)
class MotionLimits:
    """What a motion must keep; all finite but for efforts."""

    lower: FloatArray  # (nj,) [rad]
    upper: FloatArray  # (nj,) [rad]
    velocity: FloatArray  # (nj,) [rad/s]
    acceleration: FloatArray  # (nj,) [rad/s²]
    effort: FloatArray  # (nj,) [N·m] infinite where there is no limit

    def __post_init__(self) -> None:
        for name in ("velocity", "acceleration"):
            values = getattr(self, name)
            if not (np.isfinite(values).all() and (values > 0.0).all()):
                raise ParameterError(f"limits of {name} must be positive and finite")
        if not (self.effort > 0.0).all():
            raise ParameterError("limits of effort must be positive")
        if not (np.isfinite(self.upper - self.lower).all() and (self.upper >= self.lower).all()):
            raise ParameterError("position limits must be finite, no lower above its upper")

    def usage(self, states: States, torque: FloatArray) -> dict[str, FloatArray]:
        """Return the largest share (nj,) [-] of each kind of limit that a motion uses.

        Of states (n, nj) with torques (n, nj) [N·m].
        """
        middle = 0.5 * (self.lower + self.upper)
        half = np.maximum(self.upper - middle, _TINY)  # a joint without a range rests in it
        shares = {
            "position": (states.position - middle) / half,
            "velocity": states.velocity / self.velocity,
            "acceleration": states.acceleration / self.acceleration,
            "effort": torque / self.effort,
        }
        return {kind: np.abs(part).max(axis=0) for kind, part in shares.items()}


def motion_limits(
    robot: Robot, *, share: float = 0.9, speed: float = 0.9, acceleration: float | None = None
) -> MotionLimits:
    """Return the limits of a robot's actuated joints.

    Parameters
    ----------
    share : float [-]
        Of the range of each joint around its middle, and of its effort limit, that is used.
    speed : float [-]
        Share of each joint's velocity limit that is used, as far as friction leaves it effort;
        acceleration goes with it.
    acceleration : float, optional [rad/s²]
        Same for all joints; default: top speed within a quarter of a second.

    Raises
    ------
    ParameterError
        If a share lies outside (0, 1] or the acceleration is not positive.
    """
    for name, value in (("share", share), ("speed", speed)):
        if not 0.0 < value <= 1.0:
            raise ParameterError(f"{name} must lie above 0 and at most at 1, got {value:g}")
    if acceleration is not None and not 0.0 < acceleration <= _MOST_ACCELERATION:
        raise ParameterError(
            f"acceleration must be positive and at most {_MOST_ACCELERATION:g} rad/s², "
            f"got {acceleration:g}"
        )
    limits = working_limits(robot)
    lower, upper = limits.lower.copy(), limits.upper.copy()
    open_below, open_above = ~np.isfinite(lower), ~np.isfinite(upper)
    lower[open_below] = np.where(open_above, -_TURN, upper - 2.0 * _TURN)[open_below]
    upper[open_above] = lower[open_above] + 2.0 * _TURN
    middle, half = 0.5 * (lower + upper), 0.5 * share * (upper - lower)
    half = np.minimum(half, share * _TURN)
    top = limits.velocity * speed
    top = np.minimum(top, _friction_speed(robot, share * limits.effort))
    rise = top / _RISE_TIME if acceleration is None else np.full_like(top, acceleration)
    return MotionLimits(middle - half, middle + half, top, rise, share * limits.effort)


def _friction_speed(robot: Robot, effort: FloatArray) -> FloatArray:
    """Return the speeds (na,) [rad/s] at which nominal friction alone takes efforts (na,)."""
    viscous, coulomb = (
        robot.consistent_nominal[robot.layout.term(term)][robot.actuated]
        for term in ("viscous", "coulomb")
    )
    left, speed = effort - coulomb, np.full_like(effort, np.inf)
    return np.divide(left, viscous, out=speed, where=(viscous > 0.0) & (left > 0.0))


def fit_into(
    motion: FourierMotion, limits: MotionLimits, *, fill: bool = False, rate: float = 200.0
) -> FourierMotion:
    """Scale each joint's amplitudes and move its centre until it keeps its limits.

    Positions, velocities and accelerations only; efforts depend on all joints at once.

    Parameters
    ----------
    fill : bool
        Also enlarge motions that are smaller than the limits allow.
    rate : float [Hz]
        At which the motion is looked at; peaks between the samples are accounted for.
    """
    states = motion.states(motion.times(rate))
    # between samples a series of H harmonics rises above them by at most (HωΔt)²/8 of its peak
    # (Bernstein's inequality)
    beyond = 1.0 + (2.0 * np.pi * motion.harmonics / motion.period / rate) ** 2 / 7.0
    swing = states.position - motion.centre
    middle = 0.5 * (swing.max(axis=0) + swing.min(axis=0))
    half = 0.5 * beyond * np.ptp(swing, axis=0)
    low, high = middle - half, middle + half
    shares = np.stack(
        [
            (high - low) / np.maximum(limits.upper - limits.lower, _TINY),
            beyond * np.abs(states.velocity).max(axis=0) / limits.velocity,
            beyond * np.abs(states.acceleration).max(axis=0) / limits.acceleration,
        ]
    ).max(axis=0)
    factor = (1.0 - 1e-9) / np.maximum(shares, _TINY)
    factor = factor if fill else np.minimum(factor, 1.0)
    fitted = motion.scaled(factor)
    centre = np.clip(motion.centre, limits.lower - factor * low, limits.upper - factor * high)
    return replace(fitted, centre=centre)
