# SPDX-License-Identifier: Apache-2.0
"""A bounded buffer of raw messages that can be saved as a recording."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError
from sysid_core.recording import BaseRecording, ContactRecording, ImuRecording, Recording

__all__ = ["JointBatch", "RingBuffer"]

_ANOTHER_RUN = 0.1
"""Time [s] by which joint states must go back to be another run's and not merely late."""


class JointBatch(NamedTuple):
    """Joint states of one batch, as published.

    Attributes
    ----------
    names : tuple[str, ...]
    time : (m,) [s]
    position, velocity, effort : (m, n)
        NaN where a message lacked them.
    """

    names: tuple[str, ...]
    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray


class RingBuffer:
    """Keeps what came in the last `duration` seconds.

    Parameters
    ----------
    duration : float [s]
    """

    def __init__(self, duration: float) -> None:
        self.duration = duration
        self._joints: deque[JointBatch] = deque()
        self._base: deque[tuple[float, FloatArray]] = deque()
        self._imu: deque[tuple[float, FloatArray]] = deque()
        self._contacts: deque[tuple[float, dict[str, bool]]] = deque()

    def add_joints(self, batch: JointBatch) -> None:
        """Add joint states."""
        jumps = np.flatnonzero(np.diff(batch.time) < -_ANOTHER_RUN)
        if len(jumps):
            rest = slice(int(jumps[-1]) + 1, None)
            batch = JointBatch(batch.names, *(np.asarray(part)[rest] for part in batch[1:]))
        newest = float(batch.time[-1])
        if len(jumps) or (self._joints and newest < self._joints[-1].time[-1] - _ANOTHER_RUN):
            self._clear()
        self._joints.append(batch)
        for buffer in (self._base, self._imu, self._contacts):
            self._forget(buffer, newest)
        while self._joints[0].time[-1] < newest - self.duration:
            self._joints.popleft()

    def add_base(self, time: float, row: FloatArray) -> None:
        """Add odometry: position 3, quaternion xyzw 4, twist 6."""
        self._base.append((time, row))
        self._forget(self._base, time)

    def add_imu(self, time: float, row: FloatArray) -> None:
        """Add inertial readings: angular velocity 3, specific force 3."""
        self._imu.append((time, row))
        self._forget(self._imu, time)

    def add_contacts(self, time: float, flags: dict[str, bool]) -> None:
        """Add contact flags by name."""
        self._contacts.append((time, flags))
        self._forget(self._contacts, time)

    def _forget(self, buffer: deque[tuple[float, Any]], newest: float) -> None:
        while buffer and buffer[0][0] < newest - self.duration:
            buffer.popleft()

    def _clear(self) -> None:
        self._joints.clear()
        self._base.clear()
        self._imu.clear()
        self._contacts.clear()

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
            base=self._base_recording(),
            imu=self._imu_recording(),
            contacts=self._contact_recording(),
            source="ring buffer",
        )

    def _base_recording(self) -> BaseRecording | None:
        base = list(self._base)
        if not base:
            return None
        rows = np.stack([row for _, row in base])
        time = np.array([t for t, _ in base])
        return BaseRecording(time, rows[:, :3], rows[:, 3:7], rows[:, 7:], "odom", "base")

    def _imu_recording(self) -> ImuRecording | None:
        imu = list(self._imu)
        if not imu:
            return None
        rows = np.stack([row for _, row in imu])
        return ImuRecording(np.array([t for t, _ in imu]), rows[:, :3], rows[:, 3:])

    def _contact_recording(self) -> ContactRecording | None:
        contacts = list(self._contacts)
        if not contacts:
            return None
        names = tuple(contacts[-1][1])
        known = [(t, flags) for t, flags in contacts if tuple(flags) == names]
        active = np.array([[flags[name] for name in names] for _, flags in known], dtype=bool)
        return ContactRecording(np.array([t for t, _ in known]), names, active)
