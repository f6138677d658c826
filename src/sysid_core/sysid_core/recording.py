# SPDX-License-Identifier: Apache-2.0
"""Recordings as they come from a file, and samples as the regression takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.errors import DataError

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "LEAST_REACHES",
    "MOST_JOINTS",
    "BaseRecording",
    "ContactRecording",
    "ImuMounting",
    "ImuRecording",
    "Part",
    "Recording",
    "Samples",
    "TopicInfo",
    "cut",
]

LEAST_REACHES = 8.0
"""Least length of a part of a recording, in reaches of the filter: overlaps are filtered twice."""

MOST_JOINTS = 1000
"""Of a recording, in which each takes a column of every quantity."""


@dataclass(frozen=True)
class TopicInfo:
    """One topic of a bag."""

    # name, type: topic name and message type.
    name: str
    type: str
    count: int  # Number of messages


class _Rows:
    """What recordings and samples share: arrays with a row per message or sample."""

    def select(self, chosen: slice | npt.NDArray[Any]) -> Self:
        """Return the rows that a slice, mask or index array picks."""
        arrays = {name: v[chosen] for name, v in vars(self).items() if isinstance(v, np.ndarray)}
        return replace(self, **arrays)  # type: ignore[type-var]

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Join rows in their order; an array that some of the parts lack is left out."""
        if not parts:
            raise DataError("nothing to concatenate: give at least one batch")
        arrays: dict[str, FloatArray | None] = {}
        for name in vars(parts[-1]):
            values = [getattr(part, name) for part in parts]
            if all(isinstance(value, np.ndarray) for value in values):
                arrays[name] = np.concatenate(values)
            elif any(isinstance(value, np.ndarray) for value in values):
                arrays[name] = None
        return replace(parts[-1], **arrays)  # type: ignore[type-var]


@dataclass(frozen=True)
class BaseRecording(_Rows):
    """Odometry of a floating base, as recorded."""

    time: FloatArray  # (m,) [s]
    position: FloatArray  # (m, 3) [m] in the world frame
    orientation: FloatArray  # (m, 4) [-]: Quaternion x, y, z, w of the base in the world
    twist: FloatArray
    """(m, 6) [m/s, rad/s] linear then angular velocity in the child frame, as REP-105 asks."""
    # frame, child_frame: frame names of the messages.
    frame: str = ""
    child_frame: str = ""


@dataclass(frozen=True)
class ImuMounting:
    """Where the base carries its inertial sensor, and the gravity that this feels."""

    rotation: FloatArray = field(default_factory=lambda: np.eye(3))
    """(3, 3) from the sensor's axes to the base's."""
    position: FloatArray = field(default_factory=lambda: np.zeros(3))
    """(3,) [m] of the sensor in the base frame."""
    gravity: FloatArray = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    """(3,) [m/s²] in the world."""
    levels: bool = True  # Whether the base counts as turned to where it feels gravity


@dataclass(frozen=True)
class ImuRecording(_Rows):
    """Inertial measurements, as recorded."""

    time: FloatArray  # (k,) [s]
    angular_velocity: FloatArray  # (k, 3) [rad/s] in the sensor frame
    linear_acceleration: FloatArray  # (k, 3) [m/s²] specific force in the sensor frame
    orientation: FloatArray | None = None  # (k, 4) [-]: Quaternion x, y, z, w
    frame: str = ""  # Sensor frame
    mounting: ImuMounting | None = None  # None: at the base's origin, along its axes


@dataclass(frozen=True)
class ContactRecording(_Rows):
    """Contact flags and wrenches, as recorded."""

    time: FloatArray  # (c,) [s]
    names: tuple[str, ...]
    active: BoolArray  # (c, nc)
    wrenches: FloatArray | None = None
    """(c, nc, 6) [N, N·m] force and torque on the robot in the contact frame."""

    def of(self, names: tuple[str, ...]) -> ContactRecording | None:
        """Return the contacts of these names, in their order; None if any lacks."""
        if not set(names) <= set(self.names):
            return None
        order = [self.names.index(name) for name in names]
        wrenches = None if self.wrenches is None else self.wrenches[:, order]
        return ContactRecording(self.time, names, self.active[:, order], wrenches)


@dataclass(frozen=True)
class Recording(_Rows):
    """What a bag or table holds, before a robot description interprets it.

    Values that a message lacked are NaN. Time is as recorded: it may jitter, repeat or go back.
    """

    time: FloatArray  # (n,) [s]
    joint_names: tuple[str, ...]  # Names as recorded
    position: FloatArray  # (n, nj) [rad or as published]
    # velocity, effort: (n, nj): None where no message carried any.
    velocity: FloatArray | None = None
    effort: FloatArray | None = None
    base: BaseRecording | None = None
    imu: ImuRecording | None = None
    contacts: ContactRecording | None = None
    source: str = ""  # File that the recording was read from
    topics: tuple[TopicInfo, ...] = ()
    warnings: tuple[str, ...] = ()  # What was noticed while reading

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def of_sensors(cls, **sensors: Any) -> Recording:
        """Return a recording without joint states of what is given: base, imu, contacts."""
        return cls(np.zeros(0), (), np.zeros((0, 0)), **sensors)


class Part(NamedTuple):
    """A part of a recording with what lies around it, for the filter to reach into."""

    recording: Recording
    # start, end: [s] the samples between them, `end` not included, are the part's own.
    start: float = -np.inf
    end: float = np.inf
    origin: float = 0.0  # [s] of the recording's first joint state


def cut(recording: Recording, rows: int, reach: float) -> Iterator[Part]:
    """Cut a recording into parts of so many rows that overlap by twice `reach` [s].

    One whose clock goes back, as where it was started again, stays whole.
    """
    time = recording.time
    if len(time) <= rows or not (np.diff(time) >= 0.0).all():
        yield Part(recording)
        return
    sensors = ("base", "imu", "contacts")
    first, start = 0, -np.inf
    while True:
        least = np.searchsorted(time, time[first] + LEAST_REACHES * reach)
        stop = max(first + rows, int(least))
        last = stop >= len(time)
        stop = min(stop, len(time))
        span = time[first], time[stop - 1]
        parts = {}
        for name in sensors:
            if (sensor := getattr(recording, name)) is not None:
                edges = np.searchsorted(sensor.time, span)
                parts[name] = sensor.select(slice(max(int(edges[0]) - 1, 0), int(edges[1]) + 1))
        end = np.inf if last else float(span[1]) - reach
        yield Part(replace(recording.select(slice(first, stop)), **parts), start, end)
        if last:
            return
        start = end
        first = int(np.searchsorted(time, end - reach))


@dataclass(frozen=True)
class Samples(_Rows):
    """Uniform, filtered and differentiated samples in a robot's joint order, SI units."""

    time: FloatArray  # (n,) [s]
    position: FloatArray  # (n, nj) [rad]
    velocity: FloatArray  # (n, nj) [rad/s]
    acceleration: FloatArray  # (n, nj) [rad/s²]
    effort: FloatArray
    """(n, nj) [N·m] joint torque; effort gains and transmission are applied. NaN for passive
    joints."""
    base_pose: FloatArray | None = None  # (n, 7) position in the world [m], quaternion x, y, z, w
    base_twist: FloatArray | None = None
    """(n, 6) linear [m/s] and angular [rad/s] velocity in the base frame."""
    base_acceleration: FloatArray | None = None
    """(n, 6) time derivative of the components of `base_twist` [m/s², rad/s²]."""
    contacts: BoolArray | None = None  # (n, nc) in the order of the robot's contacts
    wrenches: FloatArray | None = None
    """(n, nc, 6) [N, N·m] force and torque on the robot in the contact frame."""
    cut_off: IndexArray | None = None
    """(n, nj) 2: the effort lies at an end of its range; 1: it rests on any that does; 0: on none.
    None: nobody looked."""

    def __post_init__(self) -> None:
        n = len(self.time)
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value is not None and len(value) != n:
                raise DataError(
                    f"samples disagree in length: {entry.name} has {len(value)} rows, time has {n}"
                )

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Join batches in time order; a field must be present in all of them or in none.

        Of `cut_off` that is not there nothing is known.
        """
        if len({part.cut_off is None for part in parts}) > 1:
            parts = [
                replace(part, cut_off=np.zeros(part.effort.shape, dtype=np.intp))
                if part.cut_off is None
                else part
                for part in parts
            ]
        for entry in fields(cls):
            if len({getattr(part, entry.name) is None for part in parts}) > 1:
                raise DataError(f"{entry.name} is missing from some of the batches")
        return super().concatenate(parts)
