# SPDX-License-Identifier: Apache-2.0
"""The online identifier as a plain object: samples in, parameters and their standing out."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sysid_core.errors import EstimationError, ParameterError, SysidError
from sysid_core.estimation import EntropicSolver, Estimate, EstimatorOptions, Problem, solve
from sysid_core.inertia import pseudo_inertia, smallest_eigenvalue
from sysid_core.online.gate import Evidence, Gate, GateSettings, State
from sysid_core.online.left_out import RecentlyLeftOut
from sysid_core.online.payload import PayloadEstimate, PayloadEstimator, PayloadSettings
from sysid_core.online.payload_watch import PayloadWatch
from sysid_core.online.prequential import Prequential, Scores
from sysid_core.online.window import SlidingWindow, WindowSettings
from sysid_core.priors import default_constraints, default_prior
from sysid_core.recording import BoolArray, FloatArray, Samples
from sysid_core.regression.rows import Regression, RowBlock, Rows
from sysid_core.regression.select import make_regression
from sysid_core.regression.statistics import Statistics
from sysid_core.robot.model import Robot

__all__ = ["OnlineIdentifier", "OnlineSettings", "Request", "Solution", "Update"]

_TOLERANCE = 1e-3
"""A solve stops when the next step would move the estimate by less standard deviations [-]."""

_SHORTEST_CHANGE = 0.5
"""Changes are taken to be spread over at least this time [s]: a controller blends them in."""


@dataclass(frozen=True)
class OnlineSettings:
    """Settings of the online identifier.

    Attributes
    ----------
    sample_rate : float [Hz]
        Rate of the samples; turns durations into sample counts.
    window : float [s]
        Span of informative samples that makes the window full.
    memory : float [s]
        Time in which data that left the window lose half their weight; 0 forgets them at once.
    r2_window : float [s]
        Span of the newest samples that prequential scores are taken over.
    still_velocity : float [rad/s]
        Rows of a joint that moves slower are left out: stiction hides their friction.
    correlation : float [-]
        Number of samples that count as one independent observation.
    method : str
        Estimator.
    gate : GateSettings
    payload : PayloadSettings
    """

    sample_rate: float = 100.0
    window: float = 2.0
    memory: float = 20.0
    r2_window: float = 1.0
    still_velocity: float = 0.02
    correlation: float = 4.0
    method: str = "entropic"
    gate: GateSettings = field(default_factory=GateSettings)
    payload: PayloadSettings = field(default_factory=PayloadSettings)

    def __post_init__(self) -> None:
        for name in ("sample_rate", "window", "r2_window"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise ParameterError(f"{name} must be positive, got {value}")
        for name in ("memory", "still_velocity"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise ParameterError(f"{name} must be finite and not negative, got {value}")
        if not (np.isfinite(self.correlation) and self.correlation >= 1.0):
            raise ParameterError(f"correlation must be at least 1, got {self.correlation}")
        EstimatorOptions(method=self.method)

    def samples(self, duration: float) -> int:
        """Return the number of samples in a duration [s]."""
        return max(1, round(duration * self.sample_rate))

    @property
    def window_settings(self) -> WindowSettings:
        """Settings of the sliding window."""
        samples = self.samples(self.window)
        return WindowSettings(samples, min(20, samples), self.memory / self.window)


@dataclass(frozen=True)
class Request:
    """A solve to be done, with its own copy of the data; made by `OnlineIdentifier.snapshot`.

    Only one request at a time may be solved: solvers reuse their work arrays.
    """

    problem: Problem
    options: EstimatorOptions
    entropic: EntropicSolver | None
    start: FloatArray
    epoch: int

    def solve(self) -> Estimate:
        """Return the estimate."""
        if self.entropic is None:
            return solve(self.problem, self.options, start=self.start)
        return self.entropic.solve(
            self.problem.statistics,
            noise_std=self.problem.noise_std,
            correlation=self.problem.correlation,
            start=self.start,
        )


@dataclass(frozen=True)
class Solution:
    """The outcome of a `Request`: an estimate, or the reason why there is none."""

    estimate: Estimate | None
    fault: str
    epoch: int


@dataclass(frozen=True)
class Update:
    """What the identifier knows after an update.

    Attributes
    ----------
    time : float [s]
        Of the newest sample.
    state : State
    reasons, warnings : tuple[str, ...]
        Why this state; what else was noticed.
    revision : int
        Grows whenever `parameters` changes.
    changed : bool
        Whether this update changed `parameters`.
    identified : bool
        Whether `parameters` are identified rather than nominal.
    parameters, std : (p,)
        To be used now, and their standard deviations.
    scores : Scores
        Prequential scores.
    estimate : Estimate or None
        The newest one, accepted or not.
    payload : PayloadEstimate or None
    payload_attached : bool
    detected_after : float [s]
        Between the payload's step and its detection.
    samples, rejected : int
        Ingested and refused so far.
    window_samples : int
    fill, determined, condition, consistency : float
        See `Evidence` and `Estimate`; `consistency` is the newest estimate's smallest eigenvalue.
    consistency_bodies : (nb,)
        Smallest pseudo-inertia eigenvalue of each body of `parameters`.
    window_duration : float [s]
        Span that the window's samples would take without interruptions.
    """

    time: float
    state: State
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    revision: int
    changed: bool
    identified: bool
    parameters: FloatArray
    std: FloatArray
    scores: Scores
    estimate: Estimate | None
    payload: PayloadEstimate | None
    payload_attached: bool
    detected_after: float
    samples: int
    rejected: int
    window_samples: int
    fill: float
    determined: float
    condition: float
    consistency: float
    consistency_bodies: FloatArray
    window_duration: float


class OnlineIdentifier:
    """Sliding-window identification of one robot.

    Call `ingest` with every batch of samples, and `update` at the rate at which results are
    wanted. Where a solve must not hold up the thread that ingests, call `snapshot` (under a
    lock), `solve` (anywhere) and `apply` (under the lock) instead of `update`.

    Parameters
    ----------
    robot : Robot
    settings : OnlineSettings, optional
    regression : Regression, optional
        Default: the one of the robot's class.
    """

    def __init__(
        self,
        robot: Robot,
        settings: OnlineSettings | None = None,
        regression: Regression | None = None,
    ) -> None:
        self.robot = robot
        self.settings = settings or OnlineSettings()
        self.regression = regression or make_regression(
            robot, still_velocity=self.settings.still_velocity
        )
        base = self.regression.base
        self.groups = self.regression.groups
        self._payloads = PayloadEstimator(robot, base, len(self.groups), self.settings.payload)
        self._nominal_base = base.project(robot.nominal)
        self._per_joint = self.groups == robot.actuated_names
        self._torque_limit = 2.0 * robot.limits.effort
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

    def configure(self, settings: OnlineSettings) -> None:
        """Change the settings; what was learned stays, if only as memory under a new window."""
        old, self.settings = self.settings, settings
        self._gate.settings = settings.gate
        self._payloads.settings = self._watch.settings = settings.payload
        if old.window_settings != settings.window_settings:
            self._renew_window()
            self._epoch += 1
        if old.samples(old.r2_window) != settings.samples(settings.r2_window):
            self._scores = Prequential(len(self.groups), settings.samples(settings.r2_window))
            self._left_out = RecentlyLeftOut(settings.samples(settings.r2_window))

    def _new_window(self) -> SlidingWindow:
        return SlidingWindow(
            len(self.groups),
            self.regression.base.size,
            self.settings.window_settings,
            getattr(self.regression, "supports", None),
        )

    def _renew_window(self) -> None:
        """Start with an empty window; what was in the old one fades as memory does."""
        learned = self._window.statistics() + self._window.memory
        self._window = self._new_window()
        if self.settings.memory > 0.0:
            self._window.adopt_memory(learned)

    def reset(self) -> None:
        """Forget all data and go back to the nominal parameters."""
        settings, groups = self.settings, len(self.groups)
        self._window = self._new_window()
        self._scores = Prequential(groups, settings.samples(settings.r2_window))
        self._left_out = RecentlyLeftOut(settings.samples(settings.r2_window))
        self._gate = Gate(settings.gate)
        self._watch = PayloadWatch(
            self._payloads, settings.payload, settings.sample_rate, settings.correlation
        )
        self._prior = default_prior(self.robot)
        self._constraints = default_constraints(self.robot)
        self._estimate: Estimate | None = None
        self._solver: EntropicSolver | None = None
        self._covariance: FloatArray | None = None
        self._candidate = self._prior.mean
        self._candidate_base = self._nominal_base
        self._use(self.robot.nominal, np.full(self.robot.layout.size, np.nan), False)
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
        samples = self._usable(samples)
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

    def _usable(self, samples: Samples) -> Samples:
        actuated = self.robot.actuated
        signals = (samples.effort, samples.position, samples.velocity, samples.acceleration)
        base = (samples.base_pose, samples.base_twist, samples.base_acceleration)
        values = np.hstack(
            [samples.time[:, None]]
            + [signal[:, actuated] for signal in signals]
            + [signal for signal in base if signal is not None]
        )
        with np.errstate(invalid="ignore"):
            within = (np.abs(samples.effort) <= self._torque_limit)[:, actuated]
        usable = np.flatnonzero(np.hstack([np.isfinite(values), within]).all(axis=1))
        self._rejected += len(samples) - len(usable)
        return samples if len(usable) == len(samples) else samples.select(usable)

    def _ingest_block(self, samples: Samples) -> None:
        rows = self.regression.rows(samples)
        self._left_out.note(self.regression)
        usable = np.zeros(len(samples), dtype=bool)
        for block in rows.blocks:
            usable[block.sample] = True
        if self._per_joint:
            moving = (
                np.abs(samples.velocity[:, self.robot.actuated]) > self.settings.still_velocity
            )
            usable &= moving.any(axis=1)
            rows = _moving_rows(rows, moving)
        informative = int(usable.sum())
        if informative == 0 or not any(len(block.target) for block in rows.blocks):
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
        problem = Problem(
            self.robot.layout,
            self.regression.base,
            self.groups,
            statistics,
            self._prior,
            self._constraints,
            noise_std=self._noise_std(statistics),
            correlation=np.full(len(self.groups), self.settings.correlation),
        )
        options = EstimatorOptions(
            method=self.settings.method, tolerance=_TOLERANCE, covariance="diagonal"
        )
        if options.method != "entropic":
            return Request(problem, options, None, self._candidate, self._epoch)
        if self._solver is None or self._solver.problem.prior is not self._prior:
            self._solver = EntropicSolver(problem, options)
        return Request(problem, options, self._solver, self._candidate, self._epoch)

    def _noise_std(self, statistics: Statistics) -> FloatArray | None:
        """Return the noise (G,) [N·m] that the newest estimate leaves; None before the first."""
        if self._estimate is None:
            return None
        count = np.maximum(statistics.count, 1.0)
        floor = 1e-4 * np.sqrt(statistics.square / count)
        return np.maximum(statistics.rmse(self._candidate_base), floor + 1e-12)

    def solve(self, request: Request) -> Solution:
        """Solve a request; touches nothing but the request, so that any thread may call it."""
        try:
            estimate = request.solve()
        except (SysidError, np.linalg.LinAlgError) as error:
            return Solution(None, str(error), request.epoch)
        if not np.isfinite(estimate.parameters).all():
            return Solution(None, "the solver returned numbers that are not finite", request.epoch)
        return Solution(estimate, "", request.epoch)

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

    def _judge(self, scores: Scores, solution: Solution | None) -> tuple[State, tuple[str, ...]]:
        fresh = solution is not None and solution.estimate is self._estimate
        if fresh and self._estimate is not None:
            self._candidate = self._estimate.parameters
            self._candidate_base = self._estimate.base_parameters
        if self._gate.open and self._alarming(scores):
            reason = "the torque errors rose: nothing new is adopted before it is clear why"
            return State.HOLDING, (reason,)
        decision = self._gate.decide(self._evidence(scores))
        if decision.fallback:
            self._watch.forget()
            self._use(self.robot.nominal, np.full(self.robot.layout.size, np.nan), False)
        elif decision.accepted and fresh and self._estimate is not None:
            self._use(self._estimate.parameters, self._estimate.std, True)
            self._covariance = self._estimate.base_covariance
            self._changed_at = self._time
        return decision.state, decision.reasons

    def _alarming(self, scores: Scores) -> bool:
        """Whether a payload may just have changed: the newest estimate predicts no better."""
        newest = np.linalg.norm(scores.rmse_groups)
        used = np.linalg.norm(scores.rmse_used_groups)
        return self._watch.undecided(self._time + self._silence) and bool(newest > 0.5 * used)

    def _evidence(self, scores: Scores) -> Evidence:
        estimate = self._estimate
        if estimate is None:
            relative, determined, optimality, change = np.ones(0), 0.0, 0.0, 0.0
        else:
            phi = self.robot.layout.inertias(estimate.parameters)
            eigenvalues = np.linalg.eigvalsh(pseudo_inertia(phi))
            relative = eigenvalues[:, 0] / np.maximum(eigenvalues[:, -1], 1e-300)
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
            self._epoch += 1
        return warnings

    def _follow_payload(self, scores: Scores) -> tuple[State, tuple[str, ...]]:
        """Return the state while a payload is followed; gives up where nominal does better."""
        used = np.linalg.norm(scores.rmse_used_groups)
        nominal = np.linalg.norm(scores.rmse_nominal_groups)
        enough = scores.samples >= self.settings.samples(self.settings.payload.window)
        if self._watch.clean and enough and used > nominal * 1.02:
            self._watch.abandon()
            self._gate.reset()
            self._use(self.robot.nominal, np.full(self.robot.layout.size, np.nan), False)
            reason = (
                f"with its payload the model predicts torque worse ({used:.3g} N·m) than the "
                f"nominal one ({nominal:.3g} N·m)"
            )
            return State.NOMINAL, (reason,)
        return State.HOLDING, (self._watch.describe(),)

    # -- report -----------------------------------------------------------------------------

    def _report(
        self,
        state: State,
        reasons: tuple[str, ...],
        warnings: tuple[str, ...],
        scores: Scores,
        changed: bool,
    ) -> Update:
        estimate = self._estimate
        notes = warnings + self._left_out.warnings
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
            determined=float(np.mean(estimate.determined)) if estimate is not None else 0.0,
            condition=estimate.condition if estimate is not None else float("inf"),
            consistency=(
                float(estimate.consistency.min()) if estimate is not None else float("nan")
            ),
            consistency_bodies=smallest_eigenvalue(self.robot.layout.inertias(self._used)),
            window_duration=self._window.samples / self.settings.sample_rate,
        )


def _moving_rows(rows: Rows, moving: BoolArray) -> Rows:
    """Leave out the rows of joints that stand still; `moving` is (n, G) bool."""
    if moving.all():
        return rows
    return Rows(
        tuple(
            RowBlock(*(part[moving[block.sample, g]] for part in block))
            for g, block in enumerate(rows.blocks)
        )
    )
