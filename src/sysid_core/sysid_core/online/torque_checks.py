# SPDX-License-Identifier: Apache-2.0
"""Whether each joint's measured torque can be one: its sign, its scale, noise, standstill.

Action equals reaction: the masses that turn one joint load the joints before it. What all other
joints say of the common masses predicts a joint's torque up to its friction, so that a torque with
another sign or another unit stands out, although it would fit a model of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import ParameterError
from sysid_core.estimation.gaussian import prior_covariance
from sysid_core.estimation.noise import weighted_sums
from sysid_core.estimation.problem import Problem
from sysid_core.estimation.setting import Setting
from sysid_core.online.torque_verdicts import FINE, GAINS, Scales, TorqueVerdict, found_in, stuck
from sysid_core.parameters import INERTIAL_TERMS

__all__ = ["TorqueChecks"]

_STILL = 1e-4
"""Share of the usual torque below which a torque that does not vary is not measured [-]."""

_FIT_ERROR = 0.02
"""Share of a torque that a model's error takes even where a joint's own model fits better [-]."""

_FEWEST = 5.0
"""Independent samples that a joint must have shown before it is judged."""

_RIDGE = 1e-8
"""Relative ridge that lets matrices of directions that nothing has shown be factorised [-]."""

_LOOSE = 1e-6
"""The same where friction was projected out, which costs digits [-]."""


class TorqueChecks:
    """Judges the torques of joints from the statistics of their rows.

    Parameters
    ----------
    problem : Problem
        With an anchor; supplies everything but the data.
    """

    def __init__(self, problem: Problem) -> None:
        setting = Setting(problem, 0.0)
        c, layout = setting.coordinates, problem.layout
        free = c.mapping @ prior_covariance(setting.divergence) @ c.mapping.T
        covariance = c.lifted(free)
        self._known = np.diagonal(covariance) <= 0.0
        self._unknown = np.flatnonzero(~self._known)
        covariance = covariance[np.ix_(self._unknown, self._unknown)]
        self._precision = np.linalg.inv(covariance + _RIDGE * np.diag(np.diagonal(covariance)))
        self._mean = c.base_vector(c.mapping @ setting.divergence.mean)
        columns = problem.base.columns
        # a rotor's inertia that is held at zero is often one that nobody told of
        self._own = columns >= len(INERTIAL_TERMS) * len(layout.bodies)
        self.groups = problem.groups
        self._speed, self._constant = _places(problem, "viscous"), _places(problem, "offset")
        dry = layout.term("viscous"), layout.term("coulomb")
        self._takes = np.isin(columns, np.concatenate([np.r_[term] for term in dry]))
        anchor = problem.anchor
        if anchor is None:
            raise ParameterError("torques are judged against an anchor; the problem has none")
        self._usual = np.sqrt(anchor.square / np.maximum(anchor.count, 1e-300))
        seen = np.diagonal(anchor.gram, axis1=1, axis2=2) > 0.0
        # what no other joint sees, no other joint predicts
        self._own |= seen.sum(axis=0) <= 1
        self._errors = np.full(len(self.groups), np.inf)

    def judge(
        self, statistics: Statistics, correlation: FloatArray, joints: Sequence[int]
    ) -> dict[int, TorqueVerdict]:
        """Judge the torques of some joints; `correlation` (G,) is the rows' colour."""
        for joint in range(len(self.groups)):
            if joint in joints or not np.isfinite(self._errors[joint]):
                self._look(statistics, joint)
        return {joint: self._judge(statistics, correlation, joint) for joint in joints}

    def _known_terms(self, joint: int) -> bool:
        """Whether friction and offset can be told from masses, unlike those of a lift."""
        return min(self._speed[joint], self._constant[joint]) >= 0

    def _look(self, statistics: Statistics, joint: int) -> None:
        """See how well a model of its own can explain a joint's torque, whatever its scale."""
        self._errors[joint] = np.inf
        if statistics.count[joint] > 0.0 and self._known_terms(joint):
            rows = _JointRows.of(self, statistics, joint)
            if rows.variance > (_STILL * self._usual[joint]) ** 2:
                self._errors[joint] = rows.error_square()

    def _judge(self, statistics: Statistics, correlation: FloatArray, joint: int) -> TorqueVerdict:
        count = statistics.count[joint]
        if count < _FEWEST * correlation[joint] or not self._known_terms(joint):
            return FINE
        name, usual = self.groups[joint], float(self._usual[joint])
        rows = _JointRows.of(self, statistics, joint)
        if rows.variance < (_STILL * usual) ** 2:
            return stuck(name, rows.variance**0.5, _STILL * usual)
        scales = self._scales(rows, statistics, correlation, joint)
        return found_in(name, scales, rows.variance, rows.size, usual)

    def _scales(
        self,
        rows: _JointRows,
        statistics: Statistics,
        correlation: FloatArray,
        joint: int,
    ) -> Scales:
        """Compare scales g of a torque g·A(β + d) + F f, with β and its covariance from others."""
        weights = 1.0 / (self._errors * correlation)
        weights[joint] = 0.0
        gram, moment = self._reduced(*weighted_sums(statistics, weights))
        mean, root = self._from_others(gram, moment, rows.rigid)
        scale = correlation[joint] * float(self._errors[joint])
        d, V = np.linalg.eigh(root.T @ rows.gram @ root / scale)
        d = np.maximum(d, 0.0)
        turned = V.T @ root.T
        p, r = turned @ rows.moment, turned @ (rows.gram @ mean)
        g = GAINS[:, None]
        square = rows.square - 2.0 * GAINS * (rows.moment @ mean)
        square += GAINS**2 * (mean @ rows.gram @ mean)
        gained = ((g * (p - g * r)) ** 2 / (1.0 + g**2 * d)).sum(axis=1) / scale
        likelihood = -0.5 * (np.log1p(g**2 * d).sum(axis=1) + (square - gained) / scale)
        i = int(np.argmax(likelihood))
        g0 = float(GAINS[i])
        spread = 1.0 / (1.0 + g0**2 * d)
        change = root @ V
        beta = mean + change @ (spread * g0 * (p - g0 * r) / scale)
        rest = float(
            rows.square - 2.0 * g0 * (rows.moment @ beta) + g0**2 * (beta @ rows.gram @ beta)
        )
        friction, std = rows.friction(g0 * beta, g0 * change * np.sqrt(spread), scale)
        explained = 1.0 - rest / max(rows.variance * rows.rows, 1e-300)
        predicted = float(np.sqrt(max(float(mean @ rows.gram @ mean), 0.0) / rows.rows))
        return Scales(likelihood, predicted, friction, std, explained)

    def _reduced(self, gram: FloatArray, moment: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sums of the unknown base parameters, the known ones taken off the targets."""
        u = self._unknown
        rest = moment - gram[:, self._known] @ self._mean[self._known]
        return gram[np.ix_(u, u)], rest[u]

    def _from_others(
        self, gram: FloatArray, moment: FloatArray, rigid: IndexArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean (k,) and a root (k, k) of the covariance of a joint's rigid columns."""
        factor = cho_factor(self._precision + gram, lower=True, check_finite=False)
        prior = self._mean[self._unknown]
        mean = prior + cho_solve(factor, moment - gram @ prior, check_finite=False)
        unit = np.eye(len(gram))[:, rigid]
        covariance = cho_solve(factor, unit, check_finite=False)[rigid]
        covariance += _RIDGE * np.diag(np.diagonal(covariance))
        return mean[rigid], np.linalg.cholesky(covariance)


class _JointRows(NamedTuple):
    """One joint's rows with the columns of its own columns projected out.

    Attributes
    ----------
    rigid : (k,)
        Columns that other joints may share, among the unknown base parameters.
    gram, moment, square : (k, k), (k,), float
        Of the rows less what friction explains.
    diagonal : (k,)
        Of the Gram matrix before that.
    rows, size, variance : float
        Number of rows; mean square of the torque and its variance about its mean [N²·m²].
    inverse, cross, own : (o, o), (o, k), (o,)
        Inverse Gram matrix of the friction's columns, theirs with the others, their moments.
    power : (o,)
        Mean power of each friction column over the mean speed: torque against the motion.
    """

    rigid: IndexArray
    gram: FloatArray
    diagonal: FloatArray
    moment: FloatArray
    square: float
    rows: float
    size: float
    variance: float
    inverse: FloatArray
    cross: FloatArray
    own: FloatArray
    power: FloatArray

    @classmethod
    def of(cls, checks: TorqueChecks, statistics: Statistics, joint: int) -> _JointRows:
        """Project one joint's friction out of its statistics."""
        gram, held = statistics.gram[joint], checks._known & ~checks._own
        constant = checks._mean[held]
        moment = statistics.moment[joint] - gram[:, held] @ constant
        square = float(statistics.square[joint])
        square -= float((statistics.moment[joint] + moment)[held] @ constant)
        seen = np.diagonal(gram) > 0.0
        own = np.flatnonzero(seen & checks._own)
        rigid = np.flatnonzero(seen & ~checks._own & ~checks._known)
        block = gram[np.ix_(own, own)]
        block = block + _RIDGE * np.diag(np.diagonal(block))
        inverse: FloatArray = np.asarray(np.linalg.inv(block), dtype=float)
        cross: FloatArray = gram[np.ix_(own, rigid)]
        along, count = checks._speed[joint], float(statistics.count[joint])
        speed = gram[along, own] * checks._takes[own]
        motion = float(np.sqrt(gram[along, along] / count))
        mean = float(statistics.moment[joint][checks._constant[joint]]) / count
        return cls(
            np.searchsorted(checks._unknown, rigid),
            gram[np.ix_(rigid, rigid)] - cross.T @ inverse @ cross,
            np.diagonal(gram)[rigid],
            moment[rigid] - cross.T @ inverse @ moment[own],
            max(square - float(moment[own] @ inverse @ moment[own]), 0.0),
            count,
            float(statistics.square[joint]) / count,
            max(float(statistics.square[joint]) / count - mean**2, 0.0),
            inverse,
            cross,
            moment[own],
            speed / (count * max(motion, 1e-300)),
        )

    def friction(self, rigid: FloatArray, root: FloatArray, scale: float) -> tuple[float, float]:
        """Return the mean torque of friction against the motion [N·m] and its deviation.

        Parameters
        ----------
        rigid : (k,)
            Of the rigid columns, with a root (k, k) of their covariance.
        scale : float [N²·m²]
            Variance of an independent row.
        """
        take = self.power @ self.inverse
        spread = take @ self.cross @ root
        variance = scale * (take @ self.power) + spread @ spread
        return float(take @ (self.own - self.cross @ rigid)), float(np.sqrt(variance))

    def error_square(self) -> float:
        """Return the mean square error [N²·m²] to expect of a model of any scale."""
        size = np.sqrt(self.diagonal)
        block = self.gram / size / size[:, None] + _LOOSE * np.eye(len(size))
        factor = cho_factor(block, lower=True, check_finite=False)
        moment = self.moment / size
        rest = self.square - moment @ cho_solve(factor, moment, check_finite=False)
        return max(rest, 0.0) / self.rows + _FIT_ERROR**2 * self.size


def _places(problem: Problem, term: str) -> list[int]:
    """Return the base parameter that each group's term is, −1 where it is none."""
    where = {int(column): i for i, column in enumerate(problem.base.columns)}
    start, joints = problem.layout.term(term).start, problem.layout.joints
    return [
        where.get(start + joints.index(name), -1) if name in joints else -1
        for name in problem.groups
    ]
