# SPDX-License-Identifier: Apache-2.0
"""Follows a payload from the step in the innovations until it is part of the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.statistics import Statistics
from sysid_core.online.model_in_use import ModelInUse
from sysid_core.online.payload import PayloadEstimate, PayloadEstimator
from sysid_core.online.payload_phases import (
    Alarmed,
    Carrying,
    Following,
    Phase,
    Starting,
    Watching,
)
from sysid_core.online.settings import CORRELATION
from sysid_core.online.window import SlidingWindow

__all__ = ["PayloadTracker"]

_WINDOW = 0.5
"""Span of innovations that a step is looked for in: longer delays, shorter is noisier [s]."""

_RISE = 2.0
"""Factor by which the innovations must rise above their usual size [-]."""

_ALARM = 0.7
"""Share of the rise that counts as a step from which on nothing new is adopted [-]."""

_NEGLIGIBLE = 0.01
"""Torque errors below this share of a joint's torque count as that share [-]."""

_PATIENCE = 2.0
"""Windows after an alarm in which a payload may still be recognised."""

_SETTLE = 3.0
"""Time after which a payload becomes part of the model and learning goes on [s]."""

_KEEP = 0.25
"""Weight that data from before the step keep, moved by the payload's estimate [-]."""

_EXPLAINED = 0.6
"""Share of the innovations' power that a payload must explain: friction that doubles stays below,
loads reach 0.9 [-]."""

_SIGNIFICANCE = 5.0
"""Mass over its standard deviation from which a payload counts as real [-]."""


class PayloadTracker:
    """Detects that a payload changed, and estimates it against the robot without one.

    Parameters
    ----------
    estimator : PayloadEstimator
    sample_rate : float [Hz]

    Attributes
    ----------
    phase : Starting, Watching, Alarmed or Following
    carried : Carrying or None
        The load that is part of the model.
    estimate : PayloadEstimate or None
        Of the newest load, real or not.
    attached : bool
        Whether that load counts as real.
    detected_after : float [s]
        Between its step and its detection.
    """

    def __init__(
        self,
        estimator: PayloadEstimator,
        sample_rate: float,
    ) -> None:
        self.phase: Phase = Starting()
        self.carried: Carrying | None = None
        self.estimate: PayloadEstimate | None = None
        self.attached = False
        self.detected_after = 0.0
        self._estimator = estimator
        self._rate = sample_rate

    def look(self, window: SlidingWindow, model: ModelInUse, time: float) -> Diagnostic | None:
        """Compare the newest innovations with the usual ones; begins to follow on a step.

        Returns
        -------
        Diagnostic or None
            That the innovations rose but no payload explains them.

        Raises
        ------
        EstimationError
            If rounding defeats the estimate.
        """
        samples = self.window_samples
        recent = window.recent(samples)
        if recent.count.sum() == 0.0 or window.samples < samples:
            return None
        error, negligible = _errors(recent, model.base)
        anew = Watching(np.maximum(error, negligible), 0.0, time, ((time, model),))
        before = self.phase.before if isinstance(self.phase, Alarmed) else self.phase
        if not isinstance(before, Watching) or time < before.looked:
            self.phase = anew
            return None
        seen = recent.count > 0.0
        # totals, as a joint that hardly moved until now has no usual size to speak of
        usual = np.maximum(before.usual, negligible)
        rise = float(np.sqrt(error[seen].sum() / usual[seen].sum()))
        if rise < _ALARM * _RISE:
            self.phase = before.learned(anew.usual, model, time, _WINDOW)
            return None
        if before.watched < _WINDOW:
            return None
        alarm = self.phase if isinstance(self.phase, Alarmed) else Alarmed(before, time)
        self.phase = alarm
        if rise >= _RISE and self._recognised(alarm, recent, model, window, time):
            return None
        if time - alarm.since > _SETTLE:
            # no payload came of it: this is how the robot is now
            self.phase = anew
        return Diagnostic(
            "torque_errors_rose",
            f"the torque errors are {rise:.1f} times their usual size and no payload explains "
            "them",
            hint="look at friction, sensors and contacts",
        )

    def _recognised(
        self,
        alarm: Alarmed,
        recent: Statistics,
        model: ModelInUse,
        window: SlidingWindow,
        time: float,
    ) -> bool:
        """Begin to follow a payload if one explains the innovations."""
        usual = alarm.before.usual
        # the step lies before the alarm, so the model is taken from a while before that
        empty = alarm.before.calm[0][1] if self.carried is None else self.carried.empty
        found = self._estimate(recent, empty, usual)
        before = recent.residual_square(model.base) / usual
        loaded = empty.base + self._estimator.base_shift(found.parameters)
        after = recent.residual_square(loaded) / usual
        known = self.estimate.mass if self.attached and self.estimate is not None else 0.0
        if 1.0 - float(after.sum() / before.sum()) < _EXPLAINED or not self._significant(
            abs(found.mass - known), found.mass_std
        ):
            return False
        samples = self.window_samples
        newest = window.recent(max(1, samples // 2))
        older = samples + round((time - alarm.since) * self._rate)
        shift = np.zeros_like(empty.base)
        if self.attached and self.estimate is not None:
            shift = self._estimator.base_shift(self.estimate.parameters)
        self.phase = Following(
            usual=usual,
            empty=empty,
            load=found,
            attached=self.attached,
            before=window.older(older) + window.memory,
            shift=shift,
            first=newest,
            since=Statistics.zero(*newest.moment.shape),
            samples=0,
            clean=False,
            started=time,
        )
        self.estimate, self.detected_after = found, time - alarm.since
        return True

    def push(self, statistics: Statistics, samples: int) -> None:
        """Add samples taken since the step."""
        if isinstance(self.phase, Following):
            since = self.phase.since + statistics
            self.phase = replace(self.phase, since=since, samples=self.phase.samples + samples)

    def refined(self, phase: Following) -> bool:
        """Estimate the payload anew from the samples since the step was noticed.

        What was seen until then serves only until enough have come since. Returns whether this
        estimate is the first without it.

        Raises
        ------
        EstimationError
            If rounding defeats the estimate.
        """
        clean = phase.samples >= _WINDOW * self._rate
        seen = phase.since if clean else phase.since + phase.first
        found = self._estimate(seen, phase.empty, phase.usual)
        attached = self._significant(found.mass, found.mass_std)
        self.phase = replace(phase, load=found, attached=attached, clean=clean)
        self.estimate, self.attached = found, attached
        return clean and not phase.clean

    def model_of(self, phase: Following, std: FloatArray) -> ModelInUse:
        """Return the robot with its payload; `std` (p,) are the deviations to tell."""
        model = replace(phase.empty, std=std, identified=True)
        if not phase.attached:
            return model
        return replace(
            model,
            parameters=self._estimator.add_to(model.parameters, phase.load.parameters),
            base=model.base + self._estimator.base_shift(phase.load.parameters),
        )

    def settled(self, phase: Following, time: float) -> bool:
        """Whether enough was seen of the payload to make it part of the model."""
        return time - phase.started >= _SETTLE

    def finish(self, phase: Following) -> Statistics:
        """End the episode; returns the data that the window should remember."""
        shift = -phase.shift
        if phase.attached:
            shift = shift + self._estimator.base_shift(phase.load.parameters)
        self.abandon(phase)
        return phase.before.shifted(shift).scaled(_KEEP)

    def abandon(self, phase: Following) -> None:
        """End the episode without result."""
        self.carried = Carrying(phase.empty, phase.load) if phase.attached else None
        self.phase = Starting()

    def undecided(self, time: float) -> bool:
        """Whether it is too early to tell if a payload made the errors rise.

        What is compared holds enough of the new samples only some windows after the alarm; until
        then a poor prediction does not speak against the model.
        """
        phase = self.phase
        return isinstance(phase, Alarmed) and time - phase.since <= _PATIENCE * _WINDOW

    def forget(self) -> None:
        """Forget what errors are usual: another model comes into use."""
        self.phase = Starting()

    def restart(self, time: float) -> None:
        """Go on at another time [s]: the clock was set."""
        if isinstance(self.phase, Following):
            self.phase = replace(self.phase, started=time)
        else:
            self.forget()

    @property
    def window_samples(self) -> int:
        """Number of samples that a step is looked for in."""
        return max(1, round(_WINDOW * self._rate))

    def _significant(self, mass: float, std: float) -> bool:
        return mass > max(self._estimator.min_mass, _SIGNIFICANCE * std)

    def _estimate(
        self, statistics: Statistics, empty: ModelInUse, usual: FloatArray
    ) -> PayloadEstimate:
        known = bool(np.isfinite(empty.base_covariance).all())
        return self._estimator.estimate(
            statistics,
            empty.base,
            np.sqrt(CORRELATION * usual),
            empty.base_covariance if known else None,
            None if self.estimate is None else self.estimate.parameters,
        )


def _errors(recent: Statistics, base_vector: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean square of the errors (G,), and what of it is not worth mentioning."""
    count = np.maximum(recent.count, 1.0)
    negligible = _NEGLIGIBLE**2 * recent.square / count + 1e-18
    return recent.residual_square(base_vector) / count, negligible
