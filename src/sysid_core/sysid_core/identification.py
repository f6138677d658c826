# SPDX-License-Identifier: Apache-2.0
"""The batch pipeline: recordings and a robot in, identified parameters out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from sysid_core.agreement import check_agreement
from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.bandwidth import Ladder
from sysid_core.batch import Progress, quiet
from sysid_core.contradiction import find_contradiction, resting_on_friction
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import Regression, Rows
from sysid_core.dynamics.select import make_regression
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import DataError, ParameterError
from sysid_core.estimation import Entropic, Estimate, Estimator, Prior, Problem
from sysid_core.estimation.essential import essential_parameters
from sysid_core.estimation.misfit import STRETCHES, no_surer_than_prior, widened
from sysid_core.friction_choice import FrictionChoice
from sysid_core.gathering import Gathered, Gathering
from sysid_core.inertia import nearest_consistent
from sysid_core.loads import Bare, Load, expecting_loads, find_loads
from sysid_core.priors import default_constraints, default_prior
from sysid_core.recording import Recording, Samples
from sysid_core.recordings import Source
from sysid_core.robot.model import Robot
from sysid_core.row_stream import Learned, RowStream
from sysid_core.scores import Curve, Scores
from sysid_core.signals import PrepareReport, SignalConfig
from sysid_core.verdict import implausible_results
from sysid_core.workers import Workers, workers

__all__ = ["Identification", "IdentifyConfig", "identify"]


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
) -> tuple[Estimate, Problem, FloatArray, list[str]]:
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
        return estimate, problem, correlation, []
    correlation = resting_on_friction(problem, group)
    problem = replace(problem, correlation=correlation)
    estimate = estimator.solve(problem, estimate.parameters)
    message = "its efforts contradict the other joints' and count for its own friction alone"
    hint = "check 'effort.gain' and what else moves this joint"
    found = Diagnostic("contradiction", message, subject=regression.groups[group], hint=hint)
    return estimate, problem, correlation, [str(found)]


class _Prepared(NamedTuple):
    """Samples at the cut-off that is chosen, the friction settled with it, and doubts of it."""

    regression: Regression
    gathered: Gathered
    doubts: list[str]


def _prepared(
    robot: Robot, sources: Sequence[Source], options: IdentifyConfig, pool: Workers | None
) -> _Prepared:
    """Read the recordings; choose the cut-off and each joint's friction."""
    chosen = options.friction == "chosen" and options.only is None and options.start is None

    def problem(regression: Regression, rows: Rows) -> Problem:
        prior = _start(regression.robot, options)[1]
        return _problem(regression, Statistics.of(rows), prior, options)

    settle = FrictionChoice(problem, options.still, chosen)
    doubts: list[str] = []
    with workers() if pool is None else nullcontext(pool) as used:
        gathering = Gathering(robot, sources, options.signals, options.lenient, used)
        choice = gathering.choice
        ladder = Ladder(*gathering.excerpt(options.train), options.still, settle, problem)
        least = make_regression(robot)
        best, regression = ladder.choose(least, choice)
        if not choice.given:
            choice = best
        elif best.cutoff < choice.cutoff:
            doubts = [f"{best.reason}: leave the cut-off open, or lower it"]
        gathered = gathering.gather(choice, options.train)
    if regression is None:
        regression = settle(least, gathered.batch.before(gathered.split))
    return _Prepared(regression, gathered, doubts)


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
        If a recording is not usable.
    EstimationError, ParameterError
        If the estimation cannot be done as asked.
    """
    options = options or IdentifyConfig()
    sources = [Source(data)] if isinstance(data, Recording) else data
    named = ", ".join(source.name for source in sources)
    progress("signals", 0.0)
    regression, gathered, notes = _prepared(robot, sources, options, pool)
    robot, batch = regression.robot, gathered.batch
    nominal, prior = _start(robot, options)
    progress("signals", 1.0)
    if options.start is not None:
        options.start.check(regression)
    stream = RowStream(regression, gathered, options.still, named)
    learned = stream.learn(STRETCHES, progress)
    _require_enough(regression, learned, named)
    progress("estimation", 0.0)
    stretches = [gathered.weighed(parts) for parts in learned.parts]
    rows = stream.used_rows() if options.estimator.needs_rows else None
    problem = _problem(regression, sum(stretches[1:], stretches[0]), prior, options, rows)
    solved, problem, correlation, found = _solve(problem, regression, stream, options.estimator)
    estimate = no_surer_than_prior(solved, problem)
    estimate, discrepancy = widened(estimate, regression.base, stretches, correlation)
    if len(sources) > 1:
        recordings = [sum(parts[1:], parts[0]) for parts in zip(*learned.parts, strict=True)]
        notes += check_agreement(problem, recordings, estimate, [s.name for s in sources])
    progress("estimation", 1.0)
    judged = stream.judge(nominal, estimate.parameters)
    implausible = implausible_results(
        robot, estimate.parameters, judged.train, judged.held, judged.curves
    )
    notes = [*batch.report.warnings, *notes, *found, *map(str, judged.left_out.diagnostics)]
    notes += [*robot.warnings, *estimate.warnings, *map(str, implausible)]
    return Identification(
        robot=robot,
        regression=regression,
        nominal=nominal,
        prior=problem.prior,
        estimate=estimate,
        correlation=correlation,
        discrepancy=discrepancy,
        essential=essential_parameters(problem.statistics, estimate.noise_std, correlation),
        train=judged.train,
        validation=judged.held,
        curves=judged.curves,
        loads=()
        if options.only is None
        else tuple(find_loads(regression, problem, solved, estimate, nominal, options.start)),
        signals=batch.report,
        samples=batch.samples,
        split=gathered.split,
        warnings=tuple(dict.fromkeys(notes)),
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
