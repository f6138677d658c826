# SPDX-License-Identifier: Apache-2.0
"""Follows a payload from the step in the innovations until it is part of the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.statistics import Statistics
from sysid_core.dynamics.sums import Sums
from sysid_core.online.changes import CERTAIN, Verdict, describe, is_usual
from sysid_core.online.colour import Colours
from sysid_core.online.innovations import Innovations, Noise
from sysid_core.online.payload import PayloadEstimator
from sysid_core.online.payload_estimate import PayloadEstimate
from sysid_core.online.payload_phases import (
    Alarmed,
    Following,
    LoadLikeness,
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

_KEEP = 0.25
"""Weight that data from before the step keep, moved by the payload's estimate [-]."""

_POSITIVE = 2.0
"""Standard deviations by which a load's mass must lie above zero [-]."""

_LEFT = 0.25
"""Share of what errors are above usual ones that a load may leave: its own friction and errors of
the gains took up to 0.17, and a change that is no load mostly leaves more [-]."""


class PayloadTracker:
    """Detects that a payload changed, and estimates it against the robot without one."""

    def __init__(
        self,
        estimator: PayloadEstimator,
        sample_rate: float,
    ) -> None:
        self.phase: Phase
        self.carried: Following | None = None  # The load that is part of the model
        self.estimate: PayloadEstimate | None = None  # Of the newest load, real or not
        self.attached = False  # Whether that load counts as real
        self.detected_after = 0.0  # [s] between its step and its detection
        # The model from before a change that the newest look settled, where no load explains it
        self.before_change: ModelInUse | None = None
        self._estimator = estimator
        self._spans = Spans(sample_rate)
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
        self.before_change = None
        if colours.used.duration < _LEAST or not np.isfinite(model.known.covariance).all():
            self.phase = Starting()
            return None
        if isinstance(self.phase, Alarmed):
            before = self.phase.before
        elif isinstance(self.phase, Watching):
            before = self.phase.remembering(model, time)
        else:
            before = Watching(((time, model),))
        self._note_likeness(window, before.reference, colours, time)
        found = None
        for newest in window.newest(*self._due(window, time)):
            noise = colours.used.noise(newest)
            if self._is_gone(newest):
                recent = newest.statistics()
                self._recognised(recent, before.reference, noise, window, time, time, gone=True)
                return None
            errors = newest.residual_square(before.reference.base), newest.count
            if is_usual(*errors, noise):
                continue
            recent = newest.statistics()
            verdict = self._judge(recent, before.reference, noise)
            if verdict is None:
                continue
            load = verdict.clear and verdict.best.kind == "payload"
            if not load and colours.judging.holds(newest, errors[0]):
                continue
            if found is None or (verdict.clear, verdict.odds) > (found.clear, found.odds):
                found = verdict
            if load:
                since = self.phase.since if isinstance(self.phase, Alarmed) else time
                if self._recognised(recent, before.reference, noise, window, since, time):
                    return None
        if found is None or colours.used.duration < _LEARN:
            self.phase = before
            return None
        alarm = self.phase if isinstance(self.phase, Alarmed) else Alarmed(before, time)
        self.phase = alarm = replace(alarm, clear=alarm.clear or found.clear)
        self._likeness.forget_since(alarm.since)
        if time - alarm.since > _SETTLE:
            # no payload came of it: this is how the robot is now
            self.phase = Starting()
            colours.clear()
            self.before_change = before.reference if alarm.clear else None
        # what has passed before other samples have shown it was no change
        return describe(found, lasting=time - alarm.since >= SHORTEST)

    def put_down(self, window: SlidingWindow, time: float) -> bool:
        """Forget the load, where it is gone and not in the model in use; returns whether it is."""
        gone = self.attached and any(map(self._is_gone, window.newest(*self._due(window, time))))
        if gone:
            self.carried, self.attached = None, False
        return gone

    def _is_gone(self, newest: Sums) -> bool:
        """Tell whether the newest samples are of the robot without the load that it carries."""
        if self.carried is None or not self.attached:
            return False
        model, noise, covariance = self.carried.empty
        robot = model.known.posterior[0], covariance, noise
        return self._estimator.is_gone(newest.statistics(), *robot, self.carried.load)

    def _due(self, window: SlidingWindow, time: float) -> list[int]:
        return self._spans.due(window.samples, time, every=isinstance(self.phase, Alarmed))

    def _note_likeness(
        self, window: SlidingWindow, model: ModelInUse, colours: Colours, time: float
    ) -> None:
        size = self._spans.samples(LONGEST)
        alarmed = isinstance(self.phase, Alarmed)
        if self._likeness.due(time) and window.samples >= size and not alarmed:
            newest = next(window.newest(size))
            innovations = _innovations(newest.statistics(), model, colours.used.noise(newest))
            self._likeness.note(time, *self._estimator.likeness(innovations))

    def _judge(self, recent: Statistics, model: ModelInUse, noise: Noise) -> Verdict | None:
        return self._estimator.test(_innovations(recent, model, noise))

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
        changed = self._is_load(found) if self.carried is None else found.change_odds >= CERTAIN
        if not (gone or changed):
            return False
        older = self._spans.samples(LONGEST + time - since)
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
            before=window.older(older) + window.memory,
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
        attached = self._is_load(found, 0.0 if certain else CERTAIN)
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

    def model_of(self, phase: Following, std: FloatArray) -> ModelInUse:
        """Return the robot with its payload; `std` (p,) are the deviations to tell."""
        model = replace(phase.empty.model, std=std, identified=True)
        if not phase.attached:
            return model
        shift = self._estimator.base_shift(phase.load.parameters)
        return replace(
            model,
            parameters=self._estimator.add_to(model.parameters, phase.load.parameters),
            base=model.base + shift,
            known=model.known.moved(shift, self._estimator.base_doubt(phase.load)),
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
        self.phase, self._likeness = Starting(), LoadLikeness(LONGEST)

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

    def _is_load(self, found: PayloadEstimate, odds: float = CERTAIN) -> bool:
        heavy = found.mass > max(self._estimator.min_mass, _POSITIVE * found.mass_std)
        return bool(heavy and found.odds >= odds and found.unexplained <= _LEFT)

    def _estimate(self, statistics: Statistics, empty: Unloaded) -> PayloadEstimate:
        base, _ = empty.model.known.posterior
        robot = base, empty.covariance, empty.noise
        return self._estimator.estimate(statistics, *robot, self.estimate)


def _innovations(recent: Statistics, model: ModelInUse, noise: Noise) -> Innovations:
    return Innovations(recent, *model.known.posterior, noise)
