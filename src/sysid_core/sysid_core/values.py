# SPDX-License-Identifier: Apache-2.0
"""Readers of values in files that others made: each takes a value and its place, to name it.

All raise an `UnreadableError` if a value is not of their kind. A key without a value counts as
absent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from sysid_core.errors import UnreadableError

__all__ = [
    "Reader",
    "at_least",
    "built",
    "choice",
    "items_of",
    "mapping",
    "mapping_of",
    "number",
    "numbers",
    "positive",
    "section",
    "strings",
    "text",
    "vector",
]

Reader = Callable[[Any, str], Any]


def text(value: Any, where: str) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise UnreadableError(f"'{where}' must be a text, got {value!r:.60}")
    return value


def number(value: Any, where: str, low: float = -math.inf) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UnreadableError(f"'{where}' must be a number, got {value!r}")
    if not math.isfinite(value) or value < low:
        raise UnreadableError(f"'{where}' must be finite and at least {low:g}, got {value!r}")
    return float(value)


def at_least(low: float) -> Reader:
    """Return the reader of a number that is not below another."""
    return lambda value, where: number(value, where, low)


def positive(value: Any, where: str) -> float:
    """Return a number above zero."""
    if number(value, where, 0.0) == 0.0:
        raise UnreadableError(f"'{where}' must be above zero")
    return float(value)


def numbers(count: int, read_one: Reader = number) -> Reader:
    """Return the reader of a list of so many numbers, each by a reader of its own."""

    def read(value: Any, where: str) -> tuple[float, ...]:
        if not isinstance(value, (list, tuple)) or len(value) != count:
            raise UnreadableError(
                f"'{where}' must be a list of {count} numbers, got {value!r:.60}"
            )
        return tuple(read_one(v, where) for v in value)

    return read


vector = numbers(3)


def strings(value: Any, where: str) -> tuple[str, ...]:
    """Return a list of different names."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
        raise UnreadableError(f"'{where}' must be a list of names, got {value!r}")
    if len(set(value)) != len(value):
        raise UnreadableError(f"'{where}' names something twice")
    return tuple(value)


def choice(*choices: str) -> Reader:
    """Return the reader of one of some words."""

    def read(value: Any, where: str) -> str:
        if value not in choices:
            raise UnreadableError(f"'{where}' must be one of {sorted(choices)}, got {value!r}")
        return str(value)

    return read


def mapping(value: Any, where: str) -> dict[str, Any]:
    """Return a mapping of names to anything; None is an empty one."""
    value = {} if value is None else value
    if not isinstance(value, Mapping):
        raise UnreadableError(f"'{where}' must be a mapping of names to values, got {value!r:.60}")
    return {str(key): entry for key, entry in value.items()}


def mapping_of(read: Reader) -> Reader:
    """Return the reader of a mapping of names to values of one kind."""
    return lambda value, where: {
        key: read(entry, f"{where}.{key}") for key, entry in mapping(value, where).items()
    }


def items_of(read: Reader) -> Reader:
    """Return the reader of a list of items of one kind."""

    def read_all(value: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise UnreadableError(f"'{where}' must be a list, got {value!r:.60}")
        return tuple(read(item, f"{where}[{i}]") for i, item in enumerate(value))

    return read_all


def section(value: Any, where: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a section has, of known keys alone."""
    found = mapping(value, where or "the file")
    if unknown := sorted(found.keys() - known.keys()):
        raise UnreadableError(
            f"unknown key {unknown} in {where or 'the file'}; known keys: {sorted(known)}"
        )
    return {key: entry for key, entry in found.items() if entry is not None}


def built(kind: type[Any], **readers: Reader) -> Reader:
    """Return the reader of a section that gives the fields of a dataclass."""

    def read(value: Any, where: str) -> Any:
        given = section(value, where, readers)
        for field in fields(kind):
            required = field.default is MISSING and field.default_factory is MISSING
            if required and field.name not in given:
                raise UnreadableError(f"'{where}' must have a '{field.name}'")
        return kind(**{key: readers[key](entry, f"{where}.{key}") for key, entry in given.items()})

    return read
