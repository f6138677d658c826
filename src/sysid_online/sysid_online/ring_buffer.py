# SPDX-License-Identifier: Apache-2.0
"""A bounded buffer of raw messages that can be saved as a recording."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError
from sysid_core.recording import BaseRecording, ContactRecording, ImuRecording, Recording
from sysid_ros.sensors import JointBatch

__all__ = ["RingBuffer"]

_ANOTHER_RUN = 0.1
"""Time [s] by which joint states must go back to be another run's and not merely late."""

Entries = deque[tuple[Any, ...]]
"""What one sensor showed: its time [s], then its arrays."""


class RingBuffer:
    """Keeps what came in the last `duration` seconds.

    Parameters
    ----------
    duration : float [s]
    """

    def __init__(self, duration: float) -> None:
        self.duration = duration
        self._joints: deque[JointBatch] = deque()
        self._base: Entries = deque()
        self._imu: Entries = deque()
        self._contacts: Entries = deque()

    def add_joints(self, batch: JointBatch) -> None:
        """Add joint states."""
        jumps = np.flatnonzero(np.diff(batch.time) < -_ANOTHER_RUN)
        if len(jumps):
            rest = slice(int(jumps[-1]) + 1, None)
            batch = JointBatch(batch.names, *(np.asarray(part)[rest] for part in batch[1:]))
        newest = float(batch.time[-1])
        if len(jumps) or (self._joints and newest < self._joints[-1].time[-1] - _ANOTHER_RUN):
            for buffer in (self._joints, self._base, self._imu, self._contacts):
                buffer.clear()
        self._joints.append(batch)
        for companions in (self._base, self._imu, self._contacts):
            self._forget(companions, newest)
        while self._joints[0].time[-1] < newest - self.duration:
            self._joints.popleft()

    def add_base(self, time: float, pose: FloatArray, twist: FloatArray) -> None:
        """Add odometry: pose (7,) and twist (6,)."""
        self._add(self._base, time, pose, twist)

    def add_imu(
        self, time: float, angular_velocity: FloatArray, specific_force: FloatArray
    ) -> None:
        """Add inertial readings, each (3,)."""
        self._add(self._imu, time, angular_velocity, specific_force)

    def add_contacts(
        self, time: float, flags: dict[str, bool], wrenches: dict[str, FloatArray] | None = None
    ) -> None:
        """Add contact flags, and wrenches (6,) where measured, by name."""
        self._add(self._contacts, time, flags, wrenches)

    def _add(self, buffer: Entries, time: float, *arrays: Any) -> None:
        buffer.append((time, *arrays))
        self._forget(buffer, time)

    def _forget(self, buffer: Entries, newest: float) -> None:
        while buffer and buffer[0][0] < newest - self.duration:
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
            base=self._base_recording(),
            imu=self._imu_recording(),
            contacts=self._contact_recording(),
            source="ring buffer",
        )

    def _base_recording(self) -> BaseRecording | None:
        if not self._base:
            return None
        time, pose, twist = map(np.array, zip(*list(self._base), strict=True))
        return BaseRecording(time, pose[:, :3], pose[:, 3:], twist, "odom", "base")

    def _imu_recording(self) -> ImuRecording | None:
        if not self._imu:
            return None
        time, angular_velocity, specific_force = map(np.array, zip(*list(self._imu), strict=True))
        return ImuRecording(time, angular_velocity, specific_force)

    def _contact_recording(self) -> ContactRecording | None:
        if not self._contacts:
            return None
        entries = list(self._contacts)
        names = tuple(entries[-1][1])
        entries = [entry for entry in entries if tuple(entry[1]) == names]
        wrenches = None
        if all(measured is not None for *_, measured in entries):
            wrenches = np.array([[w[name] for name in names] for *_, w in entries])
        return ContactRecording(
            np.array([time for time, *_ in entries]),
            names,
            np.array([[flags[name] for name in names] for _, flags, _ in entries], dtype=bool),
            wrenches,
        )
