# SPDX-License-Identifier: Apache-2.0
"""Parameters."""

from __future__ import annotations

from array import array
from enum import Enum
from typing import Any

from sysid_embedded.messages import message_class
from sysid_embedded.params_yaml import parse_value

__all__ = [
    "PARAMETER_SEPARATOR_STRING",
    "Parameter",
    "get_parameter_value",
    "parameter_value_to_python",
]

PARAMETER_SEPARATOR_STRING = "."
ParameterValue: Any = message_class("rcl_interfaces/msg/ParameterValue")
ParameterMsg: Any = message_class("rcl_interfaces/msg/Parameter")

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


class Parameter:
    """A named value.

    Parameters
    ----------
    name : str
    type_ : Parameter.Type, optional
        Default: what the value is.
    value : bool, int, float, str, bytes or a sequence of one of them, optional
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

        @classmethod
        def from_parameter_value(cls, parameter_value: Any) -> Parameter.Type:
            """Return the type of a value.

            Raises
            ------
            TypeError
                If no parameter can hold it.
            """
            scalars = {bool: cls.BOOL, int: cls.INTEGER, float: cls.DOUBLE, str: cls.STRING}
            if parameter_value is None:
                return cls.NOT_SET
            for kind, result in scalars.items():
                if isinstance(parameter_value, kind):
                    return result
            if isinstance(parameter_value, (list, tuple, array)):
                kinds = {
                    bytes: cls.BYTE_ARRAY,
                    bool: cls.BOOL_ARRAY,
                    int: cls.INTEGER_ARRAY,
                    float: cls.DOUBLE_ARRAY,
                    str: cls.STRING_ARRAY,
                }
                for kind, result in kinds.items():
                    if all(isinstance(value, kind) for value in parameter_value):
                        return result
                raise TypeError("The given value is not a list of one of the allowed types.")
            raise TypeError("The given value is not one of the allowed types.")

        def check(self, parameter_value: Any) -> bool:
            """Whether a value is of this type."""
            if self is Parameter.Type.NOT_SET:
                return parameter_value is None
            if isinstance(parameter_value, (list, tuple, array)) and not len(parameter_value):
                return self.value >= Parameter.Type.BYTE_ARRAY.value
            try:
                return Parameter.Type.from_parameter_value(parameter_value) is self
            except TypeError:
                return False

    @classmethod
    def from_parameter_msg(cls, param_msg: Any) -> Parameter:
        """Return it from a message."""
        return cls(
            param_msg.name,
            Parameter.Type(param_msg.value.type),
            parameter_value_to_python(param_msg.value),
        )

    def __init__(self, name: str, type_: Parameter.Type | None = None, value: Any = None) -> None:
        if type_ is None:
            type_ = Parameter.Type.from_parameter_value(value)
        if not isinstance(type_, Parameter.Type):
            raise TypeError(f"type must be an instance of '{Parameter.Type!r}'")
        if not type_.check(value):
            raise ValueError(f"Type '{type_}' and value '{value}' do not agree")
        self._name = name
        self._type = type_
        self._value = value

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def type_(self) -> Parameter.Type:
        """What the value is."""
        return self._type

    @property
    def value(self) -> Any:
        """The value."""
        return self._value

    def __repr__(self) -> str:
        return f"Parameter(name={self._name!r}, type={self._type.name}, value={self._value!r})"

    def get_parameter_value(self) -> Any:
        """Return the value as a `rcl_interfaces/ParameterValue`."""
        message = ParameterValue(type=self._type.value)
        field = _FIELDS[self._type.value]
        if field is not None:
            setattr(message, field, self._value)
        return message

    def to_parameter_msg(self) -> Any:
        """Return it as a `rcl_interfaces/Parameter`."""
        return ParameterMsg(name=self._name, value=self.get_parameter_value())


def parameter_value_to_python(parameter_value: Any) -> Any:
    """Return the value that a `rcl_interfaces/ParameterValue` holds."""
    if not 0 <= parameter_value.type < len(_FIELDS):
        raise RuntimeError(f"unexpected parameter type {parameter_value.type}")
    field = _FIELDS[parameter_value.type]
    return None if field is None else getattr(parameter_value, field)


def get_parameter_value(string_value: str) -> Any:
    """Return the `rcl_interfaces/ParameterValue` that a text means."""
    return Parameter("", value=parse_value(string_value)).get_parameter_value()
