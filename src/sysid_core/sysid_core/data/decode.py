# SPDX-License-Identifier: Apache-2.0
"""Turning decoded messages into the arrays of a recording, in the time of one clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.data.message_types import CONTACTS, IMU, ODOMETRY
from sysid_core.data.storage import StoredMessage
from sysid_core.errors import DataError
from sysid_core.recording import (
    MOST_JOINTS,
    BaseRecording,
    ContactRecording,
    ImuRecording,
    Recording,
)
from sysid_core.signals.senders import Senders, form_of

__all__ = ["SENSOR_READERS", "SensorReader", "Stream", "joints_of", "merged", "stamp_times"]


_NANOSECONDS = 1_000_000_000
_FRESH_SIMULATION = 10 * _NANOSECONDS


@dataclass(frozen=True)
class Stream:
    """The decoded messages of one topic with both of their times."""

    topic: str
    messages: list[Any]  # Message objects with a `header`
    # stamps, log_times: (n,) [ns] from the header; of recording.
    stamps: npt.NDArray[np.int64]
    log_times: npt.NDArray[np.int64]

    @staticmethod
    def of(topic: str, stored: list[StoredMessage], messages: list[Any]) -> Stream:
        """Collect the times of decoded messages."""
        stamps = [
            message.header.stamp.sec * _NANOSECONDS + message.header.stamp.nanosec
            for message in messages
        ]
        logged = [message.log_time for message in stored]
        return Stream(
            topic, messages, np.array(stamps, dtype=np.int64), np.array(logged, dtype=np.int64)
        )


def stamp_times(streams: list[Stream]) -> tuple[list[FloatArray], tuple[str, ...]]:
    """Return the time [s] of every message, all from the same clock, and warnings.

    Header stamps say when something was measured, so they are preferred; where those of one
    topic are unusable, all topics fall back on the time of recording, since two clocks cannot be
    compared.
    """
    troubles = [trouble for stream in streams if (trouble := _stamp_trouble(stream))]
    apart = _apart([stream.stamps for stream in streams])
    if not troubles and apart and not _apart([stream.log_times for stream in streams]):
        troubles.append("header stamps of different topics do not overlap")
    if troubles:
        warning = f"{'; '.join(troubles)}: the time of recording is used instead"
        return [stream.log_times / _NANOSECONDS for stream in streams], (warning,)
    return [stream.stamps / _NANOSECONDS for stream in streams], ()


def _stamp_trouble(stream: Stream) -> str:
    stamps = stream.stamps
    if not len(stamps):
        return ""
    zeros = int(np.count_nonzero(stamps == 0))
    if zeros == len(stamps):
        return f"{stream.topic} has no header stamps"
    # A simulation starts at zero, so one zero at the start of small stamps is a stamp like others.
    fresh = stamps[0] == 0 and zeros == 1 and stamps[1] < _FRESH_SIMULATION
    if zeros and not fresh:
        return f"{zeros} of {len(stamps)} messages of {stream.topic} have no header stamp"
    if np.any(stamps < 0):
        return f"{stream.topic} has negative header stamps"
    if len(stamps) > 2 and len(np.unique(stamps)) <= len(stamps) // 4:
        return f"header stamps of {stream.topic} stand still"
    return ""


def _apart(times: list[npt.NDArray[np.int64]]) -> bool:
    """Whether some stream ends before another begins."""
    filled = [series for series in times if len(series)]
    if len(filled) < 2:
        return False
    return max(series.min() for series in filled) > min(series.max() for series in filled)


def merged(streams: Sequence[tuple[Stream, FloatArray]]) -> tuple[Stream, FloatArray]:
    """Return the messages of several topics with their times (n,) [s], as they were recorded."""
    if len(streams) == 1:
        return streams[0]
    time = np.concatenate([time for _, time in streams])
    logged = np.concatenate([stream.log_times for stream, _ in streams])
    order = np.argsort(logged, kind="stable")  # keeps each topic's own order
    messages = [message for stream, _ in streams for message in stream.messages]
    whole = Stream(
        " and ".join(stream.topic for stream, _ in streams),
        [messages[k] for k in order],
        np.concatenate([stream.stamps for stream, _ in streams])[order],
        logged[order],
    )
    return whole, time[order]


_QUANTITIES = ("position", "velocity", "effort")


def joints_of(stream: Stream, time: FloatArray) -> Recording:
    """Collect joint states; the order of joints is that of their first appearance.

    Drivers may publish in changing order, or disjoint groups of joints in separate messages: the
    names decide the column, and consecutive messages of disjoint groups with the same stamp
    become one row. NaN stands where a message lacked a joint or a quantity. What a second node
    sent of the same joints, with less in it, is left out.

    Raises
    ------
    DataError
        If no message names a joint, or one names a joint twice.
    """
    stream, time, foreign = _of_driver(stream, time)
    columns, orders = _columns(stream)
    rows = _row_numbers(stream.messages, orders, time)
    arrays = {
        name: np.full((rows[-1] + 1, len(columns)), np.nan, dtype=np.float64)
        for name in _QUANTITIES
    }
    misfits: Counter[str] = Counter()
    for row, message in zip(rows, stream.messages, strict=True):
        order = orders[tuple(message.name)]
        for quantity, array in arrays.items():
            values = getattr(message, quantity)
            if len(values) == len(order):
                array[row, order] = values
            elif len(values):
                misfits[quantity] += 1
    merged = np.empty(rows[-1] + 1)
    merged[rows] = time
    warnings = [
        f"{count} messages of {stream.topic} have a wrong number of {quantity} values: "
        "these values are left out"
        for quantity, count in misfits.items()
    ]
    if foreign:
        warnings.append(
            f"{stream.topic}: what a second node sent of the same joints, without the driver's "
            "efforts or velocities, is left out"
        )
    return Recording(
        merged,
        tuple(columns),
        arrays["position"],
        _present(arrays["velocity"]),
        _present(arrays["effort"]),
        warnings=tuple(warnings),
    )


def _of_driver(stream: Stream, time: FloatArray) -> tuple[Stream, FloatArray, bool]:
    """Return the messages of the joints' driver with their times, and whether others came."""
    if len({form_of(m.name, m.velocity, m.effort) for m in stream.messages}) < 2:
        return stream, time, False
    senders, rows = Senders(), list(zip(stream.messages, time.tolist(), strict=True))

    def foreign(way: int) -> BoolArray:
        told = [senders.foreign(m.name, way * t, m.velocity, m.effort) for m, t in rows[::way]]
        return np.array(told[::way], dtype=np.bool_)

    foreign(1)  # who measures may come last
    others = foreign(-1) | foreign(1)
    if not others.any():
        return stream, time, False
    own = np.flatnonzero(~others)
    left = [stream.messages[row] for row in own.tolist()]
    found = Stream(stream.topic, left, stream.stamps[own], stream.log_times[own])
    return found, time[own], True


def _columns(stream: Stream) -> tuple[dict[str, int], dict[tuple[str, ...], list[int]]]:
    """Return each joint's column, and the columns of each order of names that messages have."""
    columns: dict[str, int] = {}
    orders: dict[tuple[str, ...], list[int]] = {}
    for message in stream.messages:
        names = tuple(message.name)
        if names not in orders:
            if len(set(names)) < len(names):
                repeated = sorted(name for name, count in Counter(names).items() if count > 1)
                raise DataError(
                    f"a message of {stream.topic} names {', '.join(repeated)} more than once; "
                    "mend the driver that publishes it"
                )
            if len(columns.keys() | set(names)) > MOST_JOINTS:
                raise DataError(
                    f"the messages of {stream.topic} name more than {MOST_JOINTS} joints; mend "
                    "the driver that publishes them"
                )
            orders[names] = [columns.setdefault(name, len(columns)) for name in names]
    if not columns:
        raise DataError(
            f"the messages of {stream.topic} name no joints; mend the driver that publishes them"
        )
    return columns, orders


def _row_numbers(
    messages: Sequence[Any], orders: dict[tuple[str, ...], list[int]], time: FloatArray
) -> list[int]:
    """Return row numbers: messages of disjoint joints with the same stamp share one."""
    rows: list[int] = []
    row, filled, last = -1, set[int](), np.nan
    for message, stamp in zip(messages, time, strict=True):
        joints = orders[tuple(message.name)]
        if stamp != last or not filled.isdisjoint(joints):
            row, filled, last = row + 1, set(), float(stamp)
        filled.update(joints)
        rows.append(row)
    return rows


def _present(values: FloatArray) -> FloatArray | None:
    return None if np.all(np.isnan(values)) else values


def _base_of(stream: Stream, time: FloatArray) -> BaseRecording:
    """Collect odometry."""
    poses = [message.pose.pose for message in stream.messages]
    twists = [message.twist.twist for message in stream.messages]
    first = stream.messages[0] if stream.messages else None
    return BaseRecording(
        time=time,
        position=_rows(((p.position.x, p.position.y, p.position.z) for p in poses), 3),
        orientation=_rows((_quaternion(p.orientation) for p in poses), 4),
        twist=_rows(((*_vector(t.linear), *_vector(t.angular)) for t in twists), 6),
        frame=first.header.frame_id if first else "",
        child_frame=first.child_frame_id if first else "",
    )


def _imu_of(stream: Stream, time: FloatArray) -> ImuRecording:
    """Collect inertial measurements.

    What has a covariance that starts with −1 was not measured, as `sensor_msgs/Imu` says.
    """
    messages = stream.messages
    orientation = None
    if messages and not any(message.orientation_covariance[0] == -1.0 for message in messages):
        orientation = _rows((_quaternion(message.orientation) for message in messages), 4)
        if np.any(np.all(orientation == 0.0, axis=1)):
            orientation = None
    return ImuRecording(
        time=time,
        angular_velocity=_measured(messages, "angular_velocity"),
        linear_acceleration=_measured(messages, "linear_acceleration"),
        orientation=orientation,
        frame=messages[0].header.frame_id if messages else "",
    )


def _contacts_of(stream: Stream, time: FloatArray) -> ContactRecording | None:
    """Collect contact flags, by name, and wrenches where every message has them.

    Raises
    ------
    DataError
        If the messages disagree about the contacts, or a message with itself.
    """
    if not stream.messages:
        return None
    names = tuple(stream.messages[0].names)
    if len(names) > MOST_JOINTS:
        raise DataError(
            f"the messages of {stream.topic} name more than {MOST_JOINTS} contacts; mend the node "
            "that publishes it"
        )
    active = np.zeros((len(time), len(names)), dtype=np.bool_)
    wrenches = np.full((len(time), len(names), 6), np.nan)
    complete = True
    for row, message in enumerate(stream.messages):
        count = len(message.names)
        if set(message.names) != set(names) or count != len(names) or len(message.active) != count:
            raise DataError(
                f"message {row + 1} of {stream.topic} has other contacts than the first one "
                f"({', '.join(names)}) or lacks flags; mend the node that publishes it"
            )
        order = [names.index(name) for name in message.names]
        active[row, order] = message.active
        if len(message.wrenches) == count:
            wrenches[row, order] = [
                (*_vector(wrench.force), *_vector(wrench.torque)) for wrench in message.wrenches
            ]
        else:
            complete = False
    return ContactRecording(time, names, active, wrenches if complete and names else None)


def _rows(values: Iterable[tuple[float, ...]], width: int) -> FloatArray:
    return np.array(list(values), dtype=np.float64).reshape(-1, width)


def _measured(messages: Sequence[Any], name: str) -> FloatArray:
    """Return vectors (m, 3) of inertial messages; NaN where they were not measured."""
    found = _rows((_vector(getattr(message, name)) for message in messages), 3)
    found[[getattr(message, f"{name}_covariance")[0] == -1.0 for message in messages]] = np.nan
    return found


def _vector(value: Any) -> tuple[float, float, float]:
    return value.x, value.y, value.z


def _quaternion(value: Any) -> tuple[float, float, float, float]:
    return value.x, value.y, value.z, value.w


@dataclass(frozen=True)
class SensorReader:
    """How a sensor beside the joints' is read from a bag."""

    field: str  # Of the recording
    # type, topic: message type, and the topic's usual name.
    type: str
    topic: str
    read: Callable[[Stream, FloatArray], Any]  # Takes the messages and their times (m,) [s]


SENSOR_READERS = (
    SensorReader("base", ODOMETRY, "odom", _base_of),
    SensorReader("imu", IMU, "imu/data", _imu_of),
    SensorReader("contacts", CONTACTS, "contacts", _contacts_of),
)
