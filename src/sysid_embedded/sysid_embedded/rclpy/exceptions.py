# SPDX-License-Identifier: Apache-2.0
"""Exceptions, as rclpy names them."""

# ruff: noqa: N818

from __future__ import annotations

from typing import Any

__all__ = [
    "InvalidHandle",
    "InvalidNamespaceException",
    "InvalidNodeNameException",
    "InvalidParameterException",
    "InvalidParameterTypeException",
    "InvalidParameterValueException",
    "InvalidServiceNameException",
    "InvalidTopicNameException",
    "NameValidationException",
    "NotInitializedException",
    "ParameterAlreadyDeclaredException",
    "ParameterException",
    "ParameterImmutableException",
    "ParameterNotDeclaredException",
    "ParameterUninitializedException",
]


class InvalidHandle(Exception):
    """An entity was used after it had been destroyed."""


class NotInitializedException(Exception):
    """rclpy.init() has not been called."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(
            "rclpy.init() has not been called." + (f" msg:{message}" if message else "")
        )


class NameValidationException(Exception):
    """A name breaks a rule."""

    def __init__(self, name_type: str, name: str, error_msg: str, invalid_index: int) -> None:
        pointer = " " * invalid_index + "^"
        super().__init__(f"Invalid {name_type}: {error_msg}:\n  '{name}'\n   {pointer}")
        self.name_type = name_type
        self.name = name
        self.error_msg = error_msg
        self.invalid_index = invalid_index


class InvalidNamespaceException(NameValidationException):
    """A namespace breaks a rule."""

    def __init__(self, name: str, error_msg: str, invalid_index: int) -> None:
        super().__init__("namespace", name, error_msg, invalid_index)


class InvalidNodeNameException(NameValidationException):
    """A node's name breaks a rule."""

    def __init__(self, name: str, error_msg: str, invalid_index: int) -> None:
        super().__init__("node name", name, error_msg, invalid_index)


class InvalidTopicNameException(NameValidationException):
    """A topic's name breaks a rule."""

    def __init__(self, name: str, error_msg: str, invalid_index: int) -> None:
        super().__init__("topic name", name, error_msg, invalid_index)


class InvalidServiceNameException(NameValidationException):
    """A service's name breaks a rule."""

    def __init__(self, name: str, error_msg: str, invalid_index: int) -> None:
        super().__init__("service name", name, error_msg, invalid_index)


class ParameterException(Exception):
    """Base of what can be wrong with parameters."""

    def __init__(self, error_msg: str, parameters: str | list[str]) -> None:
        super().__init__(f"{error_msg}: {parameters}")


class ParameterNotDeclaredException(ParameterException):
    """A parameter was used before it was declared."""

    def __init__(self, parameters: str | list[str]) -> None:
        super().__init__("Invalid access to undeclared parameter(s)", parameters)


class ParameterAlreadyDeclaredException(ParameterException):
    """A parameter was declared twice."""

    def __init__(self, parameters: str | list[str]) -> None:
        super().__init__("Parameter(s) already declared", parameters)


class InvalidParameterException(ParameterException):
    """A parameter's name breaks a rule."""

    def __init__(self, parameter_name: str) -> None:
        super().__init__("Invalid parameter name", parameter_name)


class InvalidParameterTypeException(ParameterException):
    """A parameter's value has another type than the declared one."""

    def __init__(self, desired_parameter: Any, expected_type: str) -> None:
        super().__init__(
            f"Trying to set parameter '{desired_parameter.name}' to "
            f"'{desired_parameter.value}' of type '{desired_parameter.type_.name}', "
            f"expecting type '{expected_type}'",
            desired_parameter.name,
        )


class InvalidParameterValueException(ParameterException):
    """A parameter's value was refused."""

    def __init__(self, parameter: str, value: Any, reason: str) -> None:
        super().__init__(
            f"Invalid parameter value ({value}) for parameter. Reason: {reason}", parameter
        )


class ParameterImmutableException(ParameterException):
    """A read-only parameter was to be changed."""

    def __init__(self, parameter_name: str) -> None:
        super().__init__("Attempted to modify read-only parameter", parameter_name)


class ParameterUninitializedException(ParameterException):
    """A parameter without a value was read."""

    def __init__(self, parameter_name: str) -> None:
        super().__init__("The parameter is not initialized", parameter_name)
