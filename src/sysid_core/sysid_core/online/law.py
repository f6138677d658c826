# SPDX-License-Identifier: Apache-2.0
"""Friction and low-pass of a robot that is being identified live, chosen as a recording's are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sysid_core.batch import GAP, Batch
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import Regression
from sysid_core.dynamics.select import make_regression
from sysid_core.effort_lag import contact_lag
from sysid_core.errors import SysidError
from sysid_core.friction_choice import FrictionChoice
from sysid_core.friction_filter import sign_factor
from sysid_core.online.learner import Learner
from sysid_core.online.second_filter import SecondFilter, choose_filter, leaves_enough, rate_of
from sysid_core.online.settings import OnlineConfig
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.rungs import STEP
from sysid_core.signals.cutoff import CutoffChoice, highest_cutoff
from sysid_core.signals.prepare import PrepareReport
from sysid_core.signals.synchronise import SynchroniseReport
from sysid_core.signals.timing import split_at_gaps
from sysid_core.solving import Posing
from sysid_core.threads import one_thread

__all__ = ["Answer", "Choices", "Past", "Question"]

_WINDOWS = (2.0, 4.0, 8.0, 16.0)
"""Windows of informative samples after which terms are chosen: twice as many show finer ones."""
_STILL = 0.01
"""See `IdentifyConfig.still`."""
_REST = 1.0
"""Time [s] at rest that is kept behind a motion: a low-pass reaches over short ones."""


class Choices(NamedTuple):
    """What may be chosen that neither the description nor the configuration settles."""

    friction: bool
    low_pass: bool

    @staticmethod
    def of(robot: Robot, config: OnlineConfig) -> Choices:
        """Return what may be chosen for a described robot."""
        known = robot.description
        settled = known.friction_chosen or "friction" in known.effort_excludes
        return Choices(
            config.friction == "chosen" and robot.is_tree and not settled,
            config.low_pass == "chosen" and (robot.floating or known.signals.cutoff is None),
        )


class Part(NamedTuple):
    """Samples of which some are informative, or that rest shortly after such ones."""

    samples: Samples
    informative: int


class Past:
    """Samples since the data were last dropped, kept until the last choice.

    Attributes
    ----------
    parts : list of Part
        In the order in which they came.
    second : SecondFilter or None
        What samples go through before they are learned from.
    """

    def __init__(self, choices: Choices) -> None:
        self.parts: list[Part] = []
        self.second: SecondFilter | None = None
        self._choices = choices
        self._asked = 0 if any(choices) else len(_WINDOWS)
        self._samples, self._moved = 0, -np.inf

    @property
    def open(self) -> bool:
        """Whether a choice is still to come."""
        return self._asked < len(_WINDOWS)

    @property
    def diagnostics(self) -> Iterable[Diagnostic]:
        """What was found of what samples go through."""
        return () if self.second is None else self.second.diagnostics

    def filtered(self, samples: Samples) -> Samples:
        """Return the samples to learn from when others came in."""
        return samples if self.second is None else self.second.push(samples)

    def applied(self, config: OnlineConfig) -> OnlineConfig:
        """Return a configuration with the cut-off of the samples to learn from."""
        if self.second is None:
            return config
        return replace(config, cutoff=self.second.choice.cutoff)

    def add(self, samples: Samples, informative: int) -> None:
        """Keep samples, if a choice is still to come, of which so many are informative.

        Others are kept shortly after these alone.
        """
        if not self.open or len(samples) == 0:
            return
        if self.parts and samples.time[0] <= self.parts[-1].samples.time[-1]:  # the clock was set
            self.clear()
        if informative:
            self._moved = float(samples.time[-1])
        if samples.time[0] - self._moved < _REST:
            self.parts.append(Part(samples, informative))
            self._samples += informative

    def clear(self) -> None:
        """Drop all samples: they are of another robot, or another time."""
        self._samples, self._moved = 0, -np.inf
        self.parts = []  # a new list, by which an `Answer` tells

    def drop_since(self, time: float) -> None:
        """Drop the samples from a time [s] on: something else was learned since."""
        kept = [part for part in self.parts if part.samples.time[-1] < time]
        self.clear()
        self.parts, self._samples = kept, sum(part.informative for part in kept)

    def question(self, robot: Robot, config: OnlineConfig) -> Question | None:
        """Return the next choice if the samples suffice for it, which counts as made then."""
        window = config.sliding_window.samples
        if not (self.open and self._samples >= _WINDOWS[self._asked] * window):
            return None
        lower = self._asked > 0  # so little data show less than what a filter bends
        self._asked += 1
        second = None if self.second is None else self.second.choice
        return Question(robot, config, self._choices, lower, second, self.parts, len(self.parts))

    def close(self) -> None:
        """Let go of the samples after the last choice."""
        if not self.open:
            self.clear()


@dataclass(frozen=True)
class Answer:
    """A friction law and a low-pass that predict better, and who learned with them."""

    regression: Regression
    learner: Learner
    second: SecondFilter | None
    past: list[Part]  # What it was asked about
    learned: int  # Parts of it that were learned from

    @property
    def robot(self) -> Robot:
        """The robot with its new terms."""
        return self.regression.robot

    def succeed(self, other: Learner, past: Past) -> Learner:
        """Let who learned take the place of another, with all that came since it was asked."""
        for part, _ in self.past[self.learned :]:
            self.learner.relearn(part if self.second is None else self.second.push(part))
        same = past.second is None and self.second is None
        self.learner.succeed(other, lasts=same)
        past.second = self.second
        if self.second is not None:  # samples come out of it later
            self.learner.time = min(self.learner.time, self.second.time)
        return self.learner


@dataclass(frozen=True)
class Question:
    """A choice of friction terms and a low-pass that is due; see `OnlineIdentifier.question`."""

    robot: Robot
    config: OnlineConfig
    choices: Choices
    lower: bool  # Whether the low-pass may be lower
    second: CutoffChoice | None  # At present
    past: list[Part]
    count: int  # Parts of the past to look at

    @one_thread()
    def answer(self) -> Answer | None:
        """Choose, and learn from the samples with what is chosen; None: nothing is better.

        Touches nothing that others change, so that any thread may call it. Terms that joints have
        already stay as they are: the parameters in use mean what they meant.
        """
        regression, second = make_regression(self.robot), None
        past, config = self.past[: self.count], self.config
        parts = [part.samples for part in past]
        telling = [part.samples for part in past if part.informative]
        choice = self._low_pass(parts)
        if choice is not None:
            second = SecondFilter(choice, rate_of(parts), config.cutoff)
            config = replace(config, cutoff=choice.cutoff)
            telling = parts = list(map(second.push, parts))
        if self.choices.friction:
            regression = self._with_friction(regression, telling, config)
        found = regression.robot.description.friction_chosen
        if found == self.robot.description.friction_chosen and choice == self.second:
            return None
        learner = Learner(regression.robot, regression, config)
        for part in parts:
            learner.relearn(part)
        return Answer(regression, learner, second, self.past, self.count)

    @property
    def _terms(self) -> FrictionChoice:
        problem = Posing(None, None).problem
        return FrictionChoice(problem, _STILL, choose=self.choices.friction, keep=True)

    def _low_pass(self, parts: list[Samples]) -> CutoffChoice | None:
        if not self.choices.low_pass:
            return None
        regression = make_regression(self.robot)  # which takes on a load
        if self.robot.floating and not self._lowers(parts):
            return self._contact_lag(regression, Samples.concatenate(parts))
        return choose_filter(regression, parts, self.config, self._terms, self.lower)

    def _lowers(self, parts: list[Samples]) -> bool:
        """Whether the low-pass of a floating robot may be lower."""
        if not self.lower or self.robot.description.signals.cutoff is not None:
            return False
        return leaves_enough(parts, self.config, self.config.cutoff / STEP)

    def _contact_lag(self, regression: Regression, samples: Samples) -> CutoffChoice | None:
        """Return the cut-off of the samples with a lag of their efforts, if moving them pays."""
        try:
            lag = contact_lag(regression, _batch(self.robot, samples, self.config))
        except (SysidError, np.linalg.LinAlgError):
            return None
        return CutoffChoice(self.config.cutoff, 0.0, 0.0, "live", lag=lag) if lag else None

    def _with_friction(
        self, regression: Regression, parts: list[Samples], config: OnlineConfig
    ) -> Regression:
        """Return a regression with the terms that samples show."""
        try:
            batch = _batch(self.robot, Samples.concatenate(parts), config)
            return self._terms(regression, batch)
        except (SysidError, np.linalg.LinAlgError):
            return regression


def _batch(robot: Robot, samples: Samples, config: OnlineConfig) -> Batch:
    """Return samples with what the low-pass did to the signs of their velocities."""
    rate = config.sample_rate
    report = PrepareReport(
        sensor_rate=rate,
        rate=rate,
        output_rate=rate,
        cutoff=min(config.cutoff, highest_cutoff(rate, live=True)),
        cutoff_reason="live",
        velocity="differentiated",
        outliers=(),
        synchronisation=SynchroniseReport(),
        duration=len(samples) / rate,
        warnings=(),
    )
    runs = split_at_gaps(samples.time, GAP / rate)
    factors = [sign_factor(robot, samples.select(run), report) for run in runs]
    return Batch(samples, np.concatenate(factors), report)
