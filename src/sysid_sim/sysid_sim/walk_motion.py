# SPDX-License-Identifier: Apache-2.0
"""How a quadruped walks: with some gait, wherever it is led, over feet placed to catch it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.stance import Stance
from sysid_core.excitation.fourier import quintic_step
from sysid_sim.cli import read_scenarios
from sysid_sim.legged_motion import (
    LINEAR,
    ContactReference,
    Plan,
    Sensed,
    SwayConfig,
    Wander,
    about_up,
    at_rest,
    attitude_of,
    quaternion_of,
    yaw_of,
)

__all__ = ["Walk", "WalkConfig"]

Leg = tuple[bool, bool]  # Whether a leg is in front, and whether it is on the left


class _Phase(NamedTuple):
    """Where each leg is in its cycle."""

    swing: BoolArray  # (nc,)
    share: FloatArray  # (nc,) [-] of the swing that has passed; of a standing leg, 1


def _phase_of(
    offsets: Mapping[Leg, float], duty: float, cycle: float, places: FloatArray
) -> _Phase:
    """Return where the legs are; those with offset zero begin to stand at whole cycles.

    Places (nc, 2) [m] at rest, seen from the base, tell which leg is which.
    """
    ahead = np.array([offsets[bool(x > 0.0), bool(y > 0.0)] for x, y in places])
    part = (cycle + ahead) % 1.0
    swing = part >= duty
    return _Phase(swing, np.where(swing, (part - duty) / (1.0 - duty), 1.0))


@dataclass(frozen=True)
class WalkConfig:
    """A gait and how it varies; lengths, speeds and times in units of h, √(g h) and √(h/g)."""

    offsets: Mapping[Leg, float]  # [-] share of the cycle by which each leg is ahead
    duty: float = 0.6  # [-] share of the cycle that a foot stands
    period: float = 2.3  # [-] of a cycle
    velocity: Sequence[float] = (0.15, 0.0)  # (2,) [-] forward and sideways, on the average
    turning: float = 0.0  # [-] on the average
    variation: Sequence[float] = (0.15, 0.06, 0.08)
    """(3,) [-] of the two velocities and the turning, slowly."""
    clearance: float = 0.2  # [-] height of a swinging foot
    lean: float = 0.0
    """[-] share of the way from the middle of all feet to that of the standing ones that the base
    moves."""
    sway: SwayConfig = field(
        default_factory=lambda: SwayConfig(shift=(0.0, 0.0, 0.05), tilt=(0.06, 0.06, 0.0))
    )

    @classmethod
    def told(cls, gait: str, sway: Mapping[str, Any] | None = None, **varied: Any) -> WalkConfig:
        """Return a walk as ``scenarios.yaml`` describes it."""
        steps = read_scenarios()["gaits"][gait].items()
        if sway is not None:
            varied["sway"] = SwayConfig(**sway)
        return cls({("front" in leg, "left" in leg): share for leg, share in steps}, **varied)


class Walk:
    """Steps in a fixed order; footholds follow Raibert's rule."""

    _STAND = 1.0  # [s] before the first step
    _CAPTURE = 0.7  # [√(h/g)] by which a foot is set ahead per error of the speed
    _LEASH = 0.12  # [h] that the wanted base may be ahead of the measured one
    _SLOW = (0.05, 0.25)  # [Hz] of the variation of the speed

    def __init__(self, config: WalkConfig, stance: Stance, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._stance, self._config = stance, config
        self._sway = config.sway.wander(stance, rng)
        unit = np.array([stance.speed, stance.speed, 1.0 / stance.time])
        self._mean = unit * np.array([*config.velocity, config.turning])
        self._variation = Wander(rng, unit * np.array(config.variation), self._SLOW)
        self._period = config.period * stance.time
        self._places = stance.feet - stance.pose[:3]
        self._origin = stance.pose[:3].copy()
        self._lean = np.zeros(2)
        self._yaw = 0.0
        self._time = 0.0
        count = len(stance.feet)
        self._swinging = np.zeros(count, dtype=bool)
        self._early = np.zeros(count, dtype=bool)
        self._lifted = stance.feet.copy()

    def plan(self, time: float, sensed: Sensed) -> Plan:
        """Return what is wanted at a time [s]; times ascend."""
        step, self._time = time - self._time, time
        if time < self._STAND:
            loaded = np.ones(len(self._places), dtype=bool)
            return Plan(self._base(step, np.zeros(3), sensed), loaded)
        walked = time - self._STAND
        wanted = self._mean * min(1.0, walked / 1.0) + self._variation.at(walked)[0]
        loaded, share = self._advance(walked, sensed)
        reference = self._base(step, wanted, sensed)
        return Plan(self._feet(reference, share, loaded, sensed), loaded)

    def _advance(self, walked: float, sensed: Sensed) -> tuple[BoolArray, FloatArray]:
        """Follow the footfalls; returns which feet carry load, and the shares of their swings."""
        phase = self._phase(walked)
        lifting = phase.swing & ~self._swinging
        self._lifted[lifting] = sensed.feet[lifting]
        self._swinging = phase.swing
        # a foot that touches in the second half of its swing is down
        self._early = (
            phase.swing & ~lifting & (self._early | sensed.touching & (phase.share > 0.5))
        )
        return ~phase.swing | self._early, phase.share

    def _phase(self, walked: float) -> _Phase:
        """Return where the legs are after a time [s] of walking."""
        config, cycle = self._config, walked / self._period
        return _phase_of(config.offsets, config.duty, cycle, self._places[:, :2])

    def _base(self, step: float, wanted: FloatArray, sensed: Sensed) -> ContactReference:
        stance = self._stance
        leash = self._LEASH * stance.height
        self._yaw += wanted[2] * step
        measured = yaw_of(sensed.pose)
        off = np.arctan2(np.sin(self._yaw - measured), np.cos(self._yaw - measured))
        self._yaw = measured + float(np.clip(off, -0.2, 0.2))
        velocity = about_up(self._yaw) @ np.array([wanted[0], wanted[1], 0.0])
        self._origin += velocity * step
        ahead = self._origin[:2] - sensed.pose[:2]
        self._origin[:2] = sensed.pose[:2] + np.clip(ahead, -leash, leash)
        self._lean += min(1.0, 2.0 * step / stance.time) * (self._support(sensed) - self._lean)
        x, dx, ddx = self._sway.at(self._time)
        reference = at_rest(stance)
        reference.pose[:3] = self._origin
        reference.pose[:2] += self._lean
        reference.pose[2] = stance.pose[2] + x[2]
        reference.pose[3:] = quaternion_of(self._yaw, x[3], x[4])
        rate6, bend = dx.copy(), ddx.copy()
        rate6[:2], bend[:2] = velocity[:2], 0.0
        rate6[5], bend[5] = wanted[2], 0.0
        return reference._replace(velocity=rate6, acceleration=bend)

    def _support(self, sensed: Sensed) -> FloatArray:
        """Return how far (2,) [m] the base is to lean to the feet that will stand in a moment."""
        lean = self._config.lean
        walked = max(0.0, self._time - self._STAND)
        # the body is as slow as the low-pass behind this, so it must start before a foot lifts
        standing = ~self._phase(walked + self._stance.time).swing
        if lean == 0.0 or not standing.any():
            return np.zeros(2)
        feet = sensed.feet[:, :2]
        return np.asarray(lean * (feet[standing].mean(axis=0) - feet.mean(axis=0)))

    def _feet(
        self, reference: ContactReference, share: FloatArray, loaded: BoolArray, sensed: Sensed
    ) -> ContactReference:
        stance, duty = self._stance, self._config.duty
        swing_time = (1.0 - duty) * self._period
        moving = attitude_of(sensed.pose) @ sensed.twist[LINEAR]
        left = (1.0 - share)[:, None] * swing_time
        turn = about_up(self._yaw)
        place = sensed.pose[:3] + self._places @ turn.T + left * moving
        place += 0.5 * duty * self._period * moving
        place += self._CAPTURE * stance.time * (moving - reference.velocity[LINEAR])
        place[:, 2] = stance.feet[:, 2]
        # a quintic over ground, which starts and ends at rest, and a bump above it
        blend, slope, bend = quintic_step(share[:, None])
        path = place - self._lifted
        position = self._lifted + blend * path
        velocity, acceleration = slope / swing_time * path, bend / swing_time**2 * path
        top = self._config.clearance * stance.height
        position[:, 2] += 64.0 * top * (share * (1.0 - share)) ** 3
        velocity[:, 2] += (
            192.0 * top * (share * (1.0 - share)) ** 2 * (1.0 - 2.0 * share) / swing_time
        )
        return reference._replace(
            foot_position=np.where(loaded[:, None], sensed.feet, position),
            foot_velocity=np.where(loaded[:, None], 0.0, velocity),
            foot_acceleration=np.where(loaded[:, None], 0.0, acceleration),
        )
