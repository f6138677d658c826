# SPDX-License-Identifier: Apache-2.0
"""What a quadruped is to do: walk with some gait, sway over its feet, or jump."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import pinocchio as pin

from sysid_controller.contact_law import ContactReference
from sysid_core.recording import BoolArray, FloatArray
from sysid_sim.gait import TROT, Footfalls, Wander

__all__ = [
    "Jump",
    "JumpSettings",
    "LeggedMotion",
    "Plan",
    "Sensed",
    "Stance",
    "Sway",
    "SwaySettings",
    "Walk",
    "WalkSettings",
]

_LINEAR, _ANGULAR = slice(0, 3), slice(3, 6)


class Stance(NamedTuple):
    """The robot at rest on level ground, from which all motions start.

    Attributes
    ----------
    pose : (7,)
        Base position [m] in the world, quaternion x, y, z, w.
    joints : (nj,) [rad]
    feet : (nc, 3) [m]
        Contact frames in the world.
    """

    pose: FloatArray
    joints: FloatArray
    feet: FloatArray

    @property
    def height(self) -> float:
        """Height of the base above the feet [m]."""
        return float(self.pose[2] - self.feet[:, 2].mean())

    @property
    def speed(self) -> float:
        """Speed √(g h) [m/s] that makes robots of all sizes comparable (Froude)."""
        return float(np.sqrt(9.81 * self.height))

    @property
    def time(self) -> float:
        """Time √(h / g) [s] that makes robots of all sizes comparable."""
        return float(np.sqrt(self.height / 9.81))


class Sensed(NamedTuple):
    """What a motion may react to.

    Attributes
    ----------
    pose : (7,)
        Base position [m], quaternion x, y, z, w.
    twist : (6,) [m/s, rad/s]
        In the base frame.
    feet : (nc, 3) [m]
        Contact frames in the world.
    touching : (nc,) bool
    """

    pose: FloatArray
    twist: FloatArray
    feet: FloatArray
    touching: BoolArray


class Plan(NamedTuple):
    """What is wanted now.

    Attributes
    ----------
    reference : ContactReference
    loaded : (nc,) bool
        Feet that are to carry load; those that do not touch yet will reach down.
    """

    reference: ContactReference
    loaded: BoolArray


class LeggedMotion(Protocol):
    """A motion, planned from one control period to the next."""

    def plan(self, time: float, sensed: Sensed) -> Plan:
        """Return what is wanted at a time [s]; times ascend."""
        ...


def _quaternion(yaw: float, roll: float = 0.0, pitch: float = 0.0) -> FloatArray:
    return np.array(pin.Quaternion(pin.rpy.rpyToMatrix(roll, pitch, yaw)).coeffs())


def _rotation(pose: FloatArray) -> FloatArray:
    return np.array(pin.Quaternion(pose[3:]).toRotationMatrix())


def _yaw(pose: FloatArray) -> float:
    return float(pin.rpy.matrixToRpy(_rotation(pose))[2])


def _about_up(yaw: float) -> FloatArray:
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _reference(stance: Stance) -> ContactReference:
    zero = np.zeros_like(stance.feet)
    pose = stance.pose.copy()
    return ContactReference(pose, np.zeros(6), np.zeros(6), stance.feet.copy(), zero, zero.copy())


@dataclass(frozen=True)
class SwaySettings:
    """How far and how fast the base sways around where it should be.

    Attributes
    ----------
    shift : tuple[float, float, float] [-]
        Forward, sideways and up, as shares of the height.
    tilt : tuple[float, float, float] [rad]
        Roll, pitch and yaw.
    band : tuple[float, float] [-]
        Frequencies, in units of 1/√(h/g).
    """

    shift: tuple[float, float, float] = (0.12, 0.1, 0.08)
    tilt: tuple[float, float, float] = (0.15, 0.15, 0.2)
    band: tuple[float, float] = (0.05, 0.35)

    def wander(self, stance: Stance, rng: np.random.Generator) -> Wander:
        """Return the six components of the sway: shift [m] and tilt [rad]."""
        amplitude = np.concatenate([stance.height * np.array(self.shift), self.tilt])
        low, high = self.band
        return Wander(rng, amplitude, (low / stance.time, high / stance.time))


class Sway:
    """The base sways and turns over four feet that stay where they are.

    Parameters
    ----------
    stance : Stance
    settings : SwaySettings
    seed : int
    """

    def __init__(self, stance: Stance, settings: SwaySettings, seed: int) -> None:
        self._stance = stance
        self._sway = settings.wander(stance, np.random.default_rng(seed))

    def plan(self, time: float, sensed: Sensed) -> Plan:
        """Return what is wanted at a time [s]."""
        x, dx, ddx = self._sway.at(time)
        reference = _reference(self._stance)
        reference.pose[:3] += x[_LINEAR]
        reference.pose[3:] = _quaternion(x[5], x[3], x[4])
        loaded = np.ones(len(self._stance.feet), dtype=bool)
        return Plan(reference._replace(velocity=dx, acceleration=ddx), loaded)


@dataclass(frozen=True)
class WalkSettings:
    """A gait and how it varies; lengths, speeds and times in units of h, √(g h) and √(h/g).

    Attributes
    ----------
    footfalls : Footfalls
    period : float [-]
        Of a cycle.
    velocity : tuple[float, float] [-]
        Forward and sideways, on the average.
    turning : float [-]
        On the average.
    variation : tuple[float, float, float] [-]
        Of the two velocities and the turning, slowly.
    clearance : float [-]
        Height of a swinging foot.
    lean : float [-]
        Share of the way from the middle of all feet to that of the standing ones that the base
        moves.
    sway : SwaySettings
    """

    footfalls: Footfalls = field(default_factory=lambda: Footfalls(TROT, 0.6))
    period: float = 2.3
    velocity: tuple[float, float] = (0.15, 0.0)
    turning: float = 0.0
    variation: tuple[float, float, float] = (0.15, 0.06, 0.08)
    clearance: float = 0.2
    lean: float = 0.0
    sway: SwaySettings = field(
        default_factory=lambda: SwaySettings(shift=(0.0, 0.0, 0.05), tilt=(0.06, 0.06, 0.0))
    )


class Walk:
    """Steps in a fixed order; footholds follow Raibert's rule.

    Parameters
    ----------
    stance : Stance
    settings : WalkSettings
    seed : int
        Of the variation.
    """

    _STAND = 1.0  # [s] before the first step
    _CAPTURE = 0.7  # [√(h/g)] by which a foot is set ahead per error of the speed
    _LEASH = 0.12  # [h] that the wanted base may be ahead of the measured one
    _SLOW = (0.05, 0.25)  # [Hz] of the variation of the speed

    def __init__(self, stance: Stance, settings: WalkSettings, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._stance, self._settings = stance, settings
        self._sway = settings.sway.wander(stance, rng)
        unit = np.array([stance.speed, stance.speed, 1.0 / stance.time])
        self._mean = unit * np.array([*settings.velocity, settings.turning])
        self._variation = Wander(rng, unit * np.array(settings.variation), self._SLOW)
        self._period = settings.period * stance.time
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
        phase = self._settings.footfalls.phase(walked / self._period, self._places[:, :2])
        lifting = phase.swing & ~self._swinging
        self._lifted[lifting] = sensed.feet[lifting]
        self._swinging = phase.swing
        # a foot that touches in the second half of its swing is down
        self._early = (
            phase.swing & ~lifting & (self._early | sensed.touching & (phase.share > 0.5))
        )
        return ~phase.swing | self._early, np.where(phase.swing, phase.share, 1.0)

    def _base(self, step: float, wanted: FloatArray, sensed: Sensed) -> ContactReference:
        stance = self._stance
        leash = self._LEASH * stance.height
        self._yaw += wanted[2] * step
        measured = _yaw(sensed.pose)
        off = np.arctan2(np.sin(self._yaw - measured), np.cos(self._yaw - measured))
        self._yaw = measured + float(np.clip(off, -0.2, 0.2))
        velocity = _about_up(self._yaw) @ np.array([wanted[0], wanted[1], 0.0])
        self._origin += velocity * step
        ahead = self._origin[:2] - sensed.pose[:2]
        self._origin[:2] = sensed.pose[:2] + np.clip(ahead, -leash, leash)
        self._lean += min(1.0, 2.0 * step / stance.time) * (self._support(sensed) - self._lean)
        x, dx, ddx = self._sway.at(self._time)
        reference = _reference(stance)
        reference.pose[:3] = self._origin
        reference.pose[:2] += self._lean
        reference.pose[2] = stance.pose[2] + x[2]
        reference.pose[3:] = _quaternion(self._yaw, x[3], x[4])
        rate6, bend = dx.copy(), ddx.copy()
        rate6[:2], bend[:2] = velocity[:2], 0.0
        rate6[5], bend[5] = wanted[2], 0.0
        return reference._replace(velocity=rate6, acceleration=bend)

    def _support(self, sensed: Sensed) -> FloatArray:
        """Return how far (2,) [m] the base is to lean to the feet that will stand in a moment."""
        settings = self._settings
        walked = max(0.0, self._time - self._STAND)
        # the body is as slow as the low-pass behind this, so it must start before a foot lifts
        soon = (walked + self._stance.time) / self._period
        standing = ~settings.footfalls.phase(soon, self._places[:, :2]).swing
        if settings.lean == 0.0 or not standing.any():
            return np.zeros(2)
        feet = sensed.feet[:, :2]
        return np.asarray(settings.lean * (feet[standing].mean(axis=0) - feet.mean(axis=0)))

    def _feet(
        self, reference: ContactReference, share: FloatArray, loaded: BoolArray, sensed: Sensed
    ) -> ContactReference:
        stance, duty = self._stance, self._settings.footfalls.duty
        swing_time = (1.0 - duty) * self._period
        moving = _rotation(sensed.pose) @ sensed.twist[_LINEAR]
        left = (1.0 - share)[:, None] * swing_time
        turn = _about_up(self._yaw)
        place = sensed.pose[:3] + self._places @ turn.T + left * moving
        place += 0.5 * duty * self._period * moving
        place += self._CAPTURE * stance.time * (moving - reference.velocity[_LINEAR])
        place[:, 2] = stance.feet[:, 2]
        # a quintic over ground, which starts and ends at rest, and a bump above it
        s = share[:, None]
        blend = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
        slope = 30.0 * s**2 * (1.0 - s) ** 2 / swing_time
        bend = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / swing_time**2
        path = place - self._lifted
        position = self._lifted + blend * path
        velocity, acceleration = slope * path, bend * path
        top = self._settings.clearance * stance.height
        position[:, 2] += 64.0 * top * (share * (1.0 - share)) ** 3
        velocity[:, 2] += (
            192.0 * top * (share * (1.0 - share)) ** 2 * (1.0 - 2.0 * share) / swing_time
        )
        return reference._replace(
            foot_position=np.where(loaded[:, None], sensed.feet, position),
            foot_velocity=np.where(loaded[:, None], 0.0, velocity),
            foot_acceleration=np.where(loaded[:, None], 0.0, acceleration),
        )


@dataclass(frozen=True)
class JumpSettings:
    """A series of leaps; lengths, speeds and times in units of h, √(g h) and √(h/g).

    Attributes
    ----------
    speed : tuple[float, float] [-]
        Range of the upward speed at take-off.
    drift : float [-]
        Largest horizontal speed.
    crouch, rise : float [-]
        How deep the base goes before, and how high it is at take-off.
    period : float [-]
        Between two leaps.
    """

    speed: tuple[float, float] = (0.4, 0.65)
    drift: float = 0.12
    crouch: float = 0.22
    rise: float = 0.1
    period: float = 9.0


class Jump:
    """Crouches, leaps, lands on its feet, and does so again.

    Parameters
    ----------
    stance : Stance
    settings : JumpSettings
    seed : int
        Of the speeds at take-off.
    """

    _CROUCHING = 3.5  # [√(h/g)]
    _AIRBORNE = 0.15  # [√(h/g)] after take-off in which feet may still touch
    _TUCK = 0.12  # [h] by which feet are drawn up in flight

    def __init__(self, stance: Stance, settings: JumpSettings, seed: int) -> None:
        self._stance, self._settings = stance, settings
        self._rng = np.random.default_rng(seed)
        self._places = stance.feet - stance.pose[:3]
        self._leap = -1
        self._flying = False
        self._landed = np.ones(len(stance.feet), dtype=bool)
        self._take_off = -np.inf
        self._center = stance.pose[:2].copy()
        self._yaw = 0.0
        self._velocity = np.zeros(3)

    def plan(self, time: float, sensed: Sensed) -> Plan:
        """Return what is wanted at a time [s]; times ascend."""
        stance, settings = self._stance, self._settings
        leap, rest = divmod(time, settings.period * stance.time)
        if leap != self._leap:
            self._leap = int(leap)
            self._begin(sensed)
        crouching = self._CROUCHING * stance.time
        way = (settings.crouch + settings.rise) * stance.height
        thrust = 2.0 * way / self._velocity[2]
        reference = _reference(stance)
        reference.pose[3:] = _quaternion(self._yaw)
        reference.pose[:2] = self._center
        if rest < crouching:
            self._crouch(reference, rest / crouching)
        elif rest < crouching + thrust:
            since = rest - crouching
            self._push(reference, since, thrust)
            self._take_off = time
        elif time - self._take_off < 0.03 and not self._flying:
            self._flying, self._landed[:] = True, False
        if self._flying:
            return self._fly(reference, time - self._take_off, sensed)
        return Plan(reference, np.ones(len(self._landed), dtype=bool))

    def _begin(self, sensed: Sensed) -> None:
        low, high = self._settings.speed
        drift = self._settings.drift * self._rng.uniform(-1.0, 1.0, 2)
        up = self._rng.uniform(low, high)
        self._velocity = self._stance.speed * np.array([*drift, up])
        self._settle(sensed)

    def _settle(self, sensed: Sensed) -> None:
        """Stand from now on in the middle of where the feet are."""
        self._flying = False
        self._center = sensed.feet[:, :2].mean(axis=0) - self._places[:, :2].mean(axis=0)
        self._yaw = _yaw(sensed.pose)

    def _crouch(self, reference: ContactReference, share: float) -> None:
        depth = self._settings.crouch * self._stance.height
        reference.pose[2] -= depth * 0.5 * (1.0 - np.cos(np.pi * min(share / 0.8, 1.0)))

    def _push(self, reference: ContactReference, since: float, thrust: float) -> None:
        rate = self._velocity / thrust
        reference.pose[2] -= self._settings.crouch * self._stance.height
        reference.pose[:3] += 0.5 * rate * since**2
        reference.velocity[_LINEAR] = rate * since
        reference.acceleration[_LINEAR] = rate

    def _fly(self, reference: ContactReference, since: float, sensed: Sensed) -> Plan:
        stance = self._stance
        moving = _rotation(sensed.pose) @ sensed.twist[_LINEAR]
        flight = 2.0 * self._velocity[2] / 9.81
        if since > self._AIRBORNE * stance.time:
            self._landed |= sensed.touching
        tuck = self._TUCK * stance.height * np.sin(np.pi * np.clip(since / flight, 0.0, 1.0)) ** 2
        position = sensed.pose[:3] + self._places @ _about_up(self._yaw).T
        # landing feet are put ahead so that they stand under the body when it has come to rest
        position[:, :2] += stance.time * moving[:2]
        position[:, 2] += tuck
        if self._landed.all():
            self._settle(sensed)
        elif self._landed.any():
            reference.pose[:2] = sensed.pose[:2]
        flying = ~self._landed
        reference = reference._replace(
            foot_position=np.where(flying[:, None], position, sensed.feet),
            foot_velocity=np.where(flying[:, None], moving, 0.0),
        )
        return Plan(reference, self._landed.copy())
