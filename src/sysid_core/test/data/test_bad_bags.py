# SPDX-License-Identifier: Apache-2.0
"""Every bad bag ends with one line that says what, where and how to mend it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer

from sysid_core.data import read_recording, write_recording
from sysid_core.data.message_types import CONTACTS, JOINT_STATE, decode, message_types
from sysid_core.data.storage import StoredTopic
from sysid_core.errors import DataError
from sysid_core.recording import Recording

LONG = 3000


def _refusal(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_recording(path)
    message = str(caught.value)
    assert "\n" not in message
    assert path.name in message
    return message


def _is_refused(path: Path) -> bool:
    """Read a damaged file; any error but a `DataError` of one line fails the test."""
    try:
        read_recording(path)
    except DataError as err:
        return len(str(err).splitlines()) == 1 or pytest.fail(str(err))
    return False


@pytest.fixture(scope="module")
def recording() -> Recording:
    time = np.arange(LONG, dtype=np.float64) * 0.01
    values = np.sin(np.outer(time, [1.0, 2.0]))
    return Recording(time, ("a", "b"), values, values, values)


@pytest.fixture
def mcap(tmp_path: Path, recording: Recording) -> Path:
    write_recording(recording, tmp_path / "bag")
    return tmp_path / "bag" / "bag.mcap"


def _sqlite_bag(folder: Path, kind: str = JOINT_STATE, n: int = LONG) -> Path:
    types = message_types()
    header = types.types["std_msgs/msg/Header"](
        types.types["builtin_interfaces/msg/Time"](1, 0), ""
    )
    with Writer(folder, version=9, storage_plugin=StoragePlugin.SQLITE3) as bag:
        connection = bag.add_connection("/topic", kind, typestore=types)
        for k in range(n):
            content = (
                types.types[kind](header, ["a"], np.ones(1), np.zeros(0), np.ones(1))
                if kind == JOINT_STATE
                else types.types[kind]("hello")
            )
            bag.write(connection, k * 10**7, types.serialize_cdr(content, kind))
    return folder / f"{folder.name}.db3"


def test_nothing_there(tmp_path: Path) -> None:
    assert "no such file" in _refusal(tmp_path / "nothing")
    assert "no such file" in _refusal(tmp_path / "nothing.csv")


def test_an_empty_folder(tmp_path: Path) -> None:
    assert "no bag" in _refusal(tmp_path)


@pytest.mark.parametrize("name", ["x.mcap", "x.db3", "x.csv"])
def test_an_empty_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert "empty" in _refusal(tmp_path / name)


@pytest.mark.parametrize("name", ["x.mcap", "x.db3"])
def test_a_file_of_another_kind(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"certainly not a bag" * 100)
    assert "this is no" in _refusal(tmp_path / name)


def test_an_unknown_kind_of_file(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("x", encoding="utf-8")
    assert "unknown kind" in _refusal(tmp_path / "x.txt")
    (tmp_path / "x.bag").write_text("x", encoding="utf-8")
    assert "rosbags-convert" in _refusal(tmp_path / "x.bag")


@pytest.mark.parametrize("share", [0.002, 0.3, 0.9, 0.999])
def test_a_truncated_mcap(mcap: Path, share: float) -> None:
    content = mcap.read_bytes()
    mcap.write_bytes(content[: int(share * len(content))])
    message = _refusal(mcap)
    assert "mcap recover" in message
    with pytest.raises(DataError, match="mcap recover"):
        read_recording(mcap.parent)


def test_an_mcap_with_spoiled_bytes_never_gives_another_error(mcap: Path) -> None:
    content = mcap.read_bytes()
    rng = np.random.default_rng(22)
    refused = 0
    for _ in range(40):
        spoiled = bytearray(content)
        where = int(rng.integers(8, len(content) - 8))
        spoiled[where : where + 8] = rng.bytes(8)
        mcap.write_bytes(bytes(spoiled))
        refused += _is_refused(mcap)
    assert refused > 0


@pytest.mark.parametrize("share", [0.002, 0.3, 0.9, 0.99])
def test_a_truncated_database(tmp_path: Path, share: float) -> None:
    file = _sqlite_bag(tmp_path / "bag")
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    assert "recover" in _refusal(file)


def test_a_database_with_spoiled_bytes_never_gives_another_error(tmp_path: Path) -> None:
    file = _sqlite_bag(tmp_path / "bag", n=500)
    content = file.read_bytes()
    rng = np.random.default_rng(23)
    for _ in range(40):
        spoiled = bytearray(content)
        where = int(rng.integers(100, len(content) - 64))
        spoiled[where : where + 64] = rng.bytes(64)
        file.write_bytes(bytes(spoiled))
        _is_refused(file)


def test_another_database(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db3") as database:
        database.execute("CREATE TABLE songs (title TEXT)")
    assert "ROS 2 bag" in _refusal(tmp_path / "x.db3")


def test_a_bag_without_messages(tmp_path: Path) -> None:
    assert "empty" in _refusal(_sqlite_bag(tmp_path / "bag", n=0))


def test_a_bag_without_joint_states_lists_its_topics(tmp_path: Path) -> None:
    message = _refusal(_sqlite_bag(tmp_path / "bag", "std_msgs/msg/String", 3))
    assert "/topic (std_msgs/msg/String)" in message


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda text: text.replace("bag.db3", "gone.db3"), "gone.db3"),
        (lambda text: "][", "not valid YAML"),
        (lambda text: "a: 1", "rosbag2_bagfile_information"),
        (lambda text: text.replace("- bag.db3", "[]"), "metadata.yaml"),
    ],
)
def test_metadata_that_is_wrong(
    tmp_path: Path, spoil: Callable[[str], str], expected: str
) -> None:
    file = _sqlite_bag(tmp_path / "bag", n=3)
    metadata = file.parent / "metadata.yaml"
    metadata.write_text(spoil(metadata.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(DataError, match=expected) as caught:
        read_recording(file.parent)
    assert "\n" not in str(caught.value)


def test_two_kinds_of_files_without_metadata(tmp_path: Path, mcap: Path) -> None:
    file = _sqlite_bag(tmp_path / "other", n=3)
    (file.parent / "metadata.yaml").unlink()
    mcap.rename(file.parent / "other.mcap")
    assert "give one of the files" in _refusal(file.parent)


def test_a_compressed_bag_that_is_cut_short(tmp_path: Path) -> None:
    (tmp_path / "x.db3.zstd").write_bytes(b"\x28\xb5\x2f\xfd\x04\x00")
    assert "x.db3.zstd" in _refusal(tmp_path / "x.db3.zstd")


def test_joints_named_twice_and_not_at_all(tmp_path: Path) -> None:
    types = message_types()
    header = types.types["std_msgs/msg/Header"](
        types.types["builtin_interfaces/msg/Time"](1, 0), ""
    )
    for number, names in enumerate((["a", "a"], [])):
        folder = tmp_path / f"bag{number}"
        with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
            connection = bag.add_connection("/joint_states", JOINT_STATE, typestore=types)
            values = np.zeros(len(names))
            content = types.types[JOINT_STATE](header, names, values, values, values)
            bag.write(connection, 10**9, types.serialize_cdr(content, JOINT_STATE))
        assert ("more than once", "name no joints")[number] in _refusal(folder)


@pytest.mark.parametrize(
    "definition",
    ["int32 names", "std_msgs/Header header\nstring[] names\nint8[] active\n", "x" * 70_000],
    ids=["other fields", "another type", "too long"],
)
def test_another_definition_of_contacts(definition: str) -> None:
    topic = StoredTopic("/contacts", CONTACTS, 1, "cdr", definition)
    with pytest.raises(DataError, match="Contacts"):
        decode(topic, [])
