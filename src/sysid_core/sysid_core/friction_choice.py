# SPDX-License-Identifier: Apache-2.0
"""Chooses friction terms for each joint by what predicts torque on held-out stretches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.batch import Batch, learning_rows
from sysid_core.dynamics.friction import FRICTION, FrictionTerm, JointMotion
from sysid_core.dynamics.rows import PerJoint, Regression, Rows
from sysid_core.dynamics.select import make_regression
from sysid_core.estimation import Entropic, Problem
from sysid_core.friction_filter import Nearby, filtered_column, joint_motion, nearby
from sysid_core.scores import is_clear

__all__ = ["FrictionChoice", "choose_friction"]

_STRETCHES = 16
"""Stretches that are held out in turn: enough to tell a difference from its standard error."""
_LEAST = _STRETCHES // 2
"""Stretches with motion that a joint needs: fewer tell nothing of how its friction varies."""
_SPEEDS = tuple(0.02 * 2.0 ** (k / 4.0) for k in range(17))
"""Where friction may bend, as shares of a joint's top speed: halfway, errors change by 0.2 %."""
_APART = 4
"""Places between bends that are tried at first: halfway, errors change by 3 %."""
_MOVES = (2, -2, 1, -1)
"""Places by which a bend is moved then."""
_WORTH = 1.05
"""Ratio of errors that makes a term worth having at one standard error [-]."""
_CERTAIN = 2.0
"""Standard errors that make it so at any ratio: the best of a dozen terms often gains one by
chance, and noise of the torques, which no term explains, makes every ratio small."""
_DISTORTION = 1e-3
"""Share of a joint's torque below which errors are the filter's: no term mends them [-]."""
_RIDGE = 1e-9
"""Added to Gram matrices of unit columns, so that two that agree can be told apart."""
_TRIES = 3
"""Exchanges of many entries at once that may mend nothing, before they are exchanged singly."""
_PIVOTS = 100
"""Exchanges at most: mostly there are two."""


class _Candidate(NamedTuple):
    """A term with its scale, its place among the term's scales, and its column of a joint."""

    term: FrictionTerm
    scale: float
    place: int
    column: int


class _Folds(NamedTuple):
    """What is learned from without each stretch, in turn, and the mean of what it is tried on."""

    gram: FloatArray  # (f, k, k)
    moment: FloatArray  # (f, k)
    held: FloatArray  # (f, k, k)
    held_moment: FloatArray  # (f, k)
    held_square: FloatArray  # (f,)


_LOAD_ROUNDS = 2
"""First estimates for the load that friction takes: a third would move it by a thousandth."""
_ROUNDS = 4
"""Choices of terms, each on an estimate with those before it: most laws stay after the third."""


@dataclass(frozen=True)
class FrictionChoice:
    """Settles the friction law of a regression by samples to learn from."""

    problem: Callable[[Regression, Rows], Problem]  # Makes the estimation problem of training rows
    still: float  # [-] see `rest_speed`
    choose: bool  # Whether terms may be added to those that the description names

    def __call__(self, regression: Regression, batch: Batch) -> Regression:
        """Return a regression with terms for each joint, and the load of a first estimate."""
        robot = regression.robot
        known = robot.description
        described = known.friction_chosen or "friction" in known.effort_excludes
        choose = self.choose and robot.is_tree and not described
        if not choose and not robot.load_friction:
            return regression
        rows = learning_rows(regression, batch, self.still)
        if sum(len(block.target) for block in rows.blocks) < regression.base.size:
            return regression
        parameters = self._solution(regression, rows)
        for number in range(_ROUNDS if choose else 0):
            chosen = choose_friction(regression, batch, rows, parameters, springs=number > 0)
            if chosen == regression.robot.description.friction_chosen:
                break
            regression = make_regression(robot.with_friction(chosen))
            regression.assume_load(parameters)
            rows = learning_rows(regression, batch, self.still)
            parameters = self._solution(regression, rows)
        for _ in range(_LOAD_ROUNDS if regression.robot.load_friction else 0):
            parameters = self._solution(regression, regression.with_load(rows, parameters))
        regression.assume_load(parameters)
        return regression

    def _solution(self, regression: Regression, rows: Rows) -> FloatArray:
        return Entropic(covariance="none").solve(self.problem(regression, rows)).parameters


def choose_friction(
    regression: Regression,
    batch: Batch,
    rows: Rows,
    parameters: FloatArray,
    *,
    springs: bool,
) -> dict[str, dict[str, float]]:
    """Return the terms that each joint gains from: joint → term → scale.

    The rigid bodies and the coupled motors are taken from an estimate by the present law; what
    they leave of each joint's torque is fitted by non-negative least squares. Terms are added one
    by one. One stays if held-out stretches are predicted better by two standard errors over the
    stretches, or by one and 5 %: where nothing predicts better, the law stays.

    Parameters
    ----------
    regression : Regression
        With one group per joint of a tree on a fixed base; others have the least law.
    batch : Batch
        Samples of the training part.
    rows : Rows
        To learn from.
    parameters : (p,)
        Estimate by the present law.
    springs : bool
        Whether they are offered: before dry friction is known, they make up for what it did to
        gravity.
    """
    robot = regression.robot
    if not (isinstance(regression, PerJoint) and robot.is_tree):
        return {}
    chosen: dict[str, dict[str, float]] = {}
    edges = np.linspace(0, len(batch), _STRETCHES + 1)
    loads = regression.rigid_torques(rows, parameters)
    residuals = rows.residuals(regression.base.project(parameters))
    for j, (block, load) in enumerate(zip(rows.blocks, loads, strict=True)):
        motion = joint_motion(robot, batch.samples, batch.sign_factor, block.sample, j)
        motion = motion._replace(load=np.abs(load))
        present = [
            (term, float(scales[j]))
            for term, scales in zip(FRICTION, robot.friction_scales, strict=True)
            if scales[j] > 0.0 and (term.chosen or term.name in robot.description.friction_terms)
        ]
        least = [(term, scale) for term, scale in present if not term.chosen]
        offered = _offered(motion, batch.report.sensor_rate, springs=springs)
        candidates = [_Candidate(*each, k) for k, each in enumerate(offered, len(least))]
        every = [*least, *((term, scale) for term, scale, _ in offered)]
        scales = [scale for term, scale in (*every, *present) if term.scale_unit == "rad/s"]
        finest = min(scales, default=np.inf)
        near = nearby(batch.samples, block.sample, j, batch.report, finest)
        columns = _columns(motion, near, every)
        values = np.array([parameters[robot.layout.term(term.name)][j] for term, _ in present])
        own = _columns(motion, near, present) @ values
        stretch = np.searchsorted(edges, block.sample, side="right") - 1
        power = float(block.target @ block.target) / max(len(block.target), 1)
        folds = _folds(columns, residuals[j] + own, stretch, _DISTORTION**2 * power)
        if len(folds.gram) >= _LEAST:
            terms = _forward(folds, [term for term, _ in least], candidates)
            if terms:
                chosen[robot.joint_names[j]] = terms
    return chosen


def _offered(
    motion: JointMotion, rate: float, *, springs: bool
) -> list[tuple[FrictionTerm, float, int]]:
    """Return the terms that may be chosen, with their scales and the places of these.

    Interpolation draws a step of the torque out over two periods of the sensors, at a `rate` [Hz]:
    friction that bends within less looks alike, and is not offered.
    """
    speed, change = np.abs(motion.velocity), np.abs(motion.acceleration)
    bends = [
        (scale, place)
        for place, scale in enumerate((speed.max(initial=0.0) * np.array(_SPEEDS)).tolist())
        if 2.0 * change[speed <= scale].sum() < scale * rate * (speed <= scale).sum()
    ]
    return [
        (term, scale, place)
        for term in FRICTION
        if term.chosen and (springs or term.lower == 0.0)
        for scale, place in (((1.0, 0),) if term.scale_unit == "-" else bends)
    ]


def _columns(
    motion: JointMotion, near: Nearby, terms: Sequence[tuple[FrictionTerm, float]]
) -> FloatArray:
    """Return the columns (m, k) of terms with their scales."""
    columns = [filtered_column(term, motion._replace(scale=scale), near) for term, scale in terms]
    return np.stack(columns, axis=1)


def _folds(
    columns: FloatArray, target: FloatArray, stretch: IndexArray, unexplained: float
) -> _Folds:
    """Return the sums without each stretch that has rows, in turn.

    `unexplained` [N²·m²] is the mean square of errors that nothing explains.
    """
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
    )


def _forward(
    folds: _Folds, least: list[FrictionTerm], candidates: list[_Candidate]
) -> dict[str, float]:
    """Add terms one by one while held-out stretches gain from it; return their scales.

    Where a term bends depends on what stands beside it, so all are moved after each addition.
    """
    free = {k for k, term in enumerate(least) if term.lower < 0.0}
    free |= {c.column for c in candidates if c.term.lower < 0.0}
    chosen: dict[str, _Candidate] = {}

    def tried(c: _Candidate) -> FloatArray:
        """Return the errors with a term that is added, or moved."""
        used = {**chosen, c.term.name: c}.values()
        return _errors(folds, [*range(len(least)), *(each.column for each in used)], free)

    errors = _errors(folds, list(range(len(least))), free)
    while trials := [
        (c, tried(c)) for c in candidates if c.term.name not in chosen and c.place % _APART == 0
    ]:
        added, with_it = min(trials, key=lambda trial: float(trial[1].mean()))
        gain = errors - with_it
        if not (is_clear(gain, float(np.log(_WORTH)), 1.0) or is_clear(gain, 0.0, _CERTAIN)):
            break
        chosen[added.term.name], errors = added, with_it
        for name, move in product(list(chosen), _MOVES):
            own = chosen[name]
            for c in candidates:
                if c.term is own.term and c.place == own.place + move:
                    moved = tried(c)
                    if moved.mean() < errors.mean():
                        chosen[name], errors = c, moved
    return {name: _between(c, candidates, tried) for name, c in chosen.items()}


def _between(
    own: _Candidate, candidates: list[_Candidate], tried: Callable[[_Candidate], FloatArray]
) -> float:
    """Return the scale where a parabola through the errors of a term and its neighbours is least.

    On the places alone it would leap from one to the next with a little noise.
    """
    beside = [c for c in candidates if c.term is own.term and abs(c.place - own.place) == 1]
    if len(beside) < 2:
        return own.scale
    finer, here, coarser = (float(tried(c).mean()) for c in (beside[0], own, beside[1]))
    bend = finer - 2.0 * here + coarser
    shift = 0.5 * (finer - coarser) / bend if bend > 0.0 else 0.0
    return own.scale * float((beside[1].scale / own.scale) ** np.clip(shift, -0.5, 0.5))


def _errors(folds: _Folds, used: list[int], free: set[int]) -> FloatArray:
    """Return the log error of each stretch (f,), predicted from the others."""
    gram, moment = folds.gram[:, used][:, :, used], folds.moment[:, used]
    size = np.sqrt(np.maximum(np.diagonal(gram, axis1=1, axis2=2), np.finfo(float).tiny))
    gram = gram / (size[:, :, None] * size[:, None]) + _RIDGE * np.eye(len(used))
    x = _least_squares(gram, moment / size, np.array([k not in free for k in used])) / size
    square = folds.held_square - 2.0 * np.einsum("fk,fk->f", folds.held_moment[:, used], x)
    square += np.einsum("fk,fkl,fl->f", x, folds.held[:, used][:, :, used], x)
    return np.asarray(0.5 * np.log(np.maximum(square, 1e-300)))


def _least_squares(gram: FloatArray, moment: FloatArray, bound: BoolArray) -> FloatArray:
    """Return the least squares solutions (f, k) whose entries `bound` (k,) are not negative.

    Block principal pivoting for all `gram` (f, k, k) and `moment` (f, k) at once: Kim, J. and
    Park, H., Fast nonnegative matrix factorization: an active-set-like method and comparisons,
    SIAM J. Sci. Comput. 33(6), 2011.
    """
    places = np.arange(len(bound))
    within = 1e-12 * np.abs(moment).max(axis=1, keepdims=True)
    inside = np.ones(moment.shape, dtype=bool)
    least = np.full(len(moment), len(bound) + 1)
    tries = np.full(len(moment), _TRIES)
    for _ in range(_PIVOTS):
        both = inside[:, :, None] & inside[:, None]
        rest = np.where(inside, moment, 0.0)
        x = np.linalg.solve(np.where(both, gram, np.eye(len(bound))), rest[:, :, None])[:, :, 0]
        slope = np.einsum("fkl,fl->fk", gram, x) - moment
        wrong = bound & np.where(inside, x < 0.0, slope < -within)
        count = wrong.sum(axis=1)
        if not count.any():
            break
        tries = np.where(count < least, _TRIES, tries - 1)
        least = np.minimum(least, count)
        last = np.where(wrong, places, -1).max(axis=1, keepdims=True)
        inside ^= wrong & ((tries >= 0)[:, None] | (places == last))
    return np.where(bound, np.maximum(x, 0.0), x)
