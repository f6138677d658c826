# SPDX-License-Identifier: Apache-2.0
"""Live messages that repeat the one before, or a joint of it, as of a driver without news."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.diagnostics import Diagnostic

__all__ = ["LEAST_STEP", "SPARE", "LiveRepeats", "LostEfforts", "StandingJoints"]

SPARE = 2.0
"""Periods by which a message that repeats is taken before a gap would begin: robots rest."""
_EARLY = 0.1
"""Part of a period by which a message may be early that stands for the next one."""
_CREEP = 2.0
"""Smallest steps that a position moves by in a period, as robots do that come to rest."""
LEAST_STEP = 1e-9
"""Positions that differ by less [rad] or [m] differ by rounding."""
_REMEMBERED = 128  # Messages by which a joint that stands is judged
_CHANGES = 3
"""New positions in a row by which a joint moves: quanta go to and fro by noise."""
_LIVELY = 60
"""New positions without one that repeats, from which a joint never rests: noise is in it."""
_STANDS = 5.0
"""Times the messages that its drive takes for a new position, after which a joint stands that
moved and repeats one [-]."""
_TOLD = 2.0  # Times as long as that for which it is told
_SLOWER = 1.5
"""Times the least messages that new positions took, up to which a joint does not slow down [-]."""
_GENTLE = 4.0
"""Usual steps from zero within which an effort goes through it gently."""
_RECENT = 1e-3
"""Share of a new effort's step in the usual one [-]."""
_LEAP = 3.0
"""Times all steps before by which a position leaps to where it stands [-]."""


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


class StandingJoints:
    """Tells messages in which a joint stands that was moving: its drive was lost, others go on.

    A joint that stops takes smaller steps before, or new positions come later, as its encoder's
    quanta do. One whose drive is lost stands after steps as before, or leaps to where it stands.

    Parameters
    ----------
    joints : int
        Leading columns of the rows, their positions [rad].
    """

    def __init__(self, joints: int) -> None:
        self.count = 0  # Messages in which one stands
        self._told = np.zeros(joints, dtype=np.bool_)  # Which stood since that was last taken
        self._recent = deque([np.full(joints, np.nan)], _REMEMBERED)  # Newest positions
        self._least, self._greatest = np.full(joints, np.inf), np.zeros(joints)
        self._since = np.zeros(joints, dtype=np.intp)  # Messages since a new position
        self._due = np.full(joints, int(_STANDS))  # of these, after which one is judged
        self.stands = np.zeros(joints, dtype=np.bool_)  # Which do by the newest message

    def take_out(self, rows: FloatArray) -> BoolArray:
        """Return in which rows (m, nc) no joint stands; those that are not finite do not count."""
        rows, goes_on = rows[:, : len(self._due)], np.ones(len(rows), dtype=np.bool_)
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            if finite.any():
                goes_on[finite] = self.take_out(rows[finite])
            return goes_on
        size = np.abs(np.diff(rows, axis=0, prepend=self._recent[-1][None]))
        new = size > LEAST_STEP
        self._least = np.minimum(self._least, size.min(axis=0, initial=np.inf, where=new))
        self._greatest = np.maximum(self._greatest, size.max(axis=0, initial=0.0, where=new))
        if new.all() and not self._since.any():
            self._recent.extend(rows)
            return goes_on
        for k, (row, moved) in enumerate(zip(rows, new, strict=True)):
            self._recent.append(row)
            self._since = np.where(moved, 0, self._since + 1)
            self.stands &= ~moved
            self._due[moved] = _STANDS
            for j in np.flatnonzero(self._since == self._due):
                self._judge(int(j))
            goes_on[k] = not self.stands.any()
            self._told |= self.stands & (self._since > _TOLD * self._due)
        self.count += int((~goes_on).sum())
        return goes_on

    def take_diagnostics(self, names: Sequence[str]) -> list[Diagnostic]:
        """Name the joints that stood for longer than by chance since the last call."""
        told, self._told = self._told, np.zeros_like(self._told)
        return _frozen("position", "encoder", names, told)

    def _judge(self, j: int) -> None:
        """Judge joint j by its newest positions, the last of which repeat one."""
        steps = np.diff([row[j] for row in self._recent])
        changes = np.flatnonzero(np.abs(steps) > LEAST_STEP)
        if len(changes) <= _CHANGES:
            return
        took = (changes[_CHANGES:] - changes[:-_CHANGES]) / _CHANGES
        fastest = float(took.min())
        if self._since[j] < _STANDS * fastest:
            self._due[j] = int(np.ceil(_STANDS * fastest))
            return
        last = steps[changes[-_CHANGES:]]
        onward = (last > 0.0).all() or (last < 0.0).all()
        lively = np.ptp(changes[-_LIVELY:]) == _LIVELY - 1
        moved = (onward or lively) and (np.abs(last) > _CREEP * self._least[j]).all()
        leapt = abs(last[-1]) >= max(
            float(self._greatest[j]), _LEAP * float(np.abs(steps[changes[:-1]]).max())
        )
        self.stands[j] = leapt or (moved and took[-1] <= _SLOWER * fastest)


class LostEfforts:
    """Tells messages in which a joint's effort stands that never does: its drive was lost.

    The noise of an effort is there at rest, too. It stands where it is cut off, at an end of its
    range or its motor's, and at zero where a driver swallows small torques, so that no effort goes
    through zero gently.

    Parameters
    ----------
    limits : (n,) [N·m]
        Efforts from which motors give no more.
    """

    def __init__(self, limits: FloatArray) -> None:
        joints = len(limits)
        self.count = 0  # Messages in which one stands
        self._told = np.zeros(joints, dtype=np.bool_)  # Which stood since that was last taken
        self._limits = limits
        self._row = np.full(joints, np.nan)
        self._lowest, self._highest = np.full(joints, np.inf), np.full(joints, -np.inf)
        self._usual, self._least = np.zeros(joints), np.full(joints, np.inf)
        self._seen = np.zeros(joints)  # New efforts
        # times that it went through zero, and stood there
        self._through, self._zeros = np.zeros(joints), np.zeros(joints)
        self._changes = np.zeros(joints)  # Messages in a row that changed it
        self._since = np.zeros(joints)  # Messages since that
        self._lively, self._stands = np.zeros((2, joints), dtype=np.bool_)

    def take_out(self, efforts: FloatArray) -> BoolArray:
        """Return in which messages no effort (m, n) stands."""
        goes_on = np.ones(len(efforts), dtype=np.bool_)
        whole = np.vstack([self._row, efforts])
        self._row = whole[-1]
        with np.errstate(invalid="ignore", over="ignore"):
            size = np.abs(np.diff(whole, axis=0))
        new = ~(size == 0.0)
        may_stand = self._lively | (self._changes + len(new) > _LIVELY)
        if not ((~new.all(axis=0) | (self._since > 0.0)) & may_stand).any():
            self._since[:] = 0.0  # of those that never stand it does not matter
            self._learn(whole, size, new)
            return goes_on
        for k in range(len(efforts)):
            self._learn(whole[k : k + 2], size[k : k + 1], new[k : k + 1])
            goes_on[k] = not self._stand(efforts[k], new[k]).any()
        self.count += int((~goes_on).sum())
        return goes_on

    def take_diagnostics(self, names: Sequence[str]) -> list[Diagnostic]:
        """Name the joints whose efforts stood for longer than by chance since the last call."""
        told, self._told = self._told, np.zeros_like(self._told)
        return _frozen("effort", "sensor", names, told)

    def _learn(self, whole: FloatArray, size: FloatArray, new: BoolArray) -> None:
        """Take in efforts (1 + m, n), how far each is from the one before, and if it is new."""
        if not len(size):
            return
        known = new & np.isfinite(size)
        count = known.sum(axis=0)
        mean = np.where(known, size, 0.0).sum(axis=0) / np.maximum(count, 1)
        self._seen += count
        share = np.maximum(_RECENT * count, count / np.maximum(self._seen, 1.0))
        self._usual += np.minimum(share, 1.0) * (mean - self._usual)
        self._least = np.minimum(self._least, size.min(axis=0, initial=np.inf, where=known))
        near = np.abs(whole) <= _GENTLE * self._usual
        self._through += (near[1:] & near[:-1] & (whole[1:] * whole[:-1] < 0.0)).sum(axis=0)
        values = whole[1:]
        self._lowest = np.minimum(self._lowest, values.min(axis=0, initial=np.inf, where=known))
        self._highest = np.maximum(self._highest, values.max(axis=0, initial=-np.inf, where=known))
        changed = self._changes + len(size) - 1 >= _LIVELY
        lively = changed & known.all(axis=0) & (size[-1] > _CREEP * self._least)
        self._lively = np.where(new[-1], lively, self._lively)
        self._changes = np.where(new.all(axis=0), self._changes + len(size), 0.0)

    def _stand(self, row: FloatArray, new: BoolArray) -> BoolArray:
        """Return which efforts (n,) of a message stand, which of them are new being known."""
        self._since = np.where(new, 0.0, self._since + 1.0)
        self._stands &= ~new
        due = self._since == _STANDS
        if due.any():
            zero = row == 0.0
            inside = (self._lowest < row) & (row < self._highest) & (np.abs(row) < self._limits)
            inside &= ~zero | (self._through > self._zeros)
            self._zeros += due & zero
            self._stands |= due & inside & self._lively
        self._told |= self._stands & (self._since > _TOLD * _STANDS)
        return self._stands


def _frozen(what: str, whose: str, names: Sequence[str], told: BoolArray) -> list[Diagnostic]:
    """Name the joints of which something stood that else never does."""
    message = f"its {what} stood in the middle of a motion while others went on: left out"
    hint = f"see whether its {whose} or the messages of its drive were lost"
    return [
        Diagnostic("frozen", message, subject=names[j], hint=hint)
        for j in np.flatnonzero(told).tolist()
    ]
