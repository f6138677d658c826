# SPDX-License-Identifier: Apache-2.0
"""Classes of messages, services and actions, with the types of fields that rclpy has."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np

from .interfaces import Definition, Field, FieldType, find

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
_IDL_NAMES = {"bool": "boolean", "byte": "octet", "float32": "float"}
_IDL_NAMES["float64"] = "double"

Setter = Callable[[Any, Any], None]


class Message:
    """Base of every message class; fields are properties over slots, as in rclpy's classes."""

    __slots__ = ()
    definition: Definition

    def __init__(self, **fields: Any) -> None:
        for slot, default in self._defaults():
            slot(self, default())
        names = self._field_types()
        for name, value in fields.items():
            if name not in names:
                raise AssertionError(
                    f"Invalid arguments passed to constructor: {name} is no field of "
                    f"{self.definition.name}; its fields are {', '.join(names)}."
                )
            setattr(self, name, value)

    @classmethod
    def _defaults(cls) -> tuple[tuple[Setter, Callable[[], Any]], ...]:
        raise NotImplementedError

    @classmethod
    def _field_types(cls) -> dict[str, str]:
        raise NotImplementedError

    @classmethod
    def get_fields_and_field_types(cls) -> dict[str, str]:
        """Return each field's name and the name of its type."""
        return dict(cls._field_types())

    def __repr__(self) -> str:
        package, folder, name = self.definition.name.split("/")
        fields = ", ".join(f"{key}={getattr(self, key)!r}" for key in self._field_types())
        return f"{package}.{folder}.{name}({fields})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, self.__class__):
            return NotImplemented
        return all(
            bool(np.array_equal(mine, theirs)) if isinstance(mine, np.ndarray) else mine == theirs
            for mine, theirs in (
                (getattr(self, k), getattr(other, k)) for k in self._field_types()
            )
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
    if kind.base == "string":
        return _scalar_setter(slot, where, str, "of type 'str'")
    if kind.base == "bool":
        return _scalar_setter(slot, where, bool, "of type 'bool'")
    if kind.base == "byte":
        return _scalar_setter(slot, where, bytes, "of type 'bytes'")
    if kind.base.startswith("float"):
        return _scalar_setter(slot, where, float, "of type 'float'")
    return _integer_setter(slot, where, kind.base)


def _default(field: Field) -> Callable[[], Any]:
    """Return the function that makes a field's default."""
    kind, default = field.type, field.default
    if kind.kind == "sequence":
        if kind.base in ARRAY_CODES:
            code, values = ARRAY_CODES[kind.base], default or []
            return lambda: array(code, values)
        return lambda: list(default or [])
    if kind.kind == "array":
        if kind.base in NUMPY_TYPES:
            dtype, values = NUMPY_TYPES[kind.base], default or [0] * kind.size
            return lambda: np.array(values, dtype=dtype)
        make = _default(Field(field.name, FieldType(kind.base)))
        return lambda: default or [make() for _ in range(kind.size)]
    if kind.is_message:
        return message_class(kind.base)
    zeros: dict[str, Any] = {"string": "", "bool": False, "byte": b"\x00"}
    value = zeros.get(kind.base, 0.0 if kind.base.startswith("float") else 0)
    value = value if default is None else type(value)(default)
    return lambda: value


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
    package, folder, stem = name.split("/")
    namespace: dict[str, Any] = {
        "__slots__": tuple(f"_{field.name}" for field in definition.fields),
        "__module__": f"{package}.{folder}",
        "__doc__": f"Message class '{stem}'.",
        "definition": definition,
        **definition.constants,
    }
    cls: type[Message] = type(stem, (Message,), namespace)
    types = {field.name: _type_name(field.type) for field in definition.fields}
    defaults = []
    for field in definition.fields:
        slot: Setter = cls.__dict__[f"_{field.name}"].__set__
        assign = _setter(slot, field.name, field.type)
        setattr(cls, field.name, property(attrgetter(f"_{field.name}"), assign))
        defaults.append((slot, _default(field)))
    frozen = tuple(defaults)
    cls._defaults = classmethod(lambda _: frozen)  # type: ignore[assignment]
    cls._field_types = classmethod(lambda _: types)  # type: ignore[assignment]
    return cls


@cache
def service_class(name: str) -> Any:
    """Return the class of a service, which holds its `Request` and `Response` classes."""
    package, folder, stem = name.split("/")
    request, response = message_class(f"{name}_Request"), message_class(f"{name}_Response")
    return type(
        stem,
        (),
        {
            "__module__": f"{package}.{folder}",
            "__doc__": f"Service class '{stem}'.",
            "Request": request,
            "Response": response,
            "service_name": name,
        },
    )


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
    package, folder, stem = name.split("/")
    return type(stem, (), {"__module__": f"{package}.{folder}", "Impl": wrapped, **parts})
