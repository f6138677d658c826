# SPDX-License-Identifier: Apache-2.0
"""Opening a bag: which files belong to it, and one view of them whatever their format."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import yaml
import zstandard

from sysid_core.data.storage_mcap import McapFile
from sysid_core.data.storage_sqlite import SqliteFile
from sysid_core.data.stored import StoredMessage, StoredTopic
from sysid_core.data.wording import one_line
from sysid_core.errors import DataError

__all__ = ["Bag", "open_bag"]


class _File(Protocol):
    topics: tuple[StoredTopic, ...]

    def messages(self, topics: Collection[str]) -> Iterator[StoredMessage]:
        """Yield the messages of some topics."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


_PORTION = 1 << 20
_FORMATS: dict[str, Callable[[Path, str], _File]] = {".mcap": McapFile, ".db3": SqliteFile}


@dataclass(frozen=True)
class Bag:
    """An open bag of one or several files.

    Attributes
    ----------
    path : Path
    topics : tuple[StoredTopic, ...]
        Sorted by name, message counts added up over the files.
    """

    path: Path
    topics: tuple[StoredTopic, ...]
    files: tuple[_File, ...]
    compressed_messages: bool = False

    def messages(self, topics: Collection[str]) -> list[StoredMessage]:
        """Return the messages of some topics in the order of their log time."""
        found = [message for file in self.files for message in file.messages(topics)]
        found.sort(key=lambda message: message.log_time)
        if self.compressed_messages:
            return [message._replace(data=_inflate(message.data, self.path)) for message in found]
        return found


@contextmanager
def open_bag(path: Path) -> Iterator[Bag]:
    """Open a bag folder, an `.mcap` or a `.db3`.

    Raises
    ------
    DataError
        If there is no bag at the path or it cannot be read.
    """
    if not path.exists():
        raise DataError("no such file or folder; check the path", source=str(path))
    with ExitStack() as stack:
        files, mode = _bag_files(path) if path.is_dir() else ([path], "")
        opened: list[_File] = []
        for file in files:
            plain = _decompressed(file, stack) if file.suffix == ".zstd" else file
            reader = _FORMATS.get(plain.suffix)
            if reader is None:
                raise DataError(_unknown_format(file), source=str(file))
            opened.append(reader(plain, str(file)))
            stack.callback(opened[-1].close)
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
        information = _metadata(metadata)
        names = information.get("relative_file_paths")
        if not isinstance(names, list) or not names:
            raise DataError(
                "names no files; delete it to have the files found by themselves",
                source=str(metadata),
            )
        files = [folder / Path(str(name)).name for name in names]
        for file in files:
            if not file.exists():
                raise DataError(
                    f"the file {file.name} that it names is missing; restore it, "
                    "or run 'ros2 bag reindex' on the folder",
                    source=str(metadata),
                )
        return files, str(information.get("compression_mode") or "").lower()
    files = sorted(
        file
        for file in folder.iterdir()
        if file.suffix in _FORMATS
        or (file.suffix == ".zstd" and Path(file.stem).suffix in _FORMATS)
    )
    if not files:
        raise DataError(
            "the folder holds no bag (no metadata.yaml, .mcap or .db3); check the path",
            source=str(folder),
        )
    kinds = {file.suffix for file in files}
    if len(kinds) > 1:
        raise DataError(
            f"the folder holds both {' and '.join(sorted(kinds))} files and no metadata.yaml "
            "that says which are meant; give one of the files",
            source=str(folder),
        )
    return files, ""


def _metadata(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as err:
        raise DataError(
            f"cannot be read ({one_line(err)}); mend it, or delete it to have the files found",
            source=str(path),
        ) from err
    information = content.get("rosbag2_bagfile_information") if isinstance(content, dict) else None
    if not isinstance(information, dict):
        raise DataError(
            "lacks rosbag2_bagfile_information; run 'ros2 bag reindex' on the folder, "
            "or delete the file",
            source=str(path),
        )
    return information


def _merged_topics(files: list[_File]) -> tuple[StoredTopic, ...]:
    merged: dict[str, StoredTopic] = {}
    for file in files:
        for topic in file.topics:
            known = merged.get(topic.name)
            merged[topic.name] = (
                topic if known is None else replace(known, count=known.count + topic.count)
            )
    return tuple(merged[name] for name in sorted(merged))


def _decompressed(file: Path, stack: ExitStack) -> Path:
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="sysid-"))
    plain = Path(folder) / file.stem
    try:
        with file.open("rb") as packed, plain.open("wb") as unpacked:
            decompressor = zstandard.ZstdDecompressor().decompressobj()
            while portion := packed.read(_PORTION):
                unpacked.write(decompressor.decompress(portion))
            if not decompressor.eof:
                raise zstandard.ZstdError("its end is missing")
    except (OSError, zstandard.ZstdError) as err:
        raise DataError(
            f"cannot be unpacked ({one_line(err)}); the file is damaged or cut short: copy it "
            "again",
            source=str(file),
        ) from err
    return plain


def _inflate(data: bytes, path: Path) -> bytes:
    try:
        return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    except zstandard.ZstdError as err:
        raise DataError(
            f"a compressed message cannot be unpacked ({one_line(err)}); copy the bag again",
            source=str(path),
        ) from err
