# SPDX-License-Identifier: Apache-2.0
"""The batch pipeline: a recording and a robot in, identified and validated parameters out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from sysid_core.agreement import check_agreement
from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.bandwidth import predictive_cutoff
from sysid_core.batch import (
    Batch,
    Progress,
    quiet,
    rest_speed,
    rows_of,
    scored_rows,
    training_rows,
)
from sysid_core.contradiction import find_contradiction, resting_on_friction
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.friction import FrictionTerm
from sysid_core.dynamics.rows import Regression, Rows
from sysid_core.dynamics.select import make_regression
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import DataError, ParameterError
from sysid_core.estimation import Entropic, Estimate, Estimator, Prior, Problem
from sysid_core.estimation.essential import essential_parameters
from sysid_core.estimation.misfit import STRETCHES, no_surer_than_prior, widened
from sysid_core.friction_choice import choose_friction, thinned
from sysid_core.gathering import Gathered, Gathering
from sysid_core.inertia import nearest_consistent
from sysid_core.loads import Bare, Load, expecting_loads, find_loads
from sysid_core.priors import default_constraints, default_prior
from sysid_core.recording import Recording, Samples
from sysid_core.recordings import Source
from sysid_core.robot.model import Robot
from sysid_core.row_stream import Learned, RowStream
from sysid_core.scores import Curve, Scores
from sysid_core.signals import CutoffChoice, PrepareReport, SignalConfig
from sysid_core.verdict import implausible_results
from sysid_core.workers import Workers, workers

_LOAD_ROUNDS = 2
"""First estimates for the load that friction takes: a third would move it by a thousandth."""
_CHOICES: tuple[Callable[[FrictionTerm], bool], ...] = (
    lambda term: term.lower == 0.0,
    lambda term: True,
)
"""Terms to choose from: at first none that could make up for what friction did to gravity."""

__all__ = [
    "Identification",
    "IdentifyConfig",
    "Validation",
    "identify",
    "rows_at_learned_cutoff",
    "validate",
]


@dataclass(frozen=True)
class IdentifyConfig:
    """Settings of a batch identification.

    Attributes
    ----------
    train : float [-]
        Share of the samples, from the start, that is learned from; the rest validates.
    still : float [-]
        Rows of a joint that is slower than this share of its top speed are not learned from:
        the sign of its Coulomb friction is anybody's guess there.
    only : tuple[str, ...] or None
        Identify the inertias of these bodies and hold everything else; what they gain is a load.
    start : Bare or None
        An earlier identification, whose parameters take the place of the nominal ones.
    lenient : bool
        Use what is usable of a faulty recording.
    friction : str
        ``chosen``: each joint of a tree gets the terms that predict held-out torque better,
        unless the description chooses, or `only` or `start` are given. ``described``: none is
        added to the description's.
    signals : SignalConfig
    estimator : Estimator
    """

    train: float = 0.7
    still: float = 0.01
    only: tuple[str, ...] | None = None
    start: Bare | None = None
    lenient: bool = False
    friction: Literal["chosen", "described"] = "chosen"
    signals: SignalConfig = field(default_factory=SignalConfig)
    estimator: Estimator = field(default_factory=Entropic)

    def __post_init__(self) -> None:
        if not 0.0 < self.train <= 1.0:
            raise ParameterError(f"train must lie above 0 and at most at 1, got {self.train:g}")
        if self.friction not in ("chosen", "described"):
            raise ParameterError(f"friction is chosen or described, got {self.friction!r}")
        if not 0.0 <= self.still < 1.0:
            raise ParameterError(f"still must lie between 0 and 1, got {self.still:g}")


@dataclass(frozen=True)
class Identification:
    """Everything that a batch identification found.

    Attributes
    ----------
    robot : Robot
    regression : Regression
    nominal : (p,)
        Parameters that the identified ones are compared with.
    prior : Prior
    estimate : Estimate
    correlation : (G,) [-]
        Number of samples that count as one independent observation, from the residuals' colour.
    discrepancy : (G,) [N·m]
        See `Widened`.
    essential : (b,) bool
        Base parameters that the data determine about as well as each other.
    train, validation : Scores
        `validation` is None when everything was learned from.
    curves : tuple[Curve, ...]
    loads : tuple[Load, ...]
        One per body of `IdentifyConfig.only`.
    signals : PrepareReport
    samples : Samples
    split : int
        Index of the first held-out sample.
    warnings : tuple[str, ...]
    """

    robot: Robot
    regression: Regression
    nominal: FloatArray
    prior: Prior
    estimate: Estimate
    correlation: FloatArray
    discrepancy: FloatArray
    essential: BoolArray
    train: Scores
    validation: Scores | None
    curves: tuple[Curve, ...]
    loads: tuple[Load, ...]
    signals: PrepareReport
    samples: Samples
    split: int
    warnings: tuple[str, ...]


def _start(robot: Robot, options: IdentifyConfig) -> tuple[FloatArray, Prior]:
    """Return the nominal parameters and the prior."""
    prior = default_prior(robot)
    if options.start is None:
        return np.array(robot.nominal), prior
    start = options.start.parameters
    robot.check_parameters(start)
    mean, layout = start.copy(), robot.layout
    phi = layout.inertias(mean)
    phi[:] = np.where(phi[:, :1] > 0.0, phi, layout.inertias(prior.mean))
    phi[:] = nearest_consistent(phi)
    if options.only is None:
        where = layout.nonnegative
        mean[where] = np.where(mean[where] > 0.0, mean[where], prior.mean[where])
    return np.array(start), replace(prior, mean=mean)


def _problem(
    regression: Regression,
    statistics: Statistics,
    prior: Prior,
    options: IdentifyConfig,
    rows: Rows | None = None,
) -> Problem:
    robot = regression.robot
    constraints = default_constraints(robot, only=options.only)
    if options.only is not None:
        loaded = np.isin(robot.layout.bodies, options.only)
        prior = expecting_loads(robot, prior, loaded)
        # a load may reach beyond the body that carries it
        ellipsoids = tuple(
            None if carries else ellipsoid
            for carries, ellipsoid in zip(loaded, constraints.ellipsoids, strict=True)
        )
        constraints = replace(constraints, ellipsoids=ellipsoids)
    return Problem(
        robot.layout,
        regression.base,
        regression.groups,
        statistics,
        prior,
        constraints,
        rows=rows,
    )


def _solve(
    problem: Problem, regression: Regression, stream: RowStream, estimator: Estimator
) -> tuple[Estimate, FloatArray, list[Diagnostic]]:
    """Solve, find how coloured the residuals are, and solve with the weights that they ask.

    A joint whose efforts contradict the rest is named, and weighs no more than its friction asks.
    """
    first = replace(estimator, covariance="none").solve(problem)
    correlation = stream.correlation(first.parameters)
    problem = replace(problem, correlation=correlation)
    estimate = estimator.solve(problem, first.parameters)
    several = regression.per_joint and len(regression.groups) > 1
    group = find_contradiction(problem, estimate) if several else None
    if group is None:
        return estimate, correlation, []
    correlation = resting_on_friction(problem, group)
    estimate = estimator.solve(replace(problem, correlation=correlation), estimate.parameters)
    message = "its efforts contradict the other joints' and count for its own friction alone"
    hint = "check 'effort.gain' and what else moves this joint"
    joint = regression.groups[group]
    return estimate, correlation, [Diagnostic("contradiction", message, subject=joint, hint=hint)]


def _settled_friction(
    regression: Regression, training: Batch, options: IdentifyConfig
) -> Regression:
    """Choose each joint's friction terms, and the load that they take from a first estimate."""
    known = regression.robot.description
    described = (
        options.friction == "described"
        or bool(known.friction_chosen)
        or "friction" in known.effort_excludes
    )
    choose = not described and options.only is None and options.start is None
    if not (choose and regression.robot.is_tree) and not regression.robot.load_friction:
        return regression

    def solution(regression: Regression, rows: Rows) -> FloatArray:
        prior = _start(regression.robot, options)[1]
        problem = _problem(regression, Statistics.of(rows), prior, options)
        return Entropic(covariance="none").solve(problem).parameters

    batch = thinned(training)
    rows = training_rows(
        regression, rows_of(regression, batch), batch, rest_speed(batch.samples, options.still)
    )
    if not rows.finite or sum(len(b.target) for b in rows.blocks) < regression.base.size:
        return regression
    parameters = solution(regression, rows)
    for among in _CHOICES if choose else ():
        chosen = choose_friction(regression, batch, rows, parameters, among)
        if chosen != regression.robot.description.friction_chosen:
            regression = make_regression(regression.robot.with_friction(chosen))
            regression.assume_load(parameters)
            rows = training_rows(
                regression,
                rows_of(regression, batch),
                batch,
                rest_speed(batch.samples, options.still),
            )
            parameters = solution(regression, rows)
    for _ in range(_LOAD_ROUNDS if regression.robot.load_friction else 0):
        parameters = solution(regression, regression.with_load(rows, parameters))
    regression.assume_load(parameters)
    return regression


def identify(
    robot: Robot,
    data: Recording | Sequence[Source],
    options: IdentifyConfig | None = None,
    progress: Progress = quiet,
    pool: Workers | None = None,
) -> Identification:
    """Identify a robot from a recording, or from several.

    Parameters
    ----------
    robot : Robot
    data : Recording or sequence of Source
    options : IdentifyConfig, optional
    progress : callable
    pool : Workers, optional
        Who reads and filters the recordings; default: this process.

    Raises
    ------
    DataError
        If the recording is not usable.
    EstimationError, ParameterError
        If the estimation cannot be done as asked.
    """
    options = options or IdentifyConfig()
    sources = [Source(data)] if isinstance(data, Recording) else data
    named = ", ".join(source.name for source in sources)
    nominal, prior = _start(robot, options)
    progress("signals", 0.0)
    regression = make_regression(robot)
    doubts: list[str] = []
    with workers() if pool is None else nullcontext(pool) as used_pool:
        gathering = Gathering(robot, sources, options.signals, options.lenient, used_pool)
        choice = gathering.choice
        excerpt, share = gathering.excerpt(options.train)
        best = predictive_cutoff(
            excerpt,
            regression,
            lambda rows: _problem(regression, Statistics.of(rows), prior, options),
            train=share,
            still=options.still,
            rungs=2 if choice.given else None,
        )
        if not choice.given:
            choice = best
        elif best.cutoff < choice.cutoff:
            doubts = [f"{best.reason}: leave the cut-off open, or lower it"]
        gathered = gathering.gather(choice, options.train)
    batch, split = gathered.batch, gathered.split
    training = batch.before(split)
    regression = _settled_friction(regression, training, options)
    robot = regression.robot
    nominal, prior = _start(robot, options)
    progress("signals", 1.0)
    if options.start is not None:
        options.start.check(regression)
    samples = batch.samples
    stream = RowStream(regression, gathered, options.still, named)
    learned = stream.learn(STRETCHES, progress)
    _require_enough(regression, learned, named)
    progress("estimation", 0.0)
    stretches = [gathered.weighed(parts) for parts in learned.parts]
    rows = stream.used_rows() if options.estimator.needs_rows else None
    problem = _problem(regression, sum(stretches[1:], stretches[0]), prior, options, rows)
    estimate, correlation, contradictions = _solve(problem, regression, stream, options.estimator)
    weighed = replace(problem, correlation=correlation)
    solved, estimate = estimate, no_surer_than_prior(estimate, weighed)
    estimate, discrepancy = widened(estimate, regression.base, stretches, correlation)
    differ: tuple[str, ...] = ()
    if len(sources) > 1:
        recordings = [sum(parts[1:], parts[0]) for parts in zip(*learned.parts, strict=True)]
        names = [source.name for source in sources]
        differ = check_agreement(problem, recordings, estimate, names)
    progress("estimation", 1.0)
    judged = stream.judge(nominal, estimate.parameters)
    train, held = judged.train, judged.held
    warnings = [
        *batch.report.warnings,
        *differ,
        *doubts,
        *map(str, contradictions),
        *map(str, judged.left_out.diagnostics),
        *robot.warnings,
        *estimate.warnings,
        *map(str, implausible_results(robot, estimate.parameters, train, held, judged.curves)),
    ]
    return Identification(
        robot=robot,
        regression=regression,
        nominal=nominal,
        prior=problem.prior,
        estimate=estimate,
        correlation=correlation,
        discrepancy=discrepancy,
        essential=essential_parameters(problem.statistics, estimate.noise_std, correlation),
        train=train,
        validation=held,
        curves=judged.curves,
        loads=()
        if options.only is None
        else tuple(find_loads(regression, weighed, solved, estimate, nominal, options.start)),
        signals=batch.report,
        samples=samples,
        split=split,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _require_enough(regression: Regression, learned: Learned, source: str) -> None:
    if learned.rows < regression.base.size:
        why = [str(d) for d in learned.left_out.diagnostics] or [
            "record for longer, or raise --train"
        ]
        raise DataError(
            f"{learned.rows} usable rows are too few for {regression.base.size} base parameters; "
            f"{'; '.join(why)}",
            source=source,
        )


class Validation(NamedTuple):
    """Scores on another recording, the cut-off [Hz] that it was filtered at, and warnings."""

    scores: Scores
    cutoff: float
    warnings: tuple[str, ...]


def validate(
    robot: Robot,
    data: Recording | Source,
    nominal: FloatArray,
    identified: FloatArray,
    options: IdentifyConfig | None = None,
    progress: Progress = quiet,
    *,
    learned_cutoff: float | None = None,
) -> Validation:
    """Score nominal and identified parameters (p,) on a whole recording.

    Parameters
    ----------
    robot : Robot
    data : Recording or Source
    nominal, identified : (p,)
    options : IdentifyConfig, optional
    progress : callable
    learned_cutoff : float, optional [Hz]
        The cut-off that the parameters were learned at: used where `options` names none, as far
        as the recording's rate allows.

    Raises
    ------
    DataError
        If the recording is not usable.
    ModelError
        If the parameters do not belong to the robot.
    """
    options = options or IdentifyConfig()
    for vector in (nominal, identified):
        robot.check_parameters(vector)
    source = Source(data) if isinstance(data, Recording) else data
    gathered, cutoff = _gathered_at_learned_cutoff(robot, source, options, learned_cutoff)
    progress("regression", 0.0)
    stream = RowStream(make_regression(robot), gathered, options.still, source.name)
    judged = stream.judge(nominal, identified)
    left_out = tuple(map(str, judged.left_out.diagnostics))
    return Validation(judged.train, cutoff, (*gathered.batch.report.warnings, *left_out))


def _gathered_at_learned_cutoff(
    robot: Robot, source: Source, options: IdentifyConfig, learned_cutoff: float | None
) -> tuple[Gathered, float]:
    """Return a whole recording's samples, and the cut-off [Hz] that they were filtered at."""
    with workers() as here:
        gathering = Gathering(robot, [source], options.signals, options.lenient, here)
        choice = gathering.choice
        if options.signals.cutoff is None and learned_cutoff is not None:
            cutoff = min(learned_cutoff, gathering.limit)
            choice = CutoffChoice(cutoff, 0.0, 0.0, f"{cutoff:.3g} Hz, as learned", given=True)
        return gathering.gather(choice, 1.0), choice.cutoff


def rows_at_learned_cutoff(
    robot: Robot,
    data: Recording | Source,
    options: IdentifyConfig,
    learned_cutoff: float | None,
    progress: Progress = quiet,
) -> tuple[Regression, Rows, float, tuple[str, ...]]:
    """Return the rows of a whole recording to compare models on, its cut-off, and warnings.

    Parameters
    ----------
    robot : Robot
    data : Recording or Source
    options : IdentifyConfig
    learned_cutoff : float or None [Hz]
        Used where `options` names none, as far as the recording's rate allows.
    progress : callable

    Raises
    ------
    DataError
        If the recording is not usable.
    """
    source = Source(data) if isinstance(data, Recording) else data
    gathered, cutoff = _gathered_at_learned_cutoff(robot, source, options, learned_cutoff)
    batch = gathered.batch
    regression = make_regression(robot)
    rows = rows_of(regression, batch, progress)
    if not rows.finite:
        raise DataError("the samples hold gaps in a measured joint", source=source.name)
    rows = scored_rows(regression, rows, batch, rest_speed(batch.samples, options.still))
    left_out = tuple(map(str, rows.left_out.diagnostics))
    if left_out and not any(len(block.target) for block in rows.blocks):
        raise DataError("; ".join(left_out), source=source.name)
    return regression, rows, cutoff, (*batch.report.warnings, *left_out)
