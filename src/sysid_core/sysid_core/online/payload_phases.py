# SPDX-License-Identifier: Apache-2.0
"""What a payload tracker is doing, each phase with what only it has."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.online.colour import LAG
from sysid_core.online.innovations import Noise
from sysid_core.online.payload_estimate import PayloadEstimate
from sysid_core.online.update import ModelInUse

__all__ = [
    "Alarmed",
    "Following",
    "Former",
    "LoadLikeness",
    "Phase",
    "Starting",
    "Unloaded",
    "Watching",
]

_STRETCHES = 12
"""Stretches that are looked at: as long together as what is usual is remembered."""

_DEGREES = 5.0
"""Degrees of freedom that the ratio of one is thought as good as [-]."""


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
    refuted: bool = False  # Whether a load was tried and did not explain it


class LoadLikeness:
    """How much of the innovations without a load looks like one.

    Their noise is known by its size and colour alone, and the model by its covariance; how much
    of both lies along a load depends on the motion. The ratio of what is found there to what
    would be by chance scales both when a load is weighed (Birge 1932, "The calculation of errors
    by the method of least squares").
    """

    def __init__(self, span: float) -> None:
        self._span = span
        self._seen: deque[tuple[float, float, float]] = deque(maxlen=_STRETCHES)

    def due(self, time: float) -> bool:
        """Whether a stretch [s] passed since the last one that was looked at."""
        return not self._seen or time >= self._seen[-1][0] + self._span

    def note(self, time: float, found: float, expected: float) -> None:
        """Take in what was found in the stretch that ends now."""
        self._seen.append((time, found, expected))

    def forget_since(self, time: float) -> None:
        """Drop the stretches that a change may be in which was noticed at a time [s]."""
        while self._seen and self._seen[-1][0] > time - LAG:
            self._seen.pop()

    @property
    def ratio(self) -> float:
        """What was found relative to what would be by chance [-]."""
        found, expected = (sum(one[i] for one in self._seen) for i in (1, 2))
        return (_DEGREES + found) / (_DEGREES + expected)


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
