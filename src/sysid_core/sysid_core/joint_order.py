# SPDX-License-Identifier: Apache-2.0
"""Whether positions and efforts are of the joints that they are named after, and of their sign."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.batch import Batch
from sysid_core.contradiction import CERTAIN
from sysid_core.diagnostics import Diagnostic
from sysid_core.refit import Fit, Refit

__all__ = ["JointOrder", "find_joint_order"]

_SHARE = 0.03
"""Share of a joint's torques that a model may miss before the order of joints is asked for."""
_EXPLAINED = 0.5
"""Most that it misses of the torques of joints whose order is told."""
_FEW = 5
"""One of so many samples tells which orders are worth a fit."""
_FITS = 3
"""Most orders that are fitted before one is taken."""
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
        message = f"torques tell another order or sense of joints: {', '.join(said)}"
        hint = "mend the order and signs, or the URDF's axes; no model can be right before"
        return Diagnostic("joint_order", message, hint=hint)

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

    def neighbours(self, slides: BoolArray) -> Iterator[JointOrder]:
        """Yield orders with one more joint of the opposite sense, or two more that are swapped.

        `slides` (nj,) tells joints whose positions are lengths.
        """
        same = np.eye(len(self.names))
        changes = [np.diag(1.0 - 2.0 * axis) for axis in same]
        for pair in itertools.combinations(range(len(same)), 2):
            if slides[pair[0]] == slides[pair[1]]:
                changes.append(same.copy())
                changes[-1][list(pair)] = same[list(reversed(pair))]
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
        for joint in np.flatnonzero(where).tolist():
            source = int(sources[joint])
            opposite = matrix[joint, source] < 0.0
            if source == joint and opposite:
                yield f"{what} of {names[joint]} have the opposite sign"
            elif sources[source] == joint and not opposite and where[source]:
                if source > joint:
                    yield f"{what} of {names[joint]} and {names[source]} are swapped"
            elif source != joint:
                turned = ", with the opposite sign," if opposite else ""
                yield f"{what}{turned} of {names[source]} are those of {names[joint]}"


def find_joint_order(refit: Refit, described: Fit) -> tuple[JointOrder, Fit] | None:
    """Return the order and senses of joints that torques show, and its fit, if not as described.

    Joints are swapped, or their signs turned, of positions, efforts or both, one change after the
    other. Which changes are worth a fit tells what the prior's bodies ask for beside friction
    that is fitted to each joint. A fit counts where its evidence is better by 20 nats, residuals
    of all joints as coloured as the most coloured ones, and joints that changed are explained.
    Nothing is asked where a model misses little of the torques.
    """
    regression = described.regression
    names = regression.robot.joint_names
    if regression.groups != names or not _missed(described, _SHARE).any():
        return None
    slides = np.isin(names, regression.robot.prismatic_names)
    even = refit.evenly()
    guess = _Guess(even, described)
    best, fit = JointOrder.described(names), described
    for _ in range(_ROUNDS):
        found = list(best.neighbours(slides))
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
    if fit is described or _missed(fit, _EXPLAINED)[best.changed].any():
        return None
    return best, fit


class _Motion(NamedTuple):
    """What the prior and measured pushes ask of joints that move in a certain order."""

    torque: FloatArray  # (n, nj) [N·m]
    friction: FloatArray  # (n, nj, 4) columns
    moves: BoolArray  # (n, nj)


class _Guess:
    """How well the prior's bodies explain orders of joints, with friction fitted to each."""

    def __init__(self, refit: Refit, described: Fit) -> None:
        self._regression, problem = described.regression, described.problem
        self._known = problem.base.project(problem.prior.mean)
        self._refit, self._batch = refit, refit.batch.select(slice(None, None, _FEW))
        self._colour = np.maximum(refit.colour / _FEW, 1.0)
        self._motions: dict[bytes, _Motion] = {}

    def score(self, order: JointOrder) -> float:
        """Return the log likelihood of an order, with the colour that a fit has."""
        motion = self._moved(order)
        error = _taken(self._batch.samples.effort, order.effort) - motion.torque
        score = 0.0
        for joint, moves in enumerate(motion.moves.T):
            left, own = error[moves, joint], motion.friction[moves, joint]
            if len(left):
                left = left - own @ np.linalg.lstsq(own, left, rcond=None)[0]
                square = max(float(np.mean(left**2)), 1e-300)
                score -= 0.5 * len(left) / self._colour[joint] * np.log(square)
        return score

    def _moved(self, order: JointOrder) -> _Motion:
        key = order.position.tobytes()
        if key not in self._motions:
            batch = order.applied(self._batch)
            blocks = self._regression.rows(batch.samples).blocks
            pushed = batch.samples.effort - np.stack([block.target for block in blocks], axis=1)
            torque = np.stack([block.matrix @ self._known for block in blocks], axis=1) + pushed
            v, a = batch.samples.velocity, batch.samples.acceleration
            friction = np.stack([np.sign(v), v, a, np.ones_like(v)], axis=-1)
            moves = np.abs(v) > self._refit.rest(batch)
            self._motions[key] = _Motion(torque, friction, moves)
        return self._motions[key]


def _missed(fit: Fit, share: float) -> BoolArray:
    """Return which torques (G,) a model misses by more than a share of them."""
    statistics = fit.problem.statistics
    missed = statistics.rmse(fit.estimate.base_parameters) ** 2
    measured = statistics.square / np.maximum(statistics.count, 1.0)
    return np.asarray(missed > share**2 * measured)


def _sources(matrix: FloatArray) -> IndexArray:
    """Return whose value (nj,) each joint has."""
    return np.abs(matrix).argmax(axis=1)


def _taken(values: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return values (n, nj) in another order, with other signs."""
    source = _sources(matrix)
    return np.asarray(values[:, source] * matrix[np.arange(len(matrix)), source])
