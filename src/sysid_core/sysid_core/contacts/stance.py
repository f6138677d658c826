# SPDX-License-Identifier: Apache-2.0
"""Motion of a base on standing feet: odometry and feet, each weighed by the noise that it shows.

Differentiated odometry is noisy, joint encoders are not: feet that stand still tell the base's
motion (Bloesch et al. 2013).
"""

from dataclasses import replace

import numpy as np
import pinocchio as pin

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.contacts.base_noise import NoiseLearner
from sysid_core.contacts.feet import FootMotion
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.contact_kinematics import BASE, configuration, finite_samples, project
from sysid_core.dynamics.open_tree import OpenTree
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.signals.rotation import normalised, rotate_into_body

__all__ = ["StanceMotion", "base_maps"]

_JUDGED_FROM = 50
"""Live samples that are judged at once: one by one would take as long as all else."""
_JUDGED_BY = 500  # Samples whose torques judge the correction
_CLEARLY = 0.9
"""Share of the unexplained squares of torque that the correction may leave at most: feet are less
than rigid, and odometry as good as they are stays as it is."""
_MEMORY = 5.0  # Time constant [s] over which live variances follow the gait
_ENOUGH = 200
"""Samples from which variances can be learned; before that, the odometry stays as it is."""
_REMEMBERED = 1000  # Live samples whose noise the next one's is compared with


class StanceMotion:
    """Corrects the odometry of a base by its standing feet, where torques say that this is better.

    The first samples are gathered until they are enough to learn from, later ones learned from as
    they come.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._regression = ContactRegression(robot)
        self._kinematics = self._regression.kinematics
        self._tree = OpenTree(robot, parameters=robot.consistent_nominal)
        neutral = pin.neutral(robot.model)
        inertia = pin.crba(robot.model, robot.model.createData(), neutral)[:BASE, :BASE]
        position = self._kinematics.evaluate(neutral[None]).position[0]
        reach = float(np.linalg.norm(position - neutral[:3], axis=1).mean())
        self._torque = np.diag(np.repeat([reach, 1.0], 3)) @ inertia
        self.reset()

    def reset(self) -> None:
        """Forget what was learned."""
        self._velocity, self._acceleration = NoiseLearner(), NoiseLearner()
        self._first: list[tuple[Samples, FootMotion]] = []
        self._variances = np.zeros(0)
        self._unexplained = np.zeros(2)
        self._unjudged: list[tuple[Samples, Samples]] = []
        self._judged = -np.inf
        self._newest = -np.inf

    def correct(
        self, samples: Samples, motion: FootMotion, chosen: BoolArray
    ) -> tuple[Samples, BoolArray]:
        """Return samples with the most likely motion of the base, and which have it well known.

        Those that are `chosen` (n,) are corrected if the nominal model explains clearly more of
        the torques with it: the errors of the model itself are the same with and without. Feet
        that carry load in their `motion` are expected to stand.
        """
        fit = np.ones(len(samples), dtype=np.bool_)
        known = finite_samples(self.robot, samples, configuration(self.robot, samples))
        known &= np.isfinite(motion.velocity).all(axis=(1, 2)) & chosen
        if not motion.loaded[known].any():
            return samples, fit
        moving, feet = samples.select(known), motion.select(known)
        if not self._begin(moving, feet):
            return samples, fit
        newest = float(samples.time[chosen][-1])
        keep = float(np.exp(-(newest - self._newest) / _MEMORY))
        self._newest = newest
        corrected, covariance = self._corrected(moving, feet, keep)
        self._judge(moving, corrected)
        if not self.used:
            return samples, fit
        force = self._torque @ covariance @ self._torque.T
        fit[known] = self._worth(np.trace(force, axis1=1, axis2=2))
        mended = {}
        for name in ("base_twist", "base_acceleration"):
            mended[name] = np.array(getattr(samples, name))
            mended[name][known] = getattr(corrected, name)
        return replace(samples, **mended), fit

    @property
    def used(self) -> bool:
        """Whether torques say that the correction is better than none."""
        return bool(self._unexplained[1] < _CLEARLY * self._unexplained[0])

    def _begin(self, samples: Samples, motion: FootMotion) -> bool:
        """Gather the first samples; learn from them and return true once they are enough."""
        if self._velocity.known:
            return True
        self._first.append((samples, motion))
        if sum(len(part) for part, _ in self._first) < _ENOUGH:
            return False
        parts, motions = zip(*self._first, strict=True)
        self._corrected(Samples.concatenate(list(parts)), FootMotion.concatenate(motions), 0.0)
        self._first.clear()
        return True

    def _corrected(
        self, samples: Samples, motion: FootMotion, keep: float
    ) -> tuple[Samples, FloatArray]:
        """Return samples with the base corrected, and its acceleration's covariance (n, 6, 6)."""
        q, v, a = configuration(self.robot, samples)
        maps = base_maps(q, motion.position + self._kinematics.reach)
        found = self._velocity.estimate(maps, motion.velocity, motion.loaded, keep)
        v = v - np.pad(found.error, ((0, 0), (0, v.shape[1] - BASE)))
        moved = self._kinematics.at_ground(self._kinematics.accelerations(q, v, a)[..., None])
        found = self._acceleration.estimate(maps, moved[:, :, :3, 0], motion.loaded, keep)
        acceleration = a[:, :BASE] - found.error
        corrected = replace(samples, base_twist=v[:, :BASE], base_acceleration=acceleration)
        return corrected, found.covariance

    def _judge(self, samples: Samples, corrected: Samples) -> None:
        """Compare what both leave unexplained, once there are some more samples."""
        self._unjudged.append((samples, corrected))
        if sum(len(one) for one, _ in self._unjudged) < _JUDGED_FROM:
            return
        both = [Samples.concatenate(list(parts)) for parts in zip(*self._unjudged, strict=True)]
        self._unjudged.clear()
        newest = float(both[0].time[-1])
        few = slice(None, None, max(1, len(both[0]) // _JUDGED_BY))
        self._unexplained *= np.exp(-(newest - self._judged) / _MEMORY)
        self._unexplained += [self._squares(each.select(few)) for each in both]
        self._judged = newest

    def _squares(self, samples: Samples) -> float:
        """Return the sum of the squared torques that the nominal model leaves unexplained."""
        state = configuration(self.robot, samples)
        needed = self._tree.torques(*state)
        parts = self._regression.projections(samples)
        return sum(
            float(np.sum(project(p.basis, p.force - needed[p.sample])[:, BASE:] ** 2))
            for p in parts
        )

    def _worth(self, variance: FloatArray) -> BoolArray:
        """Return which samples add more knowledge than noise.

        If samples are sorted by the torque's variance (n,) that the base's acceleration brings,
        and all else brings as much as the base does at the median, these are as many as have the
        mean of least variance.
        """
        self._variances = np.concatenate([self._variances, variance])
        usual = np.sort(self._variances)
        total = np.cumsum(usual + np.median(usual))
        worst = usual[np.argmin(total / np.arange(1.0, len(usual) + 1.0) ** 2)]
        self._variances = self._variances[-_REMEMBERED:]
        return np.asarray(variance <= worst)


def base_maps(q: FloatArray, points: FloatArray) -> FloatArray:
    """Return the maps (n, nc, 3, 6) from the base's twist to points (n, nc, 3) in the world."""
    turn = normalised(q[:, 3:7])
    rows = [rotate_into_body(turn, np.broadcast_to(axis, (len(q), 3))) for axis in np.eye(3)]
    R = np.stack(rows, axis=1)
    x, y, z = np.moveaxis(points - q[:, None, :3], -1, 0)
    zero = np.zeros_like(x)
    turned = np.stack([zero, z, -y, -z, zero, x, y, -x, zero], axis=-1)
    lever = turned.reshape(*x.shape, 3, 3) @ R[:, None]
    return np.concatenate([np.broadcast_to(R[:, None], lever.shape), lever], axis=-1)
