# SPDX-License-Identifier: Apache-2.0
"""Noise of odometry and of feet that should stand, and what both say of the base together.

Neither noise is known beforehand, and feet also slip, land and lift off. So the variances and the
share of contacts that stand are learned by expectation maximisation (Dempster, Laird & Rubin
1977), over a recording at once or live as it goes on (Cappé & Moulines 2009).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.contact_kinematics import BASE

__all__ = ["BaseEstimate", "BaseNoise", "NoiseLearner"]

_ROUNDS = 4  # Steps in which feet that do not stand are told from those that do
_ITERATIONS = 30
_SETTLED = 3e-3  # Relative change of the variances at which iterations end
_LEARNED_FROM = 1000  # Samples that variances are learned from: more would not change them
_APART = 4.0
"""Least ratio of the variances of moving and standing feet, which else would change places."""
_LEAST = 1e-12  # Least variance, of exact data
_ROUNDING = 1e-12  # Share of what feet tell that rounding takes
_RIGID = 1e-6
"""Least variance of standing feet, as a share of all feet's: none is stiller by a thousand."""


class BaseNoise(NamedTuple):
    """Variances of velocities [m²/s², rad²/s²] or of accelerations [m²/s⁴, rad²/s⁴]."""

    # standing, moving: of a foot that stands, and of one in contact that does not.
    standing: float
    moving: float
    share: float  # [-] of contacts that stand
    # linear, angular: of the odometry, on each axis.
    linear: float
    angular: float

    @staticmethod
    def first(feet: FloatArray, active: BoolArray) -> BaseNoise:
        """Return a guess: half of what is seen of the feet, a quarter of them hardly moves."""
        square = np.sum(feet[active] ** 2, axis=1) / 3.0
        mean = max(float(square.mean()), _LEAST)
        standing = max(float(np.quantile(square, 0.25)), _LEAST)
        return BaseNoise(standing, _APART * mean, 0.7, 0.5 * mean, 0.5 * mean)

    @staticmethod
    def of(sums: FloatArray) -> BaseNoise:
        """Return the most likely variances for the sums (7,) of `_estimated`."""
        standing, n_standing, moving, n_moving, linear, angular, n = sums
        usual = (standing + moving) / max(3.0 * (n_standing + n_moving), _LEAST)
        still = max(standing / max(3.0 * n_standing, _LEAST), _RIGID * usual) + _LEAST
        share = n_standing / max(n_standing + n_moving, _LEAST)
        return BaseNoise(
            still,
            max(moving / max(3.0 * n_moving, _LEAST), _APART * still),
            float(np.clip(share, 0.01, 0.99)),
            linear / max(3.0 * n, _LEAST) + _LEAST,
            angular / max(3.0 * n, _LEAST) + _LEAST,
        )


class BaseEstimate(NamedTuple):
    """Error of the odometry (n, 6), its covariance (n, 6, 6), and sums for `BaseNoise.of`."""

    error: FloatArray
    covariance: FloatArray
    sums: FloatArray


def _estimated(
    maps: FloatArray, feet: FloatArray, active: BoolArray, noise: BaseNoise
) -> BaseEstimate:
    """Return the odometry's error that explains how feet move which should stand.

    The maps (n, nc, 3, 6) lead from the base's motion to the feet's, which (n, nc, 3) is by
    odometry and joints.
    """
    prior = np.repeat([1.0 / noise.linear, 1.0 / noise.angular], 3)
    stands = np.full(active.shape, noise.share)
    # the step from one kind to the other grows sharp: the worst foot goes first, not the sample
    for still in np.geomspace(noise.moving, noise.standing, _ROUNDS + 1)[1:]:
        weight = active * (stands / still + (1.0 - stands) / noise.moving)
        A = (maps * np.sqrt(weight)[:, :, None, None]).reshape(len(maps), -1, BASE)
        y = (feet * np.sqrt(weight)[:, :, None]).reshape(len(maps), -1, 1)
        AT = np.swapaxes(A, 1, 2)
        information = AT @ A
        # odometry that tells next to nothing still tells more than rounding does
        size = np.trace(information, axis1=1, axis2=2)[:, None, None]
        covariance = np.linalg.inv(information + np.diag(prior) + _ROUNDING * size * np.eye(BASE))
        error = (covariance @ (AT @ y))[:, :, 0]
        left = feet - (maps @ error[:, None, :, None])[..., 0]
        spread = np.sum((maps @ covariance[:, None]) * maps, axis=(2, 3))
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
    return BaseEstimate(error, covariance, sums)


class NoiseLearner:
    """Noise of one derivative of the motion, as learned so far."""

    def __init__(self) -> None:
        self._sums = np.zeros(7)

    @property
    def known(self) -> bool:
        """Whether anything has been learned."""
        return bool(self._sums.any())

    def _learn(self, maps: FloatArray, feet: FloatArray, active: BoolArray) -> None:
        """Learn from the first samples until the variances settle."""
        part = slice(None, None, max(1, len(feet) // _LEARNED_FROM))
        noise = BaseNoise.first(feet, active)
        for _ in range(_ITERATIONS):
            self._sums = _estimated(maps[part], feet[part], active[part], noise).sums
            before, noise = noise, BaseNoise.of(self._sums)
            if np.allclose(noise, before, rtol=_SETTLED, atol=0.0):
                break

    def estimate(
        self, maps: FloatArray, feet: FloatArray, active: BoolArray, keep: float
    ) -> BaseEstimate:
        """Return the odometry's errors; learn on, what is known counting for a share `keep`."""
        if not self.known:
            self._learn(maps, feet, active)
        found = _estimated(maps, feet, active, BaseNoise.of(self._sums))
        self._sums = keep * self._sums + found.sums
        return found
