# SPDX-License-Identifier: Apache-2.0
"""Whether each joint's measured torque can be one: its sign, its scale, noise, standstill.

Action equals reaction: the masses that turn one joint load the joints before it, and a description
that is right for all other joints is hardly wrong for one. A torque with another sign or unit
stands out against both, although it would fit a model of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import ParameterError
from sysid_core.estimation.gaussian import prior_covariance
from sysid_core.estimation.problem import Problem
from sysid_core.estimation.setting import Setting
from sysid_core.parameters import INERTIAL_TERMS

__all__ = ["TorqueChecks", "TorqueVerdict", "wrong_torques"]

_TRUST = (1.0, 0.4, 0.15)
"""Accuracies of the description that are compared, as shares of the stated standard deviation:
how well its masses fit the other joints says how well they may be expected to fit this one."""

_ROTOR = 0.05
"""Share of a joint's usual torque that a rotor may take that the description leaves out [-]."""

_LEVER = 0.01
"""Distance [m] by which any centre of mass may be off: cables and covers are in no description,
which hardly counts for an upper arm and much for a wrist."""

_FIT_ERROR = 0.02
"""Share of a torque that a model's error takes even where a joint's own model fits better [-]."""

_FRICTION_ERROR = 0.05
"""Share of dry friction that its least law misses over a motion, where a joint's own masses may
hide it: a fifth at low speed after Stribeck's curve, less at any other [-]."""

_LOOSE = 1e-6
"""Relative ridge that lets matrices of directions that nothing has shown be factorised [-]."""

_FEWEST = 5.0
"""Independent samples that a joint must have shown before it is judged."""

_TOLERANCE = 1.25
"""Factor by which a torque may be off its scale: torque constants are known to some 10 %, while
other units or a gear that was forgotten are off by more [-]."""

_GROSS = 1.5
"""Factor that no torque constant is off by: another unit or gear is more. While the data cannot
tell such a scale from a tolerable one, it is not known [-]."""

_SHOWN = -1.0
"""Log odds of a wrong scale, against a tolerable one, below which a first model is adopted."""

_DOUBTFUL = 2.0
"""The same for a motion that does not show the scale: seven to one."""

_NAMED = float(np.log(100.0))
"""Log odds from which a scale is called wrong: once in a hundred times it is not (Ville 1939)."""

_CERTAIN = 6.0
"""Log odds from which a model in use is refused."""

_LEAST_SHARE = 0.25
"""Share of its usual torque that masses must predict for a joint, before its scale is judged: less
drowns in what a sensor or a gear may do [-]."""

_STILL = 1e-4
"""Share of the usual torque below which a torque that does not vary is not measured [-]."""

_SCATTER = 0.8
"""Share of a torque's variance that no motion explains, from which on it is noise [-]."""

_LEAST_SCATTER = 0.1
"""Scatter below this share of the usual torque is no fault, whatever the motion explains [-]."""

_LEAST_FRICTION = 0.1
"""Share of a joint's torque that a friction with the wrong sign must reach to be believed: delays
between velocity and torque look like a little of it [-]."""

_DEVIATIONS = 5.0
"""Standard deviations by which friction must be negative."""

_GAINS = np.concatenate([-np.geomspace(50.0, 0.02, 71), [0.0], np.geomspace(0.02, 50.0, 71)])
"""Scales that are compared; neighbours differ by 12 %, less than what is tolerated."""


class TorqueVerdict(NamedTuple):
    """What was found of one joint's torque.

    Attributes
    ----------
    finding : Diagnostic or None
    weight : float
        Log odds of a wrong torque against a right one; inf where it is not one at all.
    """

    finding: Diagnostic | None
    weight: float = -np.inf


_FINE = TorqueVerdict(None)


def wrong_torques(
    verdicts: Mapping[int, TorqueVerdict], *, in_use: bool, early: bool = False
) -> tuple[Diagnostic, ...]:
    """Return what refuses an estimate.

    A wrong scale makes other joints look wrong, so only the likeliest is named, and none where a
    torque is no measurement at all.

    Parameters
    ----------
    in_use : bool
        Whether a model is, which only a certainty ends.
    early : bool
        Whether a scale that the data leave open may yet show.
    """
    least = _CERTAIN if in_use else _SHOWN if early else _DOUBTFUL
    found = [v for v in verdicts.values() if v.finding is not None and v.weight >= least]
    worst = max((verdict.weight for verdict in found), default=0.0)
    return tuple(v.finding for v in found if v.finding is not None and v.weight == worst)


class _Whitened(NamedTuple):
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


class _Posterior(NamedTuple):
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
        near = _GAINS[self.likelihood > self.likelihood.max() - _CERTAIN]
        return float(near.min()), float(near.max())

    def outside(self, least: float, most: float) -> float:
        """By how much a scale outside of a range is likelier than any in it."""
        those = np.clip(_GAINS, least, most) == _GAINS
        return float(self.likelihood[~those].max() - self.likelihood[those].max())


class TorqueChecks:
    """Judges the torques of joints from the statistics of their rows.

    The scale g of a joint's torque is judged by the evidence of all rows, with the bodies'
    parameters averaged out. Their prior is the description's, as wide as the data make likely,
    with or without a tool, plus rotors that a description may leave out.

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
        self._usual = np.sqrt(anchor.square / count)
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
        self._speed = _places(problem, "viscous")
        self._dry = _places(problem, "coulomb")
        self._constant = _places(problem, "offset")
        self._inertial = base.columns < len(INERTIAL_TERMS) * len(layout.bodies)
        self.groups = problem.groups

    def _rotors(self, problem: Problem, anchor: Statistics) -> FloatArray:
        """Return the covariance (b, b) of rotors that nobody told of."""
        layout, mapping = problem.layout, problem.base.mapping
        joints = [layout.joints.index(name) for name in problem.groups if name in layout.joints]
        rotors = mapping[:, np.arange(layout.size)[layout.term("armature")][joints]]
        moved = np.einsum("bg,gbc,cg->g", rotors, anchor.gram[: len(joints)], rotors)
        moved = np.sqrt(moved / np.maximum(anchor.count[: len(joints)], 1e-300))
        known = moved > 0.0
        size = _ROTOR * self._usual[: len(joints)][known] / moved[known]
        scaled: FloatArray = rotors[:, known] * size
        return scaled @ scaled.T

    def judge(
        self, statistics: Statistics, correlation: FloatArray, joints: Sequence[int]
    ) -> dict[int, TorqueVerdict]:
        """Judge the torques of some joints; `correlation` (G,) is the rows' colour."""
        if not joints:
            return {}
        errors = np.array([self._own_error(statistics, g) for g in range(len(self.groups))])
        weights = 1.0 / (np.maximum(errors, (_STILL * self._usual) ** 2) * correlation)
        data = Statistics(
            weights[:, None, None] * statistics.gram,
            weights[:, None] * statistics.moment,
            weights * statistics.square,
            weights * statistics.count,
        )
        gram = data.gram @ self._mean
        views = [_Whitened(L, L.T @ data.gram @ L, data.moment @ L, gram @ L) for L in self._roots]
        return {
            joint: self._judge(statistics, data, views, joint)
            if statistics.count[joint] >= _FEWEST * correlation[joint]
            else _FINE
            for joint in joints
        }

    def _own_error(self, statistics: Statistics, joint: int) -> float:
        """Return the mean square error [N²·m²] to expect of a joint's own model of any scale."""
        gram, count = statistics.gram[joint], float(statistics.count[joint])
        seen = np.flatnonzero(np.diagonal(gram) > 0.0)
        if count == 0.0 or not len(seen):
            return 0.0
        size = np.sqrt(np.diagonal(gram)[seen])
        block = gram[np.ix_(seen, seen)] / size / size[:, None] + _LOOSE * np.eye(len(size))
        moment = statistics.moment[joint][seen] / size
        own = np.linalg.solve(block, moment)
        rest = max(float(statistics.square[joint] - moment @ own), 0.0)
        dry = float(np.sum(own[seen == self._dry[joint]] ** 2))
        square = _FIT_ERROR**2 * float(statistics.square[joint]) + _FRICTION_ERROR**2 * dry
        return (rest + square) / count

    def _judge(
        self, statistics: Statistics, data: Statistics, views: list[_Whitened], joint: int
    ) -> TorqueVerdict:
        usual, count = float(self._usual[joint]), statistics.count[joint]
        constant = self._constant[joint]
        mean = statistics.moment[joint][constant] / count if constant >= 0 else 0.0
        size = float(statistics.square[joint]) / count
        variance = max(size - mean**2, 0.0)
        if variance < (_STILL * usual) ** 2:
            return _stuck(self.groups[joint], variance**0.5, _STILL * usual)
        found = self._posterior(data, views, joint)
        return self._verdict(found, statistics, joint, variance, size)

    def _posterior(self, data: Statistics, views: list[_Whitened], joint: int) -> _Posterior:
        """Compare scales of one joint's torque, whatever the description's accuracy."""
        found = [self._with(view, data, joint) for view in views]
        likelihood = np.logaddexp.reduce([one.likelihood for one in found], axis=0)
        best = max(found, key=lambda one: float(one.likelihood.max()))
        return best._replace(likelihood=likelihood)

    def _with(self, view: _Whitened, data: Statistics, joint: int) -> _Posterior:
        """Compare scales at one accuracy: evidence of y = g A (μ + L z), z white."""
        rest = np.arange(len(self.groups)) != joint
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
        return _Posterior(likelihood, others, mean, plain, back / np.sqrt(1.0 + d))

    def _verdict(
        self, found: _Posterior, statistics: Statistics, joint: int, variance: float, size: float
    ) -> TorqueVerdict:
        name, usual, g = self.groups[joint], float(self._usual[joint]), found.best
        count, gram = statistics.count[joint], statistics.gram[joint]
        rest = statistics.square[joint] - 2.0 * g * (statistics.moment[joint] @ found.mean)
        rest += g**2 * (found.mean @ gram @ found.mean)
        explained = 1.0 - max(float(rest), 0.0) / (variance * count)
        friction, std = self._friction(found, gram, joint, float(count))
        scatter = (max(1.0 - explained, 0.0) * variance) ** 0.5
        mute = found.outside(0.0, 0.0) < _DOUBTFUL
        if mute and explained < 1.0 - _SCATTER and scatter > _LEAST_SCATTER * usual:
            return _noise(name, scatter, explained)
        if friction < -max(_LEAST_FRICTION * size**0.5, _DEVIATIONS * std):
            return _driving(name, friction, std)
        rigid = np.where(self._inertial, found.others, 0.0)
        predicted = float(np.sqrt(max(rigid @ gram @ rigid, 0.0) / count))
        rigid = np.where(self._inertial, found.mean, 0.0)
        shown = max(float(rigid @ gram @ rigid), 0.0) * g**2
        # errors of accelerations lower a scale, at most by the share that they leave unexplained
        # (Frisch 1934: direct and reverse regression hold the true slope between them)
        least = shown / max(shown + max(float(rest), 0.0), 1e-300) / _TOLERANCE
        if predicted < _LEAST_SHARE * max(usual, size**0.5):
            return _FINE
        odds = found.outside(least, _TOLERANCE)
        if odds < 0.0:
            odds = found.outside(min(least, 1.0 / _GROSS), _GROSS)
        return _scaled(name, found, odds)

    def _friction(
        self, found: _Posterior, gram: FloatArray, joint: int, count: float
    ) -> tuple[float, float]:
        """Return the mean torque [N·m] of friction against the motion, and its deviation."""
        along = self._speed[joint]
        if along < 0:
            return 0.0, 1.0
        terms = [place for place in (along, self._dry[joint]) if place >= 0]
        power = gram[along, terms] / np.sqrt(max(gram[along, along] * count, 1e-300))
        return float(power @ found.plain[terms]), float(np.linalg.norm(power @ found.root[terms]))


def _root(covariance: FloatArray) -> FloatArray:
    """Return a root L, ``L Lᵀ`` the covariance, of one that may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _places(problem: Problem, term: str) -> list[int]:
    """Return the base parameter that each group's term is, −1 where it is none."""
    where = {int(column): i for i, column in enumerate(problem.base.columns)}
    start, joints = problem.layout.term(term).start, problem.layout.joints
    return [
        where.get(start + joints.index(name), -1) if name in joints else -1
        for name in problem.groups
    ]


def _stuck(name: str, size: float, threshold: float) -> TorqueVerdict:
    message = f"the torque varies by {size:.1e} N·m while the joint moves, below {threshold:.1e}"
    hint = "check that the driver publishes this joint's effort"
    return TorqueVerdict(Diagnostic("torque_stuck", message, subject=name, hint=hint), np.inf)


def _noise(name: str, scatter: float, explained: float) -> TorqueVerdict:
    message = (
        f"the motion explains {100.0 * max(explained, 0.0):.0f} % of the torque's variance, "
        f"below {100.0 * (1.0 - _SCATTER):.0f} %; {scatter:.2g} N·m are noise"
    )
    hint = "check the sensor, its cable and its joint's place in the message"
    return TorqueVerdict(Diagnostic("torque_noise", message, subject=name, hint=hint), np.inf)


def _driving(name: str, friction: float, std: float) -> TorqueVerdict:
    message = f"friction would drive the joint with {-friction:.2g} ± {std:.1g} N·m, above 0"
    hint = "turn the sign of this joint's effort gain"
    finding = Diagnostic("torque_sign", message, subject=name, hint=hint)
    return TorqueVerdict(finding, 0.5 * (friction / std) ** 2)


def _scaled(name: str, found: _Posterior, odds: float) -> TorqueVerdict:
    low, high = found.range
    if odds < _NAMED:
        message = (
            f"the torque is {low:.2g} to {high:.2g} times what masses and the other joints say, "
            f"not yet known to {1.0 / _TOLERANCE:.2g} to {_TOLERANCE:.2g}"
        )
        hint = "move this joint and its neighbours on, more widely"
        return TorqueVerdict(Diagnostic("scale_unknown", message, subject=name, hint=hint), odds)
    kind, cure = "torque_scale", f"divide this joint's effort gain by {found.best:.2g}"
    if found.best < 0.0:
        kind, cure = "torque_sign", "turn the sign of this joint's effort gain"
    message = (
        f"the torque is {found.best:.2g} ({low:.2g} to {high:.2g}) times what masses and the "
        f"other joints say, outside {1.0 / _TOLERANCE:.2g} to {_TOLERANCE:.2g}"
    )
    hint = f"check its unit, then {cure}"
    return TorqueVerdict(Diagnostic(kind, message, subject=name, hint=hint), odds)
