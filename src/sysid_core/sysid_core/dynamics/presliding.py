# SPDX-License-Identifier: Apache-2.0
"""Friction before sliding: what gives way between a joint's two sides after it turned around."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray

__all__ = ["deflected", "deflections", "of_motion"]

_FOLLOWS = 0.5
"""Share of the steps of a motion's positions that its velocities explain, at least [-]."""


def deflected(deflection: FloatArray, step: FloatArray, distance: FloatArray) -> FloatArray:
    """Return deflections (…, nj) after steps [rad] of joints; see `deflections`."""
    sign = np.sign(step)
    gone = sign + (deflection - sign) * np.exp(-np.abs(step) / distance)
    return np.where(sign == 0.0, deflection, gone)


def deflections(
    position: FloatArray, distance: FloatArray, start: FloatArray | None = None
) -> FloatArray:
    """Return the deflections (n, k) [-] of one joint on its way, from -1 to 1.

    By ``dz/dq = (1 - z·sign(q̇))/d`` (Dahl 1968), which depends on the way but not on how fast it
    is gone: from where the joint turned around at q₀ with z₀ on, ``z = s - (s - z₀)·exp(-|q -
    q₀|/d)`` with the sign s of its motion.

    Parameters
    ----------
    position : (n,) [rad]
        One after the other.
    distance : (k,) [rad]
        Over each of which friction changes by all but 1/e of what it changes.
    start : (k,), optional
        Deflections at the first position; by default those of a joint that has long been sliding.
    """
    step = np.sign(np.diff(position))
    moves = np.flatnonzero(step)
    if not len(moves):
        at_rest = np.zeros(len(distance)) if start is None else start
        return np.tile(at_rest, (len(position), 1))
    step[: moves[0]] = step[moves[0]]
    last = np.maximum.accumulate(np.where(step == 0.0, 0, np.arange(len(step))))
    step = step[last]  # a joint that rests goes on as it came
    turns = np.r_[0, 1 + np.flatnonzero(np.diff(step))]
    sign, way = step[turns], np.abs(np.diff(position[turns]))
    left = np.exp(-way[:, None] / distance)
    at_turn = np.empty((len(turns), len(distance)))
    at_turn[0] = sign[0] if start is None else start
    for k, share in enumerate(left):
        at_turn[k + 1] = sign[k] - (sign[k] - at_turn[k]) * share
    part = np.searchsorted(turns, np.arange(len(position)), side="right") - 1
    travelled = np.abs(position - position[turns][part])
    s = sign[part][:, None]
    return np.asarray(s - (s - at_turn[part]) * np.exp(-travelled[:, None] / distance))


def of_motion(
    position: FloatArray, velocity: FloatArray, distance: FloatArray
) -> FloatArray | None:
    """Return the deflections (n, nj) [-] of states (n, nj) that follow each other.

    None if they do not: then their positions do not change as their velocities say. `distance`
    (nj,) is 0 for joints without.
    """
    step, mean = np.diff(position, axis=0), velocity[1:] + velocity[:-1]
    power, square = float((step * mean).sum()), float((mean * mean).sum())
    if power <= 0.0 or power**2 < _FOLLOWS * square * float((step * step).sum()):
        return None
    found = np.zeros_like(position)
    for j in np.flatnonzero(distance):
        found[:, j] = deflections(position[:, j], distance[j : j + 1])[:, 0]
    return found
