# SPDX-License-Identifier: Apache-2.0
"""Whether positions and efforts are of the joints that they are named after, and of their sign."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.batch import Batch
from sysid_core.contradiction import CERTAIN
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.refit import Fit, Refit
from sysid_core.robot.model import Robot

__all__ = ["JointOrder", "find_joint_order"]

_SHARE = 0.03
"""Share of a joint's torques that a model may miss before the order of joints is asked for."""
_EXPLAINED = 0.5
"""Most that it misses of the torques of joints whose order is told."""
_FEW = 5
"""One of so many samples tells which orders are worth a fit."""
_FITS = 3
"""Most orders that are fitted before one is taken."""
_ROUNDING = 1e-9
"""Relative size of friction columns that add nothing."""
_ROUNDS = 12
"""Most swaps and signs that are found one after the other."""


class JointOrder(NamedTuple):
    """Which values of a recording are each joint's, as its torques tell it.

    Attributes
    ----------
    position, effort : (nj, nj)
        What takes the values that came to those that torques tell: a permutation with signs.
    """

    names: tuple[str, ...]
    position: FloatArray
    effort: FloatArray

    @staticmethod
    def described(names: tuple[str, ...]) -> JointOrder:
        """Return the one that names tell."""
        return JointOrder(names, np.eye(len(names)), np.eye(len(names)))

    @property
    def changed(self) -> BoolArray:
        """Joints (nj,) that have other values than they came with."""
        here = np.diagonal(self.position), np.diagonal(self.effort)
        return np.asarray((here[0] != 1.0) | (here[1] != 1.0))

    @property
    def finding(self) -> Diagnostic:
        """What to say of it."""
        both = (self.position == self.effort).all(axis=1)
        said = [
            *self._said("positions and efforts", self.position, both),
            *self._said("positions", self.position, ~both),
            *self._said("efforts", self.effort, ~both),
        ]
        message = f"torques tell another order or sense of joints: {'; '.join(said)}"
        hint = "mend the order and signs, or the URDF's axes; no model can be right before"
        return Diagnostic("joint_order", message, Severity.ERROR, hint=hint)

    def applied(self, batch: Batch) -> Batch:
        """Return a batch whose joints have the values that are theirs."""
        samples, factor = batch.samples, batch.sign_factor.copy()
        count = len(self.names)
        factor[:, :count] = factor[:, _sources(self.position)]
        moved = replace(
            samples,
            position=_taken(samples.position, self.position),
            velocity=_taken(samples.velocity, self.position),
            acceleration=_taken(samples.acceleration, self.position),
            effort=_taken(samples.effort, self.effort),
            cut_off=None if samples.cut_off is None else samples.cut_off[:, _sources(self.effort)],
        )
        return replace(batch, samples=moved, sign_factor=factor)

    def neighbours(self, changes: Iterable[FloatArray]) -> Iterator[JointOrder]:
        """Yield orders with one more change of positions, of efforts or of both."""
        same = np.eye(len(self.names))
        for change in changes:
            for position, effort in ((change, change), (change, same), (same, change)):
                yield JointOrder(self.names, position @ self.position, effort @ self.effort)

    @property
    def known_otherwise(self) -> bool:
        """Whether it is one effort's sign alone, which its own joint shows."""
        same = np.eye(len(self.names))
        return bool(
            (self.position == same).all()
            and (np.abs(self.effort) == same).all()
            and self.changed.sum() == 1
        )

    def _said(self, what: str, matrix: FloatArray, where: BoolArray) -> Iterator[str]:
        sources, names = _sources(matrix), self.names
        swapped: list[str] = []
        opposite: list[str] = []
        elsewhere: list[str] = []
        for joint in np.flatnonzero(where).tolist():
            source = int(sources[joint])
            sign = "minus " if matrix[joint, source] < 0.0 else ""
            back = sources[source] == joint and where[source]
            if source == joint and sign:
                opposite.append(names[joint])
            elif back and not sign and source > joint:
                swapped.append(f"{names[joint]} and {names[source]}")
            elif sign or not back:
                elsewhere.append(f"{sign}{names[source]} for {names[joint]}")
        if swapped:
            yield f"{what} of {', '.join(swapped)} are swapped"
        if opposite:
            yield f"{what} of {', '.join(opposite)} have the opposite sign"
        if elsewhere:
            yield f"{what} are of {', '.join(elsewhere)}"


def find_joint_order(refit: Refit, described: Fit) -> tuple[JointOrder, Fit] | None:
    """Return the order and senses of joints that torques show, and its fit, if not as described.

    Joints are swapped, or their signs turned, of positions, efforts or both, one change after the
    other. Which changes are worth a fit tells what the prior's bodies ask for beside friction
    that is fitted to each joint. A fit counts where its evidence is better by 20 nats, residuals
    of all joints as coloured as the most coloured ones, and joints that changed are explained.
    Nothing is asked where a model misses little of the torques.
    """
    regression = described.regression
    robot, names = regression.robot, regression.robot.joint_names
    comparable = regression.groups == names or (robot.floating and not robot.linked)
    if not comparable or not _missed(described, _SHARE).any():
        return None
    even, changes = refit.evenly(), list(_changes(robot))
    guess = _Guess(even, described)
    best, fit = JointOrder.described(names), described
    for _ in range(_ROUNDS):
        found = list(best.neighbours(changes))
        scores = np.array([guess.score(each) for each in found]) - guess.score(best)
        likely = [found[k] for k in np.argsort(-scores)[:_FITS] if scores[k] > CERTAIN / _FEW]
        if not likely:
            break
        if fit is described:
            fit = described = even.fit(regression)
        fits = [even.fit(regression, each.applied(even.batch)) for each in likely]
        first = int(np.argmax([one.evidence for one in fits]))
        if fits[first].evidence < fit.evidence + CERTAIN:
            break
        best, fit = likely[first], fits[first]
    unexplained = _missed(fit, _EXPLAINED)
    wrong = unexplained[best.changed] if regression.per_joint else unexplained
    return None if fit is described or wrong.any() else (best, fit)


def _changes(robot: Robot) -> Iterator[FloatArray]:
    """Yield signed permutations (nj, nj): what may be turned, or taken for each other.

    Turned are joints, whole limbs, and joints of the same place in all limbs. Swapped are joints
    of a limb, and limbs of the same length. Single joints of two limbs are not: in a gait a hip
    does the opposite of another, so that a swap looks like both turned.
    """
    same, model = np.eye(len(robot.joint_names)), robot.model
    slides = np.isin(robot.joint_names, robot.prismatic_names)
    first = model.njoints - len(same)  # joints of a model that come before, the base among them
    roots = [i for i in range(first, model.njoints) if model.parents[i] < first]
    limbs = [[j - first for j in model.subtrees[i]] for i in roots]

    def swapped(pairs: Iterable[tuple[int, int]]) -> FloatArray:
        change = same.copy()
        for one, other in pairs:
            change[[one, other]] = same[[other, one]]
        return change

    places = zip(*limbs, strict=False)
    sets = [*([joint] for joint in range(len(same))), *limbs, *map(list, places)]
    for joints in sorted({tuple(each) for each in sets if robot.actuated[each].all()}):
        yield np.diag(1.0 - 2.0 * same[list(joints)].sum(axis=0))
    for pair in itertools.chain(*(itertools.combinations(limb, 2) for limb in limbs)):
        if robot.actuated[[*pair]].all() and slides[pair[0]] == slides[pair[1]]:
            yield swapped([pair])
    for mine, yours in itertools.combinations(limbs, 2):
        alike = 1 < len(mine) == len(yours) and (slides[mine] == slides[yours]).all()
        if alike and robot.actuated[mine + yours].all():
            yield swapped(zip(mine, yours, strict=True))


class _Group(NamedTuple):
    """What the prior's bodies ask of rows (m,), in some order of joints."""

    needed: FloatArray  # (m,) [N·m] beside what pushes the robot
    friction: FloatArray  # (m, k) orthonormal columns
    by_effort: FloatArray  # (m, nj) [-] what each effort adds
    sample: IndexArray  # (m,)

    def left(self, effort: FloatArray) -> FloatArray:
        """Return what efforts (n, nj) [N·m] leave (m,) beside friction."""
        error = np.einsum("mj,mj->m", self.by_effort, effort[self.sample]) - self.needed
        return np.asarray(error - self.friction @ (error @ self.friction))


class _Guess:
    """How well the prior's bodies explain orders of joints, with friction fitted to each."""

    def __init__(self, refit: Refit, described: Fit) -> None:
        self._regression, problem = described.regression, described.problem
        self._known = problem.base.project(problem.prior.mean)
        self._refit, self._batch = refit, refit.batch.select(slice(None, None, _FEW))
        self._colour = np.maximum(refit.colour / _FEW, 1.0)
        self._groups: dict[bytes, list[_Group]] = {}

    def score(self, order: JointOrder) -> float:
        """Return the log likelihood of an order, with the colour that a fit has."""
        key = order.position.tobytes()
        if key not in self._groups:
            self._groups[key] = list(self._moved(order.applied(self._batch)))
        score, effort = 0.0, np.nan_to_num(_taken(self._batch.samples.effort, order.effort))
        for group, colour in zip(self._groups[key], self._colour, strict=True):
            left = group.left(effort)
            if len(left):
                square = max(float(np.mean(left**2)), 1e-300)
                score -= 0.5 * len(left) / colour * np.log(square)
        return score

    def _moved(self, batch: Batch) -> Iterator[_Group]:
        samples = batch.samples
        v, effort = samples.velocity, np.nan_to_num(samples.effort)
        terms = np.sign(v), v, samples.acceleration, np.ones_like(v)
        rows = self._regression.rows(samples, self._refit.rest(batch))
        for joint, block in enumerate(rows.blocks):
            by_effort = rows.by_effort
            if by_effort is None:
                by_effort = np.zeros((len(block.target), v.shape[1]))
                by_effort[:, joint] = 1.0
            pushed = block.target - np.einsum("mj,mj->m", by_effort, effort[block.sample])
            used = np.flatnonzero(by_effort.any(axis=0))
            columns = [by_effort[:, used] * term[block.sample][:, used] for term in terms]
            axes, sizes, _ = np.linalg.svd(np.hstack(columns), full_matrices=False)
            friction = axes[:, sizes > _ROUNDING * sizes.max(initial=0.0)]
            yield _Group(block.matrix @ self._known - pushed, friction, by_effort, block.sample)


def _missed(fit: Fit, share: float) -> BoolArray:
    """Return which torques (G,) a model misses by more than a share of them."""
    statistics = fit.problem.statistics
    return statistics.rmse(fit.estimate.base_parameters) > share * statistics.rms


def _sources(matrix: FloatArray) -> IndexArray:
    """Return whose value (nj,) each joint has."""
    return np.abs(matrix).argmax(axis=1)


def _taken(values: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return values (n, nj) in another order, with other signs."""
    source = _sources(matrix)
    return np.asarray(values[:, source] * matrix[np.arange(len(matrix)), source])
