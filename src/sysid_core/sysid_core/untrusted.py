# SPDX-License-Identifier: Apache-2.0
"""Files that others made, read only if they are ordinary and no larger than a reader bears."""

from __future__ import annotations

import json
import os
import stat
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import yaml

from sysid_core.errors import UnreadableError
from sysid_core.wording import one_line

__all__ = [
    "PIECE",
    "Decompressor",
    "Inflater",
    "YamlLoader",
    "check_file",
    "existing",
    "parse_xml",
    "parse_yaml",
    "read_bytes",
    "read_json",
    "read_yaml",
]

_MOST_BYTES = 16 << 20
"""Of a description, launch file or estimate: a hundred times the largest seen."""
_MOST_DEPTH = 100
"""Of lists, mappings and elements in each other; ours need 8."""
_TOO_DEEP = f"is nested more than {_MOST_DEPTH} deep"
_MOST_NODES = 100_000
"""Values of a YAML file, aliases followed, or elements of an XML file: seconds to read."""
_MOST_SCALAR = 1 << 16
"""Characters of one value: YAML's integers to base 60 take quadratic time."""
_MOST_INTEGER = 2**64
_FREE_BYTES = 64 << 20
"""What anything may inflate to, however small it is."""
_MOST_RATIO = 100
"""Of inflated to packed bytes beyond that: recordings of robots at rest reach some 30."""

PIECE = 4096
"""Bytes of packed data to inflate at a time."""

YamlLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's is ten times as fast; PyYAML may come without it."""


class Decompressor(Protocol):
    """What zstandard's and lz4's objects for piecewise decompression have in common."""

    def decompress(self, data: bytes, /) -> bytes:
        """Return what the next piece inflates to."""


def existing(path: str | Path) -> Path:
    """Return a path, `~` expanded, at which there is something.

    Raises
    ------
    UnreadableError
        If there is not, or no file can have that name.
    """
    try:
        found = Path(path).expanduser()
        found.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnreadableError("no such file or folder") from error
    except (OSError, RuntimeError, ValueError) as error:
        raise UnreadableError(_reason(error)) from error
    return found


def check_file(path: Path) -> None:
    """Check that a path is an ordinary file that may be read; a FIFO or a device would block.

    Raises
    ------
    UnreadableError
        If it is not.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        raise UnreadableError(_reason(error)) from error
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, socket or device"
        raise UnreadableError(f"cannot be read (it is {kind}, not a file)")
    if not os.access(path, os.R_OK):
        raise UnreadableError("cannot be read (Permission denied)")


def _reason(error: Exception) -> str:
    return f"cannot be read ({getattr(error, 'strerror', None) or one_line(error)})"


def read_bytes(path: Path) -> bytes:
    """Return a small file's contents.

    Raises
    ------
    UnreadableError
        If it is no ordinary file, too large, or cannot be read.
    """
    check_file(path)
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UnreadableError(_reason(error)) from error
    if len(data) > _MOST_BYTES:
        raise UnreadableError(f"has more than {_MOST_BYTES >> 20} MiB: is it the right file?")
    return data


def read_yaml(path: Path, *, most: int = _MOST_NODES) -> Any:
    """Read a YAML file as `parse_yaml` does."""
    return parse_yaml(read_bytes(path), most=most)


def parse_yaml(text: str | bytes, loader: Any = YamlLoader, *, most: int = _MOST_NODES) -> Any:
    """Return what a YAML text holds by a safe loader of PyYAML's, `most` values at most.

    Raises
    ------
    UnreadableError
        If it is no YAML, nested or aliased too much, or holds what Python has no value for.
    """
    try:
        _check_size(yaml.parse(text, Loader=YamlLoader), most)
        value = yaml.load(text, Loader=loader)
        _check_integers(value)
    except UnreadableError:
        raise
    # A date of month 13, `!!int x` and the like raise errors of many kinds.
    except Exception as error:
        if "nesting depth" in str(error):  # libyaml 0.2.6 looks this far ahead by itself
            raise UnreadableError(_TOO_DEEP) from error
        raise UnreadableError(f"is not valid YAML ({one_line(error)})") from error
    return value


def _check_size(events: Iterable[Any], most: int) -> None:
    """Refuse YAML by its events, where an alias counts as what it stands for."""
    sizes: dict[str, int] = {}
    opened: list[tuple[str | None, int]] = []
    count = 0
    for event in events:
        anchor = getattr(event, "anchor", None)
        if isinstance(event, yaml.AliasEvent):
            if anchor in {name for name, _ in opened}:
                raise UnreadableError(f"is not valid YAML ('*{anchor}' stands within itself)")
            count += sizes.get(anchor or "", 0)
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            if anchor:
                sizes[anchor] = 1
            if len(event.value) > _MOST_SCALAR:
                raise UnreadableError(f"has a value of more than {_MOST_SCALAR} characters")
        elif isinstance(event, yaml.CollectionStartEvent):
            opened.append((anchor, count))
            count += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            name, before = opened.pop()
            if name:
                sizes[name] = count - before
        _check_limits(len(opened), count, most)


def _check_limits(depth: int, count: int, most: int = _MOST_NODES) -> None:
    if depth > _MOST_DEPTH:
        raise UnreadableError(_TOO_DEEP)
    if count > most:
        raise UnreadableError(f"holds more than {most} values")


def _check_integers(value: Any) -> None:
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple, set)):
        for item in value:
            _check_integers(item)
    elif isinstance(value, int) and abs(value) > _MOST_INTEGER:
        raise UnreadableError("holds an integer of more than 64 bits")


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises
    ------
    UnreadableError
        If it cannot be read, is no JSON, or holds an integer of more than 64 bits.
    """
    data = read_bytes(path)
    try:
        value = json.loads(data)
        _check_integers(value)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"is not valid JSON ({one_line(error)})") from error
    return value


class _Tree(ET.TreeBuilder):
    """Builds a tree of limited depth and size, without entities, which a robot has no use for."""

    def __init__(self, comments: bool) -> None:
        super().__init__(insert_comments=comments)
        self._depth = self._count = 0

    def start(self, tag: str, attrs: dict[Any, Any], /) -> ET.Element:
        self._depth += 1
        self._count += 1
        _check_limits(self._depth, self._count)
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> ET.Element:
        self._depth -= 1
        return super().end(tag)

    def doctype(self, *_: Any) -> None:
        raise UnreadableError("has a document type, whose entities may be of any size; delete it")


def parse_xml(text: bytes, *, comments: bool = False) -> ET.Element:
    """Return the root of an XML text, with its comments or without.

    Raises
    ------
    UnreadableError
        If it is no XML, too large or nested too deeply.
    """
    try:
        return ET.fromstring(text, ET.XMLParser(target=_Tree(comments)))
    except (ET.ParseError, LookupError, ValueError) as error:  # LookupError: its encoding
        raise UnreadableError(f"is not valid XML ({one_line(error)})") from error


class Inflater:
    """Inflates packed bytes piece by piece, within what their size allows in all."""

    def __init__(self) -> None:
        self._packed = self._total = 0

    def pieces(self, packed: Iterable[bytes], decompressor: Decompressor) -> Iterator[bytes]:
        """Yield what pieces of `PIECE` bytes inflate to: each to 128 MiB at most.

        Raises
        ------
        UnreadableError
            If all so far comes to more than 64 MiB and 100 times the packed size.
        """
        for piece in packed:
            data = decompressor.decompress(piece)
            self._packed += len(piece)
            self._total += len(data)
            if self._total > max(_FREE_BYTES, _MOST_RATIO * self._packed):
                raise UnreadableError(
                    f"inflates to more than {self._total >> 20} MiB from {self._packed >> 10} "
                    "KiB, as no recording does; it is not read"
                )
            yield data
