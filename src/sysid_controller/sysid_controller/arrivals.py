# SPDX-License-Identifier: Apache-2.0
"""Tells from stamps and times of arrival how many messages were lost and how late they come."""

from collections import deque

import numpy as np

__all__ = ["Arrivals"]

_WINDOW = 1000
_FEWEST = 20
_SET_BACK = 0.5  # [s] more than messages overtake each other by
_WORST_LOSS = 0.05
_WORST_JITTER = 0.01  # [s]
_SAME_PACE = 0.1


class Arrivals:
    """The newest messages of one topic."""

    def __init__(self) -> None:
        self._times: deque[tuple[float, float]] = deque(maxlen=_WINDOW)

    def note(self, stamp: float, steady: float) -> None:
        """Note a message with a time stamp [s] that arrived at a steady time [s]."""
        if self._times and stamp < self._times[-1][0] - _SET_BACK:
            self._times.clear()  # the clock was set back
        self._times.append((stamp, steady))

    @property
    def lost(self) -> float:
        """Share of the messages that never arrived, judged by gaps between stamps [-]."""
        steps = np.diff(np.sort([stamp for stamp, _ in self._times]))
        steps = steps[steps > 0.0]
        if len(steps) < _FEWEST:
            return 0.0
        # where half of them are lost the median is twice the period; a low quantile is not
        sent = np.maximum(np.round(steps / np.quantile(steps, 0.1)), 1.0)
        return float(1.0 - len(steps) / sent.sum())

    @property
    def jitter(self) -> float:
        """Spread of the delays [s]; 0 where stamps do not run at the pace of real time."""
        if len(self._times) < _FEWEST:
            return 0.0
        stamps, arrivals = np.array(self._times).T
        elapsed = arrivals[-1] - arrivals[0]
        if abs(np.ptp(stamps) - elapsed) > _SAME_PACE * elapsed:
            return 0.0
        low, high = np.quantile(arrivals - stamps, (0.02, 0.98))
        return float(high - low)

    @property
    def fault(self) -> str:
        """What is wrong with the arrivals; empty if nothing is."""
        texts = []
        if self.lost > _WORST_LOSS:
            texts.append(f"{self.lost:.0%} never arrive: the network or this machine is too busy")
        if self.jitter > _WORST_JITTER:
            texts.append(f"arrive with {1e3 * self.jitter:.0f} ms of jitter")
        return "; ".join(texts)
