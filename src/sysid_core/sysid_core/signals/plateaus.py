# SPDX-License-Identifier: Apache-2.0
"""Values that a signal takes more often than its motion explains, as where it is cut off."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.signals.repeats import LEAST_STEP

__all__ = [
    "ALIKE",
    "BEYOND",
    "COARSE",
    "FEWEST",
    "LIMIT",
    "FrequentValues",
    "LiveEnds",
    "most_alike",
]

ALIKE = 1e-4
"""Torques that differ by less than this share of their RMS are the same [-]."""

_DWELL = float(np.sqrt(2.0 * ALIKE) / np.pi)
"""Share of its time that a sine spends that close to its extreme (arcsine law) [-]."""

_DEVIATIONS = 5.0
"""Standard deviations of a count by which more rows must be alike than a sine's."""

FEWEST = 10.0
"""Rows that must be alike in any case, as a slow turn brings a few; and that must not be, as a
torque that is not measured at all has one value."""

COARSE = 0.2
"""Rows at another value on the same side, for each at the most frequent one, from which on the
torque is coarse: one that is cut off is so at one value [-]."""

BEYOND = 0.5
"""Efforts beyond the value, for each that has it [-]: more, and it is not an end. Some are where
efforts were brought onto other times."""

LIMIT = 0.98
"""Share of a leg's effort limit from which its motor gives no more, as it says [-]."""

_VALUES = 4
"""Values that are kept on each side of zero."""

_GONE = 0.5
"""Count below which a value is forgotten: one row that fades is still there with the next."""

_EVERY = 32
"""Rows that may come before account is taken of them, unless values return."""

_MEMORY = 30.0
"""Time [s] after which an effort counts half: longer than a motion repeats."""


def most_alike(rows: FloatArray | float) -> FloatArray:
    """Return how many of some rows may be alike where nothing is cut off."""
    usual = _DWELL * np.asarray(rows, dtype=float)
    return np.maximum(usual + _DEVIATIONS * np.sqrt(usual), FEWEST)


class FrequentValues:
    """The most frequent values of some signals, on each side of zero.

    A vote of the rows (Misra & Gries 1982) counts at least as many at a value as there are more
    than others.

    Attributes
    ----------
    level : (n, 2, v)
        The values, negative and positive ones.
    sums : (n, 2, v, 1 + k)
        Rows at each, and sums over these of `k` quantities that come with a row.
    """

    def __init__(self, signals: int, quantities: int = 0) -> None:
        self.level = np.zeros((signals, 2, _VALUES))
        self.sums = np.zeros((signals, 2, _VALUES, 1 + quantities))

    @property
    def count(self) -> FloatArray:
        """Rows (n, 2, v) at each value."""
        return self.sums[..., 0]

    def vote(self, j: int, value: float, same: float, *quantities: float) -> None:
        """Take a row of signal j; values that differ by `same` are one."""
        side = int(value > 0.0)
        level, sums = self.level[j, side], self.sums[j, side]
        row, free = (1.0, *quantities), None
        for k in range(_VALUES):
            if sums[k, 0] < _GONE:
                free = k if free is None else free
            elif abs(value - level[k]) <= same:
                sums[k] += row
                return
        if free is None:
            sums *= np.maximum(1.0 - 1.0 / sums[:, :1], 0.0)
        else:
            level[free], sums[free] = value, row

    def vote_each(self, values: FloatArray, chosen: BoolArray, same: FloatArray) -> None:
        """Take the chosen ones of some rows (m, n), of which only the last value counts."""
        rows = np.arange(len(values))[:, None]
        last = values[np.where(chosen, rows, 0).max(axis=0), np.arange(values.shape[1])]
        count = (chosen & (np.abs(values - last) <= same)).sum(axis=0)
        apart = np.abs(self.level - last[:, None, None])
        known = (apart <= same[:, None, None]) & (self.count >= _GONE)
        self.sums[..., 0] += known * count[:, None, None]
        for j in np.flatnonzero((count > 0) & ~known.any(axis=(1, 2))):
            self.vote(int(j), float(last[j]), float(same[j]), *(0.0,) * (self.sums.shape[-1] - 1))

    def resolution(self, j: int, first: int) -> float:
        """Return the step from a value to the nearest that a coarse signal takes as well."""
        levels, counts = self.level[j].ravel(), self.count[j].ravel()
        others = counts >= COARSE * counts[first]
        others[first] = False
        others &= levels * levels[first] >= 0.0  # the other limit is far away
        steps = np.abs(levels - levels[first])[others]
        return float(steps.min()) if len(steps) else 0.0


class LiveEnds:
    """Tells which efforts of a live stream lie at an end of their range.

    That is a value that they have more often than a sine has its extreme while their joint moves,
    and that they do not exceed. Those of a coarse effort are none, nor are those that reach the
    limit of its motor. Whether the motion needs others there is for those to say who know it.

    Parameters
    ----------
    rate : float [Hz]
        Of the rows.
    limits : (n,) [N·m]
        Efforts that the joints' motors cannot exceed; infinite where nobody knows.
    """

    def __init__(self, rate: float, limits: FloatArray) -> None:
        joints = len(limits)
        self._forget, self._limits = 0.5 ** (1.0 / (_MEMORY * rate)), LIMIT * limits
        self._values = FrequentValues(joints, 2)  # with the rows below and above each
        self._rows = np.zeros(joints)  # in which the joint moves
        self._square = np.zeros(joints)  # [N²·m²] mean of the efforts
        self._seen = 0.0  # Rows
        self._waiting = 0  # Of these, that no account was taken of
        self._same = np.zeros(joints)  # [N·m] by which efforts differ that are the same
        self._last = np.full((1, 2 * joints), np.nan)

    def push(self, rows: FloatArray) -> BoolArray:
        """Return which efforts (m, n) of newer rows (m, 2 n) lie at an end.

        Rows are positions, then efforts [N·m].
        """
        joints = len(self._rows)
        at_end = np.zeros((len(rows), joints), dtype=np.bool_)
        if not len(rows):
            return at_end
        whole = np.concatenate([self._last, rows])
        steps = np.abs(whole[1:] - whole[:-1])
        self._last = rows[-1:]
        self._waiting += len(rows)
        alike = steps[:, joints:] <= self._same
        found = bool(alike.any())
        if found or self._waiting >= _EVERY:  # some rows tell of others without values that return
            moves = steps[:, :joints] > LEAST_STEP  # a joint at rest needs no other torque
            self._account(rows[:, joints:], moves)
            if found:
                self._values.vote_each(rows[:, joints:], moves & alike, self._same)
            self._mark(at_end, rows[:, joints:])
            self._waiting = 0
        return at_end

    def _account(self, effort: FloatArray, moves: BoolArray) -> None:
        """Take account of all that waits, by efforts (m, n) and whether joints move (m, n)."""
        fade = self._forget**self._waiting
        self._values.sums *= fade
        self._rows = fade * self._rows + self._waiting * moves.mean(axis=0)
        self._seen = fade * self._seen + self._waiting
        newer = self._waiting / self._seen
        self._square += newer * (np.mean(effort**2, axis=0) - self._square)
        self._same = ALIKE * np.sqrt(self._square)

    def _mark(self, at_end: BoolArray, effort: FloatArray) -> None:
        """Mark the efforts (m, n) that lie at an end."""
        least, most = most_alike(self._rows), self._values.count.max(axis=(1, 2))
        for j in np.flatnonzero((least < most) & (most < self._rows - FEWEST)):
            at_end[:, j] = self._at_end(int(j), effort[:, j], float(least[j]))

    def _at_end(self, j: int, effort: FloatArray, least: float) -> BoolArray:
        """Return which efforts (m,) of joint j lie at an end."""
        found = np.zeros(len(effort), dtype=np.bool_)
        values, same, each = self._values, self._same[j], self._waiting / len(effort)
        for side in range(2):
            k = int(np.argmax(values.count[j, side]))
            level, sums = values.level[j, side, k], values.sums[j, side, k]
            above = effort - level
            sums[1:] += each * (above < -2.0 * same).sum(), each * (above > 2.0 * same).sum()
            if (
                least < sums[0] < self._rows[j] - FEWEST
                and sums[1:].min() <= BEYOND * sums[0]
                and 2.0 * same < abs(level) < self._limits[j]
                and not values.resolution(j, side * _VALUES + k)
            ):
                found |= np.abs(above) <= 2.0 * same
        return found
