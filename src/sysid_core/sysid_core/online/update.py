# SPDX-License-Identifier: Apache-2.0
"""What the online identifier and who runs it exchange: solves, what came of them, models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import Regression
from sysid_core.effort_scales import EffortChecks
from sysid_core.errors import SysidError
from sysid_core.estimation import Estimate, Problem, Solver
from sysid_core.online.anchor import Unanchored
from sysid_core.online.gate import GateState
from sysid_core.online.payload_estimate import PayloadEstimate
from sysid_core.online.prequential import PrequentialScores
from sysid_core.online.torque_checks import TorqueChecks, TorqueVerdict
from sysid_core.robot.model import Robot
from sysid_core.threads import one_thread

__all__ = ["Failed", "KnownBase", "ModelInUse", "Request", "Solution", "Solved", "Update"]


@dataclass(frozen=True)
class Request:
    """A solve to be done, with its own copy of the data; made by `OnlineIdentifier.snapshot`.

    Only one request at a time may be solved: solvers reuse their work arrays.
    """

    problem: Problem
    solver: Solver
    start: FloatArray
    epoch: int
    colour: FloatArray  # (G,) of residuals: so many rows count for one where torques are judged
    unanchored: Unanchored
    checks: TorqueChecks | EffortChecks | None = None
    joints: tuple[int, ...] = ()  # Groups whose torques are to be judged
    judge_first: bool = False
    """Whether the solution brings the verdicts, as nothing is known of these torques yet."""

    def solve(self) -> Solution:
        """Return the estimate, or why there is none."""
        try:
            estimate = self.solver(self.problem, self.start)
            std = self.unanchored.deviations(self.problem, estimate)
        except (SysidError, np.linalg.LinAlgError) as error:
            return Failed(str(error), self.epoch)
        if not np.isfinite(estimate.parameters).all():
            return Failed("the solver returned numbers that are not finite", self.epoch)
        estimate = replace(estimate, std=std)
        return Solved(estimate, self.epoch, self.verdicts() if self.judge_first else {})

    @one_thread()
    def verdicts(self) -> dict[int, TorqueVerdict]:
        """Judge the torques of `joints`; none where rounding prevents it."""
        if self.checks is None:
            return {}
        try:
            return self.checks.judge(self.problem.statistics, self.colour, self.joints)
        except np.linalg.LinAlgError:
            return {}


@dataclass(frozen=True)
class Solved:
    """An estimate from the data of an epoch, which ends when data or problem start anew."""

    estimate: Estimate
    epoch: int
    verdicts: Mapping[int, TorqueVerdict] = field(default_factory=dict)


@dataclass(frozen=True)
class Failed:
    """Why a request has no estimate."""

    reason: str
    epoch: int


Solution = Solved | Failed


@dataclass(frozen=True)
class KnownBase:
    """How far base parameters are known: before a motion, and by what it tells."""

    mean: FloatArray  # (b,)
    covariance: FloatArray  # (b, b): NaN where it is not known
    motion: tuple[FloatArray, FloatArray] | None = None
    """What the motion tells: information (b, b), and moment (b,) about the mean."""

    def moved(self, shift: FloatArray, doubt: FloatArray) -> KnownBase:
        """Return the same of base parameters with more (b,), of which (b, b) is not known."""
        mean, covariance = self.posterior
        return KnownBase(mean + shift, covariance + doubt)

    @cached_property
    def posterior(self) -> tuple[FloatArray, FloatArray]:
        """Mean (b,) and covariance (b, b) by both; few of the models in use are asked for it."""
        if self.motion is None:
            return self.mean, self.covariance
        information, moment = self.motion
        both = np.column_stack([self.covariance @ moment, self.covariance])
        spread = np.eye(len(both)) + self.covariance @ information
        found = np.asarray(np.linalg.solve(spread, both), dtype=float)
        return self.mean + found[:, 0], found[:, 1:]


@dataclass(frozen=True)
class ModelInUse:
    """The parameters that a controller is told to use."""

    parameters: FloatArray  # (p,)
    std: FloatArray  # (p,)
    base: FloatArray  # (b,) base parameters of `parameters`
    known: KnownBase  # How far `base` is known on the motion alone that it was learned from
    identified: bool  # Whether the parameters are identified rather than nominal

    def in_law(self, regression: Regression) -> ModelInUse:
        """Return the model with its base parameters by the friction terms of a regression."""
        base = regression.base.project(self.parameters)
        unknown = np.full((len(base), len(base)), np.nan)
        return replace(self, base=base, known=KnownBase(base, unknown))


@dataclass(frozen=True)
class Update:
    """What the identifier knows after an update."""

    robot: Robot  # With the friction that `parameters` are of
    time: float  # [s] of the newest sample
    state: GateState
    # causes, notes: why this state; what else was noticed.
    causes: tuple[Diagnostic, ...]
    notes: tuple[Diagnostic, ...]
    revision: int  # Grows whenever `parameters` changes
    changed: bool  # Whether this update changed `parameters`
    identified: bool  # Whether `parameters` are identified rather than nominal
    # parameters, std: (p,) to be used now, and their standard deviations.
    parameters: FloatArray
    std: FloatArray
    scores: PrequentialScores
    estimate: Estimate | None  # The newest one, accepted or not
    payload: PayloadEstimate | None
    payload_attached: bool
    detected_after: float  # [s] between the payload's step and its detection
    # samples, rejected: ingested and refused so far.
    samples: int
    rejected: int
    window_samples: int
    # fill, determined, condition, consistency: see `Evidence` and `Estimate`; `consistency` is the
    # newest estimate's smallest eigenvalue.
    fill: float
    determined: float
    condition: float
    consistency: float
    consistency_bodies: FloatArray
    """(nb,) smallest pseudo-inertia eigenvalue of each body of `parameters`."""
    window_duration: float  # [s] span that the window's samples would take without interruptions

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why this state, as text."""
        return tuple(map(str, self.causes))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What else was noticed, as text."""
        return tuple(map(str, self.notes))
