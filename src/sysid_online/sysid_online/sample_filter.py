# SPDX-License-Identifier: Apache-2.0
"""What the samples that arrive went through: their rate and the low-pass's cut-off."""

from collections import deque
from dataclasses import replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.online.settings import OnlineConfig
from sysid_core.signals.timing import estimate_clock

__all__ = ["SampleFilter"]

_BATCHES = 20  # Batches whose stamps tell the samples' rate
_FEWEST = 20  # Samples that tell it despite the gaps that a walking robot's have
_SAME = 0.05  # Share by which a measured rate may differ from the one that is reckoned with


class SampleFilter:
    """Tells the rate and the cut-off of samples, so that durations mean what they say.

    Attributes
    ----------
    rate, cutoff : float [Hz]
        A cut-off of 0 is not known.
    """

    def __init__(self, config: OnlineConfig) -> None:
        self.rate, self.cutoff = config.sample_rate, config.cutoff
        self._stamps: deque[FloatArray] = deque(maxlen=_BATCHES)

    def applied(self, config: OnlineConfig) -> OnlineConfig:
        """Return a configuration for the samples as they are."""
        return replace(config, sample_rate=self.rate, cutoff=self.cutoff)

    def changes(self, stamps: FloatArray, cutoff: float) -> bool:
        """Take in the stamps (n,) [s] and the cut-off [Hz] of a batch; say if either differs.

        Raises
        ------
        DataError
            If the clock stands still.
        """
        self._stamps.append(stamps[np.isfinite(stamps)])
        recent = np.concatenate(self._stamps)
        if len(recent) < _FEWEST or np.ptp(recent) <= 0.0:
            return False
        before = self.rate, self.cutoff
        self.cutoff = cutoff if 0.0 < cutoff < np.inf else 0.0
        rate = estimate_clock(recent).rate
        if abs(rate - self.rate) > _SAME * self.rate:
            self.rate = rate
        return (self.rate, self.cutoff) != before
