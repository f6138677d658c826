# SPDX-License-Identifier: Apache-2.0
"""How far a robot's bodies are from each other, as capsules with the inertias of the bodies."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.inertia import pseudo_inertia
from sysid_core.robot.model import Robot

__all__ = ["SelfClearance"]

_SOLID = 5.0
"""Squared semi-axes of a solid ellipsoid over its mean squares along them."""
_ALWAYS = 0.5
"""Share of random configurations in which neighbours overlap: their capsules stand for no gap."""
_SAMPLES = 200
_TINY = 1e-12


class SelfClearance:
    """Distances between the capsules of bodies that can touch.

    A body's capsule encloses the solid ellipsoid with its nominal inertia. Bodies on both sides of
    a joint, and pairs that overlap in most configurations, are not looked at; nor is what does not
    move.

    Parameters
    ----------
    robot : Robot

    Attributes
    ----------
    pairs : tuple of (str, str)
        The bodies of each distance.
    """

    def __init__(self, robot: Robot) -> None:
        self._model, self._data = robot.model, robot.model.createData()
        self._joints = robot.body_joint_ids
        bodies = robot.layout.bodies_of(robot.consistent_nominal)
        found = [_capsule(phi) for phi in bodies.values()]
        self._ends = np.array([ends for ends, _ in found])
        self._radius = np.array([radius for _, radius in found])
        parents = robot.model.parents
        ids = [
            (i, j)
            for i, j in combinations(range(len(found)), 2)
            if parents[self._joints[j]] != self._joints[i]
            and parents[self._joints[i]] != self._joints[j]
        ]
        self._first, self._second = np.array(ids, dtype=np.intp).reshape(-1, 2).T
        rng = np.random.default_rng(0)
        usual = rng.uniform(*robot.sampling_range, (_SAMPLES, len(robot.joint_names)))
        touching = (self.gaps(usual) < 0.0).mean(axis=0) > _ALWAYS
        self._first, self._second = self._first[~touching], self._second[~touching]
        names = tuple(bodies)
        self.pairs = tuple(
            (names[i], names[j]) for i, j in zip(self._first, self._second, strict=True)
        )

    def worst(self, configurations: FloatArray) -> tuple[float, tuple[str, str]]:
        """Return the smallest gap [m] of some configurations (n, nq) and its bodies."""
        if not self.pairs:
            return np.inf, ("", "")
        found = self.gaps(configurations).min(axis=0)
        return float(found.min()), self.pairs[int(np.argmin(found))]

    def gaps(self, configurations: FloatArray) -> FloatArray:
        """Return the gaps (n, k) [m] of all pairs at configurations (n, nq); negative: overlap."""
        ends = np.empty((len(configurations), *self._ends.shape))
        for row, q in zip(ends, configurations, strict=True):
            pin.forwardKinematics(self._model, self._data, q)
            for b, joint in enumerate(self._joints):
                place = self._data.oMi[joint]
                row[b] = self._ends[b] @ place.rotation.T + place.translation
        gap = _segment_distance(ends[:, self._first], ends[:, self._second])
        return gap - self._radius[self._first] - self._radius[self._second]


def _capsule(phi: FloatArray) -> tuple[FloatArray, float]:
    """Return the ends (2, 3) [m] and the radius [m] of a body's capsule, in its joint's frame."""
    J = pseudo_inertia(phi)
    mass = max(float(J[3, 3]), _TINY)
    centre = J[:3, 3] / mass
    spread = J[:3, :3] / mass - np.outer(centre, centre)
    values, axes = np.linalg.eigh(spread)
    _, middle, longest = np.sqrt(_SOLID * np.maximum(values, 0.0))
    reach = (longest - middle) * axes[:, 2]
    return np.array([centre - reach, centre + reach]), float(middle)


def _segment_distance(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the distances (n, k) of segments with ends (n, k, 2, 3) (Ericson 2005, ch. 5.1.9)."""
    d, e = a[..., 1, :] - a[..., 0, :], b[..., 1, :] - b[..., 0, :]
    r = a[..., 0, :] - b[..., 0, :]
    dd, ee, de = ((x * y).sum(axis=-1) for x, y in ((d, d), (e, e), (d, e)))
    dr, er = (d * r).sum(axis=-1), (e * r).sum(axis=-1)
    across = dd * ee - de**2
    s = np.where(across > _TINY, (de * er - dr * ee) / np.maximum(across, _TINY), 0.0).clip(0, 1)
    t = ((de * s + er) / np.maximum(ee, _TINY)).clip(0.0, 1.0)
    s = ((de * t - dr) / np.maximum(dd, _TINY)).clip(0.0, 1.0)
    gap = r + s[..., None] * d - t[..., None] * e
    return np.asarray(np.linalg.norm(gap, axis=-1))
