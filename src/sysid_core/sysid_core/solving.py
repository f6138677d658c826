# SPDX-License-Identifier: Apache-2.0
"""Solves the problem of a batch identification, and names what contradicts the description."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from sysid_core.arrays import FloatArray
from sysid_core.askew import ALL, find_askew
from sysid_core.contradiction import find_contradiction, resting_on_friction, wrong_scales
from sysid_core.diagnostics import Diagnostic
from sysid_core.effort_scales import find_wrong_effort
from sysid_core.estimation import Entropic, Estimate, Estimator, Problem
from sysid_core.joint_order import find_joint_order
from sysid_core.online.intake import expected_errors
from sysid_core.posing import Posing
from sysid_core.refit import Refit
from sysid_core.row_stream import RowStream
from sysid_core.tilt import Tilt

__all__ = ["Solved", "solve"]

_WORSE = 1.2
"""Ratio of a joint's error to the nominal model's on the same data that no learning leaves."""
_ROUNDS = 4  # In which the noise beside a model error settles


class Solved(NamedTuple):
    """A solution, the problem and the residuals' colour that it rests on, and doubts of it."""

    estimate: Estimate
    problem: Problem
    correlation: FloatArray
    doubts: tuple[Diagnostic, ...] = ()
    tilt: Tilt | None = None  # Is among the doubts


def solve(
    problem: Problem, posing: Posing, stream: RowStream, estimator: Estimator, still: float
) -> Solved:
    """Solve, find how coloured the residuals are, and solve with the weights that they ask.

    A floating base's torques err by a share that lasts, too: its acceleration, which rows hold, is
    noisy. Gravity in another direction is named, or a joint whose efforts contradict the rest,
    which then weighs no more than its friction asks, and one whose efforts have another scale.
    """
    regression = stream.regression
    first = replace(estimator, covariance="none").solve(problem)
    correlation = stream.correlation(first.parameters)
    problem = replace(problem, correlation=correlation)
    estimate = estimator.solve(problem, first.parameters)
    if regression.robot.floating or (regression.per_joint and _bent(problem, estimate)):
        problem, correlation = _with_model_error(problem, first, correlation)
        estimate = estimator.solve(problem, first.parameters)
    doubts: tuple[Diagnostic, ...] = ()
    if posing.only is None:
        learned = stream.learned
        if not regression.per_joint:
            doubts = find_wrong_effort(regression, problem, learned, still)
        # rows of loops take long, and few linkages hang askew
        if regression.per_joint or regression.robot.floating:
            refit = Refit(learned, still, posing.problem, estimate, correlation)
            # a leg's effort of another scale looks like a tilt
            ways = (find_joint_order,) if doubts else ALL
            askew = find_askew(refit, refit.fit(regression), *ways)
            if askew is not None:
                tilt = askew if isinstance(askew, Tilt) else None
                return Solved(estimate, problem, correlation, (askew.finding,), tilt)
    if not regression.per_joint:
        return Solved(estimate, problem, correlation, doubts)
    several = len(regression.groups) > 1
    group = find_contradiction(problem, estimate) if several else None
    scales = wrong_scales(regression, problem, correlation) if posing.only is None else ()
    if group is None:
        return Solved(estimate, problem, correlation, scales)
    correlation = resting_on_friction(problem, group)
    problem = replace(problem, correlation=correlation)
    estimate = estimator.solve(problem, estimate.parameters)
    message = "its efforts contradict the other joints' and count for its own friction alone"
    hint = "check 'effort.gain' and what else moves this joint"
    found = Diagnostic("contradiction", message, subject=regression.groups[group], hint=hint)
    # efforts that stick contradict the rest, too, and may hide whose have another scale
    return Solved(estimate, problem, correlation, (found, *scales))


def _bent(problem: Problem, estimate: Estimate) -> bool:
    """Whether a joint's torques are explained clearly worse than before anything was learned.

    Where a motion determines little, bodies that are bent far enough explain what friction and
    gears of one joint do, at the cost of another's torques: these then seem noisy and count less.
    """
    nominal = problem.base.project(problem.prior.mean)
    learned = problem.statistics.rmse(estimate.base_parameters)
    return bool((learned > _WORSE * problem.statistics.rmse(nominal)).any())


def _with_model_error(
    problem: Problem, start: Estimate, colour: FloatArray
) -> tuple[Problem, FloatArray]:
    """Return a problem in which each torque errs by a share that lasts, as live.

    With it comes the correlation (G,) of its rows. The noise of that `colour` (G,) beside the
    share is settled from an estimate on.
    """
    solve = Entropic(covariance="none").prepare(problem)

    def erring(base_vector: FloatArray) -> tuple[Problem, FloatArray]:
        statistics = problem.statistics
        noise, lasting = expected_errors(statistics, statistics, base_vector, colour)
        return replace(problem, noise_std=noise, correlation=lasting), lasting

    found = erring(start.base_parameters)
    for _ in range(_ROUNDS - 1):
        found = erring(solve(found[0], start.parameters).base_parameters)
    return found
