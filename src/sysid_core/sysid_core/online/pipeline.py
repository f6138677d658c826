# SPDX-License-Identifier: Apache-2.0
"""The online identifier as a plain object: samples in, parameters and their status out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import Regression
from sysid_core.dynamics.select import make_regression
from sysid_core.errors import EstimationError
from sysid_core.estimation import Estimate
from sysid_core.online.evidence import gather
from sysid_core.online.gate import Decision, decide
from sysid_core.online.judging import with_load
from sysid_core.online.law import Answer, Choices, Past, Question, Seen
from sysid_core.online.learner import Learner
from sysid_core.online.payload import PayloadEstimator
from sysid_core.online.payload_phases import Alarmed, Following, Former
from sysid_core.online.payload_tracker import PayloadTracker
from sysid_core.online.prequential import PrequentialScores
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.spans import LONGEST
from sysid_core.online.summary import alarmed, followed, refuted, summary, unsolved
from sysid_core.online.torque_checks import TorqueVerdict
from sysid_core.online.update import KnownBase, ModelInUse, Request, Solution, Update
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.scores import WORSE

__all__ = ["OnlineIdentifier"]


class OnlineIdentifier:
    """Sliding-window identification of one robot.

    A learner turns samples into estimates, the gate judges them, and a tracker looks for payloads;
    this class holds the model in use and lets the three act on it.

    Call `ingest` with every batch of samples, and `update` at the rate at which results are
    wanted. Where a solve must not hold up who ingests, call `snapshot` (under a lock), `solve`
    (anywhere), `apply` (under the lock), `judge` (anywhere), `look` and `question` (under the
    lock), `Question.answer` (anywhere) and `adopt` (under the lock) instead. What comes after
    `apply` counts from the next update.
    """

    def __init__(
        self,
        robot: Robot,
        config: OnlineConfig | None = None,
        regression: Regression | None = None,
    ) -> None:
        self.config = config or OnlineConfig()
        self._described = regression or make_regression(robot)
        self.groups = self._described.groups
        self._revision = self._told = 0
        self._learner = Learner(robot, self._described, self.config)
        unknown = np.full(robot.layout.size, np.nan)
        self._adopted: Estimate | None = None
        base = np.zeros(0), KnownBase(np.zeros(0), np.zeros((0, 0)))  # until terms are known
        self._model = self._nominal = ModelInUse(robot.nominal, unknown, *base, False)
        self.reset()

    @property
    def payload_frame(self) -> str:
        """Frame that payloads are expressed in."""
        return self._loads.frame

    def configure(self, config: OnlineConfig) -> None:
        """Change the configuration; what was learned stays, if only under a new window."""
        before, self.config = self.config, config
        self._loads.config = config.payload
        if (before.sample_rate, before.cutoff) != (config.sample_rate, config.cutoff):
            self._past.second = None
            self._past.clear()
        self._learner.configure(self._past.applied(config))

    def reset(self) -> None:
        """Forget all data and go back to the nominal parameters."""
        epoch = self._learner.epoch
        del self._learner  # first, since the heap would stay as large as for two at once
        self._take_law(self._described)
        self._learner = Learner(self.robot, self.regression, self.config, epoch)
        self._past = Past(Choices.of(self.robot, self.config))
        self._changed_at, self._robot_changed = -np.inf, False
        self._silence, self._looked, self._notes = 0.0, False, list[Diagnostic]()
        self._use(self._nominal)

    def _take_law(self, regression: Regression) -> None:
        """Go on with the friction terms of a regression; who watches for loads starts anew."""
        self.regression, self.robot = regression, regression.robot
        self._loads = PayloadEstimator(regression, self.config.payload)
        self._tracker = PayloadTracker(self._loads, self.config.sample_rate)
        self._nominal = self._nominal.in_law(regression)
        self._model, self._adopted = self._model.in_law(regression), None

    def _use(self, model: ModelInUse, adopted: Estimate | None = None) -> None:
        if model.identified != self._model.identified:
            self._learner.colours.clear()  # what is usual of one model is not of another
        self._model, self._adopted = model, adopted
        self._revision += 1

    def ingest(self, samples: Samples) -> None:
        """Score the samples with the models at hand, then learn from them.

        Samples that cannot be measurements are counted and left out. A batch whose time goes back
        starts the window anew; what was in it fades as memory does.
        """
        fresh = self._learner.usable(samples)
        if self._learner.cut_efforts.new:
            self._tracker.restart(self._learner.time)
            if not self._model.identified:  # what was learned rests on efforts that are cut off
                self._learner.forget()
                self._past.clear()
        samples = self._past.filtered(self.robot, fresh)
        if len(samples) == 0:
            self._past.add(fresh, 0)
            return
        if (start := float(samples.time[0])) < self._learner.time - 1e-9:
            self._learner.begin_anew(start)
            self._past.clear()
            self._tracker.restart(start)
            self._changed_at = start
        self._tracker.guiding.push(samples)
        judge = None if self._tracker.changed else self._tracker.reference(self._model).base
        informative = 0
        for rows, count in self._learner.learn(samples, self._model.base, judge):
            informative += count
            if self._tracker.listening:
                self._tracker.push(self._loads.statistics(rows, self._model.parameters), count)
        if self.config.cutoff > 0.0 and not (self._followed or self._tracker.attached):
            self._past.add(fresh, informative)  # also in an alarm, which may pass

    def snapshot(self) -> Request | None:
        """Return the solve that the present data ask for; None without informative new ones."""
        if self._followed:
            return None
        calm = not isinstance(self._tracker.phase, Alarmed)
        return self._learner.request(opening=not self._model.identified, judging=calm)

    def solve(self, request: Request) -> Solution:
        """Solve a request; touches nothing but the request, so that any thread may call it."""
        return request.solve()

    def update(self) -> Update:
        """Solve and decide at once."""
        request = self.snapshot()
        update = self.apply(None if request is None else self.solve(request))
        self.look(request, self.judge(request))
        self.choose_friction()
        return update

    def choose_friction(self) -> None:
        """Choose friction terms and a low-pass, and ask for gravity, at once if that is due."""
        if (question := self.question()) is not None:
            self.adopt(question.answer())

    def question(self) -> Question | None:
        """Return what is to be asked of the samples so far; None where nothing is due."""
        if self.config.cutoff <= 0.0 or self._unsettled:
            return None
        return self._past.question(self.robot, self.config, Seen.of(self._learner))

    def adopt(self, answer: Answer) -> bool:
        """Go on with what an answer says, unless it is out of date.

        The parameters in use stay; friction terms are part of the next that are adopted.
        """
        if fits := answer.past is self._past.parts and not self._unsettled:
            learner = answer.successor(self._learner, self._past)
            if learner is not self._learner:
                self._take_law(answer.regression)
                self._learner = learner
        self._past.close()
        return fits

    @property
    def _unsettled(self) -> bool:
        """Whether the robot carries a load, changed, or may have."""
        return self._followed or self._alarming or self._tracker.attached

    @property
    def _followed(self) -> bool:
        return isinstance(self._tracker.phase, Following)

    def judge(self, request: Request | None) -> Mapping[int, TorqueVerdict]:
        """Judge the torques that a request asks about.

        Touches nothing but the request, so that any thread may call it.
        """
        return {} if request is None or request.judge_first else request.verdicts()

    def look(self, request: Request | None, verdicts: Mapping[int, TorqueVerdict]) -> None:
        """Look for changes of the robot, then take in what `judge` found of a request.

        Where something changed, torques were judged on data from both sides of it.
        """
        self._watch()
        if request is not None and not isinstance(self._tracker.phase, Alarmed):
            self._learner.take_verdicts(request.epoch, verdicts)

    def apply(self, solution: Solution | None, *, silence: float = 0.0) -> Update:
        """Judge a solution, if there was one, and return what is to be used.

        No samples came during a `silence` [s].
        """
        self._silence, self._looked = silence, False
        fresh = solution is not None and self._learner.take(solution)
        estimate = self._learner.estimate if fresh else None
        if estimate is not None:
            self._learner.propose(estimate.parameters)
        scores = self._learner.scores.scores()
        if not self._followed:
            decision = self._decision(scores)
            # a change of the robot explains errors that the gate blames on a model
            if not decision.accepted and not self._alarming and self._watch():
                scores = self._learner.scores.scores()
                decision = self._decision(scores)
        if isinstance(self._tracker.phase, Following):
            self._refine(self._tracker.phase)
            scores = self._learner.scores.scores()
            decision = self._follow(scores)
        else:
            self._act(decision, estimate)
        changed, self._told = self._revision != self._told, self._revision
        known = self._learner, self._tracker, self._model
        told = *self._notes, *self._past.diagnostics
        return summary(*known, decision, scores, told, revision=self._revision, changed=changed)

    def _decision(self, scores: PrequentialScores) -> Decision:
        """Return what the gate says, or the tracker before it."""
        learner, model, changed = self._learner, self._model, self._robot_changed
        if model.identified and self._alarming and not learner.saturation.diagnostics():
            return alarmed(self._tracker.phase)
        since = learner.time - self._changed_at
        evidence = gather(learner, model, scores, since, self._silence, changed=changed)
        wrong = self._past.gravity.blamed(evidence.wrong_torques)
        return decide(replace(evidence, wrong_torques=wrong), self.config.gate)

    def _act(self, decision: Decision, fresh: Estimate | None) -> None:
        """Do what was decided; a fresh estimate may come into use."""
        if decision.fallback or (decision.confirmed and self._tracker.attached):
            self._tracker.forget()
            self._use(self._nominal)
            self._robot_changed = False
        elif fresh is not None and (decision.accepted or decision.confirmed):
            self._changed_at, self._robot_changed = self._learner.time, False
            base = fresh.base_parameters
            model = replace(self._nominal, std=fresh.std, identified=True)
            if decision.accepted:
                known = KnownBase(base, self._nominal.known.covariance)
                self._use(ModelInUse(fresh.parameters, fresh.std, base, known, True), fresh)
            elif self._model.identified and self._model.parameters is model.parameters:
                self._model, self._adopted = model, fresh
            else:
                self._use(model, fresh)

    @property
    def _alarming(self) -> bool:
        """Whether the robot changed, or may have: an estimate would learn that as its own."""
        tracker, now = self._tracker, self._learner.time + self._silence
        return tracker.changed or tracker.undecided(now)

    def _watch(self) -> bool:
        """Look for changes, unless that was done or a load is followed; return whether it did."""
        if self._looked or self._followed:
            return False
        self._looked, self._notes = True, []
        if not self.config.payload.enabled:
            return False
        if not self._model.identified:
            if self._tracker.put_down(self._learner.window, self._learner.time):
                self._pose()
                self._learner.forget()
            return False
        if self._adopted is not None:
            self._model = replace(self._model, known=self._learner.known(self._adopted))
            self._adopted = None
        tracker, learner = self._tracker, self._learner
        if not tracker.attached and learner.saturation.diagnostics():
            return False  # torques that are cut off, or dead, are no load's
        try:
            note = tracker.look(learner.window, self._model, learner.colours, learner.time)
            if not isinstance(tracker.phase, Following):
                tracker.refine_carried()
            self._notes = [note] if note else []
        except EstimationError as error:
            self._notes = [unsolved(error)]
        self._go_back(tracker.former)
        if isinstance(tracker.phase, Following):
            learner.forget()
            self._past.drop_since(learner.time - tracker.detected_after - LONGEST)
        return True

    def _go_back(self, former: Former | None) -> bool:
        """Use a model from before a change, if there is one; what came since is no part of it."""
        if former is None:
            return False
        self._use(former.model)
        self._learner.propose(self._model.parameters)
        self._changed_at = self._learner.time
        self._robot_changed |= former.learned is None
        self._learner.forget()
        self._past.drop_since(former.until)
        if former.learned is not None:
            self._learner.window.adopt_memory(former.learned)
        return True

    def _refine(self, phase: Following) -> None:
        """Estimate the load that is followed anew; in the end it is part of the model."""
        tracker, learner, self._notes = self._tracker, self._learner, []
        try:
            before, phase = phase, tracker.refine(phase)
            if phase.clean and not before.clean:
                learner.scores.clear()
        except EstimationError as error:
            self._notes = [unsolved(error)]
        if self._go_back(tracker.put_back(phase, learner.window, learner.time)):
            self._pose()
            return
        self._use(with_load(self._loads, phase, self._model.std))
        learner.propose(self._model.parameters)
        self._changed_at = learner.time
        if tracker.settled(phase, learner.time):
            learner.window.adopt_memory(tracker.finish(phase))
            self._past.clear()
            self._pose()

    def _pose(self) -> None:
        """Let the next solves rest on the described robot with the load that it carries."""
        carried = self._tracker.carried
        self._learner.pose(*self._loads.problem(None if carried is None else carried.load))

    def _follow(self, scores: PrequentialScores) -> Decision:
        """Hold while a load is followed; give it up where the nominal model does better."""
        phase = self._tracker.phase
        used, nominal = np.linalg.norm(scores.used.rmse), np.linalg.norm(scores.nominal.rmse)
        worse = scores.samples >= self._tracker.clean_samples and used > nominal * WORSE
        if not (isinstance(phase, Following) and phase.clean and worse):
            return followed(self._tracker)
        self._go_back(self._tracker.refute(phase))
        self._pose()
        return refuted(float(used), float(nominal))
