# SPDX-License-Identifier: Apache-2.0
"""How much of the innovations without a load looks like one."""

from __future__ import annotations

from collections import deque

from sysid_core.dynamics.sums import Sums
from sysid_core.online.colour import LAG, Colours
from sysid_core.online.judging import innovations_of
from sysid_core.online.payload import PayloadEstimator
from sysid_core.online.spans import LONGEST
from sysid_core.online.update import ModelInUse

__all__ = ["LoadLikeness"]

_STRETCHES = 12
"""Stretches that are looked at: as long together as what is usual is remembered."""

_DEGREES = 5.0
"""Degrees of freedom that the ratio of one is thought as good as [-]."""


class LoadLikeness:
    """How much of the innovations without a load looks like one.

    Their noise is known by its size and colour alone, and the model by its covariance; how much
    of both lies along a load depends on the motion. The ratio of what is found there to what
    would be by chance scales both when a load is weighed (Birge 1932, "The calculation of errors
    by the method of least squares").
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float, float]] = deque(maxlen=_STRETCHES)

    def due(self, time: float) -> bool:
        """Whether a stretch [s] passed since the last one that was looked at."""
        return not self._seen or time >= self._seen[-1][0] + LONGEST

    def look(
        self,
        estimator: PayloadEstimator,
        newest: Sums,
        model: ModelInUse,
        colours: Colours,
        time: float,
    ) -> None:
        """Look at the stretch that ends now."""
        seen = innovations_of(newest, model, colours.used.noise(newest))
        self.note(time, *estimator.likeness(seen))

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
