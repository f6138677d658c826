# SPDX-License-Identifier: Apache-2.0
"""Reading rosbag2's SQLite files, with or without the metadata.yaml beside them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from sysid_core.data.stored import StoredMessage, StoredTopic
from sysid_core.data.wording import one_line
from sysid_core.errors import DataError

__all__ = ["SqliteFile"]

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100


class SqliteFile:
    """One open `.db3` file.

    Parameters
    ----------
    path : Path
    source : str
        What to call the file in messages: the compressed one that it was unpacked from, if any.

    Attributes
    ----------
    topics : tuple[StoredTopic, ...]

    Raises
    ------
    DataError
        If the file is no rosbag2 database, damaged or cut short.
    """

    def __init__(self, path: Path, source: str) -> None:
        self.path = path
        self.source = source
        with self._explained():
            self._check_whole()
            self._database = self._connect()
            try:
                self.topics = self._read_topics()
            except BaseException:
                self._database.close()
                raise

    def messages(self, topics: Collection[str]) -> Iterator[StoredMessage]:
        """Yield the messages of some topics in the order in which they were written."""
        with self._explained():
            names = dict(self._database.execute("SELECT id, name FROM topics"))
            wanted = {number: name for number, name in names.items() if name in topics}
            rows = self._database.execute(
                "SELECT topic_id, timestamp, data FROM messages "
                f"WHERE topic_id IN ({','.join('?' * len(wanted))}) ORDER BY id",
                tuple(wanted),
            )
            for number, stamp, data in rows:
                yield StoredMessage(wanted[number], int(stamp), bytes(data))

    def close(self) -> None:
        """Release the file."""
        self._database.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        # Spoiled rows hold text that is none, and bytes or text where a number belongs.
        except (sqlite3.Error, ValueError, TypeError, OverflowError) as err:
            raise DataError(
                f"the database is damaged or cut short ({one_line(err)}); mend it with "
                f"'sqlite3 {self.path.name} .recover | sqlite3 mended.db3'",
                source=self.source,
            ) from err
        except OSError as err:
            raise DataError(
                f"cannot be read ({err.strerror or err}); check the file and its permissions",
                source=self.source,
            ) from err

    def _check_whole(self) -> None:
        """Compare the file's size with what its header promises.

        SQLite itself notices missing pages only when it needs one of them.
        """
        size = self.path.stat().st_size
        if size == 0:
            raise DataError(
                "the file is empty (0 bytes); record or copy it again", source=self.source
            )
        with self.path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
        if not header.startswith(_MAGIC):
            raise DataError(
                "this is no SQLite database; check that it is a ROS 2 bag's .db3",
                source=self.source,
            )
        if len(header) < _HEADER_BYTES:
            raise sqlite3.DatabaseError("the header is incomplete")
        page = int.from_bytes(header[16:18], "big")
        page_bytes = 65536 if page == 1 else page
        pages = int.from_bytes(header[28:32], "big")
        # The page count is valid only if its change counter is the file's (SQLite format 1.3.7).
        if header[24:28] == header[92:96] and size < pages * page_bytes:
            raise sqlite3.DatabaseError(
                f"{size} bytes of {pages * page_bytes}",
            )

    def _connect(self) -> sqlite3.Connection:
        # Immutable: a bag on a read-only medium can be opened even if it was left in WAL mode;
        # where a log of pending writes lies beside it, that log must be read as well.
        pending = self.path.with_name(self.path.name + "-wal").exists()
        mode = "mode=ro" if pending else "immutable=1"
        return sqlite3.connect(f"file:{quote(str(self.path.resolve()))}?{mode}", uri=True)

    def _read_topics(self) -> tuple[StoredTopic, ...]:
        with closing(self._database.cursor()) as cursor:
            tables = {
                name
                for (name,) in cursor.execute("SELECT name FROM sqlite_master WHERE type='table'")
            }
            if not {"topics", "messages"} <= tables:
                raise DataError(
                    "the database has no 'topics' and 'messages' tables; "
                    "check that it is a ROS 2 bag's .db3",
                    source=self.source,
                )
            definitions: dict[str, str] = {}
            if "message_definitions" in tables:
                definitions = dict(
                    cursor.execute(
                        "SELECT topic_type, encoded_message_definition FROM message_definitions "
                        "WHERE encoding = 'ros2msg'"
                    )
                )
            counts = dict(
                cursor.execute("SELECT topic_id, count(*) FROM messages GROUP BY topic_id")
            )
            rows = cursor.execute("SELECT id, name, type, serialization_format FROM topics")
            return tuple(
                StoredTopic(name, kind, counts.get(number, 0), encoding, definitions.get(kind, ""))
                for number, name, kind, encoding in rows
            )
