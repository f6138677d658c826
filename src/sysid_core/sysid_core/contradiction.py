# SPDX-License-Identifier: Apache-2.0
"""Joints whose efforts contradict what the others and the prior say of the bodies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import Regression
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation import Entropic, Estimate, Problem
from sysid_core.estimation.setting import Setting
from sysid_core.online.anchor import wide_motion
from sysid_core.online.payload import PayloadConfig, PayloadEstimator
from sysid_core.online.torque_checks import FIT_ERROR, TorqueChecks, refusing

__all__ = ["CERTAIN", "find_contradiction", "log_evidence", "resting_on_friction", "wrong_scales"]

CERTAIN = 20.0
"""Log evidence by which a joint's efforts must be better explained without the bodies: it stands
for odds that no model error of usual size reaches."""

_ROUNDING = 1e-12
"""Relative size of a column that is rounding."""


def log_evidence(problem: Problem, estimate: Estimate, errors: FloatArray | None = None) -> float:
    """Return what errors of all groups and the prior say of a solution, −Σ n/η log σ − D.

    Its own errors count, or others (G,) [N·m].
    """
    if errors is None:
        errors = problem.statistics.rmse(estimate.base_parameters)
    setting = Setting(problem, 0.0)
    divergence = setting.divergence.value(estimate.parameters[setting.coordinates.free])
    return _log_likelihood(problem, errors) - divergence


def _log_likelihood(problem: Problem, errors: FloatArray) -> float:
    """Return what errors (G,) [N·m] say of a solution, −Σ n/η log σ."""
    rows = problem.statistics.count
    rows = rows if problem.correlation is None else rows / problem.correlation
    return -float(rows @ np.log(np.maximum(errors, 1e-300)))


def find_contradiction(problem: Problem, estimate: Estimate) -> int | None:
    """Return the group of the joint whose efforts contradict the rest most, if one does.

    Each joint's rows are left out in turn. Efforts that have another unit, or drive something
    else, are explained about as well by friction and offset alone, and without them the bodies
    return to what the prior and the other joints show. The errors alone must say so, too, beside
    the share of a torque that any model errs by, for which bodies may be bent far. Takes a problem
    with one group of rows per joint, and its solution.
    """
    statistics = problem.statistics
    solve = Entropic(covariance="none").prepare(problem)
    # bodies that cannot exist, as least squares may find, would have no evidence at all
    known = replace(problem, rows=None, noise_std=estimate.noise_std)
    together = solve(known, estimate.parameters)
    whole = log_evidence(problem, together)
    least = FIT_ERROR * statistics.rms

    def likelihood(errors: FloatArray) -> float:
        return _log_likelihood(problem, np.hypot(errors, least))

    usual = likelihood(statistics.rmse(together.base_parameters))
    best, gain = None, CERTAIN
    for group in np.flatnonzero(statistics.count):
        keep = np.arange(len(problem.groups)) != group
        others = Statistics(
            statistics.gram * keep[:, None, None],
            statistics.moment * keep[:, None],
            statistics.square * keep,
            statistics.count * keep,
        )
        left = solve(replace(known, statistics=others), estimate.parameters)
        errors = statistics.rmse(left.base_parameters)
        errors[group] = _own_error(problem, int(group))
        better = log_evidence(problem, left, errors) - whole
        better = min(better, likelihood(errors) - usual)
        if better > gain:
            best, gain = int(group), better
    return best


def wrong_scales(
    regression: Regression, problem: Problem, correlation: FloatArray
) -> tuple[Diagnostic, ...]:
    """Return the joint whose torque has another scale than masses and the other joints say.

    That is what live torques are held to, with all that was learned from; see `TorqueChecks`.
    """
    nominal = regression.base.project(problem.prior.mean)
    anchor = wide_motion(regression.robot, regression).shifted(nominal)
    tool = PayloadEstimator(regression, PayloadConfig()).likely_tool
    checks = TorqueChecks(replace(problem, anchor=anchor), tool)
    verdicts = checks.judge(problem.statistics, correlation, range(len(regression.groups)))
    found = refusing(verdicts, in_use=True).values()
    return tuple(verdict.finding for verdict in found if verdict.finding is not None)


def resting_on_friction(problem: Problem, group: int) -> FloatArray:
    """Return correlations (G,) by which a group's rows count for its own friction only.

    They count as many as the terms of that friction: enough to find these, too few to bend
    bodies.
    """
    count = problem.statistics.count
    correlation = np.ones(len(count)) if problem.correlation is None else problem.correlation
    own = problem.base.mapping[:, problem.layout.friction]
    size = np.einsum("bf,bc,cf->f", own, problem.statistics.gram[group], own)
    terms = np.count_nonzero(size > _ROUNDING * size.max(initial=0.0))
    fewer = correlation.copy()
    fewer[group] = max(correlation[group], count[group] / max(terms, 1))
    return fewer


def _own_error(problem: Problem, group: int) -> float:
    """Return the error [N·m] of a group whose joint's own friction and offset are fitted again."""
    statistics, own = problem.statistics, problem.base.mapping[:, problem.layout.friction]
    gram, moment = statistics.gram[group], statistics.moment[group]
    rest = own.T @ moment
    change = np.linalg.lstsq(own.T @ gram @ own, rest, rcond=1e-10)[0]
    return float(statistics.rmse(own @ change)[group])
