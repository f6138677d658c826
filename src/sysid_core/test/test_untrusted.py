# SPDX-License-Identifier: Apache-2.0
"""Files that would fill the memory, block or crash a reader are refused before they can."""

from __future__ import annotations

import os
import sqlite3
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import pytest
import zstandard
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

from sysid_core.data import read_recording
from sysid_core.data.containers import mcap_chunks
from sysid_core.data.message_types import JOINT_STATE, message_types
from sysid_core.errors import DataError, RobotError, UnreadableError
from sysid_core.robot.urdf import read_urdf
from sysid_core.untrusted import check_file, parse_xml, parse_yaml, read_bytes, read_json

HUGE = 1 << 28
MEMORY = 192 << 20
"""Room for what anything may inflate to (64 MiB), and one piece beyond it (128 MiB)."""


def _zeros(size: int) -> bytes:
    """Return a zstd frame of that many zeros."""
    return zstandard.ZstdCompressor().compress(bytes(size))


def _chunk(packed: bytes, size: int, compression: bytes) -> bytes:
    head = struct.pack("<QQQI", 0, 1, size, 0) + struct.pack("<I", len(compression)) + compression
    body = head + struct.pack("<Q", len(packed)) + packed
    return b"\x06" + struct.pack("<Q", len(body)) + body


def _measured(function: Callable[[], object], error: type[Exception]) -> str:
    """Return what a refusal says, which must come before the memory is used."""
    tracemalloc.start()
    try:
        with pytest.raises(error) as caught:
            function()
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()
    return str(caught.value)


def _bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, levels)]
    return "\n".join(lines)


def _numbered(value: object) -> str:
    """Keep long texts out of the tests' names."""
    return str(value)[:12] if isinstance(value, (str, bytes)) else ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_bomb(9), "values"),
        (f"a: {{<<: &a0 {{x: 1}}}}\n{_bomb(7)}", "values"),
        ("&a [*a]", "within itself"),
        ("[" * 5000, "deep"),
        ("- " * 300 + "x", "deep"),
        (":1" * 50_000, "characters"),
        ("a: " + "9" * 400, "64 bits"),
        ("a: 2001-13-41", "valid YAML"),
        ("a: !!int abc", "valid YAML"),
        ("a: !!timestamp abc", "valid YAML"),
        ("{[a]: b}", "valid YAML"),
        (b"a: \xff\xfe", "valid YAML"),
    ],
    ids=_numbered,
)
def test_yaml_that_is_refused(text: str | bytes, words: str) -> None:
    message = _measured(lambda: parse_yaml(text), UnreadableError)
    assert words in message
    assert "\n" not in message


def test_aliases_may_be_used() -> None:
    assert parse_yaml("{a: &x [1, 2], b: *x, c: {<<: {d: 3}}}") == {
        "a": [1, 2],
        "b": [1, 2],
        "c": {"d": 3},
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'<?xml version="1.0" encoding="bogus"?><robot/>', "valid XML"),
        (b"<robot>" * 5000, "deep"),
        (b"<r>" + b"<a/>" * 110_000 + b"</r>", "values"),
        (b'<!DOCTYPE r [<!ENTITY a "aaaa">]><r>&a;</r>', "document type"),
        (b"<robot>\xff\xfe</robot>", "valid XML"),
    ],
    ids=_numbered,
)
def test_xml_that_is_refused(text: bytes, words: str) -> None:
    assert words in _measured(lambda: parse_xml(text), UnreadableError)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[" * 100_000, "valid JSON"),
        (b"9" * 400, "64 bits"),
        (b"9" * 5000, "valid JSON"),
        (b"\xff", "valid JSON"),
    ],
    ids=_numbered,
)
def test_json_that_is_refused(text: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text)
    assert words in _measured(lambda: read_json(path), UnreadableError)


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(HUGE)
    assert "MiB" in _measured(lambda: read_bytes(path), UnreadableError)


@pytest.mark.parametrize("name", ["x.csv", "x.mcap", "x.db3", "x.urdf"])
def test_pipes_and_folders_are_refused(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises((DataError, RobotError), match="pipe"):
        read_urdf(tmp_path / name) if name == "x.urdf" else read_recording(tmp_path / name)
    with pytest.raises(UnreadableError, match="folder"):
        check_file(tmp_path)


@pytest.mark.parametrize("name", ["n" * 300, "a\0b", "~nosuchuser/x", "x/" * 3000], ids=_numbered)
def test_names_that_no_file_can_have(name: str) -> None:
    with pytest.raises(DataError) as caught:
        read_recording(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("compression", [b"zstd", b"lz4"])
def test_a_chunk_that_inflates_too_far(compression: bytes, tmp_path: Path) -> None:
    packed = _zeros(HUGE) if compression == b"zstd" else lz4.frame.compress(bytes(HUGE))
    path = tmp_path / "x.mcap"
    path.write_bytes(b"\x89MCAP0\r\n" + _chunk(packed, HUGE, compression))
    assert "inflates" in _measured(lambda: mcap_chunks(path), UnreadableError)
    path.write_bytes(b"\x89MCAP0\r\n" + _chunk(_zeros(1000), 10, b"zstd"))
    with pytest.raises(ValueError, match="says 10 bytes and has 1000"):
        mcap_chunks(path)


def test_a_compressed_bag_that_inflates_too_far(tmp_path: Path) -> None:
    (tmp_path / "x.mcap.zstd").write_bytes(_zeros(HUGE))
    assert "inflates" in _measured(lambda: read_recording(tmp_path), DataError)


def test_compressed_messages_that_inflate_too_far(tmp_path: Path) -> None:
    """A recorder may compress every message by itself."""
    types = message_types()
    writer = Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.SQLITE3)
    writer.set_compression(CompressionMode.MESSAGE, CompressionFormat.ZSTD)
    with writer as bag:
        connection = bag.add_connection("/joint_states", JOINT_STATE, typestore=types)
        bag.write(connection, 1, bytes(100))
    with sqlite3.connect(tmp_path / "bag" / "bag.db3") as database:
        database.execute("UPDATE messages SET data = ?", (_zeros(HUGE),))
    database.close()
    assert "inflate" in _measured(lambda: read_recording(tmp_path / "bag"), DataError)


@pytest.mark.parametrize(
    ("messages", "data"),
    [
        ("CREATE TABLE messages (id, topic_id, timestamp, data)", "3000000000"),
        ("CREATE TABLE messages (id, topic_id, timestamp, data)", "'text'"),
        (
            "CREATE TABLE messages (id, topic_id, timestamp, x, data GENERATED ALWAYS AS "
            "(zeroblob(1000000000)))",
            "1",
        ),
    ],
)
def test_a_database_whose_messages_are_none(messages: str, data: str, tmp_path: Path) -> None:
    path = tmp_path / "x.db3"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE topics (id, name, type, serialization_format)")
        database.execute("INSERT INTO topics VALUES (1, 't', 'sensor_msgs/msg/JointState', 'cdr')")
        database.execute(messages)
        database.execute(f"INSERT INTO messages VALUES (1, 1, 1, {data})")
    database.close()
    message = _measured(lambda: read_recording(path), DataError)
    assert "computes" in message or "none" in message


def _chain(joints: int) -> str:
    text = "".join(
        f'<link name="l{k}"/><joint name="j{k}" type="revolute"><parent link="l{k}"/>'
        f'<child link="l{k + 1}"/><limit effort="1" velocity="1"/></joint>'
        for k in range(joints)
    )
    return f'<robot name="r">{text}<link name="l{joints}"/></robot>'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_chain(4000), "more than"),
        (_chain(300), "more than 200"),
        (_chain(2).replace("<link", '<link name="l2"/><link', 1), "name of their own"),
        (_chain(2).replace('child link="l2"', 'child link="l0"'), "root"),
        (_chain(2).replace('<limit effort="1" velocity="1"/>', ""), "limit"),
        (_chain(2).replace('velocity="1"', 'velocity="x"'), "velocity"),
        (_chain(2).replace("<limit", '<axis xyz="0 0 0"/><limit'), "axis"),
        (_chain(2).replace("<limit", '<origin xyz="0 0 1e999"/><limit'), "origin"),
    ],
    ids=_numbered,
)
def test_urdf_that_is_refused(
    text: str, words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.urdf"
    path.write_text(text)
    with pytest.raises(RobotError, match=words):
        read_urdf(path)
    assert capfd.readouterr().err == ""
