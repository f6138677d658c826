# SPDX-License-Identifier: Apache-2.0
"""What an update of the online identifier tells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sysid_core.diagnostics import Diagnostic
from sysid_core.errors import EstimationError
from sysid_core.inertia import smallest_eigenvalue
from sysid_core.online.gate import Decision, GateState
from sysid_core.online.learner import Learner
from sysid_core.online.payload_phases import Alarmed, Phase
from sysid_core.online.payload_tracker import PayloadTracker
from sysid_core.online.prequential import PrequentialScores
from sysid_core.online.update import ModelInUse, Update

__all__ = ["alarmed", "followed", "refuted", "summary", "unsolved"]


def summary(
    learner: Learner,
    tracker: PayloadTracker,
    model: ModelInUse,
    decision: Decision,
    scores: PrequentialScores,
    notes: Sequence[Diagnostic],
    *,
    revision: int,
    changed: bool,
) -> Update:
    """Return what is known after a decision."""
    estimate, robot, window = learner.estimate, learner.robot, learner.window
    found = () if estimate is None else estimate.diagnostics
    # else it is told with what is left out
    cut = learner.cut_efforts.diagnostics() if learner.regression.per_joint else ()
    if estimate is not None and model.parameters is estimate.parameters:
        consistency = estimate.consistency
    else:
        consistency = smallest_eigenvalue(robot.layout.inertias(model.parameters))
    return Update(
        robot=robot,
        time=learner.time,
        state=decision.state,
        causes=decision.reasons,
        notes=(*notes, *cut, *learner.left_out.diagnostics, *found),
        revision=revision,
        changed=changed,
        identified=model.identified,
        parameters=model.parameters,
        std=model.std,
        scores=scores,
        estimate=estimate,
        payload=tracker.payload,
        payload_attached=tracker.attached,
        detected_after=tracker.detected_after,
        samples=learner.samples,
        rejected=learner.rejected,
        window_samples=window.samples,
        fill=window.fill,
        determined=0.0 if estimate is None else float(np.mean(estimate.determined)),
        condition=np.inf if estimate is None else estimate.condition,
        consistency=np.nan if estimate is None else float(estimate.consistency.min()),
        consistency_bodies=consistency,
        window_duration=window.samples / learner.config.sample_rate,
    )


def unsolved(error: EstimationError) -> Diagnostic:
    """Say why there is no estimate of a payload."""
    return Diagnostic("payload_unsolved", f"no payload estimate: {error}")


def followed(tracker: PayloadTracker) -> Decision:
    """Hold the model while a payload is followed."""
    message = "payload being identified"
    if tracker.payload is not None:
        message += f": {tracker.payload.mass:.2f} ± {tracker.payload.mass_std:.2f} kg"
    return Decision(GateState.HOLDING, False, False, (Diagnostic("payload", message),))


def alarmed(phase: Phase) -> Decision:
    """Hold the model while it is not clear what changed, or the robot is led by hand."""
    message = "the torque errors rose: nothing new is adopted before it is clear why"
    why = phase.by_hand if isinstance(phase, Alarmed) else None
    return Decision(GateState.HOLDING, False, False, (why or Diagnostic("alarm", message),))


def refuted(used: float, nominal: float) -> Decision:
    """Go back from a model with a payload, which errs more [N·m] than the nominal one."""
    message = (
        f"with its payload the model predicts torque worse ({used:.3g} N·m) than the "
        f"nominal one ({nominal:.3g} N·m)"
    )
    return Decision(GateState.HOLDING, False, False, (Diagnostic("payload_refuted", message),))
