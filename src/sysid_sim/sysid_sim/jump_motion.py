# SPDX-License-Identifier: Apache-2.0
"""How a quadruped jumps: it crouches, pushes off, flies and lands."""

from __future__ import annotations

import numpy as np

from sysid_core.dynamics.stance import Stance
from sysid_sim.contact_law import ContactReference
from sysid_sim.legged_motion import (
    LINEAR,
    Plan,
    Sensed,
    about_up,
    at_rest,
    quaternion_of,
    yaw_of,
)
from sysid_sim.plant import rotation_of

__all__ = ["Jump"]


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
        moving = rotation_of(sensed.pose[3:]) @ sensed.twist[LINEAR]
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
