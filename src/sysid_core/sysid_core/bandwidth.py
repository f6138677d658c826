# SPDX-License-Identifier: Apache-2.0
"""Chooses the low-pass's cut-off by what predicts torque on held-out stretches of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.batch import Batch, batch_at, rest_speed, rows_of, training_rows
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
_CERTAIN = 2.0
"""Standard errors by which a lower rung must predict better: one would often be chance."""
_CLEARLY = 0.02
"""Log ratio of errors by which it must: less is what another motion changes anyway."""
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
    rungs: int | None = None,
) -> CutoffChoice:
    """Return the highest cut-off that predicts held-out torque as well as the next lower one.

    The spectrum's choice is the upper bound: below it lies a ladder of cut-offs. At each rung the
    training part is cut into stretches, parameters are learned without one of them, and all of
    them predict the torque of that stretch at every rung. Noise in the accelerations pulls what a
    high rung learns towards zero; it predicts its own noisy rows well by that, but not those of
    lower rungs. So two neighbours are compared on the targets up to the lower of them, from the
    top down, until the lower one is not clearly better (after Lepski 1991). Neighbours, because
    what the model lacks looks smaller after a lower filter, and more so the further down.

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
    rungs : int, optional
        Look at no more cut-offs than so many.
    """
    bound = aligned.choice
    start, end = aligned.grids[0].time[0], aligned.grids[-1].time[-1]
    edges = np.linspace(start, start + train * (end - start), _STRETCHES + 1)
    ladder: list[_Rung] = []
    cutoff = bound.cutoff
    while cutoff >= min(_LOWEST, bound.cutoff) and len(ladder) != rungs:
        rung = _rung(aligned, cutoff, edges, regression, problem, still)
        if rung is not None:
            ladder.append(rung)
        cutoff /= _STEP
    if len(ladder) < 2:
        return bound
    errors = _errors(ladder)
    # the rungs descend, so the first that its neighbour does not beat is the highest
    chosen = next(r for r in range(len(ladder)) if not _is_beaten(errors, r))
    if chosen == 0:
        return bound
    cutoff = ladder[chosen].cutoff
    worse = float(np.exp(np.mean(errors[0, chosen:] - errors[chosen, chosen:])))
    reason = (
        f"{cutoff:.3g} Hz predicts held-out torque {worse:.2f} times better than "
        f"{bound.cutoff:.3g} Hz, "
        + ("which was asked for" if bound.given else "which the spectrum would allow")
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
    return training_rows(regression, rows, batch, rest_speed(batch.samples, still))


def _statistics(rows: Rows, chosen: BoolArray) -> Statistics:
    """Return the statistics of the rows whose samples are chosen (n,)."""
    return Statistics.of(select_rows(rows, lambda _, block: chosen[block.sample]))


def _errors(rungs: list[_Rung]) -> FloatArray:
    """Return the log error of each rung on each rung's targets (rungs, rungs, stretches)."""
    log = np.zeros((len(rungs), len(rungs), _STRETCHES))
    for r, rung in enumerate(rungs):
        for k, base_vector in enumerate(rung.learned):
            for t, target in enumerate(rungs):
                part = target.stretches[k]
                mean = part.residual_square(base_vector) / np.maximum(part.count, 1.0)
                log[r, t, k] = 0.5 * np.log(max(float(mean.sum()), 1e-300))
    return log


def _is_beaten(errors: FloatArray, rung: int) -> bool:
    """Whether the next lower rung predicts targets up to its own clearly better."""
    if rung + 1 == len(errors):
        return False
    excess = np.mean(errors[rung, rung + 1 :] - errors[rung + 1, rung + 1 :], axis=0)
    usual = float(excess.std(ddof=1)) / np.sqrt(len(excess))
    return bool(excess.mean() > max(_CERTAIN * usual, _CLEARLY))
