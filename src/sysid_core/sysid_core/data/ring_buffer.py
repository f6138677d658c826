# SPDX-License-Identifier: Apache-2.0
"""A bounded buffer of raw messages that can be saved as a recording."""

import math
from collections import Counter, deque
from dataclasses import replace
from typing import Any

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError
from sysid_core.recording import Recording
from sysid_core.signals.sensors import SOURCES

__all__ = ["RingBuffer"]

_PARTS_PER_SECOND = 1000
_ANOTHER_RUN = 0.1  # [s] by which joint states must go back to be another run's, not merely late
_LEAST = 0.01  # [-] messages of a driver for each of the one that said most, for it to be kept
_LONGEST_STEP = 1.0  # Step [s] of stamps beyond which it is a jump, which makes nothing older


class _Parts:
    """What came on one topic, oldest first.

    Stamps that jump drop nothing early: a buffer that they empty grows to its size again and
    again, however long the node has run.
    """

    def __init__(self, duration: float) -> None:
        self._duration = duration
        most = round(_PARTS_PER_SECOND * duration)  # stamps that stand still make nothing old
        self._parts: deque[tuple[float, int, Any]] = deque(maxlen=most)
        self._age = 0.0
        self.newest = -math.inf

    def add(self, part: Any, run: int) -> None:
        """Add messages that belong to a run of the robot's clock."""
        steps = np.diff(part.time, prepend=self.newest)
        self._age += float(steps[(steps > 0.0) & (steps <= _LONGEST_STEP)].sum())
        self.newest = float(part.time[-1])
        self._parts.append((self._age, run, part))
        while self._parts[0][0] < self._age - self._duration:
            self._parts.popleft()

    def last(self, run: int) -> list[Any]:
        """Return what belongs to the last seconds of a run."""
        oldest = self.newest - self._duration
        return [p for _, own, p in list(self._parts) if own == run and p.time[-1] >= oldest]


class RingBuffer:
    """Keeps what came in the last `duration` [s]."""

    def __init__(self, duration: float) -> None:
        self._run = 0
        self._joints = _Parts(duration)
        self._sensors = {source: _Parts(duration) for source in SOURCES}

    def add(self, messages: Recording) -> None:
        """Add joint states, or messages of the other sensors."""
        if len(messages):
            self._add_joints(messages)
        for source, parts in self._sensors.items():
            part = getattr(messages, source)
            if part is not None and len(part.time):
                parts.add(part, self._run)

    def _add_joints(self, batch: Recording) -> None:
        jumps = np.flatnonzero(np.diff(batch.time) < -_ANOTHER_RUN)
        if len(jumps):
            batch = batch.select(slice(int(jumps[-1]) + 1, None))
        self._run += bool(len(jumps)) or bool(batch.time[-1] < self._joints.newest - _ANOTHER_RUN)
        self._joints.add(batch, self._run)

    def snapshot(self) -> Recording:
        """Return what is in the buffer; NaN stands for joints that other messages told of.

        Raises
        ------
        DataError
            If no joint states came yet.
        """
        batches: list[Recording] = self._joints.last(self._run)
        if not batches:
            raise DataError("the buffer is empty: no joint states came yet")
        joined = _of_all_joints(batches)
        sensors = {key: _joined(parts.last(self._run)) for key, parts in self._sensors.items()}
        return replace(
            joined,
            velocity=_measured(joined.velocity),
            effort=_measured(joined.effort),
            source="ring buffer",
            **sensors,
        )


def _measured(values: FloatArray | None) -> FloatArray | None:
    return None if values is None or np.isnan(values).all() else values


def _of_all_joints(batches: list[Recording]) -> Recording:
    """Join messages of several drivers by their stamps, without who hardly said anything."""
    counts: Counter[tuple[str, ...]] = Counter()
    for batch in batches:
        counts[batch.joint_names] += len(batch)
    kept = [names for names, count in counts.items() if count >= _LEAST * max(counts.values())]
    batches = [batch for batch in batches if batch.joint_names in kept]
    if len(kept) == 1:
        return Recording.concatenate(batches)
    names = tuple(dict.fromkeys(name for own in kept for name in own))
    place = {own: [names.index(name) for name in own] for own in kept}

    def wide(quantity: str) -> FloatArray:
        tables = []
        for batch in batches:
            table = np.full((len(batch), len(names)), np.nan)
            if (values := getattr(batch, quantity)) is not None:
                table[:, place[batch.joint_names]] = values
            tables.append(table)
        return np.concatenate(tables)

    time = np.concatenate([batch.time for batch in batches])
    joined = Recording(time, names, wide("position"), wide("velocity"), wide("effort"))
    return joined.select(np.argsort(time, kind="stable"))


def _joined(parts: list[Any]) -> Any:
    """Join the recordings of one sensor; of contacts, those whose names are the last one's."""
    if not parts:
        return None
    names = [vars(part).get("names") for part in parts]
    same = [part for part, own in zip(parts, names, strict=True) if own == names[-1]]
    return type(parts[-1]).concatenate(same)
