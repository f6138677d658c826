# SPDX-License-Identifier: Apache-2.0
"""What a payload tracker is doing, each phase with what only it has."""

from __future__ import annotations

from dataclasses import dataclass

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.online.colour import LAG
from sysid_core.online.innovations import Noise
from sysid_core.online.payload import PayloadEstimate
from sysid_core.online.update import ModelInUse

__all__ = ["Alarmed", "Carrying", "Following", "Phase", "Starting", "Watching"]


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
    clear: bool = False  # Whether one explanation was certain


@dataclass(frozen=True)
class Following:
    """A payload was noticed and is estimated."""

    noise: Noise  # Of the innovations before the step
    empty: ModelInUse  # The robot without any payload
    load: PayloadEstimate
    attached: bool  # Whether the load counts as real
    before: Statistics  # From before the step
    shift: FloatArray  # (b,) what a load that was carried before added to the base parameters
    first: Statistics  # Seen until the step was noticed; may hold samples from before it
    since: Statistics  # Seen since then
    samples: int  # Number of those
    clean: bool  # Whether `load` rests on `since` alone
    started: float  # [s]


@dataclass(frozen=True)
class Carrying:
    """A load is part of the model in use."""

    empty: ModelInUse  # The robot without any payload
    load: PayloadEstimate
    noise: Noise  # Of the innovations before it came
    since: Statistics  # Seen since it came
    samples: int  # Number of those


Phase = Starting | Watching | Alarmed | Following
