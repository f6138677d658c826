# SPDX-License-Identifier: Apache-2.0
"""What a payload tracker is doing, each phase with what only it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.statistics import Statistics
from sysid_core.online.colour import LAG
from sysid_core.online.innovations import Noise
from sysid_core.online.payload_estimate import PayloadEstimate
from sysid_core.online.update import ModelInUse

__all__ = [
    "Alarmed",
    "Following",
    "Former",
    "Phase",
    "Starting",
    "Unloaded",
    "Watching",
]


@dataclass(frozen=True)
class Starting:
    """What innovations are usual is not known."""


@dataclass(frozen=True)
class Watching:
    """Innovations are compared with what is usual."""

    calm: tuple[tuple[float, ModelInUse], ...]
    """Models that were in use over the last while, and since when [s], oldest first."""

    @property
    def reference(self) -> ModelInUse:
        """The model that innovations are judged by."""
        return self.calm[0][1]

    def remembering(self, model: ModelInUse, time: float) -> Watching:
        """Return the same with the model in use."""
        calm = self.calm
        if model is not calm[-1][1]:
            calm = (*calm, (time, model))
        while len(calm) > 1 and calm[1][0] <= time - LAG:
            calm = calm[1:]
        return Watching(calm)


@dataclass(frozen=True)
class Alarmed:
    """Something changed; it is not clear yet what."""

    before: Watching
    since: float  # [s]
    learned: Statistics  # From before the change
    clear: bool = False  # Whether one explanation was certain
    by_hand: Diagnostic | None = None  # Says that the robot is led by hand, if so


class Unloaded(NamedTuple):
    """What is known of the robot without any payload."""

    model: ModelInUse
    noise: Noise  # Of its innovations
    covariance: FloatArray  # (b, b) of its base parameters, as loads are weighed with


@dataclass(frozen=True)
class Following:
    """A payload was noticed and is estimated."""

    empty: Unloaded
    load: PayloadEstimate
    attached: bool  # Whether the load counts as real
    before: Statistics  # From before the step
    shift: FloatArray  # (b,) what a load that was carried before added to the base parameters
    first: Statistics  # Seen until the step was noticed; may hold samples from before it
    since: Statistics  # Seen since then
    samples: int  # Number of those
    clean: bool  # Whether `load` rests on `since` alone
    started: float  # [s]


class Former(NamedTuple):
    """The model from before a change, to go back to."""

    model: ModelInUse
    learned: Statistics | None
    """What it was learned from, where the robot is again as it was; None: it changed for good."""
    until: float = -np.inf
    """Time [s] until which samples are of this model."""


Phase = Starting | Watching | Alarmed | Following
