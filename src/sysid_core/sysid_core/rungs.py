# SPDX-License-Identifier: Apache-2.0
"""Cut-offs that are compared: samples, friction, and what is learned without each stretch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.batch import (
    Batch,
    batch_at,
    learning_rows,
    low_passed,
    rest_speed,
    rows_of,
    training_rows,
)
from sysid_core.dynamics.rows import Regression
from sysid_core.dynamics.statistics import Statistics
from sysid_core.dynamics.sums import Places, Sums
from sysid_core.errors import DataError, EstimationError
from sysid_core.estimation import Entropic, Problem
from sysid_core.robot.model import Robot
from sysid_core.signals.align import Aligned
from sysid_core.signals.cutoff import CutoffChoice
from sysid_core.stretch_errors import log_errors, sums_of

__all__ = ["LOWEST", "STEP", "Rung", "Rungs"]

STEP = 1.5
"""Ratio of two rungs of the ladder; at last, one halfway down is tried, too."""
LOWEST = 1.0
"""Lowest rung [Hz]: a motion that is slower than this shows no inertia anyway."""
_STRETCHES = 16
"""Stretches that are held out in turn: enough to tell a difference from its standard error."""
_FEWEST = _STRETCHES // 2
"""Stretches with rows that a rung needs; others are all at rest, or beyond the robot's limits."""
_OVERSAMPLING = 4.0
"""Samples per period of the cut-off: twice what its band needs."""
_MOST_SAMPLES = 3000
"""Samples of one rung: more would not change the choice, but take longer."""

_Settle = Callable[[Regression, Batch], Regression]
"""Returns a regression whose friction suits a batch."""


class Rung(NamedTuple):
    """One cut-off [Hz]: its friction law and samples, and what they say."""

    cutoff: float  # [Hz]
    regression: Regression  # With the friction that was settled at this cut-off
    batch: Batch
    parts: list[Sums]  # Of each stretch's rows
    learned: list[FloatArray]  # each (b,) base parameters that are learned without each stretch

    @property
    def power(self) -> float:
        """Power [N²·m²] of the torques that it passes, less their means.

        Passive joints have none.
        """
        return float(np.nansum(self.batch.samples.effort.var(axis=0)))


@dataclass(frozen=True)
class Rungs:
    """A recording at any cut-off, each with the friction that its own samples show."""

    aligned: Aligned
    train: float  # [-] share of the recording, from its start, that may be looked at
    still: float  # [-] see `IdentifyConfig.still`
    settle: _Settle
    problem: Callable[[Regression, Statistics], Problem]
    """Makes the estimation problem of training rows' statistics."""

    def rungs(self, regression: Regression, choice: CutoffChoice) -> Iterator[Rung]:
        """Yield the rungs that data suffice for, from the top down."""
        # what lies within the filter's reach, one period, was seen by what predicts it
        span = max(float(np.ptp(self._edges)), np.finfo(float).tiny)
        lowest = max(LOWEST, _STRETCHES / span)
        steps = max(0, int(np.log(choice.cutoff / lowest) / np.log(STEP)))
        if choice.given:
            top = self.rung(regression, choice.cutoff, self.settle)
            lower = top and self.rung(top.regression, choice.cutoff / STEP, lambda own, _: own)
            yield from filter(None, (top, lower))
            return
        for k in range(steps + 1):
            rung = self.rung(regression, choice.cutoff / STEP**k, self.settle)
            if rung is not None:
                regression = rung.regression
                yield rung

    @property
    def _edges(self) -> FloatArray:
        """Times [s] at which stretches begin and end."""
        grids = self.aligned.grids
        start, end = grids[0].time[0], grids[-1].time[-1]
        return np.linspace(start, start + self.train * (end - start), _STRETCHES + 1)

    def batch(
        self,
        robot: Robot,
        cutoff: float,
        lag: float = 0.0,
        measured: bool | None = None,
        most: float = _MOST_SAMPLES,
    ) -> Batch:
        """Return the samples to learn from; `measured` as in `filter_aligned`."""
        edges = self._edges
        oversampling = min(_OVERSAMPLING, most / (cutoff * (edges[-1] - edges[0])))
        choice = CutoffChoice(cutoff, 0.0, 0.0, "", lag=lag)
        batch = batch_at(robot, self.aligned, choice, oversampling, measured=measured)
        return batch.before(int(np.searchsorted(batch.samples.time, edges[-1])))

    def rung(self, regression: Regression, cutoff: float, settle: _Settle) -> Rung | None:
        """Settle friction and learn; None where the filter or the data are too short."""
        try:
            batch = self.batch(regression.robot, cutoff)
            if len(batch) < _STRETCHES:
                return None
            rung = self.learned(cutoff, settle(regression, batch), batch)
            return rung if sum(part.count.any() for part in rung.parts) >= _FEWEST else None
        except (DataError, EstimationError):
            return None

    def learned(self, cutoff: float, regression: Regression, batch: Batch) -> Rung:
        """Learn without each stretch in turn."""
        parts = self.stretches(regression, batch)
        total = Sums.total(parts)
        whole = self.problem(regression, total.statistics())
        solve = Entropic(covariance="none").prepare(whole)
        found, learned = solve(whole), []
        whole = replace(whole, noise_std=found.noise_std)
        for part in parts:
            rest = Sums.total([total, part], np.array([1.0, -1.0]))
            found = solve(replace(whole, statistics=rest.statistics()), found.parameters)
            learned.append(found.base_parameters)
        return Rung(cutoff, regression, batch, parts, learned)

    def stretches(
        self, regression: Regression, batch: Batch, cutoff: float | None = None
    ) -> list[Sums]:
        """Return the sums over each stretch's rows, behind another low-pass if given [Hz]."""
        if cutoff is None:
            rows = learning_rows(regression, batch, self.still)
        else:
            rest = rest_speed(batch.samples, self.still)
            rows = low_passed(rows_of(regression, batch), batch, cutoff)
            rows = training_rows(regression, rows, batch, rest)
        stretch = np.searchsorted(self._edges, batch.samples.time, side="right") - 1
        places = Places.of(regression)
        return [sums_of(places, rows, stretch == k) for k in range(_STRETCHES)]

    def errors(self, learner: Rung, judge: Rung) -> FloatArray:
        """Return the log error of each stretch, learned at one rung, on the rows of another.

        A stretch without rows has NaN.
        """
        alike = learner.regression is judge.regression
        parts = judge.parts if alike else self.stretches(learner.regression, judge.batch)
        return log_errors(parts, learner.learned)

    def dense(self, rung: Rung) -> Batch:
        """Return so many samples of each stretch, one after the other, as rows are learned from.

        They are as dense as a low-pass needs them.
        """
        batch = self.batch(rung.regression.robot, rung.cutoff, most=np.inf)
        time, count = batch.samples.time, _MOST_SAMPLES // _STRETCHES
        first = np.searchsorted(time, self._edges)
        place = np.arange(len(time)) - first[np.searchsorted(self._edges, time, side="right") - 1]
        return batch.select(place < count)
