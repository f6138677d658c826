# SPDX-License-Identifier: Apache-2.0
"""When the feet of a quadruped stand and swing, and how its base is to move meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray

__all__ = ["CRAWL", "TROT", "Leg", "Phase", "Wander", "phase_of"]

Leg = tuple[bool, bool]
"""Whether a leg is in front, and whether it is on the left."""

_FRONT_LEFT, _FRONT_RIGHT = (True, True), (True, False)
_REAR_LEFT, _REAR_RIGHT = (False, True), (False, False)

TROT: Mapping[Leg, float] = {
    _FRONT_LEFT: 0.0,
    _FRONT_RIGHT: 0.5,
    _REAR_LEFT: 0.5,
    _REAR_RIGHT: 0.0,
}
"""Share of the cycle by which a leg is ahead: diagonal pairs step together."""

CRAWL: Mapping[Leg, float] = {
    _FRONT_LEFT: 0.5,
    _FRONT_RIGHT: 0.0,
    _REAR_LEFT: 0.75,
    _REAR_RIGHT: 0.25,
}
"""The same where one leg steps after the other, a front one after the rear one of its side."""


class Phase(NamedTuple):
    """Where each leg is in its cycle.

    Attributes
    ----------
    swing : (nc,) bool
    share : (nc,) [-]
        Of the swing that has passed; of a standing leg, 1.
    """

    swing: BoolArray
    share: FloatArray


def phase_of(offsets: Mapping[Leg, float], duty: float, cycle: float, places: FloatArray) -> Phase:
    """Return where the legs are.

    Parameters
    ----------
    offsets : Mapping
        Share of the cycle by which each leg is ahead.
    duty : float [-]
        Share of the cycle that a foot stands.
    cycle : float [-]
        Cycles since the start; legs with offset zero begin to stand at whole numbers.
    places : (nc, 2) [m]
        Where the feet stand at rest, seen from the base: this tells which leg is which.
    """
    ahead = np.array([offsets[bool(x > 0.0), bool(y > 0.0)] for x, y in places])
    part = (cycle + ahead) % 1.0
    swing = part >= duty
    return Phase(swing, np.where(swing, (part - duty) / (1.0 - duty), 1.0))


class Wander:
    """A smooth random signal: sines of drawn frequencies that grow from rest.

    Parameters
    ----------
    rng : numpy.random.Generator
    amplitude : (k,)
        About the largest value.
    band : tuple[float, float] [Hz]
        From which frequencies are drawn.
    fade : float [s]
        In which the signal grows.
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
