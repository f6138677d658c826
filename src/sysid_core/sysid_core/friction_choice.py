# SPDX-License-Identifier: Apache-2.0
"""Chooses friction terms for each joint by what predicts torque on held-out stretches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.batch import Batch, learning_rows
from sysid_core.bounded_least_squares import bounded_least_squares
from sysid_core.dynamics.friction import FRICTION, FrictionTerm
from sysid_core.dynamics.rows import PerJoint, Regression, Rows
from sysid_core.estimation import Entropic, Problem
from sysid_core.friction_candidates import (
    APART,
    Candidate,
    bending_terms,
    presliding_terms,
)
from sysid_core.friction_filter import filtered_column, joint_motion, nearby
from sysid_core.friction_way import filtered_deflections, late_signs
from sysid_core.scores import is_clear

__all__ = ["FrictionChoice", "choose_friction"]

_STRETCHES = 16
"""Stretches that are held out in turn: enough to tell a difference from its standard error."""
_LEAST = _STRETCHES // 2
"""Stretches with motion that a joint needs: fewer tell nothing of how its friction varies."""
_SAME = float(np.log(2.0)) / 8.0
"""Log ratio of two scales that are the same: half of a place."""
_WORTH = 1.05
"""Ratio of errors that makes a term worth having at one standard error [-]."""
_LOAD_WORTH = 1.01
"""The same of friction per load: every gear has some, and there is one of it to choose [-]."""
_SPRING_WORTH = 1.1
"""The same of a spring at least. What balances gravity is most of a torque; but where a motion
repeats, every stretch shows the same errors of gravity, which a spring may make up for [-]."""
_CERTAIN = 2.0
"""Standard errors that make it so at any ratio: the best of a dozen terms often gains one by
chance, and noise of the torques, which no term explains, makes every ratio small."""
_DISTORTION = 1e-3
"""Share of a joint's torque below which errors are the filter's: no term mends them [-]."""
_RIDGE = 1e-9
"""Added to Gram matrices of unit columns, so that two that agree can be told apart."""
_LOAD_ROUNDS = 2
"""First estimates for the load that friction takes: a third would move it by a thousandth."""
_ROUNDS = 4
"""Choices of terms, each on an estimate with those before it: most laws stay after the third."""

_Terms = Mapping[str, Mapping[str, float]]


class _Folds(NamedTuple):
    """What is learned from without each stretch, in turn, and the mean of what it is tried on."""

    gram: FloatArray  # (f, k, k)
    moment: FloatArray  # (f, k)
    held: FloatArray  # (f, k, k)
    held_moment: FloatArray  # (f, k)
    held_square: FloatArray  # (f,)
    bound: BoolArray  # (k,) whether a column's parameter may not be negative


@dataclass(frozen=True)
class FrictionChoice:
    """Settles the friction law of a regression by samples to learn from."""

    problem: Callable[[Regression, Rows], Problem]  # Makes the estimation problem of training rows
    still: float  # [-] see `rest_speed`
    choose: bool  # Whether a tree's joints may get terms in place of those that were chosen
    keep: bool = False
    """Whether joints only get more, and none that moves a joint: for one that is being driven."""

    def __call__(self, regression: Regression, batch: Batch) -> Regression:
        """Return a regression with terms for each joint, and the load of a first estimate."""
        choose = self.choose and regression.robot.is_tree
        if not choose and not regression.robot.load_friction:
            return regression
        rows = learning_rows(regression, batch, self.still)
        if sum(len(block.target) for block in rows.blocks) < regression.base.size:
            return regression
        parameters = self._solution(regression, rows)
        offers = _offers(regression, batch, rows, self.keep) if choose else []
        for _ in range(_ROUNDS if choose else 0):
            present = regression.robot.description.friction_chosen
            chosen = choose_friction(regression, rows, parameters, offers)
            if _is_alike(chosen, present):
                break
            regression = regression.with_friction(chosen)
            regression.assume_load(parameters)
            rows = learning_rows(regression, batch, self.still)
            parameters = self._solution(regression, rows, parameters)
        for _ in range(_LOAD_ROUNDS if regression.robot.load_friction else 0):
            rows = regression.with_load(rows, parameters)
            parameters = self._solution(regression, rows, parameters)
        regression.assume_load(parameters)
        return regression

    def _solution(
        self, regression: Regression, rows: Rows, start: FloatArray | None = None
    ) -> FloatArray:
        problem = self.problem(regression, rows)
        return Entropic(covariance="none").solve(problem, start).parameters


def _is_alike(chosen: _Terms, present: _Terms) -> bool:
    """Whether joints have the same terms, which bend where errors are the same."""
    if any(chosen.get(j, {}).keys() != present.get(j, {}).keys() for j in {*chosen, *present}):
        return False
    pairs = [(s, present[j][name]) for j, terms in chosen.items() for name, s in terms.items()]
    return all(abs(np.log(new / old)) < _SAME for new, old in pairs)


class _Offer(NamedTuple):
    """What a joint's law may be made of, and what that does to the joint's rows."""

    least: list[FrictionTerm]  # Terms that it has anyway; their columns come first
    kept: dict[str, float]  # Those of them that were chosen before, and their scales
    candidates: list[Candidate]
    columns: FloatArray  # (m, k); those that depend on the load are for a load of 1 N·m
    late: FloatArray  # (m, l) signs of velocities some times ago, as dry friction felt late has
    stretch: IndexArray  # (m,) the stretch that each row belongs to
    unexplained: float  # [N²·m²] mean square of errors that nothing explains
    lasting: bool  # Whether what is chosen now will be kept

    def choose(self, target: FloatArray, load: FloatArray, springs: bool) -> dict[str, float]:
        """Return the terms that predict a target (m,), with a load (m,), better: term → scale.

        Those that are kept are among them.
        """
        terms = [*self.least, *(c.term for c in self.candidates)]
        loaded = [term.name == "load" for term in terms]
        columns = np.where(loaded, np.abs(load)[:, None], 1.0) * self.columns
        columns = np.hstack([columns, self.late])
        columns /= np.maximum(np.linalg.norm(columns, axis=0), np.finfo(float).tiny)
        bound = np.array([term.lower >= 0.0 for term in terms] + [True] * self.late.shape[1])
        folds = _folds(columns, target, self.stretch, self.unexplained, bound)
        if len(folds.gram) < _LEAST:
            return self.kept
        offered = [c for c in self.candidates if springs or c.term.lower >= 0.0]
        late, least = range(len(terms), len(bound)), list(range(len(self.least)))
        return {**self.kept, **_forward(folds, least, offered, late, self.lasting)}


def _offers(regression: Regression, batch: Batch, rows: Rows, keep: bool) -> list[_Offer]:
    """Return what each joint may get, in any case what it has if it may `keep` that."""
    robot, offers = regression.robot, []
    described = robot.description.friction_terms
    edges = np.linspace(0, len(batch), _STRETCHES + 1)
    for j, block in enumerate(rows.blocks):
        motion = joint_motion(robot, batch.samples, batch.sign_factor, block.sample, j)
        motion = motion._replace(load=1.0)
        own = robot.description.friction_chosen.get(robot.joint_names[j], {})
        kept = dict(own) if keep else {}
        least = [
            (term, float(scales[j]))
            for term, scales in zip(FRICTION, robot.friction_scales, strict=True)
            if (term.name in kept if term.chosen else term.name in described)
        ]
        offered = [
            each
            for each in (*bending_terms(motion, batch.report), *presliding_terms(batch, j))
            if each[0].name not in kept and not (keep and each[0].lower < 0.0)
        ]
        candidates = [Candidate(*each, k) for k, each in enumerate(offered, len(least))]
        every = [*least, *((term, scale) for term, scale, _ in offered)]
        finest = min((s for term, s in every if term.scale_unit == "rad/s"), default=np.inf)
        near = nearby(batch.samples, block.sample, j, batch.report, finest)
        ways = np.array([scale for term, scale in every if term.scale_unit == "rad"])
        slid = iter(filtered_deflections(batch.samples, j, batch.report, ways)[block.sample].T)
        columns = [
            next(slid)
            if term.scale_unit == "rad"
            else filtered_column(term, motion._replace(scale=scale), near)
            for term, scale in every
        ]
        stretch = np.searchsorted(edges, block.sample, side="right") - 1
        power = float(block.target @ block.target) / max(len(block.target), 1)
        offers.append(
            _Offer(
                [term for term, _ in least],
                kept,
                candidates,
                np.stack(columns, axis=1),
                late_signs(batch.samples, j, batch.report)[block.sample],
                stretch,
                _DISTORTION**2 * power,
                keep,
            )
        )
    return offers


def choose_friction(
    regression: Regression, rows: Rows, parameters: FloatArray, offers: Sequence[_Offer]
) -> dict[str, dict[str, float]]:
    """Return the terms that each joint gains from: joint → term → scale.

    The rigid bodies and the coupled motors are taken from an estimate by the present law; what
    they leave of each joint's torque is fitted by non-negative least squares. Terms are added one
    by one. One stays if held-out stretches are predicted better by two standard errors over the
    stretches, or by one and 5 % (friction per load: 1 %). Springs are offered once a law was
    chosen: before dry friction is known, they make up for what it did to gravity.

    Parameters
    ----------
    regression : Regression
        With one group per joint of a tree on a fixed base; others have the least law.
    rows : Rows
        To learn from.
    parameters : (p,)
        Estimate by the present law.
    offers : sequence of _Offer
        Of the joints.
    """
    robot = regression.robot
    if not isinstance(regression, PerJoint):
        return {}
    rigid = parameters.copy()
    for term in FRICTION:
        rigid[robot.layout.term(term.name)] = 0.0
    loads = regression.rigid_torques(rows, parameters)
    targets = rows.residuals(regression.base.project(rigid))
    springs = bool(robot.description.friction_chosen)
    each = zip(robot.joint_names, offers, targets, loads, strict=True)
    chosen = {joint: offer.choose(target, load, springs) for joint, offer, target, load in each}
    return {joint: terms for joint, terms in chosen.items() if terms}


def _folds(
    columns: FloatArray,
    target: FloatArray,
    stretch: IndexArray,
    unexplained: float,
    bound: BoolArray,
) -> _Folds:
    """Return the sums without each stretch that has rows, in turn."""
    parts = [(columns[stretch == k], target[stretch == k]) for k in np.unique(stretch)]
    grams = np.array([A.T @ A for A, _ in parts])
    moments = np.array([A.T @ b for A, b in parts])
    counts = np.array([float(len(b)) for _, b in parts])
    squares = np.array([b @ b for _, b in parts])
    return _Folds(
        grams.sum(axis=0) - grams,
        moments.sum(axis=0) - moments,
        grams / counts[:, None, None],
        moments / counts[:, None],
        squares / counts + unexplained,
        bound,
    )


def _forward(
    folds: _Folds,
    least: list[int],
    candidates: list[Candidate],
    late: Sequence[int],
    lasting: bool,
) -> dict[str, float]:
    """Add terms one by one while held-out stretches gain from it; return their scales.

    Where a term bends depends on what stands beside it, so all are moved after each addition.
    Friction that changes sign over a distance has to predict better than friction whose sign
    comes `late`, by columns (l,), as a driver's filter makes it; for sure where it is `lasting`,
    or the distance is the shortest, as a joint that sticks makes it look like.
    """
    chosen: dict[str, Candidate] = {}

    def tried(trials: list[Candidate]) -> FloatArray:
        """Return the errors (c, f) with each of some terms added, or moved."""
        laws = [{**chosen, c.term.name: c}.values() for c in trials]
        return _errors(folds, [[*least, *(each.column for each in law)] for law in laws])

    (errors,) = _errors(folds, [least])
    while trials := [c for c in candidates if c.term.name not in chosen and c.place % APART == 0]:
        gains = errors - tried(trials)
        worth = [_is_worth(gain, c.term) for gain, c in zip(gains, trials, strict=True)]
        if not any(worth):
            break
        best = int(np.where(worth, gains.mean(axis=1), -np.inf).argmax())
        chosen[trials[best].term.name], errors = trials[best], errors - gains[best]
        for name, own in list(chosen.items()):
            near = [c for c in _beside(own, candidates, APART - 1) if c is not own]
            if near:
                moved = tried(near)
                best = int(moved.mean(axis=1).argmin())
                if moved[best].mean() < errors.mean():
                    chosen[name], errors = near[best], moved[best]
    if (slides := chosen.get("presliding")) is not None:
        others = [c.column for c in chosen.values() if c is not slides]
        # two at a time stand for all times between theirs
        rivals = _errors(folds, [[*least, *others, *pair] for pair in pairwise(late)])
        gain = rivals[int(rivals.mean(axis=1).argmin())] - errors
        sure = lasting or slides.place == 0
        if not (is_clear(gain, 0.0, _CERTAIN) if sure else _is_worth(gain, slides.term)):
            left = [c for c in candidates if c.term is not slides.term]
            return _forward(folds, least, left, late, lasting)
    return {name: _between(c, candidates, tried) for name, c in chosen.items()}


def _is_worth(gain: FloatArray, term: FrictionTerm) -> bool:
    """Whether stretches that gain so much (f,) in log error are worth a term."""
    if term.lower < 0.0 and gain.mean() < np.log(_SPRING_WORTH):
        return False
    worth = _LOAD_WORTH if term.name == "load" else _WORTH
    return is_clear(gain, float(np.log(worth)), 1.0) or is_clear(gain, 0.0, _CERTAIN)


def _beside(own: Candidate, candidates: list[Candidate], reach: int) -> list[Candidate]:
    """Return a term's candidates up to so many places away, itself among them."""
    return [c for c in candidates if c.term is own.term and abs(c.place - own.place) <= reach]


def _between(
    own: Candidate,
    candidates: list[Candidate],
    tried: Callable[[list[Candidate]], FloatArray],
) -> float:
    """Return the scale where a parabola through the errors of a term and its neighbours is least.

    On the places alone it would leap from one to the next with a little noise.
    """
    three = _beside(own, candidates, 1)
    if len(three) < 3:
        return own.scale
    finer, here, coarser = tried(three).mean(axis=1).tolist()
    bend = finer - 2.0 * here + coarser
    shift = 0.5 * (finer - coarser) / bend if bend > 0.0 else 0.0
    return own.scale * float((three[2].scale / own.scale) ** np.clip(shift, -0.5, 0.5))


def _errors(folds: _Folds, laws: list[list[int]]) -> FloatArray:
    """Return the log error (c, f) of each stretch, predicted from the others by each law."""
    used = np.array(laws)
    size = used.shape[1]
    gram = folds.gram[:, used[:, :, None], used[:, None]] + _RIDGE * np.eye(size)
    moment = folds.moment[:, used]
    bound = np.tile(folds.bound[used], (len(gram), 1))
    x = bounded_least_squares(gram.reshape(-1, size, size), moment.reshape(-1, size), bound)
    x = x.reshape(moment.shape)
    held = folds.held[:, used[:, :, None], used[:, None]]
    slope = (held @ x[..., None])[..., 0] - 2.0 * folds.held_moment[:, used]
    square = folds.held_square[:, None] + (x * slope).sum(axis=2)
    return np.asarray(0.5 * np.log(np.maximum(square, 1e-300))).T
