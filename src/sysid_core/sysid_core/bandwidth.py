# SPDX-License-Identifier: Apache-2.0
"""Chooses the low-pass's cut-off by what predicts torque on held-out stretches of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.batch import Batch, batch_at, rows_of, training_rows
from sysid_core.dynamics.rows import Regression, Rows, select_rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import DataError, EstimationError
from sysid_core.estimation import Entropic, Problem
from sysid_core.signals import Aligned, CutoffChoice

__all__ = ["predictive_cutoff"]

_STEP = 1.5
"""Ratio of two rungs of the ladder: errors hardly change over less."""
_LOWEST = 1.0
"""Lowest rung [Hz]: a motion that is slower than this shows no inertia anyway."""
_STRETCHES = 16
"""Stretches that are held out in turn: enough to tell a difference from its standard error."""
_OVERSAMPLING = 4.0
"""Samples per period of the cut-off: twice what its band needs."""
_MOST_SAMPLES = 6000
"""Samples of one rung: more would not change the choice, but take longer."""


class _Rung(NamedTuple):
    """One cut-off [Hz]: statistics of each stretch, and what is learned without it (k, b)."""

    cutoff: float
    stretches: list[Statistics]
    learned: list[FloatArray]


def predictive_cutoff(
    aligned: Aligned,
    regression: Regression,
    problem: Callable[[Rows], Problem],
    *,
    train: float,
    still: float,
) -> CutoffChoice:
    """Return the highest cut-off that predicts held-out torque as well as any.

    The spectrum's choice is the upper bound: below it lies a ladder of cut-offs. At each rung the
    training part is cut into stretches, parameters are learned without one of them, and all of
    them predict the torque of that stretch at *every* rung, so that no rung is judged by its own,
    smoother target. Of the rungs whose mean log error exceeds the smallest by no more than one
    standard error over the stretches, the highest is taken: it keeps most of the data (Breiman et
    al. 1984, rule of one standard error).

    Parameters
    ----------
    aligned : Aligned
    regression : Regression
    problem : callable
        Makes the estimation problem of training rows.
    train : float [-]
        Share of the recording, from its start, that may be looked at.
    still : float [-]
        See `IdentifyConfig.still`.
    """
    bound = aligned.choice
    start, end = aligned.grids[0].time[0], aligned.grids[-1].time[-1]
    edges = np.linspace(start, start + train * (end - start), _STRETCHES + 1)
    rungs: list[_Rung] = []
    cutoff = bound.cutoff
    while cutoff >= min(_LOWEST, bound.cutoff):
        rung = _rung(aligned, cutoff, edges, regression, problem, still)
        if rung is not None:
            rungs.append(rung)
        cutoff /= _STEP
    if len(rungs) < 2:
        return bound
    errors = _errors(rungs)
    excess = errors - errors[np.argmin(errors.mean(axis=1))]
    usual = excess.std(axis=1, ddof=1) / np.sqrt(errors.shape[1])
    # the rungs descend, so the first that is as good as any is the highest
    chosen = int(np.argmax(excess.mean(axis=1) <= usual))
    if chosen == 0:
        return bound
    cutoff = rungs[chosen].cutoff
    worse = float(np.exp(errors[0].mean() - errors[chosen].mean()))
    reason = (
        f"{cutoff:.3g} Hz predicts held-out torque {worse:.2f} times better than "
        f"{bound.cutoff:.3g} Hz, which the spectrum would allow"
    )
    return replace(bound, cutoff=cutoff, reason=reason)


def _rung(
    aligned: Aligned,
    cutoff: float,
    edges: FloatArray,
    regression: Regression,
    problem: Callable[[Rows], Problem],
    still: float,
) -> _Rung | None:
    """Learn without each stretch in turn; None where the filter or the data are too short."""
    duration = edges[-1] - edges[0]
    oversampling = min(_OVERSAMPLING, _MOST_SAMPLES / (cutoff * duration))
    choice = CutoffChoice(cutoff, 0.0, 0.0, "")
    try:
        batch = batch_at(regression.robot, aligned, choice, oversampling)
        batch = batch.before(int(np.searchsorted(batch.samples.time, edges[-1])))
        if len(batch) < _STRETCHES:
            return None
        rows = _training(regression, batch, still)
        stretch = np.searchsorted(edges, batch.samples.time, side="right") - 1
        parts = [_statistics(rows, stretch == k) for k in range(_STRETCHES)]
        whole = problem(rows)
        estimator = Entropic(covariance="none")
        first = estimator.solve(whole)
        learned = []
        for k in range(_STRETCHES):
            others = [part for j, part in enumerate(parts) if j != k]
            kept = replace(
                whole,
                statistics=sum(others[1:], others[0]),
                rows=None,
                noise_std=first.noise_std,
            )
            learned.append(estimator.solve(kept, first.parameters).base_parameters)
    except (DataError, EstimationError):
        return None
    if any((part.count == 0.0).all() for part in parts):
        return None
    return _Rung(cutoff, parts, learned)


def _training(regression: Regression, batch: Batch, still: float) -> Rows:
    rows = rows_of(regression, batch)
    if not rows.finite:
        raise DataError("the samples hold gaps in a measured joint")
    return training_rows(regression, rows, batch, still)


def _statistics(rows: Rows, chosen: BoolArray) -> Statistics:
    """Return the statistics of the rows whose samples are chosen (n,)."""
    return Statistics.of(select_rows(rows, lambda _, block: chosen[block.sample]))


def _errors(rungs: list[_Rung]) -> FloatArray:
    """Return the log of each rung's error (rungs, stretches), the mean over all targets."""
    log = np.zeros((len(rungs), _STRETCHES))
    for r, rung in enumerate(rungs):
        for k, base_vector in enumerate(rung.learned):
            squares = [
                (target.stretches[k].residual_square(base_vector), target.stretches[k].count)
                for target in rungs
            ]
            totals = [np.sum(square / np.maximum(count, 1.0)) for square, count in squares]
            log[r, k] = 0.5 * np.mean(np.log(np.maximum(totals, 1e-300)))
    return log
