# SPDX-License-Identifier: Apache-2.0
"""Parameters judged on another recording than the one that they were learned from."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from sysid_core.arrays import FloatArray
from sysid_core.batch import Progress, quiet, rest_speed, rows_of, scored_rows
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import Regression, Rows
from sysid_core.dynamics.select import make_regression
from sysid_core.dynamics.sums import Sums
from sysid_core.errors import DataError, found_in
from sysid_core.estimation import Entropic
from sysid_core.forecast import Forecast, forecast
from sysid_core.gathering import Gathered, Gathering
from sysid_core.identification import IdentifyConfig
from sysid_core.loads import Bare
from sysid_core.posing import Posing
from sysid_core.recording import Recording
from sysid_core.recordings import Source
from sysid_core.robot.model import Robot
from sysid_core.row_stream import RowStream
from sysid_core.scores import Scores
from sysid_core.signals.cutoff import CutoffChoice
from sysid_core.solving import solve
from sysid_core.workers import workers

__all__ = ["Validation", "rows_at_learned_cutoff", "validate"]


class Validation(NamedTuple):
    """Scores on another recording, the cut-off [Hz] that it was filtered at, and warnings.

    `forecasts` are the motions of the nominal and the identified model, where asked for.
    """

    scores: Scores
    cutoff: float
    warnings: tuple[str, ...]
    forecasts: tuple[Forecast, Forecast] | None = None


def validate(
    robot: Robot,
    data: Recording | Source,
    nominal: FloatArray,
    identified: FloatArray,
    options: IdentifyConfig | None = None,
    progress: Progress = quiet,
    *,
    learned_cutoff: float | None = None,
    lag: float = 0.0,
    simulated: bool = False,
) -> Validation:
    """Score nominal and identified parameters (p,) on a whole recording.

    Where `options` names no cut-off, the one is used that the parameters were learned at [Hz], as
    far as the recording's rate allows; efforts have a lag [s]. Both models may be `simulated`,
    too: integrated forward.

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
    gathered, cutoff = _gathered_at_learned_cutoff(robot, source, options, learned_cutoff, lag)
    progress("regression", 0.0)
    stream = RowStream(make_regression(robot), gathered, options.still, source.name)
    judged = stream.judge(nominal, identified)
    with found_in(source.name):
        doubts = _doubts(stream, identified, options.still)
    notes = [*judged.left_out.diagnostics, *doubts]
    warnings = (*gathered.batch.report.warnings, *map(str, notes))
    forecasts = None
    if simulated:
        samples = gathered.batch.samples
        forecasts = forecast(robot, samples, nominal), forecast(robot, samples, identified)
    return Validation(judged.train, cutoff, warnings, forecasts)


def _doubts(stream: RowStream, identified: FloatArray, still: float) -> tuple[Diagnostic, ...]:
    """Return what on this recording contradicts parameters (p,), wherever they came from."""
    regression = stream.regression
    if not regression.per_joint:
        return ()
    learned = stream.learn(1)
    if learned.rows < regression.base.size:
        return ()
    posing = Posing(Bare(identified), None)
    statistics = Sums.total(learned.parts[0]).statistics()
    problem = posing.problem(regression, statistics)
    return solve(problem, posing, stream, Entropic(covariance="none"), still).doubts


def _gathered_at_learned_cutoff(
    robot: Robot,
    source: Source,
    options: IdentifyConfig,
    learned_cutoff: float | None,
    lag: float,
) -> tuple[Gathered, float]:
    """Return a whole recording's samples, and the cut-off [Hz] that they were filtered at."""
    with workers() as here:
        gathering = Gathering(robot, [source], options.signals, options.lenient, here)
        choice = gathering.choice
        if options.signals.cutoff is None and learned_cutoff is not None:
            cutoff = min(learned_cutoff, gathering.limit)
            choice = CutoffChoice(cutoff, 0.0, 0.0, f"{cutoff:.3g} Hz, as learned", given=True)
        return gathering.gather(replace(choice, lag=lag), 1.0), choice.cutoff


def rows_at_learned_cutoff(
    robot: Robot,
    data: Recording | Source,
    options: IdentifyConfig,
    learned_cutoff: float | None,
    lag: float = 0.0,
) -> tuple[Regression, Rows, tuple[str, ...]]:
    """Return the rows of a whole recording to compare models on, and warnings.

    Cut-off [Hz] and lag [s] as for `validate`.

    Raises
    ------
    DataError
        If the recording is not usable.
    """
    source = Source(data) if isinstance(data, Recording) else data
    gathered, _ = _gathered_at_learned_cutoff(robot, source, options, learned_cutoff, lag)
    batch = gathered.batch
    regression = make_regression(robot)
    rows = rows_of(regression, batch)
    rows = scored_rows(regression, rows, batch, rest_speed(batch.samples, options.still))
    left_out = tuple(map(str, rows.left_out.diagnostics))
    if left_out and not any(len(block.target) for block in rows.blocks):
        raise DataError("; ".join(left_out), source=source.name)
    return regression, rows, (*batch.report.warnings, *left_out)
