# SPDX-License-Identifier: Apache-2.0
"""What a payload tracker is doing, each phase with what only it has."""

from __future__ import annotations

from dataclasses import dataclass

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.online.model_in_use import ModelInUse
from sysid_core.online.payload import PayloadEstimate

__all__ = ["Alarmed", "Carrying", "Following", "Phase", "Starting", "Watching"]

_MEMORY = 10.0
"""Time over which the usual size of the innovations is averaged [s]."""


@dataclass(frozen=True)
class Starting:
    """The usual size of the innovations is not known."""


@dataclass(frozen=True)
class Watching:
    """Innovations are compared with their usual size.

    Attributes
    ----------
    usual : (G,) [N²·m²]
        Usual mean square of the innovations.
    watched : float [s]
        Time over which it was learned.
    looked : float [s]
        When it was last learned.
    calm : tuple[tuple[float, ModelInUse], ...]
        Models that were in use over the last window, and since when [s], oldest first.
    """

    usual: FloatArray
    watched: float
    looked: float
    calm: tuple[tuple[float, ModelInUse], ...]

    def learned(
        self, variance: FloatArray, model: ModelInUse, time: float, window: float
    ) -> Watching:
        """Let calm innovations teach what is usual, and remember the model that gave them."""
        elapsed = time - self.looked
        watched = self.watched + elapsed
        share = min(1.0, elapsed / min(_MEMORY, max(watched, 1e-9)))
        calm = (*self.calm, (time, model))
        while len(calm) > 1 and calm[1][0] <= time - window:
            calm = calm[1:]
        return Watching(self.usual + share * (variance - self.usual), watched, time, calm)


@dataclass(frozen=True)
class Alarmed:
    """The innovations rose; it is not clear yet why.

    Attributes
    ----------
    before : Watching
    since : float [s]
    """

    before: Watching
    since: float


@dataclass(frozen=True)
class Following:
    """A payload was noticed and is estimated.

    Attributes
    ----------
    usual : (G,) [N²·m²]
        Mean square of the innovations before the step.
    empty : ModelInUse
        The robot without any payload.
    load : PayloadEstimate
    attached : bool
        Whether the load counts as real.
    before : Statistics
        From before the step.
    shift : (b,)
        What a load that was carried before added to the base parameters.
    first : Statistics
        Seen until the step was noticed; may hold samples from before it.
    since : Statistics
        Seen since then.
    samples : int
        Number of those.
    clean : bool
        Whether `load` rests on `since` alone.
    started : float [s]
    """

    usual: FloatArray
    empty: ModelInUse
    load: PayloadEstimate
    attached: bool
    before: Statistics
    shift: FloatArray
    first: Statistics
    since: Statistics
    samples: int
    clean: bool
    started: float


@dataclass(frozen=True)
class Carrying:
    """A load is part of the model in use.

    Attributes
    ----------
    empty : ModelInUse
        The robot without any payload.
    load : PayloadEstimate
    """

    empty: ModelInUse
    load: PayloadEstimate


Phase = Starting | Watching | Alarmed | Following
