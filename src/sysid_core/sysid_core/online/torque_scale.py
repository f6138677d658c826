# SPDX-License-Identifier: Apache-2.0
"""How likely each scale of a joint's torque is, with masses averaged out.

Action equals reaction: the masses that turn one joint load the joints before it, and a description
that is right for all other joints is hardly wrong for one. A torque with another sign or unit
stands out against both, although it would fit a model of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, lapack

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import ParameterError
from sysid_core.estimation.gaussian import prior_covariance
from sysid_core.estimation.noise import weighted_sums
from sysid_core.estimation.problem import Problem
from sysid_core.estimation.setting import Setting
from sysid_core.parameters import INERTIAL_TERMS

__all__ = ["TOLERANCE", "ScaleEvidence", "ScaleInformation", "ScalePosterior", "inverse"]

_TRUST = (1.0, 0.4, 0.15)
"""Accuracies of the description that are compared, as shares of the stated standard deviation:
how well its masses fit the other joints says how well they may be expected to fit this one."""

_UNTOLD = {"armature": 0.05, "coulomb": 1.0, "viscous": 1.0}
"""Shares of a joint's usual torque that a rotor may take that the description leaves out, and
friction, whatever is described: many a description holds a placeholder [-]."""

_LEVER = 0.01
"""Distance [m] by which any centre of mass may be off: cables and covers are in no description,
which hardly counts for an upper arm and much for a wrist."""

_NEAR = 6.0
"""Log-likelihood below the likeliest scale's within which the true one is as good as certain."""

_FLAT = 1e-12
"""Relative eigenvalue below which a direction is as good as not seen [-]."""

TOLERANCE = 1.25
"""Factor by which a torque may be off its scale: torque constants are known to some 10 %, while
other units or a gear that was forgotten are off by more [-]."""

_SIZES = TOLERANCE ** (0.5 * np.arange(-35, 36))
_GAINS = np.concatenate([-_SIZES[::-1], [0.0], _SIZES])
"""Scales that are compared, from 0.02 to 50 times one. Neighbours differ by 12 %, less than what
is tolerated, and the limits of that are two of them: they count as tolerable."""


class ScalePosterior(NamedTuple):
    """What all joints say together of one joint's torque at the likeliest scale."""

    likelihood: FloatArray  # (m,) logarithm of the evidence at each of `_GAINS`
    others: FloatArray  # (b,) base parameters that all other joints show
    mean: FloatArray  # (b,) base parameters at the likeliest scale
    plain: FloatArray  # (b,) at a scale of one
    missed: float  # [N·m] torque that the description misses at the other joints
    information: ScaleInformation

    @property
    def best(self) -> float:
        """The likeliest scale."""
        return float(_GAINS[np.argmax(self.likelihood)])

    @property
    def range(self) -> tuple[float, float]:
        """Scales that are as good as certain to hold the true one between them."""
        near = _GAINS[self.likelihood >= self.likelihood.max() - _NEAR]
        return float(near.min()), float(near.max())

    def residual_square(self, data: Statistics, joint: int) -> FloatArray:
        """Return Σe² (G,) [N²·m²] of all joints' torques at the likeliest scale of one."""
        found = data.residual_square(self.mean)
        found[joint] = self.own_square(data, joint)
        return found

    def own_square(self, data: Statistics, joint: int) -> float:
        """Return Σe² [N²·m²] of that joint's torque: ``y − g A β``."""
        return float(data.residual_square(self.best * self.mean)[joint])

    def outside(self, least: float, most: float) -> float:
        """By how much a scale outside of a range is likelier than any in it."""
        those = np.clip(_GAINS, least, most) == _GAINS
        return float(self.likelihood[~those].max() - self.likelihood[those].max())


class ScaleInformation(NamedTuple):
    """What other joints and the joint's own rows tell of the parameters at a scale g.

    In an order of the parameters it is ``R (I + g² Q diag(d) Qᵀ) Rᵀ``, where Q is zero but in its
    last k rows: with what the joint shows last, no scale needs a solve of its own.
    """

    order: IndexArray  # (b,)
    root: FloatArray  # (b, b): R, a lower triangle
    turned: FloatArray  # (k, s): the last rows of Q
    known: FloatArray  # (s,): d

    def mean(self, solved: FloatArray, scale: float) -> FloatArray:
        """Return the mean (b,) at a scale, less the prior's.

        `solved` (b, 3) are R⁻¹ times what the data add at the powers g⁰, g¹ and −g² of a scale.
        """
        z = solved @ np.array([1.0, scale, -(scale**2)])
        own, share = z[len(z) - len(self.turned) :], 1.0 / (1.0 + scale**2 * self.known)
        own += self.turned @ ((share - 1.0) * (self.turned.T @ own))
        mean = np.empty_like(z)
        mean[self.order], _ = lapack.dtrtrs(self.root, z, lower=1, trans=1)
        return mean

    def deviation(self, direction: FloatArray) -> float:
        """Return the standard deviation of a combination (b,) of parameters at a scale of 1."""
        z = _solved(self.root, direction[self.order])
        along = self.turned.T @ z[len(z) - len(self.turned) :]
        share = self.known / (1.0 + self.known)
        return float(max(z @ z - share @ along**2, 0.0) ** 0.5)


class ScaleEvidence:
    """Compares scales g of one joint's torque by the evidence of all rows.

    The bodies' parameters are averaged out. Their prior is the description's, as wide as the data
    make likely, with or without a tool, plus rotors that a description may leave out, and any
    friction.

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
        rest = own @ covariance[inertial:, inertial:] @ own.T + self._untold(problem, anchor)
        for phi, place in zip(
            layout.inertias(problem.prior.mean), map(layout.body, layout.bodies), strict=True
        ):
            shifted = _LEVER * phi[0] * base.mapping[:, place][:, 1:4]
            rest += shifted @ shifted.T
        wide = bodies @ covariance[:inertial, :inertial] @ bodies.T
        views = [
            inverse(trust**2 * wide + more) for trust in _TRUST for more in (rest, rest + tool)
        ]
        # of v accuracies, without and with a tool: precisions (b, b), ½ log det of them (v, 1)
        self._precision = [precision for precision, _ in views]
        self._size = np.array([[size] for _, size in views])
        self._friction = base.columns >= len(INERTIAL_TERMS) * len(layout.bodies)

    def _untold(self, problem: Problem, anchor: Statistics) -> FloatArray:
        """Return the covariance (b, b) of rotors and friction that nobody told of."""
        layout, mapping = problem.layout, problem.base.mapping
        joints = [layout.joints.index(name) for name in problem.groups if name in layout.joints]
        gram, count = anchor.gram[: len(joints)], anchor.count[: len(joints)]
        found = np.zeros((len(mapping), len(mapping)))
        for term, share in _UNTOLD.items():
            columns = mapping[:, np.arange(layout.size)[layout.term(term)][joints]]
            moved = np.einsum("bg,gbc,cg->g", columns, gram, columns)
            moved = np.sqrt(moved / np.maximum(count, 1e-300))
            known = moved > 0.0
            scaled = columns[:, known] * (share * self.usual[: len(joints)][known] / moved[known])
            found += scaled @ scaled.T
        return found

    def posterior(self, data: Statistics, weights: FloatArray, joint: int) -> ScalePosterior:
        """Compare scales of one joint's torque, whatever the description's accuracy.

        Evidence of y = g A β: the others' information ``R Rᵀ`` grows by g² times the joint's own,
        C Cᵀ, whose range is small: ``R⁻¹ C`` has the singular values √d there.
        """
        others = weights * (np.arange(len(weights)) != joint)
        rest, moment = weighted_sums(data, others)
        own = _Own.of(data, joint, float(weights[joint]))
        order = np.concatenate([np.setdiff1d(np.arange(len(rest)), own.seen), own.seen])
        first, at_mean = len(order) - len(own.seen), own.root.T @ self._mean[own.seen]
        turn = order[:, None] * len(order) + order
        R = [_root((precision + rest).take(turn)) for precision in self._precision]
        # x: R⁻¹ times what the data add at the powers g⁰, g¹ and −g² of a scale
        x = np.zeros((len(R), len(order), 3))
        gap = (moment - rest @ self._mean)[order]
        x[:, :, 0] = [_solved(root, gap) for root in R]
        columns = np.column_stack([own.moment, own.root @ at_mean, own.root])
        end = np.array([_solved(root[first:, first:], columns) for root in R])
        x[:, first:, 1:] = end[:, :, :2]
        # not the eigenvalues of MᵀM, whose rounding would hide what little the joint alone shows
        Q, singular, _ = np.linalg.svd(end[:, :, 2:], full_matrices=False)
        d, residual = singular**2, data.residual_square(self._mean)
        likelihood = np.array(
            [_gained(y.T @ q, e) for y, q, e in zip(x[:, first:], Q, d, strict=True)]
        )
        likelihood += self._size - [[np.log(np.diagonal(root)).sum()] for root in R]
        likelihood += 0.5 * ((x[:, :, 0] ** 2).sum(axis=1)[:, None] - others @ residual)
        missed = own.square - 2.0 * _GAINS * (own.moment @ self._mean[own.seen])
        likelihood -= 0.5 * (missed + _GAINS**2 * (at_mean @ at_mean))
        likelihood += self._unscaled(data, weights, joint)
        v = int(np.argmax(likelihood.max(axis=1)))
        best = float(_GAINS[np.argmax(likelihood[v])])
        information = ScaleInformation(order, R[v], Q[v], d[v])
        none, most, plain = (self._mean + information.mean(x[v], g) for g in (0.0, best, 1.0))
        elsewhere = float((residual / np.maximum(data.count, 1.0))[others > 0.0].sum())
        both = np.logaddexp.reduce(likelihood, axis=0)
        return ScalePosterior(both, none, most, plain, elsewhere**0.5, information)

    def _unscaled(self, data: Statistics, weights: FloatArray, joint: int) -> FloatArray:
        """Return what is added to the log evidence (m,) since friction tells no scale.

        A friction that is less than was thought would be likelier, the smaller the scale: by its
        own prior, divided by the scale, the wider it is and the more terms it has. What is
        measured of friction has the same prior at any scale below one instead. Above, its own
        prior stays, which speaks for one.
        """
        own = np.flatnonzero(self._friction & (np.diagonal(data.gram[joint]) > 0.0))
        shown = weights[joint] * data.gram[joint][np.ix_(own, own)]
        known = eigh(shown, self._precision[0][np.ix_(own, own)], eigvals_only=True)
        scaled = np.log1p(_GAINS[:, None] ** 2 * np.maximum(known, 0.0)).sum(axis=1)
        plain = np.log1p(np.maximum(known, 0.0)).sum()
        return np.where(_GAINS == 0.0, 0.0, np.minimum(0.5 * (scaled - plain), 0.0))


def _root(information: FloatArray) -> FloatArray:
    """Return the lower triangle L of ``L Lᵀ`` (n, n), which is overwritten."""
    root, failed = lapack.dpotrf(information.T, lower=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("the information on a torque's scale is singular")
    return np.asarray(root)


def _solved(root: FloatArray, columns: FloatArray) -> FloatArray:
    """Return L⁻¹ times columns (n, …) for a lower triangle L (n, n)."""
    found, _ = lapack.dtrtrs(root, columns, lower=1)
    return np.asarray(found)


def _gained(turned: FloatArray, known: FloatArray) -> FloatArray:
    """Return what a joint's own rows add to the log evidence (m,) of each of `_GAINS`.

    Of what the data add at the powers g⁰, g¹ and −g² of a scale, (3, s), along directions that
    the joint shows with the information g² d, d (s,).
    """
    g, (t0, t1, t2) = _GAINS[:, None], turned
    spread = 1.0 / (1.0 + g**2 * known)
    found = (t0 + g * t1 - g**2 * t2) ** 2 * spread + np.log(spread)
    return 0.5 * (found.sum(axis=1) - t0 @ t0)


class _Own(NamedTuple):
    """A joint's own rows, weighted, on the columns (k,) where they are not zero."""

    seen: IndexArray
    root: FloatArray  # (k, s): C of their gram C Cᵀ
    moment: FloatArray  # (k,)
    square: float

    @staticmethod
    def of(data: Statistics, joint: int, weight: float) -> _Own:
        gram = data.gram[joint]
        seen = np.flatnonzero(np.diagonal(gram) > 0.0)
        size = np.sqrt(np.diagonal(gram)[seen])
        values, vectors = np.linalg.eigh(gram[np.ix_(seen, seen)] / size / size[:, None])
        kept = values > _FLAT * values.max(initial=0.0)
        root = weight**0.5 * size[:, None] * vectors[:, kept] * np.sqrt(values[kept])
        return _Own(seen, root, weight * data.moment[joint][seen], weight * data.square[joint])


def inverse(covariance: FloatArray) -> tuple[FloatArray, float]:
    """Return a covariance's inverse (b, b), even if it is singular, and ½ log det of that."""
    variance = np.diagonal(covariance)
    size = np.sqrt(np.where(variance > 0.0, variance, 1.0))
    values, vectors = np.linalg.eigh(covariance / size / size[:, None])
    values = np.maximum(values, _FLAT * values[-1])
    scaled = vectors / np.sqrt(values) / size[:, None]
    half = -0.5 * float(np.log(values).sum()) - float(np.log(size).sum())
    return scaled @ scaled.T, half
