# SPDX-License-Identifier: Apache-2.0
"""Live messages that only repeat the one before, as a driver publishes that has nothing new."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray

__all__ = ["LiveRepeats"]

_SPARE = 2.0
"""Periods by which a message that repeats is taken before a gap would begin: robots rest."""
_EARLY = 0.1
"""Part of a period by which a message may be early that stands for the next one."""


class LiveRepeats:
    """Tells new messages from those that only repeat the one before.

    What is repeated tells nothing of when it was taken: where the first of several equal messages
    is lost, the next one comes later. Of a robot that rests, some are taken for new.

    Parameters
    ----------
    period : float [s]
        Of new messages, roughly.
    gap : float
        Longest interruption that is interpolated, in periods.
    """

    def __init__(self, period: float, gap: float) -> None:
        self.count = 0  # Messages that repeat
        self.covered = 0
        """Periods after a new message in which one came that repeats, so that none was lost."""
        self._period, self._patience = period, (gap - _SPARE) * period
        self._stamp, self._covered = np.nan, 0  # of the last new message [s], and since [periods]
        self._row = np.zeros(0)  # of the last message

    def find_new(self, stamps: FloatArray, rows: FloatArray) -> BoolArray:
        """Return which messages (m,) with stamps (m,) [s] and rows (m, nc) are new."""
        if not len(rows):
            return np.zeros(0, dtype=np.bool_)
        before = self._row if len(self._row) else np.full(rows.shape[1], np.nan)
        new = (np.vstack([before, rows[:-1]]) != rows).any(axis=1)
        self._row = rows[-1]
        if new.all():
            self._see(float(stamps[-1]))
            return new
        for k, stamp in enumerate(stamps.tolist()):
            since = stamp - self._stamp
            if new[k] or not 0.0 < since <= self._patience:
                new[k] = True
                self._see(stamp)
                continue
            self.count += 1
            covered = max(self._covered, int(since / self._period + _EARLY))
            self.covered += covered - self._covered
            self._covered = covered
        return new

    def _see(self, stamp: float) -> None:
        if stamp != self._stamp:
            self._stamp, self._covered = stamp, 0
