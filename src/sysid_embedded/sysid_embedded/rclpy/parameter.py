# SPDX-License-Identifier: Apache-2.0
"""Parameters."""

from __future__ import annotations

from array import array
from enum import Enum
from typing import Any

from sysid_embedded.messages import message_class

__all__ = ["Parameter"]

_FIELDS = (
    None,
    "bool_value",
    "integer_value",
    "double_value",
    "string_value",
    "byte_array_value",
    "bool_array_value",
    "integer_array_value",
    "double_array_value",
    "string_array_value",
)
# The first type that fits counts: True is an int too, and an empty list fits all of them.
_SCALARS = {bool: 1, int: 2, float: 3, str: 4}
_ITEMS = {bytes: 5, bool: 6, int: 7, float: 8, str: 9}


class Parameter:
    """A named value.

    Raises
    ------
    TypeError
        If no parameter can hold the value.
    ValueError
        If the value is not of the type.
    """

    class Type(Enum):
        """What a parameter's value is."""

        NOT_SET = 0
        BOOL = 1
        INTEGER = 2
        DOUBLE = 3
        STRING = 4
        BYTE_ARRAY = 5
        BOOL_ARRAY = 6
        INTEGER_ARRAY = 7
        DOUBLE_ARRAY = 8
        STRING_ARRAY = 9

    def __init__(self, name: str, type_: Parameter.Type | None = None, value: Any = None) -> None:
        found = _type_of(value)
        self.name = name
        self.type_ = found if type_ is None else type_
        self.value = value
        empty = found.value >= Parameter.Type.BYTE_ARRAY.value and not len(value)
        fits = self.type_.value >= Parameter.Type.BYTE_ARRAY.value if empty else False
        if self.type_ is not found and not fits:
            raise ValueError(f"Type '{type_}' and value '{value}' do not agree")

    def __repr__(self) -> str:
        return f"Parameter(name={self.name!r}, type={self.type_.name}, value={self.value!r})"

    @classmethod
    def from_parameter_msg(cls, param_msg: Any) -> Parameter:
        """Return it from a `rcl_interfaces/Parameter`.

        Raises
        ------
        ValueError
            If the message names a type that does not exist.
        """
        kind = Parameter.Type(param_msg.value.type)
        field = _FIELDS[kind.value]
        value = None if field is None else getattr(param_msg.value, field)
        return cls(param_msg.name, kind, value)

    def get_parameter_value(self) -> Any:
        message = message_class("rcl_interfaces/msg/ParameterValue")(type=self.type_.value)
        field = _FIELDS[self.type_.value]
        if field is not None:
            setattr(message, field, self.value)
        return message

    def to_parameter_msg(self) -> Any:
        cls = message_class("rcl_interfaces/msg/Parameter")
        return cls(name=self.name, value=self.get_parameter_value())


def _type_of(value: Any) -> Parameter.Type:
    if value is None:
        return Parameter.Type.NOT_SET
    if isinstance(value, (list, tuple, array)):
        for kind, number in _ITEMS.items():
            if all(isinstance(item, kind) for item in value):
                return Parameter.Type(number)
    for kind, number in _SCALARS.items():
        if isinstance(value, kind):
            return Parameter.Type(number)
    raise TypeError(f"The given value is not of one of the allowed types: {value!r:.60}")
