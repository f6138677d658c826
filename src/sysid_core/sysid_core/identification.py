# SPDX-License-Identifier: Apache-2.0
"""The batch pipeline: recordings and a robot in, identified parameters out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sysid_core.agreement import check_agreement
from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.bandwidth import Ladder
from sysid_core.batch import Progress, quiet
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.disturbances import Disturbed, find_disturbances
from sysid_core.dynamics.rows import Regression
from sysid_core.dynamics.select import make_regression
from sysid_core.dynamics.statistics import Statistics
from sysid_core.dynamics.sums import Sums
from sysid_core.errors import DataError, SysidError, found_in
from sysid_core.estimation import Estimate, Prior
from sysid_core.estimation.essential import essential_parameters
from sysid_core.estimation.misfit import STRETCHES, no_surer_than_prior, widened
from sysid_core.friction_choice import FrictionChoice
from sysid_core.gathering import Gathered, Gathering
from sysid_core.identify_config import IdentifyConfig
from sysid_core.loads import Load, find_loads
from sysid_core.outside_forces import find_outside_forces
from sysid_core.parameters import FRICTION_TERMS
from sysid_core.recording import Recording, Samples
from sysid_core.recordings import Source
from sysid_core.robot.model import Robot
from sysid_core.row_stream import Judged, Learned, RowStream
from sysid_core.scores import Curve, Scores
from sysid_core.signals.prepare import PrepareReport
from sysid_core.solving import Solved, solve
from sysid_core.threads import one_thread
from sysid_core.tilt import Tilt
from sysid_core.two_kinds import find_two_kinds
from sysid_core.verdict import implausible_results
from sysid_core.workers import Workers, workers

__all__ = ["Identification", "IdentifyConfig", "identify", "total_mass"]

_MOST_DISTURBED = 0.45
"""Share of what is learned from that may be left out as disturbed: of more, the rest may be."""
_STILL_SHOWN = 0.9
"""Share of the base parameters determined that must still be, else the disturbed part is not left
out: the quickest one may be what shows most."""
_TURNS = 3
"""Most times that a model is identified anew: once for gravity, but for the odometry that a sensor
had levelled, and as disturbed parts are found."""


@dataclass(frozen=True)
class Identification:
    """Everything that a batch identification found."""

    robot: Robot
    regression: Regression
    nominal: FloatArray  # (p,) parameters that the identified ones are compared with
    prior: Prior
    estimate: Estimate
    correlation: FloatArray
    """(G,) [-] number of samples that count as one independent observation, from the residuals'
    colour."""
    discrepancy: FloatArray  # (G,) [N·m] see `Widened`
    essential: BoolArray
    """(b,) base parameters that the data determine about as well as each other."""
    # train, validation: `validation` is None when everything was learned from.
    train: Scores
    validation: Scores | None
    curves: tuple[Curve, ...]
    loads: tuple[Load, ...]  # One per body of `IdentifyConfig.only`
    signals: PrepareReport
    samples: Samples
    split: int  # Index of the first held-out sample
    warnings: tuple[str, ...]
    gravity: FloatArray | None = None
    """(3,) [m/s²] as torques show it, where that is not the description's direction."""
    contradicted: Diagnostic | None = None
    """What torques show to be described so wrongly that no model of them is right."""


class _Prepared(NamedTuple):
    """Samples at the cut-off that is chosen, the friction settled with it, and doubts of it."""

    regression: Regression
    gathered: Gathered
    doubts: list[str]


def _prepared(
    robot: Robot, sources: Sequence[Source], options: IdentifyConfig, pool: Workers | None
) -> _Prepared:
    """Read the recordings; choose the cut-off and each joint's friction."""
    known = robot.description
    chosen = options.friction == "chosen" and options.only is None and options.start is None
    chosen = chosen and not (known.friction_chosen or "friction" in known.effort_excludes)
    problem = options.posing.problem
    settle = FrictionChoice(problem, options.still, chosen)
    doubts: list[str] = []
    with workers() if pool is None else nullcontext(pool) as used:
        gathering = Gathering(robot, sources, options.signals, options.lenient, used)
        choice = gathering.choice
        ladder = Ladder(*gathering.excerpt(options.train), options.still, settle, problem)
        least = make_regression(robot)
        best, regression = ladder.choose(least, choice)
        if choice.given and best.cutoff < choice.cutoff:
            doubts = [f"{best.reason}: leave the cut-off open, or lower it"]
        choice = replace(choice, lag=best.lag) if choice.given else best
        gathered = gathering.gather(choice, options.train)
    if regression is None:
        regression = settle(least, gathered.batch.before(gathered.split))
    return _Prepared(regression, gathered, doubts)


@one_thread()
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
    found, tilt = _undisturbed(robot, sources, options, progress, pool)
    if tilt is None or options.start is not None or "gravity" in robot.description.effort_excludes:
        return found
    described = np.array(robot.description.gravity)
    # an inertial sensor had levelled a floating base, where torques tell better
    gravity = described if robot.floating else tilt.gravity
    for _ in range(_TURNS):
        there = robot.in_gravity(gravity)
        found, residual = _undisturbed(there, sources, options, progress, pool)
        if residual is None:
            break
        tilt, gravity = residual, residual.gravity
    gravity = np.array(there.description.gravity)
    if np.array_equal(gravity, described):  # the sensor was wrong, not the odometry
        return replace(found, gravity=gravity)
    told = replace(tilt, described=described, gravity=gravity).finding
    said = replace(told, hint=f"the model has it; live, {told.hint}, too")
    return replace(found, gravity=gravity, warnings=(str(said), *found.warnings))


def _undisturbed(
    robot: Robot,
    sources: Sequence[Source],
    options: IdentifyConfig,
    progress: Progress,
    pool: Workers | None,
) -> tuple[Identification, Tilt | None]:
    """Identify as `_identified` does, from what is left without what is disturbed."""
    found, tilt, disturbed = _identified(robot, sources, options, progress, pool)
    least, said = (1.0 - _MOST_DISTURBED) * found.split, list[str]()
    for _ in range(_TURNS if options.disturbed == "left_out" else 0):
        if not disturbed.spans or found.split - len(disturbed.samples) < least:
            break
        sources = [
            replace(one, without=(*one.without, *(s[1:] for s in disturbed.spans if s[0] == k)))
            for k, one in enumerate(sources)
        ]
        left = len(disturbed.samples)  # what validates stays what validates
        options = replace(options, train=(found.split - left) / (len(found.samples) - left))
        try:
            again = _identified(robot, sources, options, progress, pool)
        except SysidError:  # too little is left
            break
        shown, before = (np.sum(one.estimate.determined >= 0.5) for one in (again[0], found))
        if shown < _STILL_SHOWN * before:
            break
        said += map(str, disturbed.left_out)
        found, tilt, disturbed = again
    return replace(found, warnings=(*said, *found.warnings)), tilt


def _identified(
    robot: Robot,
    sources: Sequence[Source],
    options: IdentifyConfig,
    progress: Progress,
    pool: Workers | None,
) -> tuple[Identification, Tilt | None, Disturbed]:
    """Identify with gravity as described, and say where torques show it otherwise."""
    named = ", ".join(source.name for source in sources)
    progress("signals", 0.0)
    regression, gathered, notes = _prepared(robot, sources, options, pool)
    progress("signals", 1.0)
    if options.start is not None:
        options.start.check(regression)
    stream = RowStream(regression, gathered, options.still, named)
    learned = stream.learn(2 * STRETCHES, progress)
    stretches = [gathered.weighed(parts) for parts in learned.parts]
    _require_enough(regression, learned, named)
    progress("estimation", 0.0)
    with found_in(named):
        found = _found(options, stream, stretches)
    noise, groups = found.estimate.noise_std, regression.groups
    disturbed = find_disturbances(stretches, learned.edges, gathered, noise, groups)
    forces = find_outside_forces(regression, found.estimate.parameters, gathered, options.still)
    disturbed = disturbed.with_cause(forces)
    if len(sources) > 1:
        recordings = [Sums.total(p).statistics() for p in zip(*learned.parts, strict=True)]
        notes += check_agreement(found.solved.problem, recordings, found.estimate, gathered.names)
    progress("estimation", 1.0)
    judged, disturbed = _judged(options, stream, gathered, found, notes, disturbed)
    return judged, found.solved.tilt, disturbed


class _Found(NamedTuple):
    """What was solved, the estimate with the model's error, and that error's size (G,)."""

    solved: Solved
    estimate: Estimate
    discrepancy: FloatArray


def _found(options: IdentifyConfig, stream: RowStream, parts: Sequence[Sums]) -> _Found:
    regression, posing = stream.regression, options.posing
    stretches = [Sums.total(pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
    problem = posing.problem(regression, Sums.total(stretches).statistics())
    if options.estimator.needs_rows:
        problem = replace(problem, rows=stream.used_rows())
    solved = solve(problem, posing, stream, options.estimator, options.still)
    estimate = no_surer_than_prior(solved.estimate, solved.problem)
    if posing.only is None and options.start is None:
        estimate = _with_friction_as_described(estimate, regression, solved.problem.statistics)
    return _Found(solved, *widened(estimate, regression.base, stretches, solved.correlation))


def _with_friction_as_described(
    estimate: Estimate, regression: Regression, statistics: Statistics
) -> Estimate:
    """Return an estimate in which joints without rows have the nominal friction, not a guess.

    A guess that is too large would drive a joint that it is fed forward to. One of the armature
    does no such harm.
    """
    if not regression.per_joint or statistics.count.all():
        return estimate
    layout, nominal = regression.layout, regression.robot.nominal
    unseen = [n for n, k in zip(regression.groups, statistics.count, strict=True) if not k]
    own = np.isin(layout.joints, unseen)
    parameters = estimate.parameters.copy()
    for term in FRICTION_TERMS:
        if term != "armature":
            where = layout.term(term)
            parameters[where] = np.where(own, nominal[where], parameters[where])
    base = regression.base.project(parameters)
    return replace(estimate, parameters=parameters, base_parameters=base)


def _judged(
    options: IdentifyConfig,
    stream: RowStream,
    gathered: Gathered,
    found: _Found,
    notes: list[str],
    disturbed: Disturbed,
) -> tuple[Identification, Disturbed]:
    """Judge what was found, and return with it what is disturbed and of no known kind."""
    regression, start = stream.regression, options.start
    (solved, estimate, discrepancy), robot = found, regression.robot
    problem, correlation = solved.problem, solved.correlation
    nominal = np.array(robot.nominal if start is None else start.parameters)
    judged = stream.judge(nominal, estimate.parameters)
    loads: list[Load] = []
    if options.only is None:
        model = regression, estimate.parameters
        disturbed = find_two_kinds(*model, gathered, judged.curves, options.still, disturbed)
    if options.only is not None:
        loads = find_loads(regression, problem, solved.estimate, estimate, nominal, start)
    signals = gathered.batch.report
    notes = [*signals.warnings, *notes, *map(str, disturbed.said), *map(str, solved.doubts)]
    identification = Identification(
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
        loads=tuple(loads),
        signals=signals,
        samples=gathered.batch.samples,
        split=gathered.split,
        warnings=_warnings(robot, notes, judged, estimate),
        contradicted=next((d for d in solved.doubts if d.severity is Severity.ERROR), None),
    )
    return identification, disturbed


def total_mass(robot: Robot, estimate: Estimate) -> tuple[float, float]:
    """Return the mass of all bodies that move [kg], and its standard deviation."""
    masses = robot.layout.masses
    variance = float(estimate.covariance[np.ix_(masses, masses)].sum())
    return float(estimate.parameters[masses].sum()), float(np.sqrt(variance))


def _warnings(
    robot: Robot, notes: Iterable[str], judged: Judged, estimate: Estimate
) -> tuple[str, ...]:
    """Return all that is to be said of a result, each once."""
    implausible = implausible_results(
        robot,
        estimate.parameters,
        total_mass(robot, estimate)[1],
        judged.train,
        judged.held,
        judged.curves,
    )
    left_out = map(str, judged.left_out.diagnostics)
    said = [*notes, *left_out, *robot.warnings, *estimate.warnings, *map(str, implausible)]
    return tuple(dict.fromkeys(said))


def _require_enough(regression: Regression, learned: Learned, source: str) -> None:
    if learned.rows < regression.base.size:
        mend = "record for longer, or raise --train"
        if not learned.rows:
            mend = "no joint moves and has an effort that changes"
        why = [str(d) for d in learned.left_out.diagnostics] or [mend]
        raise DataError(
            f"{learned.rows} usable rows are too few for {regression.base.size} base parameters; "
            f"{'; '.join(why)}",
            source=source,
        )
