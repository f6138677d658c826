# SPDX-License-Identifier: Apache-2.0
"""What a quadruped is to do, as plain data; and what it does on all feet: to sway, to jump."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import pinocchio as pin

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.stance import Stance

__all__ = [
    "LINEAR",
    "ContactReference",
    "Jump",
    "LeggedMotion",
    "Plan",
    "Sensed",
    "Sway",
    "SwayConfig",
    "Wander",
    "about_up",
    "at_rest",
    "attitude_of",
    "quaternion_of",
    "yaw_of",
]

LINEAR = slice(0, 3)


class Sensed(NamedTuple):
    """What a motion may react to."""

    pose: FloatArray  # (7,) base position [m], quaternion x, y, z, w
    twist: FloatArray  # (6,) [m/s, rad/s] in the base frame
    feet: FloatArray  # (nc, 3) [m] contact frames in the world
    touching: BoolArray  # (nc,)


class ContactReference(NamedTuple):
    """Desired motion of the base and of the feet in swing."""

    pose: FloatArray  # (7,) base position in the world [m], unit quaternion x, y, z, w
    # velocity, acceleration: (6,) linear part in the world [m/s, m/s²], angular part in the base
    # frame [rad/s, rad/s²].
    velocity: FloatArray
    acceleration: FloatArray
    # foot_position, foot_velocity, foot_acceleration: (nc, 3) [m, m/s, m/s²] in the world; those
    # of feet in contact are not used.
    foot_position: FloatArray
    foot_velocity: FloatArray
    foot_acceleration: FloatArray


class Plan(NamedTuple):
    """What is wanted now."""

    reference: ContactReference
    loaded: BoolArray  # (nc,) feet that are to carry load; those that do not touch yet reach down


class LeggedMotion(Protocol):
    """A motion, planned from one control period to the next."""

    def plan(self, time: float, sensed: Sensed) -> Plan:
        """Return what is wanted at a time [s]; times ascend."""
        ...


def quaternion_of(yaw: float, roll: float = 0.0, pitch: float = 0.0) -> FloatArray:
    """Return the quaternion (4,) x, y, z, w of angles [rad]."""
    return np.array(pin.Quaternion(pin.rpy.rpyToMatrix(roll, pitch, yaw)).coeffs())


def attitude_of(pose: FloatArray) -> FloatArray:
    """Return the rotation (3, 3) of a pose (7,)."""
    return np.array(pin.Quaternion(pose[3:]).toRotationMatrix())


def yaw_of(pose: FloatArray) -> float:
    """Return a pose's (7,) angle [rad] about the vertical."""
    return float(pin.rpy.matrixToRpy(attitude_of(pose))[2])


def about_up(yaw: float) -> FloatArray:
    """Return the rotation (3, 3) about the vertical by an angle [rad]."""
    return np.array(pin.rpy.rpyToMatrix(0.0, 0.0, yaw))


def at_rest(stance: Stance) -> ContactReference:
    """Return the reference that stands still."""
    zero = np.zeros_like(stance.feet)
    pose = stance.pose.copy()
    return ContactReference(pose, np.zeros(6), np.zeros(6), stance.feet.copy(), zero, zero.copy())


class Wander:
    """A smooth random signal: sines of drawn frequencies that grow from rest.

    It reaches about `amplitude` (k,), has frequencies from a band [Hz], and grows within `fade`
    [s].
    """

    _SINES = 3

    def __init__(
        self,
        rng: np.random.Generator,
        amplitude: FloatArray,
        band: tuple[float, float],
        fade: float = 1.0,
    ) -> None:
        shape = (self._SINES, len(amplitude))
        self._rate = 2.0 * np.pi * rng.uniform(*band, shape)
        self._phase = rng.uniform(0.0, 2.0 * np.pi, shape)
        size = rng.uniform(0.5, 1.0, shape)
        self._size = amplitude * size / size.sum(axis=0)
        self._fade = fade

    def at(self, time: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the signal (k,) and its first two derivatives."""
        angle = self._rate * time + self._phase
        s, c = self._size * np.sin(angle), self._size * np.cos(angle)
        x, dx, ddx = s.sum(0), (self._rate * c).sum(0), -(self._rate**2 * s).sum(0)
        if time >= self._fade:
            return x, dx, ddx
        # a cubic step, whose curvature is steady enough for a body that begins to move
        u = time / self._fade
        w = u * u * (3.0 - 2.0 * u)
        dw, ddw = 6.0 * u * (1.0 - u) / self._fade, (6.0 - 12.0 * u) / self._fade**2
        return w * x, dw * x + w * dx, ddw * x + 2.0 * dw * dx + w * ddx


@dataclass(frozen=True)
class SwayConfig:
    """How far and how fast the base sways around where it should be."""

    shift: Sequence[float] = (0.12, 0.1, 0.08)
    """(3,) [-] forward, sideways and up, as shares of the height."""
    tilt: Sequence[float] = (0.15, 0.15, 0.2)  # (3,) [rad] roll, pitch and yaw
    band: Sequence[float] = (0.05, 0.35)  # (2,) [-] frequencies, in units of 1/√(h/g)

    def wander(self, stance: Stance, rng: np.random.Generator, fade: float = 1.0) -> Wander:
        """Return the sway's shift [m] and tilt [rad], six numbers; it grows for `fade` [s]."""
        amplitude = np.concatenate([stance.height * np.array(self.shift), self.tilt])
        low, high = self.band
        return Wander(rng, amplitude, (low / stance.time, high / stance.time), fade)


class Sway:
    """The base sways and turns over four feet that stay where they are."""

    def __init__(self, stance: Stance, seed: int) -> None:
        self._stance = stance
        self._sway = SwayConfig().wander(stance, np.random.default_rng(seed))

    def plan(self, time: float, sensed: Sensed) -> Plan:
        """Return what is wanted at a time [s]."""
        x, dx, ddx = self._sway.at(time)
        reference = at_rest(self._stance)
        reference.pose[:3] += x[LINEAR]
        reference.pose[3:] = quaternion_of(x[5], x[3], x[4])
        loaded = np.ones(len(self._stance.feet), dtype=bool)
        return Plan(reference._replace(velocity=dx, acceleration=ddx), loaded)


class Jump:
    """Crouches, leaps, lands on its feet, and does so again."""

    # lengths, speeds and times in units of h, √(g h) and √(h/g)
    _SPEED = (0.4, 0.65)  # range of the upward speed at take-off
    _DRIFT = 0.12  # largest horizontal speed
    _CROUCH, _RISE = 0.22, 0.1  # how deep the base goes before, and how high it is at take-off
    _PERIOD = 9.0  # between two leaps
    _CROUCHING = 3.5
    _AIRBORNE = 0.15  # after take-off, in which feet may still touch
    _TUCK = 0.12  # by which feet are drawn up in flight

    def __init__(self, stance: Stance, seed: int) -> None:
        self._stance = stance
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
        stance = self._stance
        leap, rest = divmod(time, self._PERIOD * stance.time)
        if leap != self._leap:
            self._leap = int(leap)
            self._begin(sensed)
        crouching = self._CROUCHING * stance.time
        way = (self._CROUCH + self._RISE) * stance.height
        thrust = 2.0 * way / self._velocity[2]
        reference = at_rest(stance)
        reference.pose[3:] = quaternion_of(self._yaw)
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
        drift = self._DRIFT * self._rng.uniform(-1.0, 1.0, 2)
        up = self._rng.uniform(*self._SPEED)
        self._velocity = self._stance.speed * np.array([*drift, up])
        self._settle(sensed)

    def _settle(self, sensed: Sensed) -> None:
        """Stand from now on in the middle of where the feet are."""
        self._flying = False
        self._center = sensed.feet[:, :2].mean(axis=0) - self._places[:, :2].mean(axis=0)
        self._yaw = yaw_of(sensed.pose)

    def _crouch(self, reference: ContactReference, share: float) -> None:
        depth = self._CROUCH * self._stance.height
        reference.pose[2] -= depth * 0.5 * (1.0 - np.cos(np.pi * min(share / 0.8, 1.0)))

    def _push(self, reference: ContactReference, since: float, thrust: float) -> None:
        rate = self._velocity / thrust
        reference.pose[2] -= self._CROUCH * self._stance.height
        reference.pose[:3] += 0.5 * rate * since**2
        reference.velocity[LINEAR] = rate * since
        reference.acceleration[LINEAR] = rate

    def _fly(self, reference: ContactReference, since: float, sensed: Sensed) -> Plan:
        stance = self._stance
        moving = attitude_of(sensed.pose) @ sensed.twist[LINEAR]
        flight = 2.0 * self._velocity[2] / 9.81
        if since > self._AIRBORNE * stance.time:
            self._landed |= sensed.touching
        tuck = self._TUCK * stance.height * np.sin(np.pi * np.clip(since / flight, 0.0, 1.0)) ** 2
        position = sensed.pose[:3] + self._places @ about_up(self._yaw).T
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
