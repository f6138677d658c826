# SPDX-License-Identifier: Apache-2.0
"""What MCAP files and SQLite databases must be before `rosbags` opens them, and unpacking."""

import sqlite3
import struct
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

import zstandard
from lz4.frame import LZ4FrameDecompressor

from sysid_core.errors import DataError, UnreadableError
from sysid_core.untrusted import PIECE, Inflater, check_file
from sysid_core.wording import one_line

__all__ = [
    "MOST_MESSAGE",
    "McapChunk",
    "check_database",
    "decompressed",
    "inflated",
    "mcap_chunks",
    "too_large",
]

MOST_MESSAGE = 1 << 20  # Bytes of a message of joints or a sensor: one of 1,000 joints has 50 kB
_MOST_QOS = 1 << 18
"""Bytes of quality of service, over all topics: `rosbags` reads them as YAML, 0.07 MB/s."""
_STRANGE = (
    "SELECT 1 FROM messages WHERE typeof(data) <> 'blob' OR typeof(timestamp) <> 'integer' LIMIT 1"
)
_DESCRIBED = "SELECT total(length(offered_qos_profiles)) FROM topics"
_MAGIC_BYTES = 8
_CHANNEL, _CHUNK = 0x04, 0x06
_CHUNK_HEADER = struct.Struct("<QQQII")
"""First and last time, inflated size, checksum, and the length of the compression's name."""


class McapChunk(NamedTuple):
    """A chunk of an MCAP file: where its record starts, its compression and its sizes."""

    start: int
    compression: str
    packed: int
    size: int


def mcap_chunks(path: Path) -> set[McapChunk]:
    """Return the chunks of an MCAP file, none of which inflates too far.

    Raises
    ------
    UnreadableError, ValueError
        If one does, or the file is damaged.
    """
    chunks: set[McapChunk] = set()
    inflater, described = Inflater(), 0
    with path.open("rb") as file:
        end = file.seek(0, 2)
        at = _MAGIC_BYTES
        while at + 9 <= end:
            file.seek(at)
            kind, size = struct.unpack("<BQ", file.read(9))
            if kind == _CHUNK:
                chunks.add(_check_chunk(file, at, inflater))
            elif kind == _CHANNEL:
                described += size
            at += 9 + size
    _check_described(described)
    return chunks


def _check_chunk(file: BinaryIO, start: int, inflater: Inflater) -> McapChunk:
    _, _, size, _, length = _CHUNK_HEADER.unpack(file.read(_CHUNK_HEADER.size))
    compression = file.read(min(length, PIECE)).decode()
    (packed,) = struct.unpack("<Q", file.read(8))
    if compression in ("zstd", "lz4"):
        decompressor = (
            zstandard.ZstdDecompressor().decompressobj()
            if compression == "zstd"
            else LZ4FrameDecompressor()
        )
        found = sum(map(len, inflater.pieces(_pieces(file, packed), decompressor)))
        if found != size or decompressor.unused_data:
            raise ValueError(f"a chunk says {size} bytes and has {found}")
    return McapChunk(start, compression, packed, size)


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    while size > 0 and (piece := file.read(min(size, PIECE))):
        size -= len(piece)
        yield piece


def check_database(path: Path) -> None:
    """Check that a database has a bag's tables, with values that are stored and not computed.

    A view, a virtual table or a generated column may yield any amount of data, and Python makes
    zeros of an integer that stands for a message.

    Raises
    ------
    UnreadableError
        If it has not.
    """
    # Immutable: a bag on a read-only medium can be opened, too.
    location = f"{path.resolve().as_uri()}?immutable=1"
    with closing(sqlite3.connect(location, uri=True)) as database:
        stored = dict(database.execute("SELECT name, rootpage FROM sqlite_master"))
        if not {"topics", "messages"} <= stored.keys():
            raise UnreadableError(
                "the database has no 'topics' and 'messages' tables; "
                "check that it is a ROS 2 bag's .db3"
            )
        for table in ("topics", "messages", "schema", "message_definitions"):
            columns = dict(
                database.execute("SELECT name, hidden FROM pragma_table_xinfo(?)", (table,))
            )
            if stored.get(table, 1) == 0 or any(columns.values()):
                raise UnreadableError(f"the database computes its table '{table}'; record again")
            if "offered_qos_profiles" in columns:
                ((described,),) = database.execute(_DESCRIBED)
                _check_described(described)
        if database.execute(_STRANGE).fetchone():
            raise UnreadableError("the database holds messages that are none; record again")


def _check_described(size: float) -> None:
    if size > _MOST_QOS:
        raise UnreadableError(f"describes its topics in more than {_MOST_QOS >> 10} KiB")


def too_large(topic: str) -> str:
    """Say that a message of a topic is too large."""
    return f"a message of {topic} has more than {MOST_MESSAGE >> 20} MiB; it is not read"


def decompressed(file: Path, stack: ExitStack) -> Path:
    """Unpack a compressed bag beside the system's temporary files, until the stack closes.

    Raises
    ------
    DataError
        If it is damaged, or unpacks too far.
    """
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="sysid-"))
    plain = Path(folder) / file.stem
    try:
        check_file(file)
        with file.open("rb") as packed, plain.open("wb") as unpacked:
            decompressor = zstandard.ZstdDecompressor().decompressobj()
            pieces = iter(partial(packed.read, PIECE), b"")
            for piece in Inflater().pieces(pieces, decompressor):
                unpacked.write(piece)
            if not decompressor.eof:
                raise zstandard.ZstdError("its end is missing")
    except UnreadableError as err:
        raise DataError(str(err), source=str(file)) from err
    except (OSError, zstandard.ZstdError) as err:
        raise DataError(
            f"cannot be unpacked ({one_line(err)}); the file is damaged or cut short: copy it "
            "again",
            source=str(file),
        ) from err
    return plain


def inflated(packed: bytes, topic: str, inflater: Inflater) -> bytes:
    """Unpack one compressed message.

    Raises
    ------
    DataError
        If it is damaged, or unpacks too far.
    """
    pieces = (packed[at : at + PIECE] for at in range(0, len(packed), PIECE))
    data = bytearray()
    try:
        for piece in inflater.pieces(pieces, zstandard.ZstdDecompressor().decompressobj()):
            data += piece
            if len(data) > MOST_MESSAGE:
                raise UnreadableError(too_large(topic))
    except UnreadableError as err:
        raise DataError(str(err)) from err
    except zstandard.ZstdError as err:
        raise DataError(
            f"a compressed message cannot be unpacked ({one_line(err)}); copy the bag again"
        ) from err
    return bytes(data)
