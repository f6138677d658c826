# SPDX-License-Identifier: Apache-2.0
"""Cyclone DDS types of messages and of service requests and replies, with ROS 2's type names."""

from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from cyclonedds import idl as _idl

from .interfaces import Definition, FieldType, find

__all__ = ["dds_type"]

# The library annotates its types for use in class bodies only.
types: Any = _idl.types

_PRIMITIVES: dict[str, Any] = {"bool": bool, "byte": types.uint8, "string": str}
"""Types that are not named as those of the library."""


def _member(kind: FieldType) -> Any:
    base: Any
    if kind.is_message:
        base = dds_type(find(kind.base))
    elif kind.string_bound:
        base = types.bounded_str[kind.string_bound]
    else:
        base = _PRIMITIVES.get(kind.base) or getattr(types, kind.base)
    if kind.kind == "array":
        return types.array[base, kind.size]
    if kind.kind == "sequence":
        return types.sequence[base, kind.size] if kind.size else types.sequence[base]
    return base


@cache
def dds_type(definition: Definition, *, service: bool = False) -> type[_idl.IdlStruct]:
    """Return the Cyclone DDS type of a definition, to create topics of.

    That of a `service` begins with the client's identity and the number of the request, as
    rmw_cyclonedds has them.
    """
    members: dict[str, Any] = {}
    if service:
        members = {"client_guid_": types.uint64, "sequence_number_": types.int64}
    members |= {f"{field.name}_": _member(field.type) for field in definition.fields}
    package, folder, stem = definition.name.split("/")
    namespace = {
        "__module__": __name__,
        "__annotations__": members,
        "__idl_typename__": f"{package}::{folder}::dds_::{stem}_",
        "__idl_annotations__": {"extensibility": "final"},
        "__idl_field_annotations__": {},
    }
    metaclass: Any = type(_idl.IdlStruct)
    made = metaclass(f"{stem}_", (_idl.IdlStruct,), namespace)
    return cast("type[_idl.IdlStruct]", dataclass(made))
