# SPDX-License-Identifier: Apache-2.0
"""Live messages that only repeat the one before, as a driver publishes that has nothing new."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray

__all__ = ["LEAST_STEP", "SPARE", "LiveRepeats"]

SPARE = 2.0
"""Periods by which a message that repeats is taken before a gap would begin: robots rest."""
_EARLY = 0.1
"""Part of a period by which a message may be early that stands for the next one."""
_CREEP = 2.0
"""Smallest steps that a position moves by in a period, as robots do that come to rest."""
LEAST_STEP = 1e-9
"""Positions that differ by less [rad] or [m] differ by rounding."""


class LiveRepeats:
    """Tells new messages from those that only repeat the one before.

    What is repeated tells nothing of when it was taken: where the first of several equal messages
    is lost, the next one comes later. Of a robot that comes to rest, some are taken for new; one
    that was moving goes on unseen.

    Parameters
    ----------
    period : float [s]
        Of new messages, roughly.
    gap : float
        Longest interruption that is interpolated, in periods; with `SPARE` or less, messages only
        count as repeating in motion.
    positions : int
        Leading columns of the rows that are positions, or show motion alike.
    """

    def __init__(self, period: float, gap: float, positions: int) -> None:
        self.count = 0  # Messages that repeat
        self.covered = 0
        """Periods after a new message in which one came that repeats, so that none was lost."""
        self._period, self._patience = period, (gap - SPARE) * period
        self._covered = 0  # since the last new message [periods]
        self._row = np.zeros(0)  # of the last message
        self._least = np.full(positions, np.inf)  # steps [rad] or [m] that were seen
        self._known = self._before = (np.nan, np.zeros(0))  # stamps [s] and rows of new messages

    def find_new(self, stamps: FloatArray, rows: FloatArray) -> BoolArray:
        """Return which messages (m,) with stamps (m,) [s] and rows (m, nc) are new."""
        if not len(rows):
            return np.zeros(0, dtype=np.bool_)
        before = self._row if len(self._row) else np.full(rows.shape[1], np.nan)
        earlier = np.vstack([before, rows[:-1]])
        new = (earlier != rows).any(axis=1)
        self._row = rows[-1]
        with np.errstate(invalid="ignore"):
            steps = np.abs(rows - earlier)[:, : len(self._least)]
        least = steps.min(axis=0, initial=np.inf, where=steps > LEAST_STEP)
        self._least = np.minimum(self._least, least)
        if new.all():
            for k in range(max(0, len(rows) - 2), len(rows)):
                self._see(float(stamps[k]), rows[k])
            return new
        for k, stamp in enumerate(stamps.tolist()):
            since = stamp - self._known[0]
            if not new[k] and since > 0.0 and (since <= self._patience or self._moving):
                self.count += 1
                covered = max(self._covered, int(since / self._period + _EARLY))
                self.covered += covered - self._covered
                self._covered = covered
                continue
            new[k] = True
            self._see(stamp, rows[k])
        return new

    @property
    def _moving(self) -> bool:
        """Whether the last new message lay too far from the one before for a robot that stops."""
        (start, before), (stop, known) = self._before, self._known
        if not len(before):
            return False
        with np.errstate(invalid="ignore"):
            step = np.abs(known - before)[: len(self._least)]
        periods = max(1.0, (stop - start) / self._period)
        return bool((step > _CREEP * periods * self._least).any())

    def _see(self, stamp: float, row: FloatArray) -> None:
        if stamp != self._known[0]:
            self._before, self._known, self._covered = self._known, (stamp, row), 0
