# SPDX-License-Identifier: Apache-2.0
"""Settings of a batch identification."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sysid_core.errors import ParameterError
from sysid_core.estimation import Entropic, Estimator
from sysid_core.loads import Bare
from sysid_core.posing import Posing
from sysid_core.signals.options import SignalConfig

__all__ = ["IdentifyConfig"]


@dataclass(frozen=True)
class IdentifyConfig:
    """Settings of a batch identification."""

    train: float = 0.7
    """[-] share of the samples in motion, from the start, that is learned from; the rest
    validates."""
    still: float = 0.01
    """[-] rows of a joint that is slower than this share of its top speed are not learned from:
    the sign of its Coulomb friction is anybody's guess there."""
    only: tuple[str, ...] | None = None
    """Identify the inertias of these bodies and hold everything else; what they gain is a load."""
    start: Bare | None = None
    """An earlier identification, whose parameters take the place of the nominal ones."""
    lenient: bool = False  # Use what is usable of a faulty recording
    friction: Literal["chosen", "described"] = "chosen"
    """``chosen``: each joint of a tree gets the terms that predict held-out torque better, unless
    the description chooses, or `only` or `start` are given. ``described``: none is added to the
    description's."""
    disturbed: Literal["left_out", "kept"] = "left_out"
    """``left_out``: parts whose torques the rest does not explain, if they are not much of it, as
    where a robot is touched or slips, are not learned from."""
    signals: SignalConfig = field(default_factory=SignalConfig)
    estimator: Estimator = field(default_factory=Entropic)

    @property
    def posing(self) -> Posing:
        """What is asked of the rows."""
        return Posing(self.start, self.only)

    def __post_init__(self) -> None:
        if not 0.0 < self.train <= 1.0:
            raise ParameterError(f"train must lie above 0 and at most at 1, got {self.train:g}")
        if self.friction not in ("chosen", "described"):
            raise ParameterError(f"friction is chosen or described, got {self.friction!r}")
        if self.disturbed not in ("left_out", "kept"):
            raise ParameterError(f"disturbed is left_out or kept, got {self.disturbed!r}")
        if not 0.0 <= self.still < 1.0:
            raise ParameterError(f"still must lie between 0 and 1, got {self.still:g}")
