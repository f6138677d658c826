# SPDX-License-Identifier: Apache-2.0
"""Spans of the newest samples that changes of the robot are looked for in, and when."""

from __future__ import annotations

import numpy as np

__all__ = ["LONGEST", "SHORTEST", "Spans"]

_SPANS = (0.2, 0.4, 0.8, 1.6)
"""A large change shows in the shortest, a small one needs the longest [s]."""

SHORTEST, LONGEST = _SPANS[0], _SPANS[-1]

_MOVED = 0.25
"""Share of a span that must be new before it is looked at again [-]."""

_LEAST_INTERVAL = 0.001
"""Least time between two looks that is reckoned with [s]."""


class Spans:
    """Tells which spans are to be looked at now, in samples."""

    def __init__(self, sample_rate: float) -> None:
        self._rate = sample_rate
        self._looks, self._looked = 0, -np.inf

    def samples(self, span: float) -> int:
        """Return the size of a span [s] in samples."""
        return max(1, round(span * self._rate))

    def due(self, held: int, time: float, *, every: bool) -> list[int]:
        """Return the sizes to look at now, of no more samples than are held.

        Unless `every` span is wanted, one is looked at once it moved by a quarter, and spans of
        different length in different looks.
        """
        self._looks += 1
        interval, self._looked = time - self._looked, time
        sizes = []
        for span in _SPANS:
            stride = max(1, round(_MOVED * span / max(interval, _LEAST_INTERVAL)))
            if every or self._looks % stride == stride // 2:
                sizes.append(self.samples(span))
        return [size for size in sizes if size <= held]
