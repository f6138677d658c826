# SPDX-License-Identifier: Apache-2.0
"""What the data say: the sliding window, prequential scores, and the newest estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.rows import Regression, Rows, uncut_rows
from sysid_core.dynamics.sums import Places
from sysid_core.effort_scales import EffortChecks, EffortScales, RecentEfforts
from sysid_core.estimation import (
    Constraints,
    Estimate,
    Prior,
    Problem,
    Solver,
    estimator,
)
from sysid_core.estimation.noise import weighted_sums
from sysid_core.friction_filter import LiveFriction
from sysid_core.online.anchor import Unanchored, WideMotion
from sysid_core.online.colour import Bursts, Colours, ResidualColour
from sysid_core.online.intake import LEAST_CORRELATION, expected_errors, usable_samples
from sysid_core.online.left_out import RecentlyLeftOut
from sysid_core.online.payload import PayloadEstimator
from sysid_core.online.prequential import Prequential
from sysid_core.online.saturation import CutEfforts, Saturation
from sysid_core.online.settings import SCORED, OnlineConfig
from sysid_core.online.torque_checks import TorqueChecks, TorqueVerdict, refusing, worst
from sysid_core.online.update import Failed, KnownBase, Request, Solution
from sysid_core.online.window import SlidingWindow
from sysid_core.priors import default_constraints, default_prior
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot

__all__ = ["Learned", "Learner"]

_TOLERANCE = 2e-3
"""A solve stops when the next step would move the estimate by less standard deviations [-]."""

_OF_ANY_LAW = (
    *("scores", "saturation", "cut_efforts", "left_out", "_forgot"),
    *("time", "informative_time", "samples", "rejected", "informative"),
)
"""What a learner knows that depends on neither friction terms nor low-pass. A torque that seemed
wrong may be right with them."""


class Learned(NamedTuple):
    """Rows that were learned from, and how many samples they are of."""

    rows: Rows
    samples: int


class Learner:
    """Window, scores and solver of one robot; solutions of other epochs are out of date."""

    def __init__(
        self, robot: Robot, regression: Regression, config: OnlineConfig, epoch: int = 0
    ) -> None:
        self.robot, self.regression, self.config, self.epoch = robot, regression, config, epoch
        self._nominal_base = regression.base.project(robot.nominal)
        self._wide, self._travel = WideMotion(robot, regression), robot.travel
        self.window = self._new_window()
        self._renew_scores()
        usual = default_prior(robot)
        self._nominal_offset = robot.consistent_nominal - usual.mean
        self.pose(usual, default_constraints(robot))
        size = len(regression.groups), config.sample_rate, self.usual
        self.colours = Colours(ResidualColour(*size), Bursts(*size))
        half_life = config.samples(max(config.memory, config.window))
        still = config.still_velocity * self._travel
        self.saturation = Saturation(regression.groups, self.usual, half_life)
        self.cut_efforts = CutEfforts(regression, self.usual, still, half_life)
        self._efforts = RecentEfforts(half_life)  # Where rows mix joints
        self.propose(self._prior.mean)
        self._candidate_base = self._nominal_base  # What it is compared with until an estimate
        self.estimate: Estimate | None = None  # The newest one; None before the first solution
        self._friction = LiveFriction(regression)
        self._learned = self.window.learned
        # Rows (G,) that stood for an independent one in the newest request
        self._correlation = np.full(len(regression.groups), LEAST_CORRELATION)
        # Of torques that were certainly wrong and have not been shown to be right since
        self.suspects: dict[int, TorqueVerdict] = {}
        self.fault = ""  # Why the newest request has no estimate; empty if it has one
        # time, informative_time: [s] of the newest sample, and of the newest that rows came from.
        self.time = self.informative_time = -np.inf
        # samples, rejected, informative: that came; refused of these, and that rows came from.
        self.samples = self.rejected = 0
        self.informative = self._solved_at = self._turn = self._forgot = 0

    def pose(self, prior: Prior, constraints: Constraints) -> None:
        """Let the next solves rest on another prior and other constraints."""
        self._prior, self._constraints = prior, constraints
        # what the prior guesses for lack of a nominal value is no part of the nominal torque
        self._nominal = prior.mean + self._nominal_offset
        wide = self._wide.torques(self._nominal)
        # (G,) [N·m] root mean square torque on a wide motion without data
        self.usual = np.sqrt(wide.square / np.maximum(wide.count, 1e-300))
        self._solver: Solver | None = None
        self._unanchored: Unanchored  # of the problem that the solver is for
        self._renew_epoch()

    def propose(self, parameters: FloatArray) -> None:
        """Make parameters (p,) the candidate."""
        # (p,) the newest estimate that predictions are scored with; at first the prior's mean
        self.candidate = parameters
        self._candidate_base = self.regression.base.project(parameters)

    def configure(self, config: OnlineConfig) -> None:
        """Change the configuration; what was learned stays, if only as memory."""
        old, self.config = self.config, config
        if old.method != config.method:
            self._solver = None
        if old.sliding_window != config.sliding_window:
            self._renew_window()
            self._renew_epoch()
        if old.samples(SCORED) != config.samples(SCORED):
            self._renew_scores()

    def _renew_epoch(self) -> None:
        """Let solutions of requests made so far be out of date."""
        self.epoch += 1
        self.verdicts: dict[int, TorqueVerdict] = {}  # The newest on each group's torque
        self._checks: TorqueChecks | None = None
        self._scales: EffortScales | None = None

    def _renew_scores(self) -> None:
        span = self.config.samples(SCORED)
        self.scores = Prequential(len(self.regression.groups), span)
        self.left_out = RecentlyLeftOut(span)

    def _new_window(self) -> SlidingWindow:
        return SlidingWindow(Places.of(self.regression), self.config.sliding_window)

    def _renew_window(self) -> None:
        """Start with an empty window; what was in the old one fades as memory does."""
        learned = self.window.learned
        self.window = self._new_window()
        if self.config.memory > 0.0:
            self.window.adopt_memory(learned)

    def succeed(self, other: Learner, *, lasts: bool) -> None:
        """Take the place of a learner with another law or, of samples that came so far, low-pass.

        What is usual of innovations `lasts` unless they are of other samples.
        """
        self.epoch = other.epoch + 1
        self.configure(replace(other.config, cutoff=self.config.cutoff))
        for name in _OF_ANY_LAW:
            setattr(self, name, getattr(other, name))
        if lasts:
            self.colours = other.colours
        self.propose(other.candidate)

    def forget(self) -> None:
        """Drop all data: the robot has changed."""
        self.window.clear()
        self.scores.clear()
        self.colours.forget_newest()
        self._efforts.clear()
        self._renew_epoch()
        self._forgot = self.informative

    def usable(self, samples: Samples) -> Samples:
        """Leave out samples that cannot be measurements, and what is cut off; count them."""
        samples, left_out = usable_samples(self.robot, samples)
        self.rejected += left_out.samples
        samples, cut = self.cut_efforts.leave_out(samples)
        self.left_out.note(left_out + cut)
        if self.cut_efforts.new:
            self.saturation.clear()
        return samples

    def begin_anew(self, time: float) -> None:
        """Go on at another time [s]: the clock was set."""
        self._renew_window()
        self.scores.clear()
        self.informative_time = time

    def learn(
        self, samples: Samples, used_base: FloatArray, judging_base: FloatArray | None
    ) -> Iterator[Learned]:
        """Score samples with the models at hand, then learn from them, block by block.

        `used_base` (b,) are the base parameters in use, `judging_base` (b,) those that changes are
        judged by; None: innovations are not usual, since the robot is known to have changed.
        """
        self.time = float(samples.time[-1])
        self.samples += len(samples)
        for part in self._blocks(samples):
            learned = self._noted(part)
            if learned.samples:
                self.scores.push(*learned, self._candidate_base, self._nominal_base, used_base)
                if judging_base is not None:
                    self.colours.used.push(learned.rows, used_base, learned.samples)
                    self.colours.judging.push(learned.rows, judging_base, learned.samples)
                if self.regression.per_joint:
                    self.saturation.push(learned.rows, self._nominal_base, learned.samples)
                self._keep(learned, part)
                yield learned

    def relearn(self, samples: Samples) -> None:
        """Learn from samples that another has scored."""
        for part in self._blocks(samples):
            learned = self._rows(part)
            if learned.samples:
                self._keep(learned, part)

    def _keep(self, learned: Learned, samples: Samples) -> None:
        self.window.push(*learned)
        if not self.regression.per_joint:
            self._efforts.push(learned.rows, samples.effort)

    def _blocks(self, samples: Samples) -> Iterator[Samples]:
        size = max(1, self.config.sliding_window.samples // 20)
        for start in range(0, len(samples), size):
            yield samples.select(slice(start, start + size))

    def _rows(self, samples: Samples) -> Learned:
        config = self.config
        rows = self.regression.rows(samples, config.still_velocity * self._travel)
        if config.cutoff > 0.0:
            self._friction.filter(rows.blocks, samples, config.sample_rate, config.cutoff)
        rows = uncut_rows(rows, samples.cut_off, self.regression)
        usable = np.zeros(len(samples), dtype=np.bool_)
        for block in rows.blocks:
            usable[block.sample] = True
        return Learned(rows, int(usable.sum()))

    def _noted(self, samples: Samples) -> Learned:
        """Return the rows of new samples, and keep count of them."""
        learned = self._rows(samples)
        self.left_out.note(replace(learned.rows.left_out, samples=len(samples)))
        if learned.samples:
            self.informative_time = float(samples.time[-1])
            self.informative += learned.samples
        return learned

    @property
    def windows(self) -> float:
        """Windows of informative samples since the data were last dropped [-]."""
        return (self.informative - self._forgot) / self.window.config.samples

    def request(self, *, opening: bool = False, judging: bool = True) -> Request | None:
        """Return the solve that the present data ask for; None without informative new ones.

        Torques are judged with it unless they rest (`judging`): all of them where the data are
        new, else one joint after the other, and the worst where a first model waits (`opening`).
        """
        if self._solved_at == self.informative or self.window.samples < 2:
            return None
        self._solved_at = self.informative
        self._learned = statistics = self.window.learned
        colour = self.colours.correlation
        nominal = self._nominal
        if self.estimate is not None:
            nominal = self._unanchored.expected(nominal, self.estimate)
        anchor = self._wide.torques(nominal)
        noise_std, self._correlation = expected_errors(
            statistics, anchor, self._candidate_base, colour
        )
        problem = Problem(
            self.robot.layout,
            self.regression.base,
            self.regression.groups,
            statistics,
            self._prior,
            self._constraints,
            noise_std=noise_std,
            correlation=self._correlation,
            anchor=anchor,
        )
        if self._solver is None:
            chosen = estimator(self.config.method, tolerance=_TOLERANCE, covariance="diagonal")
            self._solver = chosen.prepare(problem)
            self._unanchored = Unanchored(problem)
        due = self._due(opening) if judging and self.window.fill >= 1.0 else ()
        return Request(
            problem,
            self._solver,
            self.candidate,
            self.epoch,
            colour,
            self._unanchored,
            self._checks_of(problem) if due else None,
            due,
            not self.verdicts,
        )

    def _checks_of(self, problem: Problem) -> TorqueChecks | EffortChecks | None:
        """Return what judges the torques, which expects the friction of the first full window."""
        if not self.regression.per_joint:
            self._scales = self._scales or EffortScales(self.robot, problem)
            return self._efforts.checks(self._scales)
        if self._checks is None:
            loads = PayloadEstimator(self.regression, self.config.payload)
            self._checks = TorqueChecks(problem, loads.likely_tool)
        return self._checks

    def _due(self, opening: bool) -> tuple[int, ...]:
        """Return the joints whose torques are to be judged now."""
        if len(self.verdicts) < (count := len(self.regression.groups)):
            return tuple(range(count))
        self._turn = (self._turn + 1) % count
        return (self._turn,) if not opening else tuple({self._turn, worst(self.verdicts)})

    def known(self, estimate: Estimate) -> KnownBase:
        """Return how far the base parameters are known on the motion learned.

        The newest estimate expects errors of the model that only other motions would show; what
        data leave of the innovations of this motion is told by these alone.
        """
        expected = 1.0 / (estimate.noise_std**2 * self._correlation)
        usual = self.colours.used
        lasting = usual.variance * self.colours.correlation
        seen = np.where(usual.known, 1.0 / np.maximum(lasting, 1e-300), 0.0)
        information, moment = weighted_sums(self._learned, np.maximum(seen, expected))
        prior = self.regression.base.project(self._prior.mean)
        motion = information, moment - information @ prior
        return KnownBase(prior, self._unanchored.likely, motion)

    def take(self, solution: Solution) -> bool:
        """Take in a solution; returns whether it brought an estimate of the present epoch."""
        if solution.epoch != self.epoch:
            return False
        if isinstance(solution, Failed):
            self.fault = solution.reason
            return False
        self.fault, self.estimate = "", solution.estimate
        self._judged(solution.verdicts)
        return True

    def take_verdicts(self, epoch: int, verdicts: Mapping[int, TorqueVerdict]) -> None:
        """Take in what was found of torques, unless it is out of date."""
        if epoch == self.epoch:
            self._judged(verdicts)

    def _judged(self, verdicts: Mapping[int, TorqueVerdict]) -> None:
        self.verdicts.update(verdicts)
        for joint in [j for j in self.suspects if self.verdicts.get(j, TorqueVerdict(None)).shown]:
            del self.suspects[joint]
        self.suspects.update(refusing(self.verdicts, in_use=True))
