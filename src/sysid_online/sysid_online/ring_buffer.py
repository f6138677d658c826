# SPDX-License-Identifier: Apache-2.0
"""A bounded buffer of raw messages that can be saved as a recording."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from sysid_core.errors import DataError
from sysid_core.recording import Recording
from sysid_core.signals.sensors import SOURCES
from sysid_ros.sensors import JointBatch

__all__ = ["RingBuffer"]

_PARTS_PER_SECOND = 1000
_ANOTHER_RUN = 0.1
"""Time [s] by which joint states must go back to be another run's and not merely late."""


class RingBuffer:
    """Keeps what came in the last `duration` seconds.

    Parameters
    ----------
    duration : float [s]
    """

    def __init__(self, duration: float) -> None:
        self.duration = duration
        most = round(_PARTS_PER_SECOND * duration)  # stamps that stand still make nothing old
        self._joints: deque[JointBatch] = deque(maxlen=most)
        self._sensors: dict[str, deque[Any]] = {source: deque(maxlen=most) for source in SOURCES}

    def add_joints(self, batch: JointBatch) -> None:
        """Add joint states."""
        jumps = np.flatnonzero(np.diff(batch.time) < -_ANOTHER_RUN)
        if len(jumps):
            rest = slice(int(jumps[-1]) + 1, None)
            batch = JointBatch(batch.names, *(np.asarray(part)[rest] for part in batch[1:]))
        newest = float(batch.time[-1])
        if len(jumps) or (self._joints and newest < self._joints[-1].time[-1] - _ANOTHER_RUN):
            for buffer in (self._joints, *self._sensors.values()):
                buffer.clear()
        self._joints.append(batch)
        for buffer in (self._joints, *self._sensors.values()):
            self._forget(buffer, newest)

    def add(self, messages: Recording) -> None:
        """Add messages of the sensors beside the joints'."""
        for source, buffer in self._sensors.items():
            part = getattr(messages, source)
            if part is not None and len(part.time):
                buffer.append(part)
                self._forget(buffer, float(part.time[-1]))

    def _forget(self, buffer: deque[Any], newest: float) -> None:
        while buffer and buffer[0].time[-1] < newest - self.duration:
            buffer.popleft()

    def snapshot(self) -> Recording:
        """Return what is in the buffer.

        Raises
        ------
        DataError
            If no joint states came yet.
        """
        batches = list(self._joints)
        if not batches:
            raise DataError("the buffer is empty: no joint states came yet")
        names = batches[-1].names
        batches = [batch for batch in batches if batch.names == names]
        time, position, velocity, effort = (
            np.concatenate([getattr(batch, field) for batch in batches])
            for field in ("time", "position", "velocity", "effort")
        )
        return Recording(
            time,
            names,
            position,
            None if np.isnan(velocity).all() else velocity,
            None if np.isnan(effort).all() else effort,
            source="ring buffer",
            **{source: _joined(list(parts)) for source, parts in self._sensors.items()},
        )


def _joined(parts: list[Any]) -> Any:
    """Join the recordings of one sensor; of contacts, those whose names are the last one's."""
    if not parts:
        return None
    names = [vars(part).get("names") for part in parts]
    same = [part for part, own in zip(parts, names, strict=True) if own == names[-1]]
    return type(parts[-1]).concatenate(same)
