# SPDX-License-Identifier: Apache-2.0
"""How likely each scale of a joint's torque is, with masses averaged out.

Action equals reaction: the masses that turn one joint load the joints before it, and a description
that is right for all other joints is hardly wrong for one. A torque with another sign or unit
stands out against both, although it would fit a model of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import ParameterError
from sysid_core.estimation.gaussian import prior_covariance
from sysid_core.estimation.problem import Problem
from sysid_core.estimation.setting import Setting
from sysid_core.parameters import INERTIAL_TERMS

__all__ = ["ScaleEvidence", "ScalePosterior", "Whitened"]

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

_GAINS = np.concatenate([-np.geomspace(50.0, 0.02, 71), [0.0], np.geomspace(0.02, 50.0, 71)])
"""Scales that are compared; neighbours differ by 12 %, less than what is tolerated."""


class Whitened(NamedTuple):
    """Statistics in coordinates z, β = μ + L z, in which the prior is white; weighted rows.

    Attributes
    ----------
    root : (b, b)
        L.
    gram, moment, known : (G, b, b), (G, b), (G, b)
        LᵀGL, Lᵀm and LᵀGμ.
    """

    root: FloatArray
    gram: FloatArray
    moment: FloatArray
    known: FloatArray


class ScalePosterior(NamedTuple):
    """What all joints say together of one joint's torque at the likeliest scale.

    Attributes
    ----------
    likelihood : (m,)
        Logarithm of the evidence at each of `_GAINS`.
    others : (b,)
        Base parameters that all other joints show.
    mean : (b,)
        Base parameters at the likeliest scale.
    plain, root : (b,), (b, b)
        At a scale of one, and the root of their covariance.
    """

    likelihood: FloatArray
    others: FloatArray
    mean: FloatArray
    plain: FloatArray
    root: FloatArray

    @property
    def best(self) -> float:
        """The likeliest scale."""
        return float(_GAINS[np.argmax(self.likelihood)])

    @property
    def range(self) -> tuple[float, float]:
        """Scales that are as good as certain to hold the true one between them."""
        near = _GAINS[self.likelihood > self.likelihood.max() - _NEAR]
        return float(near.min()), float(near.max())

    def outside(self, least: float, most: float) -> float:
        """By how much a scale outside of a range is likelier than any in it."""
        those = np.clip(_GAINS, least, most) == _GAINS
        return float(self.likelihood[~those].max() - self.likelihood[those].max())


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

    Attributes
    ----------
    usual : (G,) [N·m]
        Usual torque of each group.
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
        self.usual = np.sqrt(anchor.square / count)
        rest = own @ covariance[inertial:, inertial:] @ own.T + self._rotors(problem, anchor)
        for phi, place in zip(
            layout.inertias(problem.prior.mean), map(layout.body, layout.bodies), strict=True
        ):
            shifted = _LEVER * phi[0] * base.mapping[:, place][:, 1:4]
            rest += shifted @ shifted.T
        wide = bodies @ covariance[:inertial, :inertial] @ bodies.T
        self._roots = [
            _root(trust**2 * wide + more) for trust in _TRUST for more in (rest, rest + tool)
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

    def views(self, data: Statistics) -> list[Whitened]:
        """Return weighted statistics in the coordinates of each prior."""
        gram = data.gram @ self._mean
        return [Whitened(L, L.T @ data.gram @ L, data.moment @ L, gram @ L) for L in self._roots]

    def missed_elsewhere(self, statistics: Statistics, joint: int) -> float:
        """Return the torque [N·m] that the description misses at the other joints."""
        missed = statistics.residual_square(self._mean) / np.maximum(statistics.count, 1.0)
        return float(np.sqrt(max(missed.sum() - missed[joint], 0.0)))

    def posterior(self, data: Statistics, views: list[Whitened], joint: int) -> ScalePosterior:
        """Compare scales of one joint's torque, whatever the description's accuracy."""
        found = [self._with(view, data, joint) for view in views]
        likelihood = np.logaddexp.reduce([one.likelihood for one in found], axis=0)
        best = max(found, key=lambda one: float(one.likelihood.max()))
        return best._replace(likelihood=likelihood)

    def _with(self, view: Whitened, data: Statistics, joint: int) -> ScalePosterior:
        """Compare scales at one accuracy: evidence of y = g A (μ + L z), z white."""
        rest = np.arange(len(data.count)) != joint
        R = np.linalg.cholesky(np.eye(len(view.root)) + view.gram[rest].sum(axis=0))
        half = solve_triangular(R, view.gram[joint], lower=True, check_finite=False)
        d, Q = np.linalg.eigh(solve_triangular(R, half.T, lower=True, check_finite=False))
        d = np.maximum(d, 0.0)
        moment = (view.moment - view.known)[rest].sum(axis=0)
        columns = np.stack([moment, view.moment[joint], view.known[joint]], axis=1)
        t0, t1, t2 = (Q.T @ solve_triangular(R, columns, lower=True, check_finite=False)).T
        g = _GAINS[:, None]
        turned, spread = t0 + g * t1 - g**2 * t2, 1.0 / (1.0 + g**2 * d)
        own, square = data.moment[joint] @ self._mean, self._mean @ data.gram[joint] @ self._mean
        missed = data.residual_square(self._mean)[rest].sum() + data.square[joint]
        missed = missed - 2.0 * _GAINS * own + _GAINS**2 * square
        likelihood = -0.5 * (missed - (turned**2 * spread).sum(axis=1))
        likelihood -= np.log(np.diag(R)).sum() - 0.5 * np.log(spread).sum(axis=1)
        i = int(np.argmax(likelihood))
        back = view.root @ solve_triangular(R, Q, lower=True, trans=1, check_finite=False)
        mean = self._mean + back @ (spread[i] * turned[i])
        others = self._mean + back @ t0
        plain = self._mean + back @ ((t0 + t1 - t2) / (1.0 + d))
        return ScalePosterior(likelihood, others, mean, plain, back / np.sqrt(1.0 + d))


def _root(covariance: FloatArray) -> FloatArray:
    """Return a root L, ``L Lᵀ`` the covariance, of one that may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
