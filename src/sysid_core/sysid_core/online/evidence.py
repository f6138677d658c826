# SPDX-License-Identifier: Apache-2.0
"""Gathers what the gate looks at from what was learned and what is in use."""

from __future__ import annotations

import numpy as np

from sysid_core.diagnostics import Diagnostic
from sysid_core.estimation import Estimate
from sysid_core.inertia import consistency_margin
from sysid_core.online.gate import Evidence
from sysid_core.online.learner import Learner
from sysid_core.online.prequential import PrequentialScores
from sysid_core.online.torque_checks import refusing
from sysid_core.online.update import ModelInUse
from sysid_core.robot.plausibility import absurdity

__all__ = ["gather"]

_SHORTEST_CHANGE = 0.5
"""Changes are taken to be spread over at least this time [s]: a controller blends them in."""

_HALF = 0.5
"""Share of what makes an estimate absurd that shows a model to be of the same torques [-]."""

_WAIT = 3
"""Windows that a first model of a robot, or of a changed one, waits for a scale, or what a torque
is at an end of its range, to show. One is what a motion needs to show all of the robot: what three
leave open, it does not show."""


def gather(
    learner: Learner,
    model: ModelInUse,
    scores: PrequentialScores,
    elapsed: float,
    silence: float,
    *,
    changed: bool = False,
) -> Evidence:
    """Return the evidence on the newest estimate.

    `elapsed` [s] since the model in use changed, inf if it never did; `silence` [s] since the last
    samples came.
    """
    layout, estimate = learner.robot.layout, learner.estimate
    fault, fill = learner.fault, learner.window.fill
    if not fault and estimate is None and fill >= 1.0:
        fault = "the solver has not returned an estimate yet"
    margins, absurd, leaning = np.ones(0), None, False
    if estimate is not None:
        absurd = absurdity(learner.robot, estimate.parameters)
        if absurd is not None:
            leaning = absurdity(learner.robot, model.parameters, _HALF) is not None
        margins = consistency_margin(layout.inertias(estimate.parameters))
    waits = not model.identified and learner.windows < _WAIT
    waiting = learner.cut_efforts.suspected() if waits else ()
    return Evidence(
        opened=model.identified,
        fill=fill,
        r2=scores.r2,
        rmse_groups=scores.candidate.rmse,
        rmse_nominal_groups=scores.nominal.rmse,
        centred_r2=scores.centred_r2,
        torque=learner.usual,
        saturated=learner.saturation.diagnostics() or waiting,
        wrong_torques=_wrong_torques(learner, in_use=model.identified and not changed),
        absurdity=absurd,
        leaning=leaning,
        changed=changed,
        adopted=model.identified and model.parameters is not learner.robot.nominal,
        groups=learner.regression.groups,
        consistency=margins,
        bodies=layout.bodies,
        determined=0.0 if estimate is None else float(np.mean(estimate.determined)),
        optimality=0.0 if estimate is None else estimate.optimality,
        change=0.0 if estimate is None else _change(learner, estimate, model, elapsed),
        idle=max(0.0, learner.time - learner.informative_time) + silence,
        fault=fault,
        left_out=learner.left_out.share,
        left_out_causes=learner.left_out.diagnostics,
    )


def _wrong_torques(learner: Learner, *, in_use: bool) -> tuple[Diagnostic, ...]:
    early = learner.windows < _WAIT
    found = refusing(learner.verdicts, in_use=in_use, early=early) or learner.suspects
    return tuple(verdict.finding for verdict in found.values() if verdict.finding is not None)


def _change(learner: Learner, estimate: Estimate, model: ModelInUse, elapsed: float) -> float:
    """Return the change of the predicted torque per second [1/s], relative to the torque."""
    if not np.isfinite(elapsed):
        return 0.0
    seen = learner.window.sums()
    moved = float(seen.predicted_square(estimate.base_parameters - model.base).sum())
    relative = float(np.sqrt(max(moved, 0.0) / max(seen.square.sum(), 1e-300)))
    return relative / max(elapsed, _SHORTEST_CHANGE)
