# SPDX-License-Identifier: Apache-2.0
"""Friction terms of a robot that is being identified live, chosen as those of a recording are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.batch import Batch
from sysid_core.dynamics.rows import Regression
from sysid_core.dynamics.select import make_regression
from sysid_core.errors import SysidError
from sysid_core.friction_choice import FrictionChoice
from sysid_core.friction_filter import sign_factor
from sysid_core.online.learner import Learner
from sysid_core.online.settings import OnlineConfig
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.signals.cutoff import highest_cutoff
from sysid_core.signals.prepare import PrepareReport
from sysid_core.signals.synchronise import SynchroniseReport
from sysid_core.signals.timing import split_at_gaps
from sysid_core.solving import Posing
from sysid_core.threads import one_thread

__all__ = ["Answer", "Past", "Question", "may_choose"]

_WINDOWS = (2.0, 4.0, 8.0, 16.0)
"""Windows of informative samples after which terms are chosen: twice as many show finer ones."""
_STILL = 0.01
"""See `IdentifyConfig.still`."""
_GAP = 1.5
"""Periods beyond which two samples do not follow each other."""


def may_choose(robot: Robot, config: OnlineConfig) -> bool:
    """Whether joints of a robot may get friction terms that its description does not name."""
    known = robot.description
    settled = known.friction_chosen or "friction" in known.effort_excludes
    return config.friction == "chosen" and robot.is_tree and not settled


class Past:
    """Informative samples since the data were last dropped, kept until the last choice.

    Attributes
    ----------
    parts : list of Samples
        In the order in which they came.
    """

    def __init__(self, *, choosing: bool) -> None:
        self.parts: list[Samples] = []
        self._asked = 0 if choosing else len(_WINDOWS)
        self._samples = 0

    @property
    def open(self) -> bool:
        """Whether a choice is still to come."""
        return self._asked < len(_WINDOWS)

    def add(self, samples: Samples) -> None:
        """Keep samples, if a choice is still to come."""
        if self.open:
            self.parts.append(samples)
            self._samples += len(samples)

    def clear(self) -> None:
        """Drop all samples: they are of another robot, or another time."""
        self.parts, self._samples = [], 0  # a new list, by which an `Answer` tells

    def ask(self, window: int) -> bool:
        """Whether the samples suffice for the next choice, which counts as made then."""
        due = self.open and self._samples >= _WINDOWS[self._asked] * window
        self._asked += due
        return due

    def close(self) -> None:
        """Let go of the samples after the last choice."""
        if not self.open:
            self.clear()


@dataclass(frozen=True)
class Answer:
    """A regression with more friction terms, and who learned with it from a part of the past."""

    regression: Regression
    learner: Learner
    past: list[Samples]  # What it was asked about
    learned: int  # Parts of it that were learned from

    @property
    def robot(self) -> Robot:
        """The robot with its new terms."""
        return self.regression.robot


@dataclass(frozen=True)
class Question:
    """A choice of friction terms that is due; made by `OnlineIdentifier.question`."""

    robot: Robot
    config: OnlineConfig
    past: list[Samples]
    count: int  # Parts of the past to look at

    @one_thread()
    def answer(self) -> Answer | None:
        """Choose, and learn from the samples with the terms chosen; None: nothing is better.

        Touches nothing that others change, so that any thread may call it. Terms that joints have
        already stay as they are: the parameters in use mean what they meant.
        """
        samples = Samples.concatenate(self.past[: self.count])
        settle = FrictionChoice(Posing(None, None).problem, _STILL, choose=True, keep=True)
        try:
            batch = _batch(self.robot, samples, self.config)
            regression = settle(make_regression(self.robot), batch)
        except (SysidError, np.linalg.LinAlgError):
            return None
        found = regression.robot.description.friction_chosen
        if found == self.robot.description.friction_chosen:
            return None
        learner = Learner(regression.robot, regression, self.config)
        for part in self.past[: self.count]:
            learner.relearn(part)
        return Answer(regression, learner, self.past, self.count)


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
    runs = split_at_gaps(samples.time, _GAP / rate)
    factors = [sign_factor(robot, samples.select(run), report) for run in runs]
    return Batch(samples, np.concatenate(factors), report)
