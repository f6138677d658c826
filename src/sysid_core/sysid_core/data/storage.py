# SPDX-License-Identifier: Apache-2.0
"""Opening a bag with `rosbags`: which files belong to it, and one line about what is wrong."""

import heapq
import shutil
import sqlite3
import tempfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from rosbags.rosbag2 import Reader

from sysid_core.data.containers import (
    MOST_MESSAGE,
    McapChunk,
    check_database,
    decompressed,
    inflated,
    mcap_chunks,
    too_large,
)
from sysid_core.errors import DataError, UnreadableError, found_in
from sysid_core.untrusted import Inflater, check_file, read_yaml
from sysid_core.wording import one_line

__all__ = ["Bag", "StoredMessage", "StoredTopic", "open_bag"]

_SUFFIXES = (".mcap", ".db3")
_MCAP_MAGIC = b"\x89MCAP0\r\n"
_SQLITE_MAGIC = b"SQLite format 3\x00"
_SQLITE_HEADER_BYTES = 100
_LATEST = 2**63 - 1  # The last time [ns] that a signed integer of 64 bits holds


@dataclass(frozen=True)
class StoredTopic:
    """A topic's name, type, number of messages, serialisation and, if any, definition."""

    name: str
    type: str
    count: int
    encoding: str
    definition: str


class StoredMessage(NamedTuple):
    """A message as it lies in a bag: topic, time of recording [ns], and CDR with its header."""

    topic: str
    log_time: int
    data: bytes


class _File:
    """An open `.mcap` or `.db3`; messages call it by its source, which may be compressed.

    Raises
    ------
    DataError
        If the file is of another kind, damaged or cut short.
    """

    def __init__(self, path: Path, source: str, stack: ExitStack) -> None:
        self.path = path
        self.source = source
        with self.explained():
            check_file(path)
            if path.suffix == ".mcap":
                self._check_start(_MCAP_MAGIC, "MCAP file", len(_MCAP_MAGIC))
                chunks = mcap_chunks(path)
            else:
                self._check_size()
                path = _with_pending_writes(path, stack)
                check_database(path)
            self._reader = stack.enter_context(Reader(path))
            if path.suffix == ".mcap":
                self._check_index(chunks)
            self.topics = [
                StoredTopic(
                    connection.topic,
                    connection.msgtype,
                    connection.msgcount,
                    getattr(connection.ext, "serialization_format", "cdr"),
                    connection.msgdef.data if connection.msgdef.format.name == "MSG" else "",
                )
                for connection in self._reader.connections
            ]

    def messages(self, topics: Collection[str]) -> Iterator[StoredMessage]:
        """Yield the messages of some topics in the order of their log time."""
        with self.explained():
            wanted = [c for c in self._reader.connections if c.topic in topics]
            if not wanted:
                return
            for connection, time, data in self._reader.messages(wanted):
                if len(data) > MOST_MESSAGE:
                    raise UnreadableError(too_large(connection.topic))
                if time > _LATEST:
                    raise ValueError("a time of recording is impossible")
                yield StoredMessage(connection.topic, int(time), bytes(data))

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Say in one line what is wrong with the file and how to mend it."""
        with found_in(self.source):
            try:
                yield
            except DataError:
                raise
            except UnreadableError as err:
                raise DataError(str(err)) from err
            except OSError as err:
                raise DataError(
                    f"cannot be read ({err.strerror or err}); check the file and its permissions"
                ) from err
            # Damaged bytes make parsers and decompressors raise errors of many kinds; a spoiled
            # length makes them ask for more memory than there is.
            except Exception as err:
                name = self.path.name
                mend = (
                    f"mcap recover {name} -o mended.mcap"
                    if self.path.suffix == ".mcap"
                    else f"sqlite3 {name} .recover | sqlite3 mended.db3"
                )
                raise DataError(
                    f"the file is damaged or cut short ({one_line(err)}); mend it with '{mend}'"
                ) from err

    def _check_start(self, magic: bytes, kind: str, length: int) -> bytes:
        with self.path.open("rb") as file:
            start = file.read(length)
        if not start:
            raise DataError("the file is empty (0 bytes); record or copy it again")
        if not start.startswith(magic):
            raise DataError(f"this is no {kind}; check the path")
        return start

    def _check_index(self, chunks: set[McapChunk]) -> None:
        """Check that the index, by which `rosbags` reads, names each chunk as it is, and once."""
        named = [
            McapChunk(c.chunk_start_offset, c.compression, c.compressed_size, c.uncompressed_size)
            for c in getattr(self._reader.storage, "chunks", ())
        ]
        if len(set(named)) < len(named) or not chunks.issuperset(named):
            raise ValueError("its index does not fit its chunks")

    def _check_size(self) -> None:
        """Compare the file's size with what its header promises.

        SQLite itself notices missing pages only when it needs one of them.
        """
        header = self._check_start(_SQLITE_MAGIC, "SQLite database", _SQLITE_HEADER_BYTES)
        if len(header) < _SQLITE_HEADER_BYTES:
            raise ValueError("the header is incomplete")
        page = int.from_bytes(header[16:18], "big")
        wanted = int.from_bytes(header[28:32], "big") * (65536 if page == 1 else page)
        size = self.path.stat().st_size
        # The page count is valid only if its change counter is the file's (SQLite format 1.3.7).
        if header[24:28] == header[92:96] and size < wanted:
            raise ValueError(f"{size} bytes of {wanted}")


def _with_pending_writes(database: Path, stack: ExitStack) -> Path:
    """Return a database that holds what a log of pending writes beside it adds, if there is one.

    A recorder that was killed leaves such a log, and `rosbags` reads the database alone.
    """
    log = database.with_name(f"{database.name}-wal")
    if not (log.exists() and log.stat().st_size):
        return database
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sysid-")))
    for file in (database, log):
        shutil.copyfile(file, folder / file.name)
    with closing(sqlite3.connect(folder / database.name)) as whole:
        whole.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder / database.name


@dataclass(frozen=True)
class Bag:
    """An open bag of one or several files."""

    path: Path
    topics: tuple[StoredTopic, ...]  # Sorted by name, message counts added up over the files
    files: tuple[_File, ...]
    compressed_messages: bool = False

    def messages(self, topics: Collection[str]) -> Iterator[StoredMessage]:
        """Yield the messages of some topics in the order of their log time."""
        found = heapq.merge(
            *(file.messages(topics) for file in self.files), key=lambda message: message.log_time
        )
        inflater = Inflater()
        for message in found:
            if self.compressed_messages:
                data = inflated(message.data, message.topic, inflater)
                message = message._replace(data=data)
            yield message


@contextmanager
def open_bag(path: Path) -> Iterator[Bag]:
    """Open a bag folder, an `.mcap` or a `.db3`.

    Raises
    ------
    DataError
        If there is no bag at the path, which must exist, or it cannot be read.
    """
    with found_in(path), ExitStack() as stack:
        files, mode = _bag_files(path) if path.is_dir() else ([path], "")
        opened: list[_File] = []
        for file in files:
            plain = decompressed(file, stack) if file.suffix == ".zstd" else file
            if plain.suffix not in _SUFFIXES:
                raise DataError(_unknown_format(file), source=str(file))
            opened.append(_File(plain, str(file), stack))
        yield Bag(path, _merged_topics(opened), tuple(opened), mode == "message")


def _unknown_format(file: Path) -> str:
    if file.suffix == ".bag":
        return (
            "this is a ROS 1 bag; convert it with "
            f"'rosbags-convert --src {file.name} --dst {file.stem}'"
        )
    return f"unknown kind of file '{file.suffix}'; give a bag folder, .mcap, .db3 or .csv"


def _bag_files(folder: Path) -> tuple[list[Path], str]:
    """Return the files of a bag folder in order, and its compression mode."""
    metadata = folder / "metadata.yaml"
    if metadata.exists():
        with found_in(metadata):
            information = _metadata(metadata)
            names = information.get("relative_file_paths")
            if not isinstance(names, list) or not names:
                raise DataError("names no files; delete it to have the files found by themselves")
            files = [folder / Path(str(name)).name for name in dict.fromkeys(map(str, names))]
            for file in files:
                if not file.exists():
                    raise DataError(
                        f"the file {file.name} that it names is missing; restore it, "
                        "or run 'ros2 bag reindex' on the folder"
                    )
            return files, str(information.get("compression_mode") or "").lower()
    try:
        files = sorted(
            file
            for file in folder.iterdir()
            if file.suffix in _SUFFIXES
            or (file.suffix == ".zstd" and Path(file.stem).suffix in _SUFFIXES)
        )
    except OSError as err:
        raise DataError(f"cannot be read ({err.strerror}); check its permissions") from err
    if not files:
        raise DataError(
            "the folder holds no bag (no metadata.yaml, .mcap or .db3); check the path"
        )
    kinds = {file.suffix for file in files}
    if len(kinds) > 1:
        raise DataError(
            f"the folder holds both {' and '.join(sorted(kinds))} files and no metadata.yaml "
            "that says which are meant; give one of the files"
        )
    return files, ""


def _metadata(path: Path) -> dict[str, Any]:
    try:
        content = read_yaml(path)
    except UnreadableError as err:
        raise DataError(f"{err}; mend it, or delete it to have the files found") from err
    information = content.get("rosbag2_bagfile_information") if isinstance(content, dict) else None
    if not isinstance(information, dict):
        raise DataError(
            "lacks rosbag2_bagfile_information; run 'ros2 bag reindex' on the folder, "
            "or delete the file"
        )
    return information


def _merged_topics(files: list[_File]) -> tuple[StoredTopic, ...]:
    merged: dict[str, StoredTopic] = {}
    for file in files:
        for topic in file.topics:
            known = merged.get(topic.name)
            count = topic.count + (known.count if known else 0)
            merged[topic.name] = replace(known or topic, count=count)
    return tuple(merged[name] for name in sorted(merged))
