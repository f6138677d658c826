# SPDX-License-Identifier: Apache-2.0
"""Definitions of messages, services and actions, as rosbags reads them, and their hashes."""

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from .errors import DefinitionError

__all__ = ["Definition", "Field", "FieldType", "find", "names", "packages", "parse", "type_hash"]

Kind = Literal["scalar", "array", "sequence"]

_EMPTY_MEMBER = "structure_needs_at_least_one_member"

_SHARE = Path(__file__).parent / "share"
_SOURCE_TREE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class FieldType:
    """Type of a field."""

    base: str  # A primitive's name or the full name of a message, e.g. ``std_msgs/msg/Header``.
    kind: Kind = "scalar"
    """{"scalar", "array", "sequence"} whether it is one value, a fixed number of them, or a
    variable number."""
    size: int = 0  # Length of an array, bound of a sequence (0: unbounded)
    string_bound: int = 0  # Greatest length of a string (0: unbounded)

    @property
    def is_message(self) -> bool:
        """Whether the values are messages."""
        return "/" in self.base


class Field(NamedTuple):
    """A named field."""

    name: str
    type: FieldType


@dataclass(frozen=True)
class Definition:
    """A message, or a part of a service or of an action."""

    name: str  # Full name, e.g. ``sensor_msgs/msg/JointState`` or ``std_srvs/srv/Trigger_Request``
    fields: tuple[Field, ...]  # In the order of the definition; never empty
    constants: dict[str, Any]  # Name to value

    def __hash__(self) -> int:
        return hash(self.name)


def parse(text: str, name: str) -> Definition:
    """Read the text of a ``.msg`` file, or of one half of a ``.srv`` file.

    Raises
    ------
    DefinitionError
        If the text is not a definition.
    """
    return _from_rosbags(name, _parse(text, name))


def _parse(text: str, name: str) -> Any:
    """Return rosbags' form of a definition's text."""
    from rosbags.typesys import get_types_from_msg

    package, _, stem = name.split("/")
    try:  # names without a package are looked for beside the name that is given
        (found,) = get_types_from_msg(text, f"{package}/msg/{stem}").values()
    except Exception as error:  # the grammar raises errors of many kinds
        raise DefinitionError(f"{name}: {' '.join(str(error).split())}") from error
    constants, members = found
    return constants, [(field, _bytes_for_chars(kind)) for field, kind in members]


def _bytes_for_chars(description: Any) -> Any:
    """Return a field's type with ROS 2's own reading of ``char``: an unsigned byte."""
    node, detail = description
    if isinstance(detail, tuple) and isinstance(detail[0], tuple):
        return node, (_bytes_for_chars(detail[0]), detail[1])
    return node, ("uint8", 0) if detail == ("char", 0) else detail


@cache
def _typestore() -> Any:
    """Return the definitions of rosbags; those of files are added when they are first used."""
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    for name, (constants, members) in store.fielddefs.items():
        fields = [(field, _bytes_for_chars(kind)) for field, kind in members]
        store.fielddefs[name] = (constants, fields)
    return store


def _from_rosbags(name: str, found: Any) -> Definition:
    """Convert rosbags' form of a definition."""
    constants, members = found
    fields = []
    for field, (node, detail) in members:
        kind: Kind = "scalar"
        size = 0
        if int(node) in (3, 4):
            kind = "array" if int(node) == 3 else "sequence"
            (node, detail), size = detail
        base, bound = detail if int(node) == 1 else (detail, 0)
        base = {"octet": "byte"}.get(base, base)
        fields.append(Field(field, FieldType(base, kind, int(size), int(bound))))
    if not fields:
        fields = [Field(_EMPTY_MEMBER, FieldType("uint8"))]
    # a byte is a `bytes` of length one, as in rclpy's classes
    values = {key: bytes([value]) if base == "byte" else value for key, base, value in constants}
    return Definition(name, tuple(fields), values)


@cache
def _files() -> dict[str, Path]:
    """Return the definition files: the package's own, and sysid_msgs where its sources are.

    So are those of packages in the folders that `SYSID_INTERFACES` names, separated as in `PATH`.
    """
    found: dict[str, Path] = {}
    named = filter(None, os.environ.get("SYSID_INTERFACES", "").split(os.pathsep))
    others = [root for folder in named for root in sorted(Path(folder).expanduser().glob("*"))]
    roots = [*others, *_SHARE.iterdir(), _SOURCE_TREE / "sysid_msgs"]  # later ones win
    for root in roots:
        for folder in ("msg", "srv", "action"):
            for file in sorted(root.glob(f"{folder}/*.{folder}")):
                found[f"{root.name}/{folder}/{file.stem}"] = file
    return found


_PARTS = {"msg": ("",), "srv": ("Request", "Response"), "action": ("Goal", "Result", "Feedback")}
"""What the parts of a definition's text are."""
_GOAL_ID = ("goal_id", (2, "unique_identifier_msgs/msg/UUID"))


def _composed(action: str) -> dict[str, list[Any]]:
    """Return the members of what ROS 2 wraps an action's parts in, as rosbags has them."""
    return {
        "SendGoal_Request": [_GOAL_ID, ("goal", (2, f"{action}_Goal"))],
        "SendGoal_Response": [
            ("accepted", (1, ("bool", 0))),
            ("stamp", (2, "builtin_interfaces/msg/Time")),
        ],
        "GetResult_Request": [_GOAL_ID],
        "GetResult_Response": [("status", (1, ("int8", 0))), ("result", (2, f"{action}_Result"))],
        "FeedbackMessage": [_GOAL_ID, ("feedback", (2, f"{action}_Feedback"))],
    }


@cache
def find(name: str) -> Definition:
    """Return the definition of a message, or of a part of a service or of an action.

    Raises
    ------
    DefinitionError
        If nobody defines it.
    """
    package, folder, stem = name.split("/")
    stem, _, part = stem.partition("_")
    action = f"{package}/{folder}/{stem}"
    file = _files().get(action)
    store = _typestore().fielddefs
    if file is not None and part in _PARTS[folder]:
        texts = re.split(r"(?m)^---\s*$", file.read_text(encoding="utf-8"))
        store[name] = _parse(texts[_PARTS[folder].index(part)], name)
    elif file is not None and folder == "action" and part in _composed(action):
        store[name] = ([], _composed(action)[part])
    if name in store:
        return _from_rosbags(name, store[name])
    raise DefinitionError(
        f"{name} is not defined: add its {folder} file to the sysid_msgs package, or use a type "
        f"of {', '.join(sorted(packages()))}."
    )


@cache
def type_hash(definition: Definition) -> str:
    """Return the hash by which peers recognise the same definition (REP 2016, RIHS01)."""
    for field in definition.fields:
        if field.type.is_message:
            type_hash(find(field.type.base))  # so that the store knows it
    return str(_typestore().hash_rihs01(definition.name))


@cache
def packages() -> frozenset[str]:
    """Return the names of the packages that have definitions."""
    return frozenset(key.split("/")[0] for key in (*_typestore().fielddefs, *_files()))


@cache
def names(package: str, folder: str) -> tuple[str, ...]:
    """Return the names of a package's messages (`folder` msg), services (srv) or actions."""
    keys = (*_typestore().fielddefs, *_files())
    start = f"{package}/{folder}/"
    return tuple(sorted({key[len(start) :] for key in keys if key.startswith(start)}))
