# SPDX-License-Identifier: Apache-2.0
"""Follows a payload from the step in the innovations until it is part of the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.statistics import Statistics
from sysid_core.online.changes import CERTAIN, describe
from sysid_core.online.colour import Colours
from sysid_core.online.hand_guiding import HandGuiding
from sysid_core.online.innovations import Noise
from sysid_core.online.judging import is_gone, is_load, judged
from sysid_core.online.load_likeness import LoadLikeness
from sysid_core.online.payload import PayloadEstimator
from sysid_core.online.payload_estimate import PayloadEstimate
from sysid_core.online.payload_phases import (
    Alarmed,
    Following,
    Former,
    Phase,
    Starting,
    Unloaded,
    Watching,
)
from sysid_core.online.spans import LONGEST, SHORTEST, Spans
from sysid_core.online.update import ModelInUse
from sysid_core.online.window import SlidingWindow

__all__ = ["PayloadTracker"]

_LEARN = 4.0
"""Time in which a model shows what innovations are usual, before changes are looked for [s]."""

_LEAST = 1.0
"""The same before loads are: nothing else looks like one, however long errors last [s]."""

_CLEAN = 0.5
"""Time from which samples since a step was noticed are enough for an estimate [s]."""

_PATIENCE = 1.0
"""Time after an alarm in which a payload may still be recognised: nothing is adopted [s]."""

_SETTLE = 3.0
"""Time after which a payload becomes part of the model and learning goes on [s]."""

_REFINE = 30.0
"""Time over which the estimate of a carried load is refined [s]: later on, the robot without it
was too long ago."""

_BACK = 0.8
"""Time for which errors must be usual again for a change to have passed [s]."""

_KEEP = 0.25
"""Weight that data from before the step keep, moved by the payload's estimate [-]."""


class PayloadTracker:
    """Detects that a payload changed, and estimates it against the robot without one."""

    def __init__(self, estimator: PayloadEstimator, sample_rate: float) -> None:
        self.phase: Phase
        self.carried: Following | None = None  # The load that is part of the model
        self.estimate: PayloadEstimate | None = None  # Of the newest load, real or not
        self.attached = False  # Whether that load counts as real
        self.detected_after = 0.0  # [s] between its step and its detection
        self.former: Former | None = None  # Where the newest look settled a change without a load
        self._refuted: FloatArray | None = None  # (p,) of a model whose errors are no load's
        self._estimator, self._spans = estimator, Spans(sample_rate)
        load = np.stack([estimator.base_shift(one) for one in np.eye(10)[:4]], axis=1)
        self.guiding = HandGuiding(estimator.regression, load, sample_rate)
        self.forget()
        self._told = False

    def reference(self, model: ModelInUse) -> ModelInUse:
        """Return the model that innovations are judged by, else the model in use."""
        phase = self.phase.before if isinstance(self.phase, Alarmed) else self.phase
        return phase.reference if isinstance(phase, Watching) else model

    @property
    def payload(self) -> PayloadEstimate | None:
        """The newest load, or what is left of it; None before one was ever certain."""
        return self.estimate if self._told else None

    def look(
        self, window: SlidingWindow, model: ModelInUse, colours: Colours, time: float
    ) -> Diagnostic | None:
        """Compare the newest innovations with the usual ones; begins to follow a payload.

        Returns what else changed.

        Raises
        ------
        EstimationError
            If rounding defeats the estimate.
        """
        self.former = None
        if colours.used.duration < _LEAST or not np.isfinite(model.known.covariance).all():
            self.phase = Starting()
            return None
        alarm = self.phase if isinstance(self.phase, Alarmed) else None
        calm = self.phase if isinstance(self.phase, Watching) else Watching(((time, model),))
        before = alarm.before if alarm else calm.remembering(model, time)
        size = self._spans.samples(LONGEST)
        if alarm is None and self._likeness.due(time) and window.samples >= size:
            newest = next(window.newest(size))
            self._likeness.look(self._estimator, newest, before.reference, colours, time)
        found = None
        for newest in window.newest(*self._due(window, time)):
            noise = colours.used.noise(newest)
            if self.attached and is_gone(self._estimator, newest, self.carried):
                recent = newest.statistics()
                self._recognised(recent, before.reference, noise, window, time, time, gone=True)
                return None
            verdict = judged(self._estimator, newest, before.reference, colours)
            if verdict is None:
                continue
            if found is None or (verdict.clear, verdict.odds) > (found.clear, found.odds):
                found = verdict
            if verdict.is_load and self._refuted is not before.reference.parameters:
                recent, began = newest.statistics(), alarm.since if alarm else time
                if self._recognised(recent, before.reference, noise, window, began, time):
                    return None
        since = alarm.since if alarm else None
        by_hand = self.guiding.look(before.reference, time, since, rose=found is not None)
        if by_hand:
            alarm = alarm or Alarmed(before, time - LONGEST, self._older(window))
            self.phase = replace(alarm, clear=True, by_hand=by_hand)
            self._likeness.forget_since(alarm.since)
            return None
        if alarm and (alarm.by_hand or (found is None and alarm.clear)):
            self._pass(alarm)
            return None
        if found is None or colours.used.duration < _LEARN:
            self.phase = before
            return None
        alarm = alarm or Alarmed(before, time, self._older(window))
        self.phase = alarm = replace(alarm, clear=alarm.clear or found.clear)
        self._likeness.forget_since(alarm.since)
        if time - alarm.since > _SETTLE:
            self._settle(alarm, window, colours, time)
        # what has passed before other samples have shown it was no change
        return describe(found, lasting=time - alarm.since >= SHORTEST)

    def _settle(
        self, alarm: Alarmed, window: SlidingWindow, colours: Colours, time: float
    ) -> None:
        """End an alarm of which no payload came: it has passed, or the robot is so now."""
        model = alarm.before.reference
        newest = next(window.newest(self._spans.samples(_BACK)))
        if judged(self._estimator, newest, model, colours) is None:
            self._pass(alarm)
        else:
            self.phase = Starting()
            colours.clear()
            self.former = Former(model, None) if alarm.clear else None

    def _pass(self, alarm: Alarmed) -> None:
        """End an alarm that has passed, as has what was learned in it."""
        self.phase = alarm.before
        self.former = Former(alarm.before.reference, alarm.learned, alarm.since - LONGEST)

    def _older(self, window: SlidingWindow) -> Statistics:
        """Return what was learned before a step that is noticed now."""
        return window.older(self._spans.samples(LONGEST)) + window.memory

    def put_down(self, window: SlidingWindow, time: float) -> bool:
        """Forget the load, where it is gone and not in the model in use; returns whether it is."""
        if gone := self._misses(self.carried, window, time):
            self.carried, self.attached = None, False
        return gone

    def put_back(self, phase: Following, window: SlidingWindow, time: float) -> Former | None:
        """End the episode if the load that is followed is gone already; None if it is not."""
        if not (phase.clean and self._misses(phase, window, time)):
            return None
        self.phase = Starting()
        return self._without(phase)

    def refute(self, phase: Following) -> Former:
        """End the episode of what is no load; it is still not known what changed."""
        watching = Watching(((phase.started, phase.empty.model),))
        learned = phase.before.shifted(-phase.shift)
        self.phase = Alarmed(watching, phase.started, learned, clear=True)
        self._refuted = phase.empty.model.parameters
        return self._without(phase)

    def _without(self, phase: Following) -> Former:
        """Forget the load that is followed; returns the robot alone."""
        self.carried, self.attached = None, False
        return Former(phase.empty.model, phase.before.shifted(-phase.shift), phase.started)

    def _misses(self, carried: Following | None, window: SlidingWindow, time: float) -> bool:
        """Tell whether a load that is attached is gone."""
        if not self.attached:
            return False
        newest = window.newest(*self._due(window, time))
        return any(is_gone(self._estimator, one, carried) for one in newest)

    def _due(self, window: SlidingWindow, time: float) -> list[int]:
        return self._spans.due(window.samples, time, every=isinstance(self.phase, Alarmed))

    def _recognised(
        self,
        recent: Statistics,
        model: ModelInUse,
        noise: Noise,
        window: SlidingWindow,
        since: float,
        time: float,
        *,
        gone: bool = False,
    ) -> bool:
        """Begin to follow a payload that explains the innovations, or what is left of one."""
        empty = model if self.carried is None else self.carried.empty.model
        covariance = empty.known.posterior[1]
        found = self._estimate(recent, Unloaded(empty, noise, covariance))
        changed = found.change_odds >= CERTAIN
        if self.carried is None:
            changed = is_load(found, self._estimator.min_mass)
        if not (gone or changed):
            return False
        shift = np.zeros_like(empty.base)
        if self.attached and self.estimate is not None:
            shift = self._estimator.base_shift(self.estimate.parameters)
        self._likeness.forget_since(since)
        doubt = self._likeness.ratio
        noise = noise._replace(variance=doubt * noise.variance)
        self.phase = Following(
            empty=Unloaded(empty, noise, doubt * covariance),
            load=found,
            attached=self.carried is None or self.attached,
            before=self.phase.learned if isinstance(self.phase, Alarmed) else self._older(window),
            shift=shift,
            first=recent.leading(recent.moment.shape[1] + 1),
            since=Statistics.zero(len(recent.count), recent.moment.shape[1] + 1),
            samples=0,
            clean=False,
            started=time,
        )
        self.estimate, self.detected_after = found, time - since
        return True

    def push(self, statistics: Statistics, samples: int) -> None:
        """Add samples taken since the step."""
        phase = self.phase if isinstance(self.phase, Following) else self.carried
        if phase is None:
            return
        more = replace(phase, since=phase.since + statistics, samples=phase.samples + samples)
        if phase is self.phase:
            self.phase = more
        else:
            self.carried = more

    @property
    def listening(self) -> bool:
        """Whether `push` wants to be told of samples."""
        if isinstance(self.phase, Following):
            return True
        return self.carried is not None and self.carried.samples < self._spans.samples(_REFINE)

    def refine(self, phase: Following) -> Following:
        """Estimate the payload anew from the samples since the step was noticed.

        What was seen until then serves only until enough have come since.

        Raises
        ------
        EstimationError
            If rounding defeats the estimate.
        """
        clean = phase.samples >= self._spans.samples(_CLEAN)
        seen = phase.since if clean else phase.since + phase.first
        found = self._estimate(seen, phase.empty)
        # what was certain stays until the evidence is against it
        certain = phase.attached and self.carried is None
        attached = is_load(found, self._estimator.min_mass, 0.0 if certain else CERTAIN)
        self.phase = phase = replace(phase, load=found, attached=attached, clean=clean)
        self.estimate, self.attached = found, attached
        self._told = self._told or attached
        return phase

    def refine_carried(self) -> None:
        """Estimate the load that is part of the model anew from all samples with it.

        Raises
        ------
        EstimationError
            If rounding defeats the estimate.
        """
        carried = self.carried
        if carried is None or isinstance(self.phase, Alarmed) or not self.listening:
            return
        load = self._estimate(carried.since, carried.empty)
        self.carried, self.estimate = replace(carried, load=load), load

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
        self.carried = phase if phase.attached else None
        self.phase = Starting()

    @property
    def changed(self) -> bool:
        """Whether the robot changed for certain, and it is not settled by what."""
        return isinstance(self.phase, Alarmed) and self.phase.clear

    def undecided(self, time: float) -> bool:
        """Whether it is too early to tell if a payload made the errors rise.

        Until then a poor prediction does not speak against the model.
        """
        phase = self.phase
        return isinstance(phase, Alarmed) and time - phase.since <= _PATIENCE

    def forget(self) -> None:
        """Forget what errors are usual: another model comes into use."""
        self.phase, self._likeness = Starting(), LoadLikeness()

    def restart(self, time: float) -> None:
        """Go on at another time [s]: the clock was set."""
        phase = self.phase
        self.forget()
        if isinstance(phase, Following):
            self.phase = replace(phase, started=time)

    @property
    def clean_samples(self) -> int:
        """Number of samples from which an estimate rests on those since the step alone."""
        return self._spans.samples(_CLEAN)

    def _estimate(self, statistics: Statistics, empty: Unloaded) -> PayloadEstimate:
        base, _ = empty.model.known.posterior
        robot = base, empty.covariance, empty.noise
        return self._estimator.estimate(statistics, *robot, self.estimate)
