# SPDX-License-Identifier: Apache-2.0
"""Friction, low-pass and gravity of a robot that is identified live, found as for recordings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.batch import GAP, Batch
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import Regression
from sysid_core.dynamics.select import make_regression
from sysid_core.effort_lag import contact_lag
from sysid_core.errors import SysidError
from sysid_core.estimation import Estimate
from sysid_core.friction_choice import FrictionChoice
from sysid_core.friction_filter import sign_factor
from sysid_core.online.gravity import Gravity
from sysid_core.online.learner import Learner
from sysid_core.online.second_filter import SecondFilter, choose_filter, leaves_enough, rate_of
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.torque_checks import refusing
from sysid_core.posing import Posing
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.rungs import STEP
from sysid_core.signals.cutoff import CutoffChoice, highest_cutoff
from sysid_core.signals.prepare import PrepareReport
from sysid_core.signals.synchronise import SynchroniseReport
from sysid_core.signals.timing import split_at_gaps
from sysid_core.threads import one_thread

__all__ = ["Answer", "Choices", "Past", "Question", "Seen"]

_FIRST = 1.0
"""Windows of informative samples after which torques are asked for gravity first, before one joint
after the other is blamed for another."""
_WINDOWS = (2.0, 4.0, 8.0, 16.0)
"""The same after which terms are chosen: twice as many show finer ones."""
_STILL = 0.01
"""See `IdentifyConfig.still`."""
_REST = 1.0
"""Time [s] at rest that is kept behind a motion: a low-pass reaches over short ones."""


class Choices(NamedTuple):
    """What may be chosen that neither the description nor the configuration settles."""

    friction: bool
    low_pass: bool
    gravity: bool = False

    @staticmethod
    def of(robot: Robot, config: OnlineConfig) -> Choices:
        """Return what may be chosen for a described robot."""
        known = robot.description
        settled = known.friction_chosen or "friction" in known.effort_excludes
        return Choices(
            config.friction == "chosen" and robot.is_tree and not settled,
            config.low_pass == "chosen" and (robot.floating or known.signals.cutoff is None),
            # rows of loops take long, and few linkages hang askew
            (robot.is_tree or robot.floating) and "gravity" not in known.effort_excludes,
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
    gravity : Gravity
        What torques told of it.
    """

    def __init__(self, choices: Choices) -> None:
        self.parts: list[Part] = []
        self.second: SecondFilter | None = None
        self.gravity = Gravity.AS_DESCRIBED
        self._choices = choices
        self._due = (_FIRST, *_WINDOWS) if choices.gravity else _WINDOWS
        self._asked = 0 if any(choices) else len(self._due)
        self._samples, self._moved = 0, -np.inf

    @property
    def open(self) -> bool:
        """Whether a choice is still to come."""
        return self._asked < len(self._due)

    @property
    def diagnostics(self) -> Iterable[Diagnostic]:
        """What was found of what samples go through."""
        found = () if self.second is None else self.second.diagnostics
        return *self.gravity.told, *found

    def filtered(self, robot: Robot, samples: Samples) -> Samples:
        """Return the samples to learn from when others came in."""
        return _passed(self.gravity.levelled(robot, samples), self.second)

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

    def question(self, robot: Robot, config: OnlineConfig, seen: Seen) -> Question | None:
        """Return the next choice if the samples suffice for it, which counts as made then."""
        window = config.sliding_window.samples
        if not (self.open and self._samples >= self._due[self._asked] * window):
            return None
        windows = self._due[self._asked]
        self._asked += 1
        second = None if self.second is None else self.second.choice
        past = self.parts, len(self.parts)
        return Question(robot, config, self._choices, windows, second, self.gravity, seen, *past)

    def close(self) -> None:
        """Let go of the samples after the last choice; a robot that hangs askew is asked on."""
        if not self.open:
            self.clear()
            self._asked -= self.gravity.refuses


def _passed(samples: Samples, second: SecondFilter | None) -> Samples:
    return samples if second is None else second.push(samples)


class Seen(NamedTuple):
    """What an identifier knows when it asks."""

    estimate: Estimate | None
    colour: FloatArray  # (G,) rows that count as an independent one [-]
    blames: bool = False  # Whether a joint's torque looks wrong

    @staticmethod
    def of(learner: Learner) -> Seen:
        """Return what a learner knows."""
        found = learner.suspects or refusing(learner.verdicts, in_use=False, early=True)
        return Seen(learner.estimate, learner.colours.correlation, bool(found))


@dataclass(frozen=True)
class Answer:
    """What predicts better: friction terms, a low-pass, gravity; and who learned with it."""

    regression: Regression
    learner: Learner | None  # None: nothing is better
    second: SecondFilter | None
    gravity: Gravity
    past: list[Part]  # What it was asked about
    learned: int  # Parts of it that were learned from

    @property
    def robot(self) -> Robot:
        """The robot with its new terms."""
        return self.regression.robot

    def successor(self, other: Learner, past: Past) -> Learner:
        """Return who learns from now on, with all that came since it was asked."""
        past.gravity, learner = self.gravity, self.learner
        if learner is None:
            return other
        for part, _ in self.past[self.learned :]:
            learner.relearn(_passed(self.gravity.levelled(self.robot, part), self.second))
        same = past.second is None and self.second is None
        learner.succeed(other, lasts=same)
        past.second = self.second
        if self.second is not None:  # samples come out of it later
            learner.time = min(learner.time, self.second.time)
        return learner


@dataclass(frozen=True)
class Question:
    """A choice of friction terms and a low-pass that is due; see `OnlineIdentifier.question`."""

    robot: Robot
    config: OnlineConfig
    choices: Choices
    windows: float  # Of informative samples
    # second, gravity: at present.
    second: CutoffChoice | None
    gravity: Gravity
    seen: Seen
    past: list[Part]
    count: int  # Parts of the past to look at

    @property
    def lower(self) -> bool:
        """Whether the low-pass may be lower: little data show less than what a filter bends."""
        return self.windows > _WINDOWS[0]

    @one_thread()
    def answer(self) -> Answer:
        """Choose, and learn from the samples with what is chosen.

        Touches nothing that others change, so that any thread may call it. Terms that joints have
        already stay as they are: the parameters in use mean what they meant.
        """
        regression, config = make_regression(self.robot), self.config
        past = self.past[: self.count]
        gravity = self._gravity([part.samples for part in past if part.informative])
        levelled = gravity is not self.gravity and gravity.direction is not None
        parts = [gravity.levelled(self.robot, part.samples) for part in past]
        telling = [samples for samples, part in zip(parts, past, strict=True) if part.informative]
        choice, second = self.second, None
        chooses = self.windows >= _WINDOWS[0] and not gravity.refuses  # else all would bend to it
        if chooses:
            choice = self._low_pass(parts)
        if choice is not None:
            second = SecondFilter(choice, rate_of(parts), config.cutoff)
            config = replace(config, cutoff=choice.cutoff)
            telling = parts = list(map(second.push, parts))
        if self.choices.friction and chooses:
            regression = self._with_friction(regression, telling, config)
        found = regression.robot.description.friction_chosen
        same = found == self.robot.description.friction_chosen and choice == self.second
        learner = None
        if levelled or not same:
            learner = Learner(regression.robot, regression, config)
            for part in parts:
                learner.relearn(part)
        return Answer(regression, learner, second, gravity, self.past, self.count)

    def _gravity(self, telling: list[Samples]) -> Gravity:
        """Return what torques tell of gravity."""
        estimate, colour, blames = self.seen
        if not self.choices.gravity or estimate is None:
            return self.gravity
        batch = _batch(self.robot, Samples.concatenate(telling), self.config)
        return self.gravity.asked(self.robot, batch, estimate, colour, _STILL, blames=blames)

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
