# SPDX-License-Identifier: Apache-2.0
"""Classes of messages, services and actions, with the types of fields that rclpy has."""

from array import array
from collections.abc import Callable, Iterable
from functools import cache, partial
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np

from .interfaces import Definition, FieldType, find

__all__ = [
    "ARRAY_CODES",
    "NUMPY_TYPES",
    "Message",
    "action_class",
    "message_class",
    "service_class",
]

# Type codes of `array.array` for sequences of numbers; the others are plain lists.
ARRAY_CODES = {
    "float32": "f",
    "float64": "d",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
}
NUMPY_TYPES = {base: np.dtype(base) for base in ARRAY_CODES}
# Of a field with one value: the type that rclpy demands, and its default.
_SCALARS: dict[str, tuple[type, Any]] = {
    "string": (str, ""),
    "bool": (bool, False),
    "byte": (bytes, b"\x00"),
    "float32": (float, 0.0),
    "float64": (float, 0.0),
}
_IDL_NAMES = {"bool": "boolean", "byte": "octet", "float32": "float", "float64": "double"}
_DEFAULTS = {"geometry_msgs/msg/Quaternion": {"w": 1.0}}
"""What rosbags leaves out of the standard definitions."""

Setter = Callable[[Any, Any], None]


class Message:
    """Base of every message class; fields are properties over slots, as in rclpy's classes."""

    __slots__ = ()
    definition: Definition
    # in capitals, for no field's name has any
    _MAKERS: tuple[tuple[Setter, Callable[[], Any]], ...]
    _TYPES: dict[str, str]

    def __init__(self, **fields: Any) -> None:
        for slot, default in self._MAKERS:
            slot(self, default())
        for name, value in fields.items():
            if name not in self._TYPES:
                raise AssertionError(
                    f"Invalid arguments passed to constructor: {name} is no field of "
                    f"{self.definition.name}; its fields are {', '.join(self._TYPES)}."
                )
            setattr(self, name, value)

    @classmethod
    def get_fields_and_field_types(cls) -> dict[str, str]:
        """Return each field's name and the name of its type."""
        return dict(cls._TYPES)

    def __repr__(self) -> str:
        package, folder, name = self.definition.name.split("/")
        fields = ", ".join(f"{key}={getattr(self, key)!r}" for key in self._TYPES)
        return f"{package}.{folder}.{name}({fields})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, self.__class__):
            return NotImplemented
        return all(
            bool(np.array_equal(mine, theirs)) if isinstance(mine, np.ndarray) else mine == theirs
            for mine, theirs in ((getattr(self, k), getattr(other, k)) for k in self._TYPES)
        )

    __hash__ = None  # type: ignore[assignment]


def _reject(where: str, wanted: str, value: Any) -> AssertionError:
    kind = type(value).__name__
    return AssertionError(f"The '{where}' field must be {wanted}, not {kind} {value!r:.60}")


def _scalar_setter(slot: Setter, where: str, kind: type, wanted: str) -> Setter:
    def assign(self: Any, value: Any) -> None:
        if not isinstance(value, kind):
            raise _reject(where, wanted, value)
        slot(self, value)

    return assign


def _integer_setter(slot: Setter, where: str, base: str) -> Setter:
    limits = np.iinfo(NUMPY_TYPES[base])
    low, high = int(limits.min), int(limits.max)

    def assign(self: Any, value: Any) -> None:
        if not isinstance(value, int) or not low <= value <= high:
            raise _reject(where, f"an integer in [{low}, {high}]", value)
        slot(self, value)

    return assign


def _fixed_setter(slot: Setter, where: str, base: str, size: int) -> Setter:
    dtype = NUMPY_TYPES[base]

    def assign(self: Any, value: Any) -> None:
        numbers = np.array(value, dtype=dtype)
        if numbers.shape != (size,):
            raise _reject(where, f"a set or sequence with length {size}", value)
        slot(self, numbers)

    return assign


def _numbers_setter(slot: Setter, where: str, base: str, bound: int) -> Setter:
    code, dtype = ARRAY_CODES[base], NUMPY_TYPES[base]

    def assign(self: Any, value: Any) -> None:
        if isinstance(value, np.ndarray):
            if value.ndim != 1:
                raise _reject(where, "one-dimensional", value)
            numbers = array(code, np.ascontiguousarray(value, dtype=dtype).tobytes())
        else:
            try:
                numbers = array(code, value)
            except (TypeError, OverflowError) as error:
                raise _reject(where, f"a sequence of {base}", value) from error
        if bound and len(numbers) > bound:
            raise _reject(where, f"a sequence of at most {bound}", value)
        slot(self, numbers)

    return assign


def _list_setter(slot: Setter, where: str, kind: FieldType) -> Setter:
    def assign(self: Any, value: Any) -> None:
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise _reject(where, f"a sequence of {kind.base}", value)
        items = value if isinstance(value, list) else list(value)
        if kind.kind == "array" and len(items) != kind.size:
            raise _reject(where, f"a sequence with length {kind.size}", value)
        if kind.kind == "sequence" and kind.size and len(items) > kind.size:
            raise _reject(where, f"a sequence of at most {kind.size}", value)
        slot(self, items)

    return assign


def _setter(slot: Setter, where: str, kind: FieldType) -> Setter:
    """Return the function that checks and converts a value as far as rclpy's classes do."""
    if kind.kind != "scalar":
        if kind.base not in ARRAY_CODES:
            return _list_setter(slot, where, kind)
        if kind.kind == "array":
            return _fixed_setter(slot, where, kind.base, kind.size)
        return _numbers_setter(slot, where, kind.base, kind.size)
    if kind.is_message:
        cls = message_class(kind.base)
        return _scalar_setter(slot, where, cls, f"a sub message of type '{cls.__name__}'")
    if kind.base in _SCALARS:
        demanded, _ = _SCALARS[kind.base]
        return _scalar_setter(slot, where, demanded, f"of type '{demanded.__name__}'")
    return _integer_setter(slot, where, kind.base)


def _default(kind: FieldType) -> Callable[[], Any]:
    """Return the function that makes a field's default."""
    if kind.kind == "sequence":
        code = ARRAY_CODES.get(kind.base)
        return list if code is None else partial(array, code)
    if kind.kind == "array":
        if kind.base in NUMPY_TYPES:
            return partial(np.zeros, kind.size, NUMPY_TYPES[kind.base])
        make = _default(FieldType(kind.base))
        return lambda: [make() for _ in range(kind.size)]
    if kind.is_message:
        return message_class(kind.base)
    _, zero = _SCALARS.get(kind.base, (int, 0))
    return lambda: zero


def _type_name(kind: FieldType) -> str:
    """Return the name that `get_fields_and_field_types` gives to a type."""
    if kind.is_message:
        package, _, name = kind.base.split("/")
        base = f"{package}/{name}"
    else:
        base = _IDL_NAMES.get(kind.base, kind.base)
        base += f"<{kind.string_bound}>" if kind.string_bound else ""
    if kind.kind == "array":
        return f"{base}[{kind.size}]"
    if kind.kind == "sequence":
        return f"sequence<{base}, {kind.size}>" if kind.size else f"sequence<{base}>"
    return base


@cache
def message_class(name: str) -> Any:
    """Return the class of a message or of a service's half.

    Raises
    ------
    DefinitionError
        If the message, or one that it contains, is not defined.
    """
    definition = find(name)
    namespace: dict[str, Any] = {
        "__slots__": tuple(f"_{field.name}" for field in definition.fields),
        "definition": definition,
        **definition.constants,
    }
    cls = _named_class(name, namespace, Message)
    cls._TYPES = {field.name: _type_name(field.type) for field in definition.fields}
    given = _DEFAULTS.get(name, {})
    defaults: list[tuple[Setter, Callable[[], Any]]] = []
    for field in definition.fields:
        slot: Setter = cls.__dict__[f"_{field.name}"].__set__
        assign = _setter(slot, field.name, field.type)
        setattr(cls, field.name, property(attrgetter(f"_{field.name}"), assign))
        known = partial(given.get, field.name) if field.name in given else None
        defaults.append((slot, known or _default(field.type)))
    cls._MAKERS = tuple(defaults)
    return cls


def _named_class(name: str, namespace: dict[str, Any], *bases: type) -> Any:
    """Make a class that shows where its interface is defined."""
    package, folder, stem = name.split("/")
    return type(stem, bases, {"__module__": f"{package}.{folder}", **namespace})


@cache
def service_class(name: str) -> Any:
    """Return the class of a service, which holds its `Request` and `Response` classes."""
    parts = {part: message_class(f"{name}_{part}") for part in ("Request", "Response")}
    return _named_class(name, {**parts, "service_name": name})


@cache
def action_class(name: str) -> Any:
    """Return the class of an action, which holds its `Goal`, `Result` and `Feedback` classes."""
    parts = {part: message_class(f"{name}_{part}") for part in ("Goal", "Result", "Feedback")}
    wrapped = SimpleNamespace(
        SendGoalService=service_class(f"{name}_SendGoal"),
        GetResultService=service_class(f"{name}_GetResult"),
        CancelGoalService=service_class("action_msgs/srv/CancelGoal"),
        FeedbackMessage=message_class(f"{name}_FeedbackMessage"),
        GoalStatusMessage=message_class("action_msgs/msg/GoalStatusArray"),
    )
    return _named_class(name, {**parts, "Impl": wrapped})
