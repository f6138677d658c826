# SPDX-License-Identifier: Apache-2.0
"""Decides whether an estimate may be used, and says why: pure functions of the evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.errors import ParameterError
from sysid_core.scores import WORSE
from sysid_core.settings import check_config, parameter

__all__ = ["Decision", "Evidence", "GateConfig", "GateState", "decide"]

_MOST_LEFT_OUT = 0.5
"""Share of the newest samples without rows from which on the rest says little of the robot [-]."""

_MIN_CONSISTENCY = 1e-9
"""Ratio of a pseudo-inertia's eigenvalues that a simulator's factorisation still bears [-]."""

_HYSTERESIS = 0.05
"""The gate closes only this far below the threshold: R² of one second scatters by less [-]."""

_STALE_AFTER = 0.5
"""Without informative samples for so long the estimate is held: a pause, not a slow sensor [s]."""

_NEGLIGIBLE = 0.05
"""Share of its torque by which the error of one joint may exceed the nominal model's: errors of
the model's structure are as large [-]."""

_CLEARLY_BETTER = 0.5
"""Share of the nominal model's square error that an estimate must save to be used whatever its
R²: one joint in slow motion, all friction, has a poor one [-]."""

_BETTER = 1.2
"""Ratio of errors that takes the nominal model out of use: of a second's samples some five count
as independent for each joint, so that seven joints tell less only by chance [-]."""

_MAX_OPTIMALITY = 0.01
"""Posterior standard deviations that a solution may lie from its optimum: no error that counts,
and five times what a solve is asked for."""


class GateState(IntEnum):
    """State of the identifier; values as in ``sysid_msgs/IdentificationStatus``."""

    FILLING = 0
    NOMINAL = 1
    IDENTIFIED = 2
    HOLDING = 3
    REJECTED = 4
    FAULT = 5


@dataclass(frozen=True)
class GateConfig:
    """What an estimate must show before it is used."""

    r2_threshold: float = parameter(
        0.95,
        "Prequential R² over all joints, of Kolathaya et al., that opens the gate unless the "
        "estimate saves half of the nominal model's square error [-]. Less where torques are "
        "noisy",
        range=(0.01, 0.9999),
    )
    max_change: float = parameter(
        2.0,
        "Largest change of the predicted torque per second, relative to the torque [1/s]. Less "
        "makes what is adopted change more calmly",
        range=(0.001, 1000.0),
    )
    min_determined: float = parameter(
        0.005,
        "Mean share of the base parameters' information that must come from data, else the last "
        "accepted estimate is held [-]. What data leave open stays nominal, so little is enough; "
        "more where only a thoroughly excited model will do",
        range=(0.0, 1.0),
    )

    def __post_init__(self) -> None:
        check_config(self)
        if not self.r2_threshold > _HYSTERESIS:
            raise ParameterError(
                f"r2_threshold must lie above the hysteresis of {_HYSTERESIS:g}, "
                f"got {self.r2_threshold}"
            )


@dataclass(frozen=True)
class Evidence:
    """What the gate looks at."""

    opened: bool  # Whether an identified model is in use
    fill: float  # [-] share of the window that is filled
    r2: float  # [-] prequential R² over all groups; NaN while unknown
    # rmse_groups, rmse_nominal_groups: (G,) [N·m] prequential residuals of the estimate and those
    # of the nominal model.
    rmse_groups: FloatArray
    rmse_nominal_groups: FloatArray
    groups: tuple[str, ...]
    centred_r2: FloatArray  # (G,) [-]: R² about the mean of each torque
    torque: FloatArray  # (G,) [N·m] usual torque of each group
    consistency: FloatArray
    """(nb,) [-] smallest relative to largest pseudo-inertia eigenvalue of each body."""
    bodies: tuple[str, ...]
    determined: float  # [-]
    optimality: float  # [-]
    change: float
    """[1/s] relative change of the predicted torque per second since the last accepted
    estimate."""
    idle: float  # [s] time since the last informative sample
    fault: str = ""  # Why there is no usable solution; empty if there is one
    left_out: float = 0.0  # [-] share of the newest samples that could not be used
    left_out_causes: tuple[Diagnostic, ...] = ()  # Why, with the share of each
    wrong_torques: tuple[Diagnostic, ...] = ()  # Torques that cannot be what they are said to be
    saturated: tuple[Diagnostic, ...] = ()  # Torques that are cut off
    absurdity: Diagnostic | None = None  # By what factor all of the estimate is off
    leaning: bool = False  # Whether the model in use is off by half as much or more
    changed: bool = False  # Whether the robot changed after the model in use was learned
    adopted: bool = False  # Whether an estimate is in use, not the nominal model

    @property
    def skill(self) -> float:
        """Share of the nominal model's square error that the estimate saves [-]."""
        nominal = float(self.rmse_nominal_groups @ self.rmse_nominal_groups)
        own = float(self.rmse_groups @ self.rmse_groups)
        return 1.0 - own / nominal if nominal > 0.0 else 0.0


class Decision(NamedTuple):
    """The gate's answer."""

    state: GateState
    accepted: bool  # Whether this very estimate is to be used
    fallback: bool  # Whether the model in use must go back to nominal
    reasons: tuple[Diagnostic, ...]  # Never empty
    confirmed: bool = False  # Whether the data show that the nominal model is as good


def decide(evidence: Evidence, config: GateConfig) -> Decision:
    """Judge the newest estimate; the first check that finds something decides.

    The gate of Kolathaya et al. (a full buffer and R² above a threshold), with more checks.
    """
    for check in _CHECKS:
        reasons = tuple(check.find(evidence, config))
        if not reasons:
            continue
        state = check.opened if evidence.opened else check.closed
        if state is GateState.HOLDING:
            kept = "the last accepted parameters stay in use"
            reasons = tuple(replace(reason, hint=kept) for reason in reasons)
        if state is GateState.NOMINAL and evidence.fill < 1.0:
            state = GateState.FILLING
        return Decision(state, False, evidence.opened and state is GateState.NOMINAL, reasons)
    own, nominal = _errors(evidence)
    # what is in use stays unless the other is clearly better
    least = WORSE if evidence.adopted else 1.0 / _BETTER
    if own > nominal * least or _poor_joints(evidence, config):
        return Decision(GateState.IDENTIFIED, False, False, (_confirmed(own, nominal),), True)
    return Decision(GateState.IDENTIFIED, True, False, (_passed(evidence),))


def _errors(evidence: Evidence) -> tuple[float, float]:
    """Return the errors [N·m] of the estimate and of the nominal model over all groups."""
    own, nominal = map(np.linalg.norm, (evidence.rmse_groups, evidence.rmse_nominal_groups))
    return float(own), float(nominal)


def _confirmed(own: float, nominal: float) -> Diagnostic:
    message = (
        f"the data confirm the nominal model: it predicts torque to {nominal:.3g} N·m, the "
        f"estimate to {own:.3g} N·m"
    )
    return Diagnostic("confirmed", message, hint="the nominal parameters stay in use")


def _passed(evidence: Evidence) -> Diagnostic:
    """Say what was seen of an estimate that passed, and of the joint that fits worst."""
    values = {"R² (Kolathaya et al.)": f"{evidence.r2:.3f}", "skill": f"{evidence.skill:.3f}"}
    message = (
        f"every check passed: {100.0 * evidence.skill:.0f} % of the nominal square error is "
        f"saved, R² {evidence.r2:.3f} (Kolathaya et al.)"
    )
    if len(evidence.centred_r2):
        worst = int(np.argmin(evidence.centred_r2))
        centred = f"{evidence.centred_r2[worst]:.2f}"
        values["centred R²"] = centred
        message += f", centred at least {centred} ({evidence.groups[worst]})"
    return Diagnostic("passed", message, values=values)


def _unusable(evidence: Evidence, config: GateConfig) -> list[Diagnostic]:
    if not evidence.left_out > _MOST_LEFT_OUT:
        return []
    share = f"{100.0 * evidence.left_out:.0f} %"
    found = [Diagnostic("unusable", f"{share} of the newest samples cannot be used")]
    return found + sorted(evidence.left_out_causes, key=lambda cause: -(cause.share or 0.0))[:1]


def _idle(evidence: Evidence, config: GateConfig) -> list[Diagnostic]:
    if not evidence.idle > _STALE_AFTER:
        return []
    message = f"no informative samples for {evidence.idle:.1f} s"
    return [Diagnostic("idle", message, hint="move the robot")]


def _filling(evidence: Evidence, config: GateConfig) -> list[Diagnostic]:
    if not evidence.fill < 1.0:
        return []
    return [Diagnostic("filling", f"the window is {100.0 * evidence.fill:.0f} % full")]


def _wrong(evidence: Evidence) -> list[Diagnostic]:
    """Return what shows that torques are not what they are said to be."""
    absurd = [] if evidence.absurdity is None else [evidence.absurdity]
    return list(evidence.wrong_torques) or absurd


def _discredited(evidence: Evidence, config: GateConfig) -> list[Diagnostic]:
    """Return the same where the model in use was learned from such torques, too."""
    if evidence.changed:
        return []
    return _wrong(evidence) if evidence.leaning else list(evidence.wrong_torques)


def _implausible(evidence: Evidence, config: GateConfig) -> list[Diagnostic]:
    found = []
    worst = int(np.argmin(evidence.consistency)) if len(evidence.consistency) else 0
    if len(evidence.consistency) and not evidence.consistency[worst] >= _MIN_CONSISTENCY:
        found.append(
            Diagnostic(
                "inconsistent",
                f"body {evidence.bodies[worst]} is not physically consistent by a margin of "
                f"{_MIN_CONSISTENCY:g}",
            )
        )
    if not evidence.optimality <= _MAX_OPTIMALITY:
        found.append(
            Diagnostic(
                "suboptimal",
                f"the solver left an optimality residual of {evidence.optimality:.1e}, above "
                f"{_MAX_OPTIMALITY:.1e}",
            )
        )
    if evidence.opened and not evidence.change <= config.max_change:
        found.append(
            Diagnostic(
                "jump",
                f"the predicted torque would change by {evidence.change:.2g} of itself per "
                f"second, above {config.max_change:g}",
            )
        )
    return found


def _misfits(evidence: Evidence, config: GateConfig) -> list[Diagnostic]:
    found = []
    floor = config.r2_threshold - (_HYSTERESIS if evidence.opened else 0.0)
    if not (evidence.r2 >= floor or evidence.skill > _CLEARLY_BETTER):
        found.append(Diagnostic("misfit", f"R² {evidence.r2:.3f} is below {floor:.2f}"))
    total, nominal = _errors(evidence)
    allowed = _NEGLIGIBLE * float(np.linalg.norm(evidence.torque))
    if total > nominal * WORSE and total**2 - nominal**2 > allowed**2:
        found.append(
            Diagnostic(
                "worse",
                f"the estimate predicts torque worse ({total:.3g} N·m) than the nominal model "
                f"({nominal:.3g} N·m)",
            )
        )
    return found


def _poor_joints(evidence: Evidence, config: GateConfig) -> list[Diagnostic]:
    own, nominal = evidence.rmse_groups, evidence.rmse_nominal_groups
    beyond = np.sqrt(np.maximum(own**2 - nominal**2, 0.0))
    allowed = _NEGLIGIBLE * evidence.torque
    return [
        Diagnostic(
            "poor_joint",
            f"the estimate's error of {own[g]:.2g} N·m exceeds the nominal model's of "
            f"{nominal[g]:.2g} by more than {allowed[g]:.2g}",
            subject=evidence.groups[g],
            hint="look at this joint's friction and its sensor",
        )
        for g in np.flatnonzero(beyond > allowed)
    ]


def _undetermined(evidence: Evidence, config: GateConfig) -> list[Diagnostic]:
    if not evidence.determined < config.min_determined:
        return []
    return [
        Diagnostic(
            "poor_excitation",
            f"poor excitation: the data determine {100.0 * evidence.determined:.2g} % of the "
            f"parameters, below {100.0 * config.min_determined:.2g} %",
        )
    ]


class _Check(NamedTuple):
    """A check, and the state that its findings lead to with and without a model in use."""

    find: Callable[[Evidence, GateConfig], list[Diagnostic]]
    opened: GateState
    closed: GateState


_CHECKS = (
    _Check(
        lambda e, _: [Diagnostic("fault", e.fault)] if e.fault else [],
        GateState.FAULT,
        GateState.FAULT,
    ),
    _Check(_unusable, GateState.HOLDING, GateState.NOMINAL),
    _Check(_idle, GateState.HOLDING, GateState.NOMINAL),
    _Check(_filling, GateState.HOLDING, GateState.NOMINAL),
    _Check(lambda e, _: list(e.saturated), GateState.REJECTED, GateState.NOMINAL),
    _Check(_discredited, GateState.NOMINAL, GateState.NOMINAL),
    _Check(lambda e, _: _wrong(e), GateState.REJECTED, GateState.NOMINAL),
    _Check(_implausible, GateState.REJECTED, GateState.REJECTED),
    _Check(_misfits, GateState.NOMINAL, GateState.NOMINAL),
    _Check(
        lambda e, config: _poor_joints(e, config) if e.adopted or not e.opened else [],
        GateState.REJECTED,
        GateState.NOMINAL,
    ),
    _Check(_undetermined, GateState.HOLDING, GateState.NOMINAL),
)
"""In the order in which they decide."""
