# SPDX-License-Identifier: Apache-2.0
"""Exceptions, as rclpy names them."""

# ruff: noqa: N818

__all__ = [
    "InvalidHandle",
    "NameValidationException",
    "NotInitializedException",
    "ParameterException",
]


class InvalidHandle(Exception):
    """An entity was used after it had been destroyed."""


class NotInitializedException(Exception):
    """rclpy.init() has not been called."""


class NameValidationException(Exception):
    """A name breaks a rule."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(
            f"Invalid {kind} '{name}': each part is made of letters, digits and '_', and does "
            "not begin with a digit"
        )


class ParameterException(Exception):
    """A parameter is not declared, or its value does not fit."""
