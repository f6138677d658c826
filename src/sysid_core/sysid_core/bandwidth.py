# SPDX-License-Identifier: Apache-2.0
"""Chooses the low-pass's cut-off, with friction, by what predicts held-out torque."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.batch import Batch
from sysid_core.dynamics.rows import Regression
from sysid_core.dynamics.sums import Sums
from sysid_core.effort_lag import LAG_PAYS, LONGEST_LAG, contact_lag, find_lag, without_presliding
from sysid_core.rungs import LOWEST, STEP, Rung, Rungs
from sysid_core.scores import is_clear
from sysid_core.signals.cutoff import LEAST_BAND_FACTOR, CutoffChoice
from sysid_core.stretch_errors import log_errors, log_errors_of_each

__all__ = ["Ladder"]

_LIKELY = 1.0
"""Standard errors by which a lower rung must predict better: one that is taken by chance costs
little, and noise bends what a higher one learns more than its rows show."""
_CLEARLY = 0.01
"""Log ratio of errors by which it must: less is what chance, or another motion, changes anyway."""
_MANIFOLD = 0.7
"""The same on any rows where a rung between them was not better: only what spoils both that far
is noise."""
_UNEXPLAINED = 0.1
"""Share of a torque that may be left unexplained: of one rung's, or of that between two rungs
where it is motion."""
_PATIENCE = 2
"""Rungs that must not be better: a vibration may pass the first as it passes those above, and more
of them where it is most of the torque."""
_CERTAIN = 2.0
"""Standard errors by which it must: one would often be chance."""


@dataclass(frozen=True)
class Ladder(Rungs):
    """Cut-offs to choose from, each with the friction that its own samples show."""

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
        found, settled = self._chosen(regression, choice)
        if settled is None or found.lag or settled.robot.floating:
            return found, settled
        late = self._hidden_lag(settled, found)
        if not late:
            return found, settled
        grids = tuple(grid.with_efforts_earlier(late) for grid in self.aligned.grids)
        moved = replace(self, aligned=replace(self.aligned, grids=grids))
        found, settled = moved._chosen(regression, choice)
        return replace(found, lag=found.lag + late), settled

    def _hidden_lag(self, regression: Regression, choice: CutoffChoice) -> float:
        """Return the lag [s] of efforts that only shows where hardly more than the motion passes.

        Late torques spoil all rungs alike, so that a cut-off was chosen at which noise hides the
        lag; without it, another would be.
        """
        cutoff = max(LEAST_BAND_FACTOR * choice.motion_band, LOWEST)
        if not choice.motion_band or cutoff * STEP > choice.cutoff:
            return 0.0
        rung = self.rung(regression, cutoff, lambda own, _: own)
        return 0.0 if rung is None else self._with_lag(choice, rung)[0].lag

    def _chosen(
        self, regression: Regression, choice: CutoffChoice
    ) -> tuple[CutoffChoice, Regression | None]:
        """Go down the rungs; see `choose`."""
        rungs = self.rungs(regression, choice)
        top = best = next(rungs, None)
        if top is None or best is None:
            return choice, None
        missed = 0
        for lower in rungs:
            if self._is_better(lower, best, choice.motion_band, again=missed > 0):
                best, missed = lower, 0
            elif (missed := missed + 1) >= _PATIENCE and self._explains(best):
                break
        if not choice.given:
            between = self.rung(best.regression, best.cutoff / np.sqrt(STEP), self.settle)
            if between and self._is_better(between, best, choice.motion_band):
                best = between
        choice = replace(choice, cutoff=top.cutoff)
        if best is not top:
            excess = self.errors(top, best) - self.errors(best, best)
            if self.worth == 0.0 or is_clear(excess, self.worth, _CERTAIN):
                choice = choice.lowered(best.cutoff, float(np.exp(np.nanmean(excess))))
            else:
                best = top
        return self._with_lag(choice, top if choice.given else best)

    def _with_lag(self, choice: CutoffChoice, rung: Rung) -> tuple[CutoffChoice, Regression]:
        """Return a choice with the lag of efforts, if held-out torque shows one, and its friction.

        Drivers that filter currents make efforts late, or positions, early. Friction that changes
        sign over a distance may have taken a lag's place: it stays where that predicts no better.
        """
        regression = rung.regression
        if regression.robot.floating:
            return replace(choice, lag=contact_lag(regression, rung.batch)), regression
        at_once = without_presliding(regression)
        plain = rung
        if at_once is not regression:
            plain = self.learned(rung.cutoff, at_once, rung.batch)
        measured = rung.batch.report.velocity == "measured"
        noise = Sums.total(plain.parts).statistics().rmse(np.mean(plain.learned, axis=0))

        def at(lag: float) -> Batch:
            return self.batch(regression.robot, rung.cutoff, lag, measured)

        lag, gain = find_lag(at_once, rung.batch, self.still, noise, at)
        if not abs(lag) < LONGEST_LAG or gain < np.exp(LAG_PAYS):
            return choice, regression
        timed = at(lag)
        again = self.learned(rung.cutoff, at_once, timed)
        excess = self.errors(plain, plain) - self.errors(again, again)
        if not is_clear(excess, LAG_PAYS, _CERTAIN):
            return choice, regression
        # friction that was settled on late torques makes up for some of the lag
        settled = self.settle(at_once, timed)
        found, _ = find_lag(settled, rung.batch, self.still, noise, at)
        lag = found if abs(found) < LONGEST_LAG else lag
        timed = at(lag)
        settled = self.settle(settled, timed)
        if plain is not rung:
            again = self.learned(rung.cutoff, settled, timed)
            if not is_clear(self.errors(rung, rung) - self.errors(again, again), 0.0, _LIKELY):
                return choice, regression
        return replace(choice, lag=lag), settled

    def _excess(self, higher: Rung, lower: Rung, band: float) -> Iterator[FloatArray]:
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
            yield self.errors(higher, lower) - self.errors(lower, lower)
            return
        batch = self.dense(higher)
        cutoff = lower.cutoff / STEP
        if lower.cutoff < LEAST_BAND_FACTOR * band:
            across = self.errors(lower, higher)
            cutoff = lower.cutoff if self._passes_motion(lower, higher, across) else cutoff
        above = below = self.stretches(higher.regression, batch, cutoff)
        if lower.regression is not higher.regression:
            below = self.stretches(lower.regression, batch, cutoff)
        for errors in (log_errors, log_errors_of_each):
            yield errors(above, higher.learned) - errors(below, lower.learned)

    def _explains(self, rung: Rung) -> bool:
        """Whether the model explains a rung's torque: else what spoils it may lie far below."""
        left = float(np.nanmean(np.exp(2.0 * self.errors(rung, rung))))
        return left <= _UNEXPLAINED * rung.power

    def _is_better(self, lower: Rung, higher: Rung, band: float, again: bool = False) -> bool:
        """Whether the lower of two rungs predicts better, and leaves the motion's band [Hz] whole.

        `again`: where one between them was not better.
        """
        fair = higher.regression.per_joint
        least = _MANIFOLD if again else _CLEARLY
        if not any(is_clear(one, least, _LIKELY) for one in self._excess(higher, lower, band)):
            return False
        return fair or not self._cuts_motion(lower, higher, band)

    def _passes_motion(self, lower: Rung, higher: Rung, across: FloatArray) -> bool:
        """Whether the model explains the torque that only the higher of two rungs passes.

        It does not where noise of the positions predicts torques that nobody measured. `across`
        (16,) are the log errors of the lower one on the higher one's rows.
        """
        own = self.errors(lower, lower)
        left = float(np.nanmean(np.exp(2.0 * across) - np.exp(2.0 * own)))
        return left <= _UNEXPLAINED * (higher.power - lower.power)

    def _cuts_motion(self, lower: Rung, higher: Rung, band: float) -> bool:
        """Whether the lower of two rungs filters motion away: what is left fits all the better.

        That is so if the model explains the torque that only the higher one passes, as it does not
        where noise of the positions predicts torques that nobody measured, and if it either lies
        in the motion's band [Hz] or loses more on the higher one's rows than it gains in R² on
        its own.
        """
        across = self.errors(lower, higher)
        if not self._passes_motion(lower, higher, across):
            return False
        below, above = (self.errors(rung, rung) for rung in (lower, higher))
        gain = float(np.nanmean(above - below)) - 0.5 * np.log(higher.power / lower.power)
        return lower.cutoff < LEAST_BAND_FACTOR * band or gain < np.nanmean(across - above)
