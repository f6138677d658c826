# SPDX-License-Identifier: Apache-2.0
"""Recordings as they come from a file, and samples as the regression takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sysid_core.arrays import BoolArray, FloatArray
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
    """One topic of a bag.

    Attributes
    ----------
    name, type : str
        Topic name and message type.
    count : int
        Number of messages.
    """

    name: str
    type: str
    count: int


class _Rows:
    """What recordings of one source share: arrays with a row per message."""

    def select(self, chosen: slice) -> Self:
        """Return the messages that a slice picks."""
        arrays = {name: v[chosen] for name, v in vars(self).items() if isinstance(v, np.ndarray)}
        return replace(self, **arrays)  # type: ignore[type-var]

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Join messages; an array that some of the parts lack is left out."""
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
    """Odometry of a floating base, as recorded.

    Attributes
    ----------
    time : (m,) [s]
    position : (m, 3) [m]
        In the world frame.
    orientation : (m, 4) [-]
        Quaternion x, y, z, w of the base in the world.
    twist : (m, 6) [m/s, rad/s]
        Linear then angular velocity in the child frame, as REP-105 asks.
    frame, child_frame : str
        Frame names of the messages.
    """

    time: FloatArray
    position: FloatArray
    orientation: FloatArray
    twist: FloatArray
    frame: str = ""
    child_frame: str = ""


@dataclass(frozen=True)
class ImuMounting:
    """Where the base carries its inertial sensor, and the gravity that this feels.

    Attributes
    ----------
    rotation : (3, 3)
        From the sensor's axes to the base's.
    position : (3,) [m]
        Of the sensor in the base frame.
    gravity : (3,) [m/s²]
        In the world.
    """

    rotation: FloatArray = field(default_factory=lambda: np.eye(3))
    position: FloatArray = field(default_factory=lambda: np.zeros(3))
    gravity: FloatArray = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))


@dataclass(frozen=True)
class ImuRecording(_Rows):
    """Inertial measurements, as recorded.

    Attributes
    ----------
    time : (k,) [s]
    angular_velocity : (k, 3) [rad/s]
        In the sensor frame.
    linear_acceleration : (k, 3) [m/s²]
        Specific force in the sensor frame.
    orientation : (k, 4) [-] or None
        Quaternion x, y, z, w.
    frame : str
        Sensor frame.
    mounting : ImuMounting or None
        None: at the base's origin, along its axes.
    """

    time: FloatArray
    angular_velocity: FloatArray
    linear_acceleration: FloatArray
    orientation: FloatArray | None = None
    frame: str = ""
    mounting: ImuMounting | None = None


@dataclass(frozen=True)
class ContactRecording(_Rows):
    """Contact flags and wrenches, as recorded.

    Attributes
    ----------
    time : (c,) [s]
    active : (c, nc) bool
    wrenches : (c, nc, 6) [N, N·m] or None
        Force and torque on the robot in the contact frame.
    """

    time: FloatArray
    names: tuple[str, ...]
    active: BoolArray
    wrenches: FloatArray | None = None


@dataclass(frozen=True)
class Recording:
    """What a bag or table holds, before a robot description interprets it.

    Values that a message lacked are NaN. Time is as recorded: it may jitter, repeat or go back.

    Attributes
    ----------
    time : (n,) [s]
    joint_names : tuple[str, ...]
        Names as recorded.
    position : (n, nj) [rad or as published]
    velocity, effort : (n, nj) or None
        None where no message carried any.
    source : str
        File that the recording was read from.
    warnings : tuple[str, ...]
        What was noticed while reading.
    """

    time: FloatArray
    joint_names: tuple[str, ...]
    position: FloatArray
    velocity: FloatArray | None = None
    effort: FloatArray | None = None
    base: BaseRecording | None = None
    imu: ImuRecording | None = None
    contacts: ContactRecording | None = None
    source: str = ""
    topics: tuple[TopicInfo, ...] = ()
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def of_sensors(cls, **sensors: Any) -> Recording:
        """Return a recording without joint states of what is given: base, imu, contacts."""
        return cls(np.zeros(0), (), np.zeros((0, 0)), **sensors)


class Part(NamedTuple):
    """A part of a recording with what lies around it, for the filter to reach into.

    Attributes
    ----------
    start, end : float [s]
        The samples between them, `end` not included, are the part's own.
    """

    recording: Recording
    start: float = -np.inf
    end: float = np.inf


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
        arrays = {
            name: value[first:stop]
            for name in ("time", "position", "velocity", "effort")
            if (value := getattr(recording, name)) is not None
        }
        for name in sensors:
            if (sensor := getattr(recording, name)) is not None:
                edges = np.searchsorted(sensor.time, span)
                arrays[name] = sensor.select(slice(max(int(edges[0]) - 1, 0), int(edges[1]) + 1))
        end = np.inf if last else float(span[1]) - reach
        yield Part(replace(recording, **arrays), start, end)
        if last:
            return
        start = end
        first = int(np.searchsorted(time, end - reach))


@dataclass(frozen=True)
class Samples:
    """Uniform, filtered and differentiated samples in a robot's joint order, SI units.

    Attributes
    ----------
    time : (n,) [s]
    position : (n, nj) [rad]
    velocity : (n, nj) [rad/s]
    acceleration : (n, nj) [rad/s²]
    effort : (n, nj) [N·m]
        Joint torque; effort gains and transmission are applied. NaN for passive joints.
    base_pose : (n, 7) or None
        Position in the world [m], quaternion x, y, z, w.
    base_twist : (n, 6) or None
        Linear [m/s] and angular [rad/s] velocity in the base frame.
    base_acceleration : (n, 6) or None
        Time derivative of the components of `base_twist` [m/s², rad/s²].
    contacts : (n, nc) bool or None
        In the order of the robot's contacts.
    wrenches : (n, nc, 6) [N, N·m] or None
        Force and torque on the robot in the contact frame.
    """

    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    effort: FloatArray
    base_pose: FloatArray | None = None
    base_twist: FloatArray | None = None
    base_acceleration: FloatArray | None = None
    contacts: BoolArray | None = None
    wrenches: FloatArray | None = None

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

    def select(self, index: slice | npt.NDArray[Any]) -> Samples:
        """Return the samples that a slice, mask or index array picks."""
        chosen: dict[str, Any] = {
            entry.name: None
            if getattr(self, entry.name) is None
            else getattr(self, entry.name)[index]
            for entry in fields(self)
        }
        return replace(self, **chosen)

    @staticmethod
    def concatenate(parts: Sequence[Samples]) -> Samples:
        """Join batches in time order; a field must be present in all of them or in none."""
        if not parts:
            raise DataError("nothing to concatenate: give at least one batch of samples")
        joined: dict[str, Any] = {}
        for entry in fields(parts[0]):
            values = [getattr(part, entry.name) for part in parts]
            missing = [value is None for value in values]
            if all(missing):
                joined[entry.name] = None
            elif any(missing):
                raise DataError(f"{entry.name} is missing from some of the batches")
            else:
                joined[entry.name] = np.concatenate(values)
        return Samples(**joined)
