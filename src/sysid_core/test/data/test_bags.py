# SPDX-License-Identifier: Apache-2.0
"""Bags: what is written is read back, in every format, and drivers' habits are understood."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from sysid_core.data import read_recording, write_recording
from sysid_core.data.message_types import CONTACTS, IMU, JOINT_STATE, ODOMETRY, message_types
from sysid_core.data.reading import read_parts
from sysid_core.errors import DataError, OutputError
from sysid_core.recording import BaseRecording, ContactRecording, ImuRecording, Recording

EPOCH = 1_700_000_000


def _recording(n: int = 40) -> Recording:
    rng = np.random.default_rng(21)
    time = EPOCH + np.arange(n, dtype=np.float64) * 0.01
    quaternions = rng.standard_normal((n, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    return Recording(
        time=time,
        joint_names=("hip", "knee"),
        position=rng.standard_normal((n, 2)),
        velocity=rng.standard_normal((n, 2)),
        effort=rng.standard_normal((n, 2)),
        base=BaseRecording(
            time + 0.001,
            rng.standard_normal((n, 3)),
            quaternions,
            rng.standard_normal((n, 6)),
            "odom",
            "base_link",
        ),
        imu=ImuRecording(
            time[::2],
            rng.standard_normal((n // 2, 3)),
            rng.standard_normal((n // 2, 3)),
            quaternions[::2],
            "imu_link",
        ),
        contacts=ContactRecording(
            time, ("FL", "FR"), rng.random((n, 2)) > 0.5, rng.standard_normal((n, 2, 6))
        ),
    )


def _assert_same(got: object, expected: object) -> None:
    for name, value in vars(expected).items():
        other = getattr(got, name)
        if name in ("source", "topics", "warnings"):
            continue
        if isinstance(value, np.ndarray):
            # Stamps are whole nanoseconds; a double holds today's epoch to a quarter microsecond.
            np.testing.assert_allclose(other, value, rtol=0, atol=3e-7 if name == "time" else 0)
        elif hasattr(value, "__dict__"):
            _assert_same(other, value)
        else:
            assert other == value


def _write_raw(
    folder: Path,
    messages: list[tuple[str, str, int, Any]],
    plugin: StoragePlugin = StoragePlugin.SQLITE3,
    compression: CompressionMode = CompressionMode.NONE,
) -> Path:
    """Write messages (topic, type, recording time [ns], content) as any recorder might."""
    types = message_types()
    writer = Writer(folder, version=9, storage_plugin=plugin)
    writer.set_compression(compression, CompressionFormat.ZSTD)
    with writer as bag:
        connections = {}
        for topic, kind, stamp, content in messages:
            if topic not in connections:
                connections[topic] = bag.add_connection(topic, kind, typestore=types)
            bag.write(connections[topic], stamp, types.serialize_cdr(content, kind))
    return folder


def _joint_state(
    stamp: int, names: list[str], position: list[float], effort: list[float] | None = None
) -> Any:
    types = message_types().types
    header = types["std_msgs/msg/Header"](
        types["builtin_interfaces/msg/Time"](*divmod(stamp, 1_000_000_000)), ""
    )
    none = np.zeros(0)
    return types[JOINT_STATE](
        header,
        names,
        np.array(position, dtype=float),
        none,
        none if effort is None else np.array(effort, dtype=float),
    )


def _states(n: int = 20, offset: int = EPOCH * 10**9) -> list[tuple[str, str, int, Any]]:
    return [
        (
            "/joint_states",
            JOINT_STATE,
            offset + k * 10**7,
            _joint_state(offset + k * 10**7, ["a", "b"], [k, -k], [2.0 * k, 3.0 * k]),
        )
        for k in range(n)
    ]


def test_a_recording_survives_a_bag(tmp_path: Path) -> None:
    recording = _recording()
    write_recording(recording, tmp_path / "bag")
    again = read_recording(tmp_path / "bag")
    _assert_same(again, recording)
    assert again.warnings == ()
    write_recording(again, tmp_path / "second")
    _assert_same(read_recording(tmp_path / "second" / "second.mcap"), again)


def test_optional_parts_may_be_missing(tmp_path: Path) -> None:
    bare = replace(_recording(), velocity=None, effort=None, base=None, imu=None, contacts=None)
    write_recording(bare, tmp_path / "bag")
    _assert_same(read_recording(tmp_path / "bag"), bare)
    full = _recording()
    assert full.imu is not None
    assert full.contacts is not None
    partial = replace(
        full,
        imu=replace(full.imu, orientation=None),
        contacts=replace(full.contacts, wrenches=None),
    )
    write_recording(partial, tmp_path / "partial")
    _assert_same(read_recording(tmp_path / "partial"), partial)


def test_values_that_are_missing_and_times_that_go_back_survive(tmp_path: Path) -> None:
    recording = _recording()
    recording.position[3, 0] = recording.velocity[3, 0] = recording.effort[3, 0] = np.nan  # type: ignore[index]
    recording.effort[5] = np.nan  # type: ignore[index]
    recording.time[20:] -= 0.2
    recording.time[7] = recording.time[6]
    write_recording(recording, tmp_path / "bag")
    _assert_same(read_recording(tmp_path / "bag"), recording)


def test_the_metadata_is_what_ros2_bag_reads(tmp_path: Path) -> None:
    write_recording(_recording(), tmp_path / "walk")
    information = yaml.safe_load((tmp_path / "walk" / "metadata.yaml").read_text())[
        "rosbag2_bagfile_information"
    ]
    assert information["storage_identifier"] == "mcap"
    assert information["relative_file_paths"] == ["walk.mcap"]
    assert information["message_count"] == 40 + 40 + 20 + 40
    assert information["duration"]["nanoseconds"] == pytest.approx(0.391e9, abs=1e3)
    topics = {
        entry["topic_metadata"]["name"]: entry["topic_metadata"]["type"]
        for entry in information["topics_with_message_count"]
    }
    assert topics == {
        "/joint_states": "sensor_msgs/msg/JointState",
        "/odom": "nav_msgs/msg/Odometry",
        "/imu/data": "sensor_msgs/msg/Imu",
        "/contacts": "sysid_msgs/msg/Contacts",
    }
    with Reader(tmp_path / "walk") as reader:
        stamps = [stamp for _, stamp, _ in reader.messages()]
    assert stamps == sorted(stamps)


def test_nothing_is_overwritten_and_nothing_half_written(tmp_path: Path) -> None:
    write_recording(_recording(), tmp_path / "bag")
    with pytest.raises(OutputError, match="exists already"):
        write_recording(_recording(), tmp_path / "bag")
    backwards = replace(_recording(), time=_recording().time - 2 * EPOCH)
    with pytest.raises(OutputError, match="stamps"):
        write_recording(backwards, tmp_path / "negative")
    misfit = replace(_recording(), effort=np.zeros((2, 2)))
    with pytest.raises((IndexError, ValueError)):
        write_recording(misfit, tmp_path / "misfit")
    assert [entry.name for entry in tmp_path.iterdir()] == ["bag"]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="cannot be written"):
        write_recording(_recording(), tmp_path / "bag")


@pytest.mark.parametrize("plugin", [StoragePlugin.SQLITE3, StoragePlugin.MCAP])
@pytest.mark.parametrize(
    "compression", [CompressionMode.NONE, CompressionMode.FILE, CompressionMode.MESSAGE]
)
def test_bags_of_other_recorders_are_read(
    tmp_path: Path, plugin: StoragePlugin, compression: CompressionMode
) -> None:
    folder = _write_raw(tmp_path / "bag", _states(), plugin, compression)
    recording = read_recording(folder)
    np.testing.assert_array_equal(recording.position[:, 0], np.arange(20))
    np.testing.assert_array_equal(recording.effort[:, 1], 3.0 * np.arange(20))  # type: ignore[index]


def test_storage_files_are_read_without_their_metadata(tmp_path: Path) -> None:
    folder = _write_raw(tmp_path / "bag", _states())
    expected = read_recording(folder)
    (folder / "metadata.yaml").unlink()
    _assert_same(read_recording(folder), expected)
    _assert_same(read_recording(folder / "bag.db3"), expected)


def test_writes_that_a_killed_recorder_left_pending_are_read(tmp_path: Path) -> None:
    write_recording(_recording(), tmp_path / "walk")
    with (
        Reader(tmp_path / "walk") as reader,
        Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.SQLITE3) as bag,
    ):
        for connection in reader.connections:
            bag.add_connection(connection.topic, connection.msgtype, typestore=message_types())
    file = tmp_path / "bag" / "bag.db3"
    (tmp_path / "killed").mkdir()
    with (
        contextlib.closing(sqlite3.connect(file)) as database,
        Reader(tmp_path / "walk") as reader,
    ):
        database.execute("PRAGMA journal_mode=WAL")
        for connection, time, data in reader.messages():
            row = (connection.id, time, data)
            database.execute("INSERT INTO messages (topic_id, timestamp, data) VALUES(?,?,?)", row)
        database.commit()
        for part in file.parent.glob("bag.db3*"):
            shutil.copy(part, tmp_path / "killed")
    assert (tmp_path / "killed" / "bag.db3-wal").exists()
    _assert_same(read_recording(tmp_path / "killed" / "bag.db3"), _recording())


def test_a_bag_in_several_files_is_one_recording(tmp_path: Path) -> None:
    states = _states(30)
    first = _write_raw(tmp_path / "first", states[:15]) / "first.db3"
    second = _write_raw(tmp_path / "second", states[15:]) / "second.db3"
    folder = tmp_path / "split"
    folder.mkdir()
    first.rename(folder / "split_0.db3")
    second.rename(folder / "split_1.db3")
    recording = read_recording(folder)
    np.testing.assert_array_equal(recording.position[:, 0], np.arange(30))
    assert recording.topics[0].count == 30


def test_the_order_of_joints_may_change_from_message_to_message(tmp_path: Path) -> None:
    states = _states()
    for k in range(1, 20, 2):
        topic, kind, stamp, _ = states[k]
        states[k] = (topic, kind, stamp, _joint_state(stamp, ["b", "a"], [-k, k], [3 * k, 2 * k]))
    recording = read_recording(_write_raw(tmp_path / "bag", states))
    assert recording.joint_names == ("a", "b")
    np.testing.assert_array_equal(recording.position[:, 0], np.arange(20))
    np.testing.assert_array_equal(recording.effort[:, 1], 3.0 * np.arange(20))  # type: ignore[index]


def test_joints_in_separate_messages_are_joined_where_their_stamps_agree(tmp_path: Path) -> None:
    states = []
    for k in range(10):
        stamp = EPOCH * 10**9 + k * 10**7
        later = stamp if k < 5 else stamp + 10**6
        states.append(("/joint_states", JOINT_STATE, stamp, _joint_state(stamp, ["a"], [k])))
        states.append(
            ("/joint_states", JOINT_STATE, stamp + 2 * 10**6, _joint_state(later, ["b"], [-k]))
        )
    recording = read_recording(_write_raw(tmp_path / "bag", states))
    assert len(recording) == 5 + 2 * 5
    np.testing.assert_array_equal(recording.position[:5], [[k, -k] for k in range(5)])
    assert np.isnan(recording.position[5, 1])
    assert np.isnan(recording.position[6, 0])


def test_of_several_joint_topics_one_is_used_and_the_others_named(tmp_path: Path) -> None:
    extra = [("/gripper/states", *message[1:]) for message in _states(30)]
    folder = _write_raw(tmp_path / "bag", _states() + extra)
    recording = read_recording(folder)
    assert len(recording) == 20
    assert any("/gripper/states" in warning for warning in recording.warnings)
    assert len(read_recording(folder, joint_topic="/gripper/states")) == 30
    with pytest.raises(DataError, match=r"/gripper/states.*/joint_states|/joint_states"):
        read_recording(folder, joint_topic="/nowhere")


def _halves(joints: Sequence[str]) -> list[tuple[str, str, int, Any]]:
    """Return states of two topics in turn, each of one of the joints."""
    states = []
    for k in range(20):
        stamp = EPOCH * 10**9 + k * 10**7
        for side, joint in zip(("left", "right"), joints, strict=True):
            state = _joint_state(stamp, [joint], [k])
            states.append((f"/{side}/joint_states", JOINT_STATE, stamp, state))
    return states


@pytest.mark.parametrize("effort", [None, [0.0, 0.0, 0.0]])
@pytest.mark.parametrize(("first", "last"), [(5, 35), (-20, 60)])
def test_what_a_second_node_sent_of_the_same_joints_is_left_out(
    tmp_path: Path, effort: list[float] | None, first: int, last: int
) -> None:
    late = []
    for k in range(first, last, 2):
        stamp = EPOCH * 10**9 + k * 10**7 + 3 * 10**6
        state = _joint_state(stamp, ["finger", "b", "a"], [0.1, 0.0, 0.0], effort)
        late.append(("/joint_states", JOINT_STATE, stamp, state))
    mixed = sorted([*_states(40), *late], key=lambda message: message[2])
    recording = read_recording(_write_raw(tmp_path / "bag", mixed))
    columns = [recording.joint_names.index(name) for name in ("a", "b")]
    while_driven = (recording.time >= EPOCH) & (recording.time < EPOCH + 0.4)
    expected = np.outer(np.arange(40.0), [1.0, -1.0])
    np.testing.assert_array_equal(recording.position[while_driven][:, columns], expected)
    assert any("a second node sent" in warning for warning in recording.warnings)


@pytest.mark.parametrize("asked", [None, "/left/joint_states, right/joint_states"])
def test_topics_of_other_joints_are_read_together(tmp_path: Path, asked: str | None) -> None:
    folder = _write_raw(tmp_path / "bag", _halves(["a", "b"]))
    whole = read_recording(folder, joint_topic=asked)
    assert whole.joint_names == ("a", "b")
    np.testing.assert_array_equal(whole.position, np.repeat(np.arange(20.0)[:, None], 2, axis=1))
    parts = list(read_parts(folder, joint_topic=asked, rows=16, reach=0.02))
    assert len(parts) > 1
    assert all(part.recording.joint_names == ("a", "b") for part in parts)


def test_topics_of_the_same_joints_are_not_mixed(tmp_path: Path) -> None:
    folder = _write_raw(tmp_path / "bag", _halves(["a", "a"]))
    assert len(read_recording(folder)) == 20
    with pytest.raises(DataError, match="both name a; give one of them"):
        read_recording(folder, joint_topic="left/joint_states,right/joint_states")


def test_without_header_stamps_the_time_of_recording_is_used(tmp_path: Path) -> None:
    states = [(*m[:3], _joint_state(0, ["a"], [k])) for k, m in enumerate(_states())]
    recording = read_recording(_write_raw(tmp_path / "bag", states))
    np.testing.assert_allclose(
        recording.time, EPOCH + np.arange(20, dtype=np.float64) * 0.01, atol=3e-7
    )
    assert any("time of recording" in warning for warning in recording.warnings)


def test_simulated_time_from_zero_is_time(tmp_path: Path) -> None:
    states = [(*m[:3], _joint_state(k * 10**7, ["a"], [k])) for k, m in enumerate(_states())]
    recording = read_recording(_write_raw(tmp_path / "bag", states))
    np.testing.assert_allclose(recording.time, np.arange(20, dtype=np.float64) * 0.01, atol=1e-9)
    assert recording.warnings == ()


def test_values_of_a_wrong_number_are_left_out_with_a_warning(tmp_path: Path) -> None:
    states = _states()
    topic, kind, stamp, _ = states[4]
    states[4] = (topic, kind, stamp, _joint_state(stamp, ["a", "b"], [4, -4], [1.0]))
    recording = read_recording(_write_raw(tmp_path / "bag", states))
    assert np.isnan(recording.effort[4]).all()  # type: ignore[index]
    assert any("effort" in warning for warning in recording.warnings)


def test_contacts_may_change_their_order_but_not_their_names(tmp_path: Path) -> None:
    types = message_types().types
    states = _states(4)

    def contacts(stamp: int, names: list[str], active: list[bool]) -> Any:
        header = _joint_state(stamp, [], []).header
        return types[CONTACTS](header, names, np.array(active), [])

    for k, names in enumerate((["L", "R"], ["R", "L"])):
        stamp = states[k][2]
        states.append(("/contacts", CONTACTS, stamp, contacts(stamp, names, [True, False])))
    recording = read_recording(_write_raw(tmp_path / "bag", states))
    assert recording.contacts is not None
    assert recording.contacts.names == ("L", "R")
    np.testing.assert_array_equal(recording.contacts.active, [[True, False], [False, True]])
    stamp = states[3][2]
    states.append(("/contacts", CONTACTS, stamp, contacts(stamp, ["L", "tail"], [True, False])))
    with pytest.raises(DataError, match="other contacts"):
        read_recording(_write_raw(tmp_path / "bad", states))


def test_the_contacts_definition_is_the_one_of_sysid_msgs() -> None:
    linked = Path(__file__).parents[2] / "sysid_core/data/definitions/Contacts.msg"
    owned = Path(__file__).parents[3] / "sysid_msgs/msg/Contacts.msg"
    assert linked.read_text(encoding="utf-8") == owned.read_text(encoding="utf-8")


def test_standard_messages_are_those_of_ros() -> None:
    """Their hashes decide whether a bag is read, and a peer understood."""
    ours, ros = message_types(), get_typestore(Stores.ROS2_JAZZY)
    standard = [kind for kind in ours.types if kind != CONTACTS]
    assert {JOINT_STATE, ODOMETRY, IMU, "std_msgs/msg/String"} <= set(standard)
    for kind in standard:
        assert ours.hash_rihs01(kind) == ros.hash_rihs01(kind)
        assert ours.generate_msgdef(kind) == ros.generate_msgdef(kind)
