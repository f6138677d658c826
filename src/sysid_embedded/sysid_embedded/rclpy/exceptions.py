# SPDX-License-Identifier: Apache-2.0
"""Exceptions, as rclpy names them."""

# ruff: noqa: N818

from __future__ import annotations

from typing import Any

__all__ = [
    "InvalidHandle",
    "InvalidNamespaceException",
    "InvalidNodeNameException",
    "InvalidParameterTypeException",
    "InvalidParameterValueException",
    "InvalidServiceNameException",
    "InvalidTopicNameException",
    "NameValidationException",
    "NotInitializedException",
    "ParameterAlreadyDeclaredException",
    "ParameterException",
    "ParameterNotDeclaredException",
]


class InvalidHandle(Exception):
    """An entity was used after it had been destroyed."""


class NotInitializedException(Exception):
    """rclpy.init() has not been called."""


class NameValidationException(Exception):
    """A name breaks a rule."""

    kind = "name"

    def __init__(self, name: str, fault: str, index: int) -> None:
        super().__init__(f"Invalid {self.kind}: {fault}:\n  '{name}'\n   {' ' * index}^")


class InvalidNamespaceException(NameValidationException):
    """A namespace breaks a rule."""

    kind = "namespace"


class InvalidNodeNameException(NameValidationException):
    """A node's name breaks a rule."""

    kind = "node name"


class InvalidTopicNameException(NameValidationException):
    """A topic's name breaks a rule."""

    kind = "topic name"


class InvalidServiceNameException(NameValidationException):
    """A service's name breaks a rule."""

    kind = "service name"


class ParameterException(Exception):
    """Base of what can be wrong with parameters."""


class ParameterNotDeclaredException(ParameterException):
    """A parameter was used before it was declared."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Invalid access to undeclared parameter(s): {name}")


class ParameterAlreadyDeclaredException(ParameterException):
    """A parameter was declared twice."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Parameter(s) already declared: {name}")


class InvalidParameterTypeException(ParameterException):
    """A parameter's value has another type than the declared one."""

    def __init__(self, parameter: Any, expected_type: str) -> None:
        super().__init__(
            f"Trying to set parameter '{parameter.name}' to '{parameter.value}' of type "
            f"'{parameter.type_.name}', expecting type '{expected_type}': {parameter.name}"
        )


class InvalidParameterValueException(ParameterException):
    """A parameter's value was refused."""

    def __init__(self, name: str, value: Any, reason: str) -> None:
        super().__init__(
            f"Invalid parameter value ({value}) for parameter. Reason: {reason}: {name}"
        )
