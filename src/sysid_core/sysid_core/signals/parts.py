# SPDX-License-Identifier: Apache-2.0
"""Joint states of a robot with several drivers, each of which publishes its own joints alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.recording import Recording

__all__ = ["JoinedParts", "NewestParts", "joined"]

_TURN = 2.0 * np.pi
_FEWEST = 10  # States of each driver that tell which comes least often
_MOST = 5000  # States of a driver that wait for the others at most
_SLOW = 0.9  # [-] of the longest usual interval that is as long: jitter decides nothing
_LONGEST = 5.0  # [-] usual intervals between two states that may be drawn out between them
_AT_ONCE = 0.01  # [s] of states that are joined at once at least: each time costs as much
_ROWS = 64  # Of a recording that are looked at together
_SET_BACK = 0.5  # [s] by which stamps go back where a clock was set


class _Part(NamedTuple):
    """What one driver published of its joints and the others have not caught up with."""

    time: FloatArray  # (n,) [s] ascending
    values: FloatArray  # (n, 2, k) positions and efforts as published

    def with_newer(self, time: FloatArray, values: FloatArray) -> _Part:
        """Return the part with states at times (m,) [s]; those that were overtaken are late."""
        time = np.concatenate([self.time, time])
        values = np.concatenate([self.values, values])
        newest = np.maximum.accumulate(np.r_[-np.inf, time[:-1]])
        new = np.flatnonzero(time > newest)[-_MOST:]
        return _Part(time[new], values[new])

    def since(self, time: float) -> _Part:
        """Return the states from the last one on that is no later than a time [s]."""
        first = max(0, int(np.searchsorted(self.time, time, side="right")) - 1)
        return _Part(self.time[first:], self.values[first:])

    def at(self, times: FloatArray, longest: float) -> FloatArray:
        """Return values (m, 2, k) between states; NaN where these are too far apart [s]."""
        after = np.searchsorted(self.time, times).clip(1, len(self.time) - 1)
        begin, apart = self.time[after - 1], self.time[after] - self.time[after - 1]
        step = self.values[after] - self.values[after - 1]
        step[:, 0] -= _TURN * np.round(step[:, 0] / _TURN)
        found: FloatArray = self.values[after - 1]
        found = found + ((times - begin) / apart)[:, None, None] * step
        found[apart > longest] = np.nan
        return found


class JoinedParts:
    """Joins joint states that drivers publish in parts to such of all joints, as they come.

    At the stamps of the part that comes least often, or the first of these, the others have the
    values between the two states that lie about them, for which they wait. What holds all joints
    passes as it is, and so does what comes before each joint was seen.
    """

    def __init__(self, joints: Sequence[str], aliases: Mapping[str, str]) -> None:
        self._joints, self._aliases = tuple(joints), aliases
        self._names = list(joints)  # As published
        self._whole = False  # Whether a state held all joints
        self._forget()

    def _forget(self) -> None:
        self._parts: dict[tuple[int, ...], _Part] = {}
        self._intervals: dict[tuple[int, ...], float] = {}  # [s]; empty until they are known
        self._until = -np.inf  # [s] stamp of the newest state that was joined

    def push(self, batch: Recording) -> Recording:
        """Take joint states with efforts, and return those that are complete."""
        if self._whole:
            return batch
        known = [self._aliases.get(name, name) for name in batch.joint_names]
        here = tuple(j for j, name in enumerate(self._joints) if name in known)
        self._whole = len(here) == len(self._joints)
        if self._whole or not here or not len(batch) or batch.effort is None:
            return batch
        columns = [known.index(self._joints[j]) for j in here]
        for j, column in zip(here, columns, strict=True):
            self._names[j] = batch.joint_names[column]
        values = np.stack([batch.position[:, columns], batch.effort[:, columns]], axis=1)
        self._add(here, batch.time, values)
        if len({j for joints in self._parts for j in joints}) < len(self._joints):
            return batch
        return self._joined()

    def _add(self, joints: tuple[int, ...], time: FloatArray, values: FloatArray) -> None:
        if any(set(joints) < set(other) for other in self._parts):
            return
        others = [k for k in self._parts if k != joints and not set(k).isdisjoint(joints)]
        for key in others:  # a driver that has more joints now
            del self._parts[key]
        old = self._parts.get(joints, _Part(time[:0], values[:0]))
        if len(old.time) and time[0] < old.time[-1] - _SET_BACK:
            self._forget()
            old = _Part(time[:0], values[:0])
        self._parts[joints] = old.with_newer(time, values)

    def _joined(self) -> Recording:
        parts, shape = self._parts, (2, len(self._joints))
        if parts.keys() != self._intervals.keys():
            few = min(len(part.time) for part in parts.values()) < _FEWEST
            usual = {k: float(np.median(np.diff(p.time))) for k, p in parts.items() if not few}
            self._intervals = usual
        last = min(part.time[-1] for part in parts.values())
        if not self._intervals or last < self._until + _AT_ONCE:
            return self._states(np.zeros(0), np.zeros((0, *shape)))
        longest = max(self._intervals.values())
        slowest = min(k for k, usual in self._intervals.items() if usual > _SLOW * longest)
        first = max(part.time[0] for part in parts.values())
        due = parts[slowest].time
        due = due[(due >= first) & (due > self._until) & (due <= last)]
        values = np.full((len(due), *shape), np.nan)
        for joints, part in parts.items():
            values[:, :, list(joints)] = part.at(due, _LONGEST * longest)
        self._until = last
        self._parts = {joints: part.since(last) for joints, part in parts.items()}
        near = ~np.isnan(values[:, 0]).any(axis=1)
        return self._states(due[near], values[near])

    def _states(self, time: FloatArray, values: FloatArray) -> Recording:
        return Recording(time, tuple(self._names), values[:, 0], None, values[:, 1])


def joined(recording: Recording, joints: Sequence[str], aliases: Mapping[str, str]) -> Recording:
    """Return a recording whose drivers published their joints in parts, joined as live.

    Rows of all joints, as where stamps agree, are states of each driver; a recording of mostly
    such stays as it is.
    """
    known = [aliases.get(name, name) for name in recording.joint_names]
    if recording.effort is None or not set(joints) <= set(known):
        return recording
    columns = np.array([known.index(name) for name in joints])
    present = np.isfinite(recording.position[:, columns])
    whole: BoolArray = np.asarray(present.all(axis=1))
    if 2 * whole.sum() > len(whole) or not present.any(axis=0).all():
        return recording
    parts, which = np.unique(present, axis=0, return_inverse=True)
    which = which.ravel()  # of two dimensions in NumPy 2.0
    join, done = JoinedParts(joints, aliases), []
    for start in range(0, len(which), _ROWS):
        stretch = slice(start, start + _ROWS)
        for k in np.flatnonzero(parts.any(axis=1) & ~parts.all(axis=1)):
            mine = (which[stretch] == k) | whole[stretch]
            rows, own = start + np.flatnonzero(mine), columns[parts[k]]
            at = np.ix_(rows, own)
            names = tuple(recording.joint_names[column] for column in own)
            states = recording.time[rows], names, recording.position[at], None
            batch = join.push(Recording(*states, recording.effort[at]))
            if len(batch.joint_names) == len(joints):
                done.append(batch)
    if not done:
        return recording
    found = Recording.concatenate(done)
    return replace(
        recording,
        time=found.time,
        joint_names=found.joint_names,
        position=found.position,
        velocity=None,
        effort=found.effort,
    )


class NewestParts:
    """Puts joint states that drivers publish in parts together from the newest of each joint.

    They are given out once each joint has a new one.
    """

    def __init__(self, joints: Sequence[str], aliases: Mapping[str, str]) -> None:
        self._joints, self._aliases = tuple(joints), aliases
        self._whole: Sequence[str] = ()
        self._published: dict[str, str] = {}  # Joint → its name as published
        self._values: dict[str, tuple[float, ...]] = {}
        self._fresh: set[str] = set()

    def push(
        self, names: Sequence[str], *quantities: FloatArray
    ) -> tuple[Sequence[str], tuple[FloatArray, ...]] | None:
        """Take the named joints' quantities (k,), empty where unknown; return all joints'.

        None where others are to come first. What holds all joints passes as it is, and so does
        what comes before each joint was seen.
        """
        if names == self._whole:
            return names, quantities
        here = [self._aliases.get(name, name) for name in names]
        if set(self._joints) <= set(here):
            self._whole = names
            return names, quantities
        own = [k for k, name in enumerate(here) if name in self._joints]
        if not own or any(len(q) not in (0, len(names)) for q in quantities):
            return names, quantities
        for k in own:
            self._values[here[k]] = tuple(q[k] if len(q) else np.nan for q in quantities)
            self._published[here[k]] = names[k]
            self._fresh.add(here[k])
        if len(self._values) < len(self._joints):
            return names, quantities
        if len(self._fresh) < len(self._joints):
            return None
        self._fresh.clear()
        table = np.array([self._values[name] for name in self._joints])
        return [self._published[name] for name in self._joints], tuple(table.T)
