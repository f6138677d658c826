# SPDX-License-Identifier: Apache-2.0
"""Exciting reference trajectories: seeded Fourier series within a robot's limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.robot import Robot
from sysid_sim.errors import SimulationError
from sysid_sim.nominal_control import MotionModel

__all__ = ["Excitation", "FourierTrajectory", "Motion", "exciting_trajectory"]

_GRID = 120
_SHRINK = 0.8
_SHRINKS = 20
_GROW = 1.25
_MARGIN = 0.05  # [rad] of passive joints: who is left without a reference brakes beyond its end


class Motion(NamedTuple):
    """Positions, velocities and accelerations of the actuated joints.

    Attributes
    ----------
    position, velocity, acceleration : (n, na) [rad, rad/s, rad/s²]
    """

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray


@dataclass(frozen=True)
class Excitation:
    """What an exciting trajectory may make use of.

    Attributes
    ----------
    period : float [s]
        After which the trajectory repeats.
    harmonics : int
    amplitude : float [-]
        Share of each joint's way from the start to the nearer limit.
    speed : float [-]
        Share of the velocity limits.
    effort : float [-]
        Share of the torque limits, by the nominal model.
    fade : float [s]
        In which the motion grows from rest.
    """

    period: float = 10.0
    harmonics: int = 5
    amplitude: float = 0.7
    speed: float = 0.5
    effort: float = 0.7
    fade: float = 1.0

    def __post_init__(self) -> None:
        shares = (self.amplitude, self.speed, self.effort)
        if not all(0.0 < share <= 1.0 for share in shares):
            raise SimulationError(
                f"amplitude, speed and effort must lie above 0 and at most 1, got {shares}"
            )
        if not (self.period > 0.0 and self.harmonics >= 1 and self.fade > 0.0):
            raise SimulationError(
                "period and fade must be above zero and harmonics at least one, got "
                f"{self.period!r} s, {self.fade!r} s and {self.harmonics!r}"
            )


@dataclass(frozen=True)
class FourierTrajectory:
    """A Fourier series around a centre, which grows smoothly from rest.

    q(t) = centre + w(t) Σₖ [sineₖ sin(kωt) + cosineₖ cos(kωt)], with w from 0 to 1 (Swevers et
    al. 1997, but for the fade).

    Attributes
    ----------
    center : (na,) [rad]
    sine, cosine : (harmonics, na) [rad]
    period : float [s]
    fade : float [s]
    """

    center: FloatArray
    sine: FloatArray
    cosine: FloatArray
    period: float
    fade: float

    def at(self, time: FloatArray) -> Motion:
        """Return the motion at times (n,) [s]; before time zero it rests at the centre."""
        time = np.asarray(time, dtype=float)
        rates = 2.0 * np.pi / self.period * np.arange(1, len(self.sine) + 1)
        s, c = np.sin(np.outer(time, rates)), np.cos(np.outer(time, rates))
        f = s @ self.sine + c @ self.cosine
        df = (c * rates) @ self.sine - (s * rates) @ self.cosine
        ddf = -(s * rates**2) @ self.sine - (c * rates**2) @ self.cosine
        w, dw, ddw = _fade(time, self.fade)
        return Motion(self.center + w * f, dw * f + w * df, ddw * f + 2.0 * dw * df + w * ddf)

    def scaled(self, factor: FloatArray) -> FourierTrajectory:
        """Return the same trajectory with the joints' amplitudes multiplied by factors (na,)."""
        return FourierTrajectory(
            self.center, factor * self.sine, factor * self.cosine, self.period, self.fade
        )


def _fade(time: FloatArray, duration: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the quintic step from 0 to 1 and its two derivatives, (n, 1) each."""
    s = np.clip(time / duration, 0.0, 1.0)[:, None]
    moving = ((s > 0.0) & (s < 1.0)) / duration
    return (
        s**3 * (10.0 - 15.0 * s + 6.0 * s**2),
        30.0 * s**2 * (1.0 - s) ** 2 * moving,
        60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) * moving / duration,
    )


def exciting_trajectory(
    robot: Robot, seed: int, excitation: Excitation | None = None
) -> FourierTrajectory:
    """Draw an exciting trajectory within a fixed-base robot's limits.

    Coefficients are drawn at random; each joint's series is scaled to its range and speed, and
    all of them together until loops close, passive joints keep their limits, and nominal torques
    are within their share.

    Parameters
    ----------
    robot : Robot
    seed : int
    excitation : Excitation, optional

    Raises
    ------
    SimulationError
        If the robot's base floats, or no motion around its rest configuration is feasible.
    """
    excitation = excitation or Excitation()
    model = MotionModel(robot, robot.consistent_nominal)
    center = model.rest[robot.actuated]
    rng = np.random.default_rng(seed)
    shape = (2, excitation.harmonics, len(center))
    # by 1/k, all harmonics have an equal share in the velocity
    sine, cosine = rng.normal(size=shape) / np.arange(1, excitation.harmonics + 1)[:, None]
    drawn = FourierTrajectory(center, sine, cosine, excitation.period, excitation.fade)
    time = np.linspace(0.0, excitation.period + excitation.fade, _GRID)
    drawn = drawn.scaled(_joint_scales(robot, drawn, time, excitation))
    limits = excitation.effort * robot.limits.effort[robot.actuated]

    def feasible(scale: FloatArray) -> bool:
        torque = model.torques(*drawn.scaled(scale).at(time), slack=-_MARGIN)
        return bool(np.isfinite(torque).all() and (np.abs(torque) <= limits).all())

    return drawn.scaled(_largest(feasible, len(center), robot.name))


def _largest(feasible: Callable[[FloatArray], bool], count: int, robot: str) -> FloatArray:
    """Shrink all joints together until feasible, then let each grow back as far as it can."""
    scale = np.ones(count)
    for _ in range(_SHRINKS):
        if feasible(scale):
            break
        scale *= _SHRINK
    else:
        raise SimulationError(
            f"no exciting trajectory of '{robot}' around its rest configuration is feasible; "
            "allow more effort"
        )
    for joint in range(count):
        while scale[joint] < 1.0:
            trial = scale.copy()
            trial[joint] = min(scale[joint] * _GROW, 1.0)
            if not feasible(trial):
                break
            scale = trial
    return scale


def _joint_scales(
    robot: Robot, trajectory: FourierTrajectory, time: FloatArray, excitation: Excitation
) -> FloatArray:
    """Return factors (na,) that fit each joint's series into its range and speed."""
    moved = trajectory.at(time)
    lower, upper, velocity, _ = (limit[robot.actuated] for limit in robot.limits)
    room = np.minimum(trajectory.center - lower, upper - trajectory.center)
    room = excitation.amplitude * np.minimum(room, np.pi)
    speed = excitation.speed * velocity
    reach = np.abs(moved.position - trajectory.center).max(axis=0)
    return np.minimum(room / reach, speed / np.abs(moved.velocity).max(axis=0))
