# SPDX-License-Identifier: Apache-2.0
"""Type hashes of ROS 2 (REP 2016, RIHS01), by which peers recognise the same definition."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any

from .interfaces import Definition, Field, find

__all__ = ["type_hash"]

_IDS = {
    "int8": 2,
    "uint8": 3,
    "int16": 4,
    "uint16": 5,
    "int32": 6,
    "uint32": 7,
    "int64": 8,
    "uint64": 9,
    "float32": 10,
    "float64": 11,
    # ROS 2 turns the char of a .msg file into an unsigned byte.
    "char": 3,
    "bool": 15,
    "byte": 16,
    "string": 17,
}
_MESSAGE_ID = 1
_BOUNDED_STRING_ID = 21
_ARRAY, _BOUNDED_SEQUENCE, _SEQUENCE = 48, 96, 144


def _field(field: Field) -> dict[str, Any]:
    kind = field.type
    base = _MESSAGE_ID if kind.is_message else _IDS[kind.base]
    if kind.string_bound:
        base = _BOUNDED_STRING_ID
    if kind.kind == "array":
        base += _ARRAY
    elif kind.kind == "sequence":
        base += _BOUNDED_SEQUENCE if kind.size else _SEQUENCE
    return {
        "name": field.name,
        "type": {
            "type_id": base,
            "capacity": kind.size,
            "string_capacity": kind.string_bound,
            "nested_type_name": kind.base if kind.is_message else "",
        },
    }


def _collect(definition: Definition, found: dict[str, dict[str, Any]]) -> None:
    """Add the description of a type and of all types that it refers to."""
    found[definition.name] = {
        "type_name": definition.name,
        "fields": [_field(field) for field in definition.fields],
    }
    for field in definition.fields:
        if field.type.is_message and field.type.base not in found:
            _collect(find(field.type.base), found)


@cache
def type_hash(definition: Definition) -> str:
    """Return the RIHS01 hash of a message.

    Parameters
    ----------
    definition : Definition

    Returns
    -------
    str
        ``RIHS01_`` and 64 hexadecimal digits.
    """
    found: dict[str, dict[str, Any]] = {}
    _collect(definition, found)
    description = {
        "type_description": found.pop(definition.name),
        "referenced_type_descriptions": [found[name] for name in sorted(found)],
    }
    digest = hashlib.sha256(json.dumps(description).encode()).hexdigest()
    return f"RIHS01_{digest}"
