# SPDX-License-Identifier: Apache-2.0
"""Writing a recording as a bag that ROS 2's own tools accept."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys.store import Typestore

from sysid_core.arrays import FloatArray
from sysid_core.data.message_types import CONTACTS, IMU, JOINT_STATE, ODOMETRY, message_types
from sysid_core.errors import OutputError
from sysid_core.files import appearing
from sysid_core.recording import BaseRecording, ContactRecording, ImuRecording, Recording

__all__ = ["recorded_messages", "write_recording"]

_NANOSECONDS = 1_000_000_000
_UNKNOWN = -1.0


def write_recording(recording: Recording, folder: str | Path) -> None:
    """Write a bag folder: MCAP, and metadata.yaml as of ROS 2 Jazzy.

    Topics are `/joint_states`, `/odom`, `/imu/data` and `/contacts`, as far as recorded. Header
    stamps are the recording's time. The folder appears whole or not at all.

    Raises
    ------
    OutputError
        If the folder exists already, the recording has no rows, a time stamp cannot be
        represented, or writing fails.
    """
    target = Path(folder)
    if not len(recording):
        raise OutputError(f"{target}: the recording has no rows, so there is nothing to write")
    types = message_types()
    messages = recorded_messages(recording, str(target))
    # the file in the bag takes the folder's name
    with (
        appearing(target) as unfinished,
        Writer(
            unfinished, version=Writer.VERSION_LATEST, storage_plugin=StoragePlugin.MCAP
        ) as bag,
    ):
        connections = {
            topic: bag.add_connection(topic, kind, typestore=types)
            for topic, kind, _, _ in _streams(recording, types)
        }
        for topic, logged, content in messages:
            bag.write(connections[topic], logged, content)


_Stream = tuple[str, str, FloatArray, Callable[[int, Any], Any]]


def recorded_messages(recording: Recording, name: str) -> Iterator[tuple[str, int, memoryview]]:
    """Return topic, recording time [ns] and CDR of all messages, as the robot's driver sent them.

    Raises
    ------
    OutputError
        If a time stamp cannot be represented; the message names the recording.
    """
    streams = _streams(recording, message_types())
    for topic, _, time, _ in streams:
        if not np.all(np.isfinite(time)) or np.any(time < 0.0) or np.any(time >= 2.0**31):
            raise OutputError(
                f"{name}: {topic} has time stamps that ROS cannot represent (negative, not "
                "finite or beyond 2038); shift the time"
            )
    return _messages(streams)


def _messages(streams: list[_Stream]) -> Iterator[tuple[str, int, memoryview]]:
    types = message_types()
    header, stamp = types.types["std_msgs/msg/Header"], types.types["builtin_interfaces/msg/Time"]
    for number, row, stamped, logged in _in_order([time for _, _, time, _ in streams]):
        topic, kind, _, message = streams[number]
        now = stamp(*divmod(stamped, _NANOSECONDS))
        content = message(row, partial(header, now))
        yield topic, logged, types.serialize_cdr(content, kind)


def _in_order(times: list[FloatArray]) -> Iterator[tuple[int, int, int, int]]:
    """Yield stream, row, stamp and recording time [ns] of all messages, by recording time.

    Where the stamps of a stream go back, its recording time stands still, so that readers, which
    go by the latter, keep the order of the rows.
    """
    stamps = [np.round(time * _NANOSECONDS).astype(np.int64) for time in times]
    keys = np.concatenate([np.maximum.accumulate(s) if len(s) else s for s in stamps])
    owners = np.concatenate([np.full(len(s), i) for i, s in enumerate(stamps)])
    rows = np.concatenate([np.arange(len(s)) for s in stamps])
    for index in np.argsort(keys, kind="stable").tolist():
        owner, row = int(owners[index]), int(rows[index])
        yield owner, row, int(stamps[owner][row]), int(keys[index])


def _streams(recording: Recording, types: Typestore) -> list[_Stream]:
    streams: list[_Stream] = [
        ("/joint_states", JOINT_STATE, recording.time, _joint_states(recording, types))
    ]
    if recording.base is not None:
        streams.append(("/odom", ODOMETRY, recording.base.time, _odometry(recording.base, types)))
    if recording.imu is not None:
        streams.append(("/imu/data", IMU, recording.imu.time, _imu(recording.imu, types)))
    if recording.contacts is not None:
        contacts = recording.contacts
        streams.append(("/contacts", CONTACTS, contacts.time, _contacts(contacts, types)))
    return streams


def _joint_states(recording: Recording, types: Typestore) -> Callable[[int, Any], Any]:
    """Return what makes the message of a row; joints without any value in it are left out.

    A quantity is empty where none of the joints has it in any row, and else NaN where it lacks.
    """
    message = types.types[JOINT_STATE]
    names = list(recording.joint_names)
    arrays = [recording.position, recording.velocity, recording.effort]
    unknown = np.zeros(recording.position.shape, dtype=np.bool_)
    finite = np.stack([unknown if array is None else np.isfinite(array) for array in arrays])
    present = np.asarray(finite.any(axis=0))
    ever = np.asarray(finite.any(axis=1))
    empty = np.zeros(0)

    def make(row: int, header: Any) -> Any:
        here = present[row]
        values = []
        for array, known in zip(arrays, ever, strict=True):
            if array is None or not known[here].any():
                values.append(empty)
            else:
                values.append(array[row, here].astype(np.float64))
        chosen_names = names if here.all() else [n for n, h in zip(names, here, strict=True) if h]
        return message(header(""), chosen_names, *values)

    return make


def _odometry(base: BaseRecording, types: Typestore) -> Callable[[int, Any], Any]:
    message = types.types[ODOMETRY]
    pose, point = types.types["geometry_msgs/msg/Pose"], types.types["geometry_msgs/msg/Point"]
    twist = types.types["geometry_msgs/msg/Twist"]
    pose_c = types.types["geometry_msgs/msg/PoseWithCovariance"]
    twist_c = types.types["geometry_msgs/msg/TwistWithCovariance"]
    vector, quaternion = _vector(types), _quaternion(types)
    none = np.zeros(36)

    def make(row: int, header: Any) -> Any:
        where = pose(point(*base.position[row].tolist()), quaternion(base.orientation[row]))
        motion = twist(vector(base.twist[row, :3]), vector(base.twist[row, 3:]))
        return message(
            header(base.frame), base.child_frame, pose_c(where, none), twist_c(motion, none)
        )

    return make


def _imu(imu: ImuRecording, types: Typestore) -> Callable[[int, Any], Any]:
    message = types.types[IMU]
    vector, quaternion = _vector(types), _quaternion(types)
    none = np.zeros(9)
    absent = np.array([_UNKNOWN, *[0.0] * 8])
    identity = np.array([0.0, 0.0, 0.0, 1.0])

    def make(row: int, header: Any) -> Any:
        known = imu.orientation is not None
        return message(
            header(imu.frame),
            quaternion(imu.orientation[row] if imu.orientation is not None else identity),
            none if known else absent,
            vector(imu.angular_velocity[row]),
            none,
            vector(imu.linear_acceleration[row]),
            none,
        )

    return make


def _contacts(contacts: ContactRecording, types: Typestore) -> Callable[[int, Any], Any]:
    message = types.types[CONTACTS]
    wrench = types.types["geometry_msgs/msg/Wrench"]
    vector = _vector(types)
    names = list(contacts.names)

    def make(row: int, header: Any) -> Any:
        wrenches = []
        if contacts.wrenches is not None:
            wrenches = [wrench(vector(w[:3]), vector(w[3:])) for w in contacts.wrenches[row]]
        return message(header(""), names, contacts.active[row].astype(np.bool_), wrenches)

    return make


def _vector(types: Typestore) -> Callable[[FloatArray], Any]:
    kind = types.types["geometry_msgs/msg/Vector3"]
    return lambda values: kind(*values.tolist())


def _quaternion(types: Typestore) -> Callable[[FloatArray], Any]:
    kind = types.types["geometry_msgs/msg/Quaternion"]
    return lambda values: kind(*values.tolist())
