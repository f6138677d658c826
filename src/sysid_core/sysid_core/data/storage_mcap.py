# SPDX-License-Identifier: Apache-2.0
"""Reading MCAP files, and telling a damaged one from a whole one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from mcap.reader import make_reader
from mcap.records import Channel, Schema

from sysid_core.data.stored import StoredMessage, StoredTopic
from sysid_core.data.wording import one_line
from sysid_core.errors import DataError

__all__ = ["McapFile"]

_MAGIC = b"\x89MCAP0\r\n"
_LATEST = 2**63 - 1


class McapFile:
    """One open `.mcap` file.

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
        If the file is no MCAP, damaged or cut short.
    """

    def __init__(self, path: Path, source: str) -> None:
        self.path = path
        self.source = source
        with self._explained():
            self._file = path.open("rb")
            try:
                self._check_whole()
                self._reader = make_reader(self._file, validate_crcs=True)
                self.topics = self._read_topics()
            except BaseException:
                self._file.close()
                raise

    def messages(self, topics: Collection[str]) -> Iterator[StoredMessage]:
        """Yield the messages of some topics."""
        with self._explained():
            # A file without an index is read as a stream, from wherever the file stands.
            self._file.seek(0)
            for _, channel, message in self._reader.iter_messages(
                topics=list(topics), log_time_order=False
            ):
                if message.log_time > _LATEST:
                    raise self._damaged("damaged (a time of recording is impossible)")
                yield StoredMessage(channel.topic, message.log_time, message.data)

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except DataError:
            raise
        except MemoryError as err:
            # A spoiled length makes the parser ask for more than there is.
            raise self._damaged("damaged, or larger than the memory") from err
        except OSError as err:
            raise DataError(
                f"cannot be read ({err.strerror or err}); check the file and its permissions",
                source=self.source,
            ) from err
        # Damaged bytes make the parser and the decompressors raise errors of many kinds.
        except Exception as err:
            raise self._damaged(f"damaged ({one_line(err)})") from err

    def _damaged(self, state: str) -> DataError:
        return DataError(
            f"the file is {state}; mend it with 'mcap recover {self.path.name} -o mended.mcap'",
            source=self.source,
        )

    def _check_whole(self) -> None:
        start = self._file.read(len(_MAGIC))
        if not start:
            raise DataError(
                "the file is empty (0 bytes); record or copy it again", source=self.source
            )
        if start != _MAGIC:
            raise DataError("this is no MCAP file; check the path", source=self.source)
        size = self._file.seek(0, 2)
        self._file.seek(max(0, size - len(_MAGIC)))
        if size < 2 * len(_MAGIC) or self._file.read(len(_MAGIC)) != _MAGIC:
            raise self._damaged("cut short: its end is missing")
        self._file.seek(0)

    def _read_topics(self) -> tuple[StoredTopic, ...]:
        summary = self._reader.get_summary()
        channels: dict[int, tuple[Channel, Schema | None]] = {}
        counts: Counter[int] = Counter()
        if summary is not None and summary.statistics is not None and summary.channels:
            for number, channel in summary.channels.items():
                channels[number] = (channel, summary.schemas.get(channel.schema_id))
            counts.update(summary.statistics.channel_message_counts)
        else:
            self._file.seek(0)
            for schema, channel, _ in self._reader.iter_messages(log_time_order=False):
                channels[channel.id] = (channel, schema)
                counts[channel.id] += 1
        topics: dict[str, StoredTopic] = {}
        for number, (channel, schema) in channels.items():
            known = topics.get(channel.topic)
            definition = (
                schema.data.decode("utf-8", "replace")
                if schema is not None and schema.encoding == "ros2msg"
                else ""
            )
            topics[channel.topic] = StoredTopic(
                channel.topic,
                schema.name if schema is not None else "",
                counts[number] + (known.count if known else 0),
                channel.message_encoding,
                definition,
            )
        return tuple(topics.values())
