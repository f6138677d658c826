# SPDX-License-Identifier: Apache-2.0
"""Chooses friction terms for each joint by what predicts torque on held-out stretches."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.batch import Batch, rest_speed, rows_of, training_rows
from sysid_core.dynamics.friction import FRICTION, FrictionTerm, JointMotion, smooth_sign
from sysid_core.dynamics.rows import PerJoint, Regression, Rows
from sysid_core.dynamics.select import make_regression
from sysid_core.estimation import Entropic, Problem

__all__ = ["FrictionChoice", "choose_friction"]

_STRETCHES = 16
"""Stretches that are held out in turn: enough to tell a difference from its standard error."""
_LEAST = _STRETCHES // 2
"""Stretches with motion that a joint needs: fewer tell nothing of how its friction varies."""
_SPEEDS = (0.02, 0.04, 0.08, 0.16, 0.32)
"""Where friction may bend, as shares of a joint's top speed: halfway, errors change by 3 %."""
_WORTH = 1.05
"""Ratio of errors that makes a term worth having: the low-pass makes up less than that [-]."""
_DISTORTION = 1e-3
"""Share of a joint's torque below which errors are the filter's: no term mends them [-]."""
_RIDGE = 1e-9
"""Added to Gram matrices of unit columns, so that two that agree can be told apart."""


class _Candidate(NamedTuple):
    """A term with its scale, and its column among those of a joint."""

    term: FrictionTerm
    scale: float
    column: int


class _Fold(NamedTuple):
    """Gram matrix, moment and square of a joint's rows without a stretch, and of the stretch."""

    gram: FloatArray
    moment: FloatArray
    held: FloatArray
    held_moment: FloatArray
    held_square: float


_LOAD_ROUNDS = 2
"""First estimates for the load that friction takes: a third would move it by a thousandth."""
_CHOICES: tuple[Callable[[FrictionTerm], bool], ...] = (
    lambda term: term.lower == 0.0,
    lambda term: True,
)
"""Terms to choose from: at first none that could make up for what friction did to gravity."""


@dataclass(frozen=True)
class FrictionChoice:
    """Settles the friction law of a regression by samples to learn from.

    Attributes
    ----------
    problem : callable
        Makes the estimation problem of training rows.
    still : float [-]
        See `rest_speed`.
    choose : bool
        Whether terms may be added to those that the description names.
    """

    problem: Callable[[Regression, Rows], Problem]
    still: float
    choose: bool

    def __call__(self, regression: Regression, batch: Batch) -> Regression:
        """Return a regression with terms for each joint, and the load of a first estimate."""
        robot = regression.robot
        known = robot.description
        described = known.friction_chosen or "friction" in known.effort_excludes
        choose = self.choose and robot.is_tree and not described
        if not choose and not robot.load_friction:
            return regression
        rows = self._rows(regression, batch)
        if sum(len(block.target) for block in rows.blocks) < regression.base.size:
            return regression
        parameters = self._solution(regression, rows)
        for among in _CHOICES if choose else ():
            chosen = choose_friction(regression, batch, rows, parameters, among)
            if chosen != regression.robot.description.friction_chosen:
                regression = make_regression(robot.with_friction(chosen))
                regression.assume_load(parameters)
                rows = self._rows(regression, batch)
                parameters = self._solution(regression, rows)
        for _ in range(_LOAD_ROUNDS if regression.robot.load_friction else 0):
            parameters = self._solution(regression, regression.with_load(rows, parameters))
        regression.assume_load(parameters)
        return regression

    def _rows(self, regression: Regression, batch: Batch) -> Rows:
        rest = rest_speed(batch.samples, self.still)
        return training_rows(regression, rows_of(regression, batch), batch, rest)

    def _solution(self, regression: Regression, rows: Rows) -> FloatArray:
        return Entropic(covariance="none").solve(self.problem(regression, rows)).parameters


def choose_friction(
    regression: Regression,
    batch: Batch,
    rows: Rows,
    parameters: FloatArray,
    among: Callable[[FrictionTerm], bool],
) -> dict[str, dict[str, float]]:
    """Return the terms that each joint has or gains from: joint → term → scale.

    The rigid bodies and the coupled motors are taken from an estimate by the present law; what
    they leave of each joint's torque is fitted by non-negative least squares. Terms are added one
    by one. One stays if held-out stretches are predicted better by more than one standard error
    over the stretches, and by more than noise does: where nothing predicts better, the law stays.

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
    among : callable
        Which terms may be added.
    """
    robot = regression.robot
    if not (isinstance(regression, PerJoint) and robot.is_tree):
        return {}
    chosen = {joint: dict(terms) for joint, terms in robot.description.friction_chosen.items()}
    edges = np.linspace(0, len(batch), _STRETCHES + 1)
    loads = regression.rigid_torques(rows, parameters)
    residuals = rows.residuals(regression.base.project(parameters))
    for j, (block, load) in enumerate(zip(rows.blocks, loads, strict=True)):
        present = [
            (term, float(scales[j]))
            for term, scales in zip(FRICTION, robot.friction_scales, strict=True)
            if scales[j] > 0.0 and (term.chosen or term.name in robot.description.friction_terms)
        ]
        motion = _motion(regression, batch, block.sample, j, load)
        offered = [
            (term, scale)
            for term in FRICTION
            if term.chosen and among(term) and term not in dict(present)
            for scale in _scales(term, motion)
        ]
        candidates = [_Candidate(*pair, k) for k, pair in enumerate(offered, len(present))]
        columns = _columns(motion, [*present, *offered])
        values = np.array([parameters[robot.layout.term(term.name)][j] for term, _ in present])
        own = columns[:, : len(present)] @ values
        stretch = np.searchsorted(edges, block.sample, side="right") - 1
        power = float(block.target @ block.target) / max(len(block.target), 1)
        folds = _folds(columns, residuals[j] + own, stretch, _DISTORTION**2 * power)
        if len(folds) >= _LEAST:
            terms = _forward(folds, [term for term, _ in present], candidates)
            if terms:
                chosen.setdefault(robot.joint_names[j], {}).update(terms)
    return chosen


def _motion(
    regression: PerJoint, batch: Batch, sample: IndexArray, j: int, load: FloatArray
) -> JointMotion:
    """Return a joint's motion (m,) at its rows."""
    samples, width = batch.samples, regression.robot.description.coulomb_velocity
    velocity = samples.velocity[sample, j]
    return JointMotion(
        samples.position[sample, j],
        velocity,
        samples.acceleration[sample, j],
        smooth_sign(velocity, width) * batch.sign_factor[sample, j],
        np.abs(load),
    )


def _scales(term: FrictionTerm, motion: JointMotion) -> tuple[float, ...]:
    """Return the scales to try of a term."""
    if term.scale_unit == "-":
        return (1.0,)
    top = float(np.abs(motion.velocity).max(initial=0.0))
    return tuple(share * top for share in _SPEEDS) if top > 0.0 else ()


def _columns(motion: JointMotion, terms: Sequence[tuple[FrictionTerm, float]]) -> FloatArray:
    """Return the columns (m, k) of terms with their scales."""
    columns = [
        np.ones_like(motion.velocity)
        if term.column is None
        else term.column(motion._replace(scale=scale))
        for term, scale in terms
    ]
    return np.stack(columns, axis=1)


def _folds(
    columns: FloatArray, target: FloatArray, stretch: IndexArray, unexplained: float
) -> list[_Fold]:
    """Return what is learned from without each stretch that has rows, in turn.

    `unexplained` [N²·m²] is the mean square of errors that nothing explains.
    """
    parts = [(columns[stretch == k], target[stretch == k]) for k in range(_STRETCHES)]
    grams = np.array([A.T @ A for A, _ in parts])
    moments = np.array([A.T @ b for A, b in parts])
    return [
        _Fold(
            grams.sum(axis=0) - grams[k],
            moments.sum(axis=0) - moments[k],
            grams[k] / len(b),
            moments[k] / len(b),
            float(b @ b) / len(b) + unexplained,
        )
        for k, (_, b) in enumerate(parts)
        if len(b)
    ]


def _forward(
    folds: list[_Fold], least: list[FrictionTerm], candidates: list[_Candidate]
) -> dict[str, float]:
    """Add terms one by one while held-out stretches gain from it; return their scales.

    Where a term bends depends on what stands beside it, so all are moved after each addition.
    """
    free = {k for k, term in enumerate(least) if term.lower < 0.0}
    free |= {c.column for c in candidates if c.term.lower < 0.0}
    chosen: dict[str, _Candidate] = {}

    def best(names: Container[str]) -> tuple[_Candidate, FloatArray] | None:
        """Return what predicts best of terms that are added, or moved, and its errors."""
        trials = []
        for c in candidates:
            if c.term.name in names:
                used = {**chosen, c.term.name: c}.values()
                columns = [*range(len(least)), *(each.column for each in used)]
                trials.append((c, _errors(folds, columns, free)))
        return min(trials, key=lambda trial: float(trial[1].mean()), default=None)

    errors = _errors(folds, list(range(len(least))), free)
    while found := best({c.term.name for c in candidates} - chosen.keys()):
        gain = errors - found[1]
        usual = float(gain.std(ddof=1)) / np.sqrt(len(gain))
        if float(gain.mean()) <= max(usual, float(np.log(_WORTH))):
            break
        chosen[found[0].term.name], errors = found
        for name in list(chosen):
            if moved := best({name}):
                chosen[name], errors = moved
    return {name: c.scale for name, c in chosen.items()}


def _errors(folds: list[_Fold], used: list[int], free: set[int]) -> FloatArray:
    """Return the log error of each stretch (folds,), predicted from the others."""
    log = np.empty(len(folds))
    signed = [i for i, k in enumerate(used) if k in free]
    for f, fold in enumerate(folds):
        x = _non_negative(fold.gram[np.ix_(used, used)], fold.moment[used], signed)
        square = fold.held_square - 2.0 * fold.held_moment[used] @ x
        square += x @ fold.held[np.ix_(used, used)] @ x
        log[f] = 0.5 * np.log(max(float(square), 1e-300))
    return log


def _non_negative(gram: FloatArray, moment: FloatArray, free: list[int]) -> FloatArray:
    """Return the least squares solution, of which only the entries `free` may be negative."""
    size = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    bound = [k for k in range(len(moment)) if k not in free]
    G, g = gram / np.outer(size, size) + _RIDGE * np.eye(len(size)), moment / size
    x: FloatArray = np.linalg.solve(G, g)
    if (x[bound] >= 0.0).all():
        return x / size
    inner = np.linalg.solve(G[np.ix_(free, free)], np.column_stack([G[free][:, bound], g[free]]))
    reduced = G[np.ix_(bound, bound)] - G[np.ix_(bound, free)] @ inner[:, :-1]
    values, axes = np.linalg.eigh(reduced)  # of alike columns round-off leaves less than the ridge
    roots = np.sqrt(np.maximum(values, _RIDGE))
    moment = axes.T @ (g[bound] - G[np.ix_(bound, free)] @ inner[:, -1])
    x[bound] = nnls(roots[:, None] * axes.T, moment / roots)[0]
    x[free] = inner[:, -1] - inner[:, :-1] @ x[bound]
    return x / size
