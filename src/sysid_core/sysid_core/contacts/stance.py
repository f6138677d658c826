# SPDX-License-Identifier: Apache-2.0
"""Motion of a base on standing feet: odometry and feet, each weighed by the noise that it shows.

Differentiated odometry is noisy, joint encoders are not: feet that stand still tell the base's
motion (Bloesch et al. 2013). Neither noise is known beforehand, and feet also slip, land and lift
off. So the variances and the share of contacts that stand are learned by expectation maximisation
(Dempster, Laird & Rubin 1977), over a recording at once or live as it goes on (Cappé & Moulines
2009).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.contacts.feet import FootMotion
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.contact_kinematics import BASE, configuration, finite_samples
from sysid_core.dynamics.null_space import project
from sysid_core.dynamics.open_tree import OpenTree
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.signals.rotation import normalised, rotate_into_body

__all__ = ["StanceMotion"]

_ROUNDS = 5
"""Steps in which feet that do not stand are told from those that do."""
_ITERATIONS = 30
_SETTLED = 3e-3
"""Relative change of the variances at which iterations end."""
_LEARNED_FROM = 1000
"""Samples that variances are learned from: more would not change them."""
_JUDGED_BY = 500
"""Samples whose torques judge the correction."""
_CLEARLY = 0.9
"""Share of the unexplained squares of torque that the correction may leave at most: feet are less
than rigid, and odometry as good as they are stays as it is."""
_MEMORY = 5.0
"""Time constant [s] over which live variances follow the gait."""
_APART = 4.0
"""Least ratio of the variances of moving and standing feet, which else would change places."""
_LEAST = 1e-12
"""Least variance, of exact data."""
_ENOUGH = 200
"""Samples from which variances can be learned; before that, the odometry stays as it is."""
_RIGID = 1e-6
"""Least variance of standing feet, as a share of all feet's: none is stiller by a thousand."""
_REMEMBERED = 1000
"""Live samples whose noise the next one's is compared with."""


class _Noise(NamedTuple):
    """Variances of velocities [m²/s², rad²/s²] or of accelerations [m²/s⁴, rad²/s⁴].

    Attributes
    ----------
    standing, moving : float
        Of a foot that stands, and of one in contact that does not.
    share : float [-]
        Of contacts that stand.
    linear, angular : float
        Of the odometry, on each axis.
    """

    standing: float
    moving: float
    share: float
    linear: float
    angular: float

    @staticmethod
    def first(feet: FloatArray, active: BoolArray) -> _Noise:
        """Return a guess: half of what is seen of the feet, a quarter of them hardly moves."""
        square = np.sum(feet[active] ** 2, axis=1) / 3.0
        mean = max(float(square.mean()), _LEAST)
        standing = max(float(np.quantile(square, 0.25)), _LEAST)
        return _Noise(standing, _APART * mean, 0.7, 0.5 * mean, 0.5 * mean)

    @staticmethod
    def of(sums: FloatArray) -> _Noise:
        """Return the most likely variances for the sums (7,) of `_estimated`."""
        standing, n_standing, moving, n_moving, linear, angular, n = sums
        usual = (standing + moving) / max(3.0 * (n_standing + n_moving), _LEAST)
        still = max(standing / max(3.0 * n_standing, _LEAST), _RIGID * usual) + _LEAST
        share = n_standing / max(n_standing + n_moving, _LEAST)
        return _Noise(
            still,
            max(moving / max(3.0 * n_moving, _LEAST), _APART * still),
            float(np.clip(share, 0.01, 0.99)),
            linear / max(3.0 * n, _LEAST) + _LEAST,
            angular / max(3.0 * n, _LEAST) + _LEAST,
        )


class _Estimate(NamedTuple):
    """Error of the odometry (n, 6), its covariance (n, 6, 6), and sums for `_Noise.of`."""

    error: FloatArray
    covariance: FloatArray
    sums: FloatArray


def _estimated(maps: FloatArray, feet: FloatArray, active: BoolArray, noise: _Noise) -> _Estimate:
    """Return the odometry's error that explains how feet move which should stand.

    Parameters
    ----------
    maps : (n, nc, 3, 6)
        From the base's motion to the feet's.
    feet : (n, nc, 3)
        The feet's motion by odometry and joints.
    active : (n, nc) bool
    noise : _Noise
    """
    prior = np.repeat([1.0 / noise.linear, 1.0 / noise.angular], 3)
    stands = np.full(active.shape, noise.share)
    # the step from one kind to the other grows sharp: the worst foot goes first, not the sample
    for still in np.geomspace(noise.moving, noise.standing, _ROUNDS + 1)[1:]:
        weight = active * (stands / still + (1.0 - stands) / noise.moving)
        A = (maps * np.sqrt(weight)[:, :, None, None]).reshape(len(maps), -1, BASE)
        y = (feet * np.sqrt(weight)[:, :, None]).reshape(len(maps), -1, 1)
        AT = np.swapaxes(A, 1, 2)
        covariance = np.linalg.inv(AT @ A + np.diag(prior))
        error = (covariance @ (AT @ y))[:, :, 0]
        left = feet - (maps @ error[:, None, :, None])[..., 0]
        spread = np.einsum("ncij,njk,ncik->nc", maps, covariance, maps, optimize=True)
        square = np.sum(left**2, axis=2) + spread
        odds = np.log(noise.share / (1.0 - noise.share))
        odds = odds + 1.5 * np.log(noise.moving / still)
        odds = odds - 0.5 * square * (1.0 / still - 1.0 / noise.moving)
        stands = 1.0 / (1.0 + np.exp(-np.clip(odds, -50.0, 50.0)))
    own, other = active * stands, active * (1.0 - stands)
    moment = error**2 + np.diagonal(covariance, axis1=1, axis2=2)
    sums = np.array(
        [
            np.sum(own * square),
            own.sum(),
            np.sum(other * square),
            other.sum(),
            moment[:, :3].sum(),
            moment[:, 3:].sum(),
            len(feet),
        ]
    )
    return _Estimate(error, covariance, sums)


class _Learner:
    """Noise of one derivative of the motion, as learned so far."""

    def __init__(self) -> None:
        self._sums = np.zeros(7)

    def learn(self, maps: FloatArray, feet: FloatArray, active: BoolArray) -> None:
        """Learn from samples until the variances settle."""
        part = slice(None, None, max(1, len(feet) // _LEARNED_FROM))
        noise = _Noise.first(feet, active)
        for _ in range(_ITERATIONS):
            self._sums = _estimated(maps[part], feet[part], active[part], noise).sums
            before, noise = noise, _Noise.of(self._sums)
            if np.allclose(noise, before, rtol=_SETTLED, atol=0.0):
                break

    def estimate(
        self, maps: FloatArray, feet: FloatArray, active: BoolArray, keep: float
    ) -> _Estimate:
        """Return the odometry's errors; learn on, what is known counting for a share `keep`."""
        found = _estimated(maps, feet, active, _Noise.of(self._sums))
        self._sums = keep * self._sums + found.sums
        return found


class _Feet(NamedTuple):
    """Samples whose feet's motion is known."""

    samples: Samples
    motion: FootMotion

    def joined(self, other: _Feet) -> _Feet:
        return _Feet(
            Samples.concatenate([self.samples, other.samples]), self.motion.joined(other.motion)
        )


class StanceMotion:
    """Corrects the odometry of a base by its standing feet, where torques say that this is better.

    The first samples are gathered until they are enough to learn from, later ones learned from as
    they come.

    Parameters
    ----------
    robot : Robot
        Floating, with contacts.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._regression = ContactRegression(robot)
        self._kinematics = self._regression.kinematics
        self._tree = OpenTree(robot, parameters=robot.consistent_nominal)
        self._data = robot.model.createData()
        neutral = pin.neutral(robot.model)
        inertia = pin.crba(robot.model, self._data, neutral)[:BASE, :BASE]
        position = self._kinematics.evaluate(neutral[None]).position[0]
        reach = float(np.linalg.norm(position - neutral[:3], axis=1).mean())
        self._torque = np.diag(np.repeat([reach, 1.0], 3)) @ inertia
        self.reset()

    def reset(self) -> None:
        """Forget what was learned."""
        self._velocity, self._acceleration = _Learner(), _Learner()
        self._first: _Feet | None = None
        self._learned = False
        self._variances = np.zeros(0)
        self._unexplained = np.zeros(2)
        self._newest = -np.inf

    def correct(self, samples: Samples, motion: FootMotion) -> tuple[Samples, BoolArray]:
        """Return samples with the most likely motion of the base, and which have it well known.

        The correction is used if the nominal model explains clearly more of the torques with it:
        the errors of the model itself are the same with and without.

        Parameters
        ----------
        samples : Samples
            (n,) with the base's motion and contacts.
        motion : FootMotion
            Of these samples: feet that carry load are expected to stand.
        """
        fit = np.ones(len(samples), dtype=np.bool_)
        known = finite_samples(self.robot, samples, configuration(self.robot, samples))
        known &= np.isfinite(motion.velocity).all(axis=(1, 2))
        if not motion.loaded[known].any():
            return samples, fit
        feet = _Feet(samples.select(known), motion.select(known))
        if not self._learned and not self._begin(feet):
            return samples, fit
        newest = float(samples.time[-1])
        keep = float(np.exp(-(newest - self._newest) / _MEMORY))
        self._newest = newest
        corrected, covariance = self._corrected(feet, keep)
        few = slice(None, None, max(1, len(corrected) // _JUDGED_BY))
        squares = [self._squares(each.select(few)) for each in (feet.samples, corrected)]
        self._unexplained = keep * self._unexplained + squares
        if self._unexplained[1] > _CLEARLY * self._unexplained[0]:
            return samples, fit
        force = self._torque @ covariance @ self._torque.T
        fit[known] = self._worth(np.trace(force, axis1=1, axis2=2))
        twist, acceleration = np.array(samples.base_twist), np.array(samples.base_acceleration)
        twist[known] = corrected.base_twist
        acceleration[known] = corrected.base_acceleration
        return replace(samples, base_twist=twist, base_acceleration=acceleration), fit

    def _begin(self, feet: _Feet) -> bool:
        """Gather the first samples; learn from them and return true once they are enough."""
        self._first = feet if self._first is None else self._first.joined(feet)
        if len(self._first.samples) < _ENOUGH:
            return False
        self._corrected(self._first, None)
        self._first, self._learned = None, True
        return True

    def _corrected(self, feet: _Feet, keep: float | None) -> tuple[Samples, FloatArray]:
        """Return samples with the base corrected, and its acceleration's covariance (n, 6, 6).

        Learn from these samples alone where `keep` is None.
        """
        samples, motion = feet
        q, v, a = configuration(self.robot, samples)
        maps = _maps(q, motion.position + self._kinematics.reach)
        if keep is None:
            self._velocity.learn(maps, motion.velocity, motion.loaded)
        share = 0.0 if keep is None else keep
        found = self._velocity.estimate(maps, motion.velocity, motion.loaded, share)
        v = v - np.pad(found.error, ((0, 0), (0, v.shape[1] - BASE)))
        moved = self._foot_accelerations(q, v, a)
        if keep is None:
            self._acceleration.learn(maps, moved, motion.loaded)
        found = self._acceleration.estimate(maps, moved, motion.loaded, share)
        corrected = replace(
            samples, base_twist=v[:, :BASE], base_acceleration=a[:, :BASE] - found.error
        )
        return corrected, found.covariance

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

    def _foot_accelerations(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Return accelerations (n, nc, 3) [m/s²] where feet touch the ground, in the world."""
        model, data, frames = self.robot.model, self._data, self._kinematics.frames
        moved = np.empty((len(q), len(frames), 6, 1))
        for i in range(len(q)):
            pin.forwardKinematics(model, data, q[i], v[i], a[i])
            for c, (joint, placement) in enumerate(frames):
                moved[i, c, :, 0] = pin.getFrameClassicalAcceleration(
                    model, data, joint, placement, pin.LOCAL_WORLD_ALIGNED
                ).vector
        return np.asarray(self._kinematics.at_ground(moved)[:, :, :3, 0])


def _maps(q: FloatArray, points: FloatArray) -> FloatArray:
    """Return the maps (n, nc, 3, 6) from the base's twist to points (n, nc, 3) in the world."""
    turn = normalised(q[:, 3:7])
    rows = [rotate_into_body(turn, np.broadcast_to(axis, (len(q), 3))) for axis in np.eye(3)]
    R = np.stack(rows, axis=1)
    x, y, z = np.moveaxis(points - q[:, None, :3], -1, 0)
    zero = np.zeros_like(x)
    turned = np.stack([zero, z, -y, -z, zero, x, y, -x, zero], axis=-1)
    lever = turned.reshape(*x.shape, 3, 3) @ R[:, None]
    return np.concatenate([np.broadcast_to(R[:, None], lever.shape), lever], axis=-1)
