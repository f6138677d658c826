# SPDX-License-Identifier: Apache-2.0
"""Decides whether an estimate may be used, and says why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError

__all__ = ["Decision", "Evidence", "Gate", "GateConfig", "GateState"]

_MOST_LEFT_OUT = 0.5
"""Share of the newest samples without rows from which on the rest says little of the robot [-]."""


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
    """What an estimate must show.

    Attributes
    ----------
    r2_threshold : float [-]
        Prequential R² over all joints (Kolathaya et al. use 0.95).
    hysteresis : float [-]
        An accepted model is dropped only below ``r2_threshold − hysteresis``.
    r2_joint_threshold : float [-]
        Prequential R² of a joint; a joint passes too if it is predicted better than nominally.
    min_consistency : float [-]
        Smallest pseudo-inertia eigenvalue of each body relative to its largest.
    min_determined : float [-]
        Mean share of the base parameters' information that the data bring.
    max_change : float [1/s]
        Change of the predicted torque between accepted estimates, relative to the torque.
    max_optimality : float [-]
        Relative optimality residual of the solution.
    stale_after : float [s]
        Without informative samples for so long the estimate is held.
    """

    r2_threshold: float = 0.95
    hysteresis: float = 0.05
    r2_joint_threshold: float = 0.5
    min_consistency: float = 1e-9
    min_determined: float = 0.1
    max_change: float = 2.0
    max_optimality: float = 1e-3
    stale_after: float = 0.5

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if not np.isfinite(value):
                raise ParameterError(f"gate setting {name} must be finite, got {value}")
        if not 0.0 < self.r2_threshold < 1.0:
            raise ParameterError(f"r2_threshold must lie in (0, 1), got {self.r2_threshold}")
        if not 0.0 <= self.hysteresis < self.r2_threshold:
            raise ParameterError(
                f"hysteresis must lie in [0, r2_threshold), got {self.hysteresis}"
            )
        if not self.r2_joint_threshold < 1.0:
            raise ParameterError("r2_joint_threshold must be below 1")
        for name in ("max_change", "max_optimality", "stale_after"):
            if getattr(self, name) <= 0.0:
                raise ParameterError(f"{name} must be above zero, got {getattr(self, name)}")


@dataclass(frozen=True)
class Evidence:
    """What the gate looks at.

    Attributes
    ----------
    fill : float [-]
        Share of the window that is filled.
    r2 : float [-]
        Prequential R² over all groups; NaN while unknown.
    r2_groups : (G,) [-]
    rmse_groups, rmse_nominal_groups : (G,) [N·m]
        Prequential residuals of the estimate and those of the nominal model.
    groups : tuple[str, ...]
    consistency : (nb,) [-]
        Smallest relative to largest pseudo-inertia eigenvalue of each body.
    bodies : tuple[str, ...]
    determined : float [-]
    optimality : float [-]
    change : float [1/s]
        Relative change of the predicted torque per second since the last accepted estimate.
    idle : float [s]
        Time since the last informative sample.
    fault : str
        Why there is no usable solution; empty if there is one.
    left_out : float [-]
        Share of the newest samples that the regression could not use.
    """

    fill: float
    r2: float
    r2_groups: FloatArray
    rmse_groups: FloatArray
    rmse_nominal_groups: FloatArray
    groups: tuple[str, ...]
    consistency: FloatArray
    bodies: tuple[str, ...]
    determined: float
    optimality: float
    change: float
    idle: float
    fault: str = ""
    left_out: float = 0.0


@dataclass(frozen=True)
class Decision:
    """The gate's answer.

    Attributes
    ----------
    state : GateState
    accepted : bool
        Whether this very estimate is to be used.
    fallback : bool
        Whether the model in use must go back to nominal.
    reasons : tuple[str, ...]
        Why, in words; never empty.
    """

    state: GateState
    accepted: bool
    fallback: bool
    reasons: tuple[str, ...]


class Gate:
    """The gate of Kolathaya et al. (a full buffer and R² above a threshold), with more checks.

    Parameters
    ----------
    settings : GateConfig
    """

    def __init__(self, settings: GateConfig) -> None:
        self.settings = settings
        self.reset()

    def reset(self) -> None:
        """Forget that any estimate was ever accepted."""
        self._open = False

    @property
    def open(self) -> bool:
        """Whether an identified model is in use."""
        return self._open

    def decide(self, evidence: Evidence) -> Decision:
        """Judge the newest estimate."""
        if evidence.fault:
            return Decision(GateState.FAULT, False, False, (evidence.fault,))
        if evidence.left_out > _MOST_LEFT_OUT:
            reason = f"{100.0 * evidence.left_out:.0f} % of the newest samples cannot be used"
            if self._open:
                held = f"{reason}: the last accepted parameters stay in use"
                return Decision(GateState.HOLDING, False, False, (held,))
            state = GateState.FILLING if evidence.fill < 1.0 else GateState.NOMINAL
            return Decision(state, False, False, (reason,))
        if evidence.idle > self.settings.stale_after:
            reason = f"no informative samples for {evidence.idle:.1f} s"
            if self._open:
                held = f"{reason}: the last accepted parameters stay in use"
                return Decision(GateState.HOLDING, False, False, (held,))
            state = GateState.FILLING if evidence.fill < 1.0 else GateState.NOMINAL
            return Decision(state, False, False, (f"{reason}: move the robot",))
        if evidence.fill < 1.0:
            filling = f"the window is {100.0 * evidence.fill:.0f} % full"
            if self._open:
                held = f"{filling}: the last accepted parameters stay in use"
                return Decision(GateState.HOLDING, False, False, (held,))
            return Decision(GateState.FILLING, False, False, (filling,))
        return self._judge(evidence)

    def _judge(self, evidence: Evidence) -> Decision:
        settings = self.settings
        broken = self._implausible(evidence)
        if broken:
            return Decision(GateState.REJECTED, False, False, tuple(broken))
        floor = settings.r2_threshold - (settings.hysteresis if self._open else 0.0)
        misfits = self._misfits(evidence, floor)
        if misfits:
            fallback, self._open = self._open, False
            return Decision(GateState.NOMINAL, False, fallback, tuple(misfits))
        poor = self._poor_joints(evidence)
        if poor:
            state = GateState.REJECTED if self._open else GateState.NOMINAL
            return Decision(state, False, False, tuple(poor))
        if evidence.determined < settings.min_determined:
            reason = (
                f"the data determine {100.0 * evidence.determined:.0f} % of the parameters, below "
                f"{100.0 * settings.min_determined:.0f} %"
            )
            state = GateState.HOLDING if self._open else GateState.NOMINAL
            return Decision(state, False, False, (f"poor excitation: {reason}",))
        self._open = True
        reason = f"R² {evidence.r2:.3f} is above {floor:.2f} and every check passed"
        return Decision(GateState.IDENTIFIED, True, False, (reason,))

    def _implausible(self, evidence: Evidence) -> list[str]:
        settings, reasons = self.settings, []
        worst = int(np.argmin(evidence.consistency)) if len(evidence.consistency) else 0
        if len(evidence.consistency) and not (
            evidence.consistency[worst] >= settings.min_consistency
        ):
            reasons.append(
                f"body {evidence.bodies[worst]} is not physically consistent by a margin of "
                f"{settings.min_consistency:g}"
            )
        if not evidence.optimality <= settings.max_optimality:
            reasons.append(
                f"the solver left an optimality residual of {evidence.optimality:.1e}, above "
                f"{settings.max_optimality:.1e}"
            )
        if self._open and not evidence.change <= settings.max_change:
            reasons.append(
                f"the predicted torque would change by {evidence.change:.2g} of itself per "
                f"second, above {settings.max_change:g}"
            )
        return reasons

    def _misfits(self, evidence: Evidence, floor: float) -> list[str]:
        reasons = []
        if not evidence.r2 >= floor:
            reasons.append(f"R² {evidence.r2:.3f} is below {floor:.2f}")
        total = np.linalg.norm(evidence.rmse_groups)
        nominal = np.linalg.norm(evidence.rmse_nominal_groups)
        if total > nominal * 1.02:
            reasons.append(
                f"the estimate predicts torque worse ({total:.3g} N·m) than the nominal model "
                f"({nominal:.3g} N·m)"
            )
        return reasons

    def _poor_joints(self, evidence: Evidence) -> list[str]:
        threshold = self.settings.r2_joint_threshold
        poor = (evidence.r2_groups < threshold) & (
            evidence.rmse_groups > evidence.rmse_nominal_groups
        )
        return [
            f"R² of {evidence.groups[g]} is {evidence.r2_groups[g]:.2f}, below {threshold:.2f}, "
            "and no better than nominal"
            for g in np.flatnonzero(poor)
        ]
