# SPDX-License-Identifier: Apache-2.0
"""How likely each scale of a joint's torque is, with masses averaged out.

Action equals reaction: the masses that turn one joint load the joints before it, and a description
that is right for all other joints is hardly wrong for one. A torque with another sign or unit
stands out against both, although it would fit a model of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import ParameterError
from sysid_core.estimation.gaussian import prior_covariance
from sysid_core.estimation.problem import Problem
from sysid_core.estimation.setting import Setting
from sysid_core.parameters import INERTIAL_TERMS

__all__ = ["ScaleEvidence", "ScalePosterior"]

_TRUST = (1.0, 0.4, 0.15)
"""Accuracies of the description that are compared, as shares of the stated standard deviation:
how well its masses fit the other joints says how well they may be expected to fit this one."""

_ROTOR = 0.05
"""Share of a joint's usual torque that a rotor may take that the description leaves out [-]."""

_LEVER = 0.01
"""Distance [m] by which any centre of mass may be off: cables and covers are in no description,
which hardly counts for an upper arm and much for a wrist."""

_NEAR = 6.0
"""Log-likelihood below the likeliest scale's within which the true one is as good as certain."""

_FLAT = 1e-12
"""Relative eigenvalue below which a direction is as good as not seen [-]."""

_GAINS = np.concatenate([-np.geomspace(50.0, 0.02, 71), [0.0], np.geomspace(0.02, 50.0, 71)])
"""Scales that are compared; neighbours differ by 12 %, less than what is tolerated."""


class _View(NamedTuple):
    """One prior of the base parameters: N(mean, precision⁻¹); `size` is ½ log det precision."""

    precision: FloatArray
    size: float


class ScalePosterior(NamedTuple):
    """What all joints say together of one joint's torque at the likeliest scale."""

    likelihood: FloatArray  # (m,) logarithm of the evidence at each of `_GAINS`
    others: FloatArray  # (b,) base parameters that all other joints show
    mean: FloatArray  # (b,) base parameters at the likeliest scale
    plain: FloatArray  # (b,) at a scale of one
    # root, turned, known: (b, b), (b, s), (s,): R, Q and d of the plain one's covariance ``R⁻ᵀ (I
    # + Q diag(d) Qᵀ)⁻¹ R⁻¹``.
    root: FloatArray
    turned: FloatArray
    known: FloatArray

    @property
    def best(self) -> float:
        """The likeliest scale."""
        return float(_GAINS[np.argmax(self.likelihood)])

    @property
    def range(self) -> tuple[float, float]:
        """Scales that are as good as certain to hold the true one between them."""
        near = _GAINS[self.likelihood >= self.likelihood.max() - _NEAR]
        return float(near.min()), float(near.max())

    def outside(self, least: float, most: float) -> float:
        """By how much a scale outside of a range is likelier than any in it."""
        those = np.clip(_GAINS, least, most) == _GAINS
        return float(self.likelihood[~those].max() - self.likelihood[those].max())

    def deviation(self, direction: FloatArray) -> float:
        """Return the standard deviation of a combination (b,) of the plain parameters."""
        z, _ = lapack.dtrtrs(self.root, direction, lower=1)
        share = self.known / (1.0 + self.known)
        return float(max(z @ z - share @ (self.turned.T @ z) ** 2, 0.0) ** 0.5)


class ScaleEvidence:
    """Compares scales g of one joint's torque by the evidence of all rows.

    The bodies' parameters are averaged out. Their prior is the description's, as wide as the data
    make likely, with or without a tool, plus rotors that a description may leave out.

    Parameters
    ----------
    problem : Problem
        With an anchor; supplies everything but the data.
    tool : (b, b)
        Covariance of what a tool that nobody told of adds to the base parameters.
    """

    def __init__(self, problem: Problem, tool: FloatArray) -> None:
        anchor, layout, base = problem.anchor, problem.layout, problem.base
        if anchor is None:
            raise ParameterError("torques are judged against an anchor; the problem has none")
        setting = Setting(problem, 0.0)
        c, divergence = setting.coordinates, setting.divergence
        self._mean = c.base_vector(c.mapping @ divergence.mean)
        covariance, inertial = prior_covariance(divergence), len(divergence.bodies)
        inertial *= len(INERTIAL_TERMS)
        bodies, own = np.split(base.mapping[:, c.free], [inertial], axis=1)
        count = np.maximum(anchor.count, 1e-300)
        self.usual = np.sqrt(anchor.square / count)  # (G,) [N·m] usual torque of each group
        rest = own @ covariance[inertial:, inertial:] @ own.T + self._rotors(problem, anchor)
        for phi, place in zip(
            layout.inertias(problem.prior.mean), map(layout.body, layout.bodies), strict=True
        ):
            shifted = _LEVER * phi[0] * base.mapping[:, place][:, 1:4]
            rest += shifted @ shifted.T
        wide = bodies @ covariance[:inertial, :inertial] @ bodies.T
        self._views = [
            _view(trust**2 * wide + more) for trust in _TRUST for more in (rest, rest + tool)
        ]

    def _rotors(self, problem: Problem, anchor: Statistics) -> FloatArray:
        """Return the covariance (b, b) of rotors that nobody told of."""
        layout, mapping = problem.layout, problem.base.mapping
        joints = [layout.joints.index(name) for name in problem.groups if name in layout.joints]
        rotors = mapping[:, np.arange(layout.size)[layout.term("armature")][joints]]
        moved = np.einsum("bg,gbc,cg->g", rotors, anchor.gram[: len(joints)], rotors)
        moved = np.sqrt(moved / np.maximum(anchor.count[: len(joints)], 1e-300))
        known = moved > 0.0
        size = _ROTOR * self.usual[: len(joints)][known] / moved[known]
        scaled: FloatArray = rotors[:, known] * size
        return scaled @ scaled.T

    def missed_elsewhere(self, statistics: Statistics, joint: int) -> float:
        """Return the torque [N·m] that the description misses at the other joints."""
        missed = statistics.residual_square(self._mean) / np.maximum(statistics.count, 1.0)
        return float(np.sqrt(max(missed.sum() - missed[joint], 0.0)))

    def posterior(self, data: Statistics, weights: FloatArray, joint: int) -> ScalePosterior:
        """Compare scales of one joint's torque, whatever the description's accuracy."""
        others = weights * (np.arange(len(weights)) != joint)
        rest = np.tensordot(others, data.gram, axes=1)
        gap = others @ data.moment - rest @ self._mean
        own = _Own.of(data, joint, float(weights[joint]))
        missed = float(others @ data.residual_square(self._mean))
        found = [self._with(view, rest, gap, own) for view in self._views]
        likelihood = np.logaddexp.reduce([one.likelihood for one in found], axis=0) - 0.5 * missed
        best = max(found, key=lambda one: float(one.likelihood.max()))
        return best.posterior(self._mean, likelihood)

    def _with(self, view: _View, rest: FloatArray, gap: FloatArray, own: _Own) -> _Compared:
        """Compare scales at one accuracy: evidence of y = g A β.

        The others' information ``R Rᵀ`` grows by g² times the joint's own, whose range is small:
        ``R⁻¹ C`` has the singular values √d there, so that no scale needs a solve of its own.
        """
        R, failed = lapack.dpotrf((view.precision + rest).T, lower=1, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError("the information on a torque's scale is singular")
        at_mean = own.gram_root.T @ self._mean
        columns = np.column_stack([gap, own.moment, own.gram_root @ at_mean, own.gram_root])
        solved, _ = lapack.dtrtrs(R, columns, lower=1)
        x, M = solved[:, :3], solved[:, 3:]
        # not the eigenvalues of MᵀM, whose rounding would hide what little the joint alone shows
        Q, singular, _ = np.linalg.svd(M, full_matrices=False)
        d = singular**2
        t0, t1, t2 = (Q.T @ x).T
        g = _GAINS[:, None]
        turned, spread = t0 + g * t1 - g**2 * t2, 1.0 / (1.0 + g**2 * d)
        missed = own.square - 2.0 * _GAINS * (own.moment @ self._mean)
        missed += _GAINS**2 * (at_mean @ at_mean)
        explained = x[:, 0] @ x[:, 0] - t0 @ t0 + (turned**2 * spread).sum(axis=1)
        likelihood = -0.5 * (missed - explained) + view.size - np.log(np.diag(R)).sum()
        likelihood += 0.5 * np.log(spread).sum(axis=1)
        return _Compared(likelihood, np.asarray(R), x, Q, d)


class _Compared(NamedTuple):
    """Scales at one accuracy of the description; see `ScaleEvidence._with`."""

    likelihood: FloatArray  # (m,)
    root: FloatArray  # (b, b): R
    solved: FloatArray  # (b, 3) R⁻¹ times what the data add at the powers g⁰, g¹, −g² of a scale
    turned: FloatArray  # (b, s): Q
    known: FloatArray  # (s,): d

    def posterior(self, center: FloatArray, likelihood: FloatArray) -> ScalePosterior:
        """Return the posterior of this accuracy, about the prior's mean (b,)."""

        def mean(scale: float) -> FloatArray:
            z = self.solved @ np.array([1.0, scale, -(scale**2)])
            share = 1.0 / (1.0 + scale**2 * self.known)
            z += self.turned @ ((share - 1.0) * (self.turned.T @ z))
            back, _ = lapack.dtrtrs(self.root, z, lower=1, trans=1)
            return np.asarray(center + back)

        best = mean(float(_GAINS[np.argmax(self.likelihood)]))
        return ScalePosterior(
            likelihood, mean(0.0), best, mean(1.0), self.root, self.turned, self.known
        )


class _Own(NamedTuple):
    """A joint's own rows, weighted: a root C (b, s) of their gram C Cᵀ, moment and square."""

    gram_root: FloatArray
    moment: FloatArray
    square: float

    @staticmethod
    def of(data: Statistics, joint: int, weight: float) -> _Own:
        gram = data.gram[joint]
        seen = np.flatnonzero(np.diagonal(gram) > 0.0)
        size = np.sqrt(np.diagonal(gram)[seen])
        values, vectors = np.linalg.eigh(gram[np.ix_(seen, seen)] / size / size[:, None])
        kept = values > _FLAT * values.max(initial=0.0)
        root = np.zeros((len(gram), int(kept.sum())))
        root[seen] = weight**0.5 * size[:, None] * vectors[:, kept] * np.sqrt(values[kept])
        return _Own(root, weight * data.moment[joint], weight * float(data.square[joint]))


def _view(covariance: FloatArray) -> _View:
    """Return the prior of a covariance (b, b) that may be singular."""
    variance = np.diagonal(covariance)
    size = np.sqrt(np.where(variance > 0.0, variance, 1.0))
    values, vectors = np.linalg.eigh(covariance / size / size[:, None])
    values = np.maximum(values, _FLAT * values[-1])
    scaled = vectors / np.sqrt(values) / size[:, None]
    half = -0.5 * float(np.log(values).sum()) - float(np.log(size).sum())
    return _View(scaled @ scaled.T, half)
