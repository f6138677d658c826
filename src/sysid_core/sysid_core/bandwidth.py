# SPDX-License-Identifier: Apache-2.0
"""Chooses the low-pass's cut-off, with friction, by what predicts held-out torque."""

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
from sysid_core.effort_lag import find_contact_lag, find_lag, without_presliding
from sysid_core.errors import DataError, EstimationError
from sysid_core.estimation import Entropic, Problem
from sysid_core.robot.model import Robot
from sysid_core.scores import is_clear
from sysid_core.signals.align import Aligned
from sysid_core.signals.cutoff import LEAST_BAND_FACTOR, CutoffChoice
from sysid_core.stretch_errors import log_errors, log_errors_of_each, sums_of

__all__ = ["Ladder"]

_STEP = 1.5
"""Ratio of two rungs of the ladder; at last, one halfway down is tried, too."""
_LOWEST = 1.0
"""Lowest rung [Hz]: a motion that is slower than this shows no inertia anyway."""
_STRETCHES = 16
"""Stretches that are held out in turn: enough to tell a difference from its standard error."""
_FEWEST = _STRETCHES // 2
"""Stretches with rows that a rung needs; others are all at rest, or beyond the robot's limits."""
_LIKELY = 1.0
"""Standard errors by which a lower rung must predict better: one that is taken by chance costs
little, and noise bends what a higher one learns more than its rows show."""
_CLEARLY = 0.01
"""Log ratio of errors by which it must: less is what chance, or another motion, changes anyway."""
_MANIFOLD = 0.7
"""The same on any rows where a rung between them was not better: only what spoils both that far
is noise."""
_UNEXPLAINED = 0.1
"""Share of the torque between two rungs that may be left unexplained where that is motion."""
_PATIENCE = 2
"""Rungs that must not be better: a vibration may pass the first as it passes those above."""
_OVERSAMPLING = 4.0
"""Samples per period of the cut-off: twice what its band needs."""
_MOST_SAMPLES = 3000
"""Samples of one rung: more would not change the choice, but take longer."""
_LAG_PAYS = float(np.log(1.5))
"""Log ratio of errors by which moving the efforts must predict better: friction felt late looks
like a small lag, and whoever holds a model to efforts as they came would find it worse."""
_CERTAIN = 2.0
"""Standard errors by which it must: one would often be chance."""
_LONGEST_LAG = 0.1
"""Lags [s] beyond are no driver's filter, but efforts that belong to another motion."""

_Settle = Callable[[Regression, Batch], Regression]
"""Returns a regression whose friction suits a batch."""


class _Rung(NamedTuple):
    """One cut-off [Hz]: its friction law and samples, and what they say."""

    cutoff: float  # [Hz]
    regression: Regression  # With the friction that was settled at this cut-off
    batch: Batch
    parts: list[Sums]  # Of each stretch's rows
    learned: list[FloatArray]  # each (b,) base parameters that are learned without each stretch


@dataclass(frozen=True)
class Ladder:
    """Cut-offs to choose from, each with the friction that its own samples show."""

    aligned: Aligned
    train: float  # [-] share of the recording, from its start, that may be looked at
    still: float  # [-] see `IdentifyConfig.still`
    settle: _Settle
    problem: Callable[[Regression, Statistics], Problem]
    """Makes the estimation problem of training rows' statistics."""
    worth: float = 0.0
    """Log ratio of errors, on its own rows, by which a rung must predict better than the top."""

    def choose(
        self, regression: Regression, choice: CutoffChoice
    ) -> tuple[CutoffChoice, Regression | None]:
        """Return the highest cut-off that predicts held-out torque as well as the next lower two.

        At each rung the training part is cut into stretches; friction is settled, parameters are
        learned without one of the stretches, and predict its torque. Noise in the accelerations
        pulls what a high rung learns towards zero, and a low rung's filter bends the motion; each
        predicts its own rows well by that. So two rungs are compared on the rows of the higher
        one, its motion whole, behind a low-pass below both, which takes the noise away (see
        `_excess`): from the top down, until the lower is not better (after Lepski 1991).

        Parameters
        ----------
        regression : Regression
            With the friction that the description names.
        choice : CutoffChoice
            The top. One that was given is only compared with the next lower.

        Returns
        -------
        CutoffChoice, Regression or None
            With the friction settled at the cut-off that is chosen or was given; None where no
            rung has data enough.
        """
        rungs = self._rungs(regression, choice)
        top = best = next(rungs, None)
        if top is None or best is None:
            return choice, None
        missed = 0
        for lower in rungs:
            if self._is_better(lower, best, choice.motion_band, again=missed > 0):
                best, missed = lower, 0
            elif (missed := missed + 1) == _PATIENCE:
                break
        if not choice.given:
            between = self._rung(best.regression, best.cutoff / np.sqrt(_STEP), self.settle)
            if between and self._is_better(between, best, choice.motion_band):
                best = between
        choice = replace(choice, cutoff=top.cutoff)
        if best is not top:
            excess = self._errors(top, best) - self._errors(best, best)
            if self.worth == 0.0 or is_clear(excess, self.worth, _CERTAIN):
                choice = choice.lowered(best.cutoff, float(np.exp(np.nanmean(excess))))
            else:
                best = top
        return self._with_lag(choice, top if choice.given else best)

    def _with_lag(self, choice: CutoffChoice, rung: _Rung) -> tuple[CutoffChoice, Regression]:
        """Return a choice with the lag of efforts, if held-out torque shows one, and its friction.

        Drivers that filter currents make efforts late, or positions, early. Friction that changes
        sign over a distance may have taken a lag's place: it stays where that predicts no better.
        """
        regression = rung.regression
        if regression.robot.floating:
            lag, gain = find_contact_lag(regression, rung.batch)
            pays = abs(lag) < _LONGEST_LAG and gain >= np.exp(_LAG_PAYS)
            return (replace(choice, lag=lag) if pays else choice), regression
        if not (regression.per_joint and regression.robot.is_tree):
            return choice, regression
        at_once = without_presliding(regression)
        plain = rung
        if at_once is not regression:
            plain = self._learned(rung.cutoff, at_once, rung.batch)
        measured = rung.batch.report.velocity == "measured"
        noise = Sums.total(plain.parts).statistics().rmse(np.mean(plain.learned, axis=0))

        def at(lag: float) -> Batch:
            return self._batch(regression.robot, rung.cutoff, lag, measured)

        lag, gain = find_lag(at_once, rung.batch, self.still, noise, at)
        if not abs(lag) < _LONGEST_LAG or gain < np.exp(_LAG_PAYS):
            return choice, regression
        timed = at(lag)
        again = self._learned(rung.cutoff, at_once, timed)
        excess = self._errors(plain, plain) - self._errors(again, again)
        if not is_clear(excess, _LAG_PAYS, _CERTAIN):
            return choice, regression
        # friction that was settled on late torques makes up for some of the lag
        settled = self.settle(at_once, timed)
        found, _ = find_lag(settled, rung.batch, self.still, noise, at)
        lag = found if abs(found) < _LONGEST_LAG else lag
        timed = at(lag)
        settled = self.settle(settled, timed)
        if plain is not rung:
            again = self._learned(rung.cutoff, settled, timed)
            if not is_clear(self._errors(rung, rung) - self._errors(again, again), 0.0, _LIKELY):
                return choice, regression
        return replace(choice, lag=lag), settled

    def _rungs(self, regression: Regression, choice: CutoffChoice) -> Iterator[_Rung]:
        """Yield the rungs that data suffice for, from the top down."""
        # what lies within the filter's reach, one period, was seen by what predicts it
        span = max(float(np.ptp(self._edges)), np.finfo(float).tiny)
        lowest = max(_LOWEST, _STRETCHES / span)
        steps = max(0, int(np.log(choice.cutoff / lowest) / np.log(_STEP)))
        if choice.given:
            top = self._rung(regression, choice.cutoff, self.settle)
            lower = top and self._rung(top.regression, choice.cutoff / _STEP, lambda own, _: own)
            yield from filter(None, (top, lower))
            return
        for k in range(steps + 1):
            rung = self._rung(regression, choice.cutoff / _STEP**k, self.settle)
            if rung is not None:
                regression = rung.regression
                yield rung

    @property
    def _edges(self) -> FloatArray:
        """Times [s] at which stretches begin and end."""
        grids = self.aligned.grids
        start, end = grids[0].time[0], grids[-1].time[-1]
        return np.linspace(start, start + self.train * (end - start), _STRETCHES + 1)

    def _batch(
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

    def _rung(self, regression: Regression, cutoff: float, settle: _Settle) -> _Rung | None:
        """Settle friction and learn; None where the filter or the data are too short."""
        try:
            batch = self._batch(regression.robot, cutoff)
            if len(batch) < _STRETCHES:
                return None
            rung = self._learned(cutoff, settle(regression, batch), batch)
            return rung if sum(part.count.any() for part in rung.parts) >= _FEWEST else None
        except (DataError, EstimationError):
            return None

    def _learned(self, cutoff: float, regression: Regression, batch: Batch) -> _Rung:
        """Learn without each stretch in turn."""
        parts = self._stretches(regression, batch)
        total = Sums.total(parts)
        whole = self.problem(regression, total.statistics())
        solve = Entropic(covariance="none").prepare(whole)
        found, learned = solve(whole), []
        whole = replace(whole, noise_std=found.noise_std)
        for part in parts:
            rest = Sums.total([total, part], np.array([1.0, -1.0]))
            found = solve(replace(whole, statistics=rest.statistics()), found.parameters)
            learned.append(found.base_parameters)
        return _Rung(cutoff, regression, batch, parts, learned)

    def _stretches(
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

    def _errors(self, learner: _Rung, judge: _Rung) -> FloatArray:
        """Return the log error of each stretch, learned at one rung, on the rows of another.

        A stretch without rows has NaN.
        """
        own = learner is judge
        parts = judge.parts if own else self._stretches(learner.regression, judge.batch)
        return log_errors(parts, learner.learned)

    def _excess(self, higher: _Rung, lower: _Rung, band: float) -> Iterator[FloatArray]:
        """Yield by how much (16,) log errors of the higher of two rungs exceed the other's.

        Rows of joints are those of the higher rung, low-passed as a whole a rung below the lower
        (the parallel filtering of Gautier 1997), as noise of either would flatter the higher, but
        as the lower is within the motion's band [Hz], where all that a filter bends would be gone,
        too, if the model explains the torque between the two: noise may pass for motion. First
        the error of all joints together counts, then each joint's for itself: noise may spoil what
        is learned of wrists long before it shows beside a shoulder's torque. Rows of contacts,
        whose axes turn with the robot, cannot be filtered: they are the lower one's.
        """
        if not higher.regression.per_joint:
            yield self._errors(higher, lower) - self._errors(lower, lower)
            return
        batch = self._dense(higher)
        cutoff = lower.cutoff / _STEP
        if lower.cutoff < LEAST_BAND_FACTOR * band:
            across = self._errors(lower, higher)
            cutoff = lower.cutoff if self._passes_motion(lower, higher, across) else cutoff
        rungs = (higher, lower)
        parts = [self._stretches(rung.regression, batch, cutoff) for rung in rungs]
        for errors in (log_errors, log_errors_of_each):
            above, below = (
                errors(own, rung.learned) for own, rung in zip(parts, rungs, strict=True)
            )
            yield above - below

    def _dense(self, rung: _Rung) -> Batch:
        """Return so many samples of each stretch, one after the other, as rows are learned from.

        They are as dense as a low-pass needs them.
        """
        batch = self._batch(rung.regression.robot, rung.cutoff, most=np.inf)
        time, count = batch.samples.time, _MOST_SAMPLES // _STRETCHES
        first = np.searchsorted(time, self._edges)
        place = np.arange(len(time)) - first[np.searchsorted(self._edges, time, side="right") - 1]
        return batch.select(place < count)

    def _is_better(self, lower: _Rung, higher: _Rung, band: float, again: bool = False) -> bool:
        """Whether the lower of two rungs predicts better, and leaves the motion's band [Hz] whole.

        `again`: where one between them was not better.
        """
        fair = higher.regression.per_joint
        least = _MANIFOLD if again else _CLEARLY
        if not any(is_clear(one, least, _LIKELY) for one in self._excess(higher, lower, band)):
            return False
        return fair or not self._cuts_motion(lower, higher, band)

    def _passes_motion(self, lower: _Rung, higher: _Rung, across: FloatArray) -> bool:
        """Whether the model explains the torque that only the higher of two rungs passes.

        It does not where noise of the positions predicts torques that nobody measured. `across`
        (16,) are the log errors of the lower one on the higher one's rows.
        """
        own = self._errors(lower, lower)
        left = float(np.nanmean(np.exp(2.0 * across) - np.exp(2.0 * own)))
        return left <= _UNEXPLAINED * (_power(higher) - _power(lower))

    def _cuts_motion(self, lower: _Rung, higher: _Rung, band: float) -> bool:
        """Whether the lower of two rungs filters motion away: what is left fits all the better.

        That is so if the model explains the torque that only the higher one passes, as it does not
        where noise of the positions predicts torques that nobody measured, and if it either lies
        in the motion's band [Hz] or loses more on the higher one's rows than it gains in R² on
        its own.
        """
        across = self._errors(lower, higher)
        if not self._passes_motion(lower, higher, across):
            return False
        below, above = (self._errors(rung, rung) for rung in (lower, higher))
        gain = float(np.nanmean(above - below)) - 0.5 * np.log(_power(higher) / _power(lower))
        return lower.cutoff < LEAST_BAND_FACTOR * band or gain < np.nanmean(across - above)


def _power(rung: _Rung) -> float:
    """Return the power [N²·m²] of the torques that a rung passes, less their means."""
    return float(rung.batch.samples.effort.var(axis=0).sum())
