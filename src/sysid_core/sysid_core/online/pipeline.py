# SPDX-License-Identifier: Apache-2.0
"""The online identifier as a plain object: samples in, parameters and their standing out."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.rows import Regression
from sysid_core.dynamics.select import make_regression
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import EstimationError
from sysid_core.estimation import Estimate, Problem, Solver, estimator
from sysid_core.inertia import consistency_margin, smallest_eigenvalue
from sysid_core.online.gate import Evidence, Gate, GateState
from sysid_core.online.intake import noise_of, usable_samples
from sysid_core.online.left_out import RecentlyLeftOut
from sysid_core.online.payload import PayloadEstimator
from sysid_core.online.payload_watch import PayloadWatch
from sysid_core.online.prequential import Prequential, PrequentialScores
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.update import Request, Solution, Update
from sysid_core.online.window import SlidingWindow
from sysid_core.priors import default_constraints, default_prior
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot

__all__ = ["OnlineIdentifier"]

_TOLERANCE = 2e-3
"""A solve stops when the next step would move the estimate by less standard deviations [-]."""

_SHORTEST_CHANGE = 0.5
"""Changes are taken to be spread over at least this time [s]: a controller blends them in."""


class OnlineIdentifier:
    """Sliding-window identification of one robot.

    Call `ingest` with every batch of samples, and `update` at the rate at which results are
    wanted. Where a solve must not hold up the thread that ingests, call `snapshot` (under a
    lock), `solve` (anywhere) and `apply` (under the lock) instead of `update`.

    Parameters
    ----------
    robot : Robot
    settings : OnlineConfig, optional
    regression : Regression, optional
        Default: the one of the robot's class.
    """

    def __init__(
        self,
        robot: Robot,
        settings: OnlineConfig | None = None,
        regression: Regression | None = None,
    ) -> None:
        self.robot = robot
        self.settings = settings or OnlineConfig()
        self.regression = regression or make_regression(robot)
        base = self.regression.base
        self.groups = self.regression.groups
        self._payloads = PayloadEstimator(robot, base, len(self.groups), self.settings.payload)
        self._nominal_base = base.project(robot.nominal)
        self._gate = Gate(self.settings.gate)
        self._watch: PayloadWatch
        self._window: SlidingWindow
        self._revision = 0
        self._epoch = 0
        self.reset()

    @property
    def payload_frame(self) -> str:
        """Frame that payloads are expressed in."""
        return self._payloads.frame

    def configure(self, settings: OnlineConfig) -> None:
        """Change the settings; what was learned stays, if only as memory under a new window."""
        old, self.settings = self.settings, settings
        self._gate.settings = settings.gate
        self._payloads.settings = self._watch.settings = settings.payload
        if old.window_settings != settings.window_settings:
            self._renew_window()
            self._epoch += 1
        if old.samples(old.r2_window) != settings.samples(settings.r2_window):
            self._renew_scores()

    def _renew_scores(self) -> None:
        span = self.settings.samples(self.settings.r2_window)
        self._scores = Prequential(len(self.groups), span)
        self._left_out = RecentlyLeftOut(span)

    def _new_window(self) -> SlidingWindow:
        return SlidingWindow(
            len(self.groups),
            self.regression.base.size,
            self.settings.window_settings,
            self.regression.supports,
        )

    def _renew_window(self) -> None:
        """Start with an empty window; what was in the old one fades as memory does."""
        learned = self._window.statistics() + self._window.memory
        self._window = self._new_window()
        if self.settings.memory > 0.0:
            self._window.adopt_memory(learned)

    def reset(self) -> None:
        """Forget all data and go back to the nominal parameters."""
        settings = self.settings
        self._window = self._new_window()
        self._renew_scores()
        self._gate = Gate(settings.gate)
        self._watch = PayloadWatch(
            self._payloads, settings.payload, settings.sample_rate, settings.correlation
        )
        self._prior = default_prior(self.robot)
        self._constraints = default_constraints(self.robot)
        self._estimate: Estimate | None = None
        self._solver: Solver | None = None
        self._covariance: FloatArray | None = None
        self._candidate = self._prior.mean
        self._candidate_base = self._nominal_base
        self._use_nominal()
        self._changed_at = -np.inf
        self._time = -np.inf
        self._informative_time = -np.inf
        self._samples = 0
        self._rejected = 0
        self._fault = ""
        self._silence = 0.0
        self._informative = 0
        self._solved_at = 0
        self._epoch += 1

    # -- data in ----------------------------------------------------------------------------

    def ingest(self, samples: Samples) -> None:
        """Score the samples with the models at hand, then learn from them.

        Samples that are not finite or exceed twice the effort limit are counted and left out.
        A batch whose time goes back starts the window anew; what was in it fades as memory does.
        """
        given, samples = len(samples), usable_samples(self.robot, samples)
        self._rejected += given - len(samples)
        if len(samples) == 0:
            return
        if samples.time[0] < self._time - 1e-9:
            self._begin_anew(float(samples.time[0]))
        self._time = float(samples.time[-1])
        self._samples += len(samples)
        size = max(1, self.settings.window_settings.samples // 20)
        for start in range(0, len(samples), size):
            self._ingest_block(samples.select(slice(start, start + size)))

    def _begin_anew(self, time: float) -> None:
        self._renew_window()
        self._scores.clear()
        self._watch.restart(time)
        self._changed_at = self._informative_time = time

    def _ingest_block(self, samples: Samples) -> None:
        rows = self.regression.rows(samples, self.settings.still_velocity)
        self._left_out.note(rows.left_out)
        usable = np.zeros(len(samples), dtype=bool)
        for block in rows.blocks:
            usable[block.sample] = True
        informative = int(usable.sum())
        if informative == 0:
            return
        self._informative_time = float(samples.time[-1])
        self._informative += informative
        self._scores.push(
            rows, informative, self._candidate_base, self._nominal_base, self._used_base
        )
        self._window.push(rows, informative)
        if self._watch.active:
            self._watch.push(Statistics.of(rows), informative)

    # -- solving ----------------------------------------------------------------------------

    def snapshot(self) -> Request | None:
        """Return the solve that the present data ask for; None without informative new ones."""
        if self._solved_at == self._informative or self._window.samples < 2 or self._watch.active:
            return None
        self._solved_at = self._informative
        statistics = self._window.statistics() + self._window.memory
        noise = None if self._estimate is None else noise_of(statistics, self._candidate_base)
        problem = Problem(
            self.robot.layout,
            self.regression.base,
            self.groups,
            statistics,
            self._prior,
            self._constraints,
            noise_std=noise,
            correlation=np.full(len(self.groups), self.settings.correlation),
        )
        if self._solver is None:
            chosen = estimator(self.settings.method, tolerance=_TOLERANCE, covariance="diagonal")
            self._solver = chosen.prepare(problem)
        return Request(problem, self._solver, self._candidate, self._epoch)

    def solve(self, request: Request) -> Solution:
        """Solve a request; touches nothing but the request, so that any thread may call it."""
        return request.solve()

    def update(self) -> Update:
        """Solve and decide at once."""
        request = self.snapshot()
        return self.apply(None if request is None else self.solve(request))

    def apply(self, solution: Solution | None, *, silence: float = 0.0) -> Update:
        """Judge a solution and return what is to be used.

        Parameters
        ----------
        solution : Solution or None
            None if there was nothing to solve.
        silence : float [s]
            Time since the last samples came.
        """
        self._silence = silence
        if solution is not None and solution.epoch == self._epoch:
            self._fault = solution.fault
            if solution.estimate is not None:
                self._estimate = solution.estimate
        revision = self._revision
        warnings: list[str] = []
        busy = self._watch.active
        if self._gate.open and self.settings.payload.enabled:
            warnings += self._watch_payload()
        scores = self._scores.scores()
        if busy or self._watch.active:
            state, reasons = self._follow_payload(scores)
        else:
            state, reasons = self._judge(scores, solution)
        return self._report(state, reasons, tuple(warnings), scores, self._revision != revision)

    def _judge(
        self, scores: PrequentialScores, solution: Solution | None
    ) -> tuple[GateState, tuple[str, ...]]:
        fresh = solution is not None and solution.estimate is self._estimate
        if fresh and self._estimate is not None:
            self._candidate = self._estimate.parameters
            self._candidate_base = self._estimate.base_parameters
        if self._gate.open and self._alarming(scores):
            reason = "the torque errors rose: nothing new is adopted before it is clear why"
            return GateState.HOLDING, (reason,)
        decision = self._gate.decide(self._evidence(scores))
        if decision.fallback:
            self._watch.forget()
            self._use_nominal()
        elif decision.accepted and fresh and self._estimate is not None:
            self._use(self._estimate.parameters, self._estimate.std, True)
            self._covariance = self._estimate.base_covariance
            self._changed_at = self._time
        return decision.state, decision.reasons

    def _alarming(self, scores: PrequentialScores) -> bool:
        """Whether a payload may just have changed: the newest estimate predicts no better."""
        newest = np.linalg.norm(scores.rmse_groups)
        used = np.linalg.norm(scores.rmse_used_groups)
        return self._watch.undecided(self._time + self._silence) and bool(newest > 0.5 * used)

    def _evidence(self, scores: PrequentialScores) -> Evidence:
        estimate = self._estimate
        if estimate is None:
            relative, determined, optimality, change = np.ones(0), 0.0, 0.0, 0.0
        else:
            relative = consistency_margin(self.robot.layout.inertias(estimate.parameters))
            determined = float(np.mean(estimate.determined))
            optimality, change = estimate.optimality, self._change(estimate)
        fault = self._fault
        if not fault and estimate is None and self._window.fill >= 1.0:
            fault = "the solver has not returned an estimate yet"
        return Evidence(
            fill=self._window.fill,
            r2=scores.r2,
            r2_groups=scores.r2_groups,
            rmse_groups=scores.rmse_groups,
            rmse_nominal_groups=scores.rmse_nominal_groups,
            groups=self.groups,
            consistency=relative,
            bodies=self.robot.layout.bodies,
            determined=determined,
            optimality=optimality,
            change=change,
            idle=max(0.0, self._time - self._informative_time) + self._silence,
            fault=fault,
            left_out=self._left_out.share,
        )

    def _change(self, estimate: Estimate) -> float:
        """Return the change of the predicted torque per second [1/s], relative to the torque."""
        elapsed = max(self._time - self._changed_at, _SHORTEST_CHANGE)
        if not np.isfinite(elapsed):
            return 0.0
        recent = self._window.recent(self._window.settings.samples)
        delta = estimate.base_parameters - self._used_base
        moved = float(np.einsum("i,gij,j->", delta, recent.gram, delta))
        return float(np.sqrt(max(moved, 0.0) / max(recent.square.sum(), 1e-300))) / elapsed

    def _use_nominal(self) -> None:
        self._use(self.robot.nominal, np.full(self.robot.layout.size, np.nan), False)

    def _use(self, parameters: FloatArray, std: FloatArray, identified: bool) -> None:
        self._used, self._used_std, self._identified = parameters, std, identified
        self._used_base = self.regression.base.project(parameters)
        self._revision += 1

    # -- payload ----------------------------------------------------------------------------

    def _watch_payload(self) -> list[str]:
        """Look for a payload, or follow the one that was noticed; returns warnings."""
        watch, warnings = self._watch, []
        try:
            if not watch.active:
                warning = watch.look(self._window, self._used, self._covariance, self._time)
                if not watch.active:
                    return [warning] if warning else []
                self._window.clear()
                self._scores.clear()
                self._epoch += 1
            if watch.refine():
                self._scores.clear()
        except EstimationError as error:
            warnings.append(f"no payload estimate: {error}")
        if not watch.active:
            return warnings
        loaded = watch.parameters_in_use()
        self._use(loaded, self._used_std, True)
        self._candidate, self._candidate_base = loaded, self._used_base
        self._changed_at = self._time
        if watch.settled(self._time):
            self._window.adopt_memory(watch.finish())
            self._prior, self._constraints = watch.loaded_problem(
                default_prior(self.robot), default_constraints(self.robot)
            )
            self._solver = None
            self._epoch += 1
        return warnings

    def _follow_payload(self, scores: PrequentialScores) -> tuple[GateState, tuple[str, ...]]:
        """Return the state while a payload is followed; gives up where nominal does better."""
        used = np.linalg.norm(scores.rmse_used_groups)
        nominal = np.linalg.norm(scores.rmse_nominal_groups)
        enough = scores.samples >= self.settings.samples(self.settings.payload.window)
        if self._watch.clean and enough and used > nominal * 1.02:
            self._watch.abandon()
            self._gate.reset()
            self._use_nominal()
            reason = (
                f"with its payload the model predicts torque worse ({used:.3g} N·m) than the "
                f"nominal one ({nominal:.3g} N·m)"
            )
            return GateState.NOMINAL, (reason,)
        return GateState.HOLDING, (self._watch.describe(),)

    # -- report -----------------------------------------------------------------------------

    def _report(
        self,
        state: GateState,
        reasons: tuple[str, ...],
        warnings: tuple[str, ...],
        scores: PrequentialScores,
        changed: bool,
    ) -> Update:
        estimate = self._estimate
        notes = warnings + tuple(map(str, self._left_out.diagnostics))
        notes += estimate.warnings if estimate is not None else ()
        return Update(
            time=self._time,
            state=state,
            reasons=reasons,
            warnings=notes,
            revision=self._revision,
            changed=changed,
            identified=self._identified,
            parameters=self._used,
            std=self._used_std,
            scores=scores,
            estimate=estimate,
            payload=self._watch.estimate,
            payload_attached=self._watch.attached,
            detected_after=self._watch.detected_after,
            samples=self._samples,
            rejected=self._rejected,
            window_samples=self._window.samples,
            fill=self._window.fill,
            determined=0.0 if estimate is None else float(np.mean(estimate.determined)),
            condition=np.inf if estimate is None else estimate.condition,
            consistency=np.nan if estimate is None else float(estimate.consistency.min()),
            consistency_bodies=smallest_eigenvalue(self.robot.layout.inertias(self._used)),
            window_duration=self._window.samples / self.settings.sample_rate,
        )
