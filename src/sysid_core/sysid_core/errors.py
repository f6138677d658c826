# SPDX-License-Identifier: Apache-2.0
"""The exceptions of sysid: one base, one kind per sort of trouble, each saying how to mend it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sysid_core.wording import printable

__all__ = [
    "DataError",
    "EstimationError",
    "ModelError",
    "OutputError",
    "ParameterError",
    "RobotError",
    "SysidError",
    "UnknownRobotError",
    "UnreadableError",
    "found_in",
]


class SysidError(Exception):
    """Base of every error that sysid raises on purpose; its message is one line for a user."""

    def __str__(self) -> str:
        return printable(" ".join(super().__str__().splitlines()))


class _LocatedError(SysidError):
    """An error in a file, topic or array, its `source`."""

    def __init__(self, message: str, *, source: str = "") -> None:
        super().__init__(f"{source}: {message}" if source else message)
        self.source = source


class DataError(_LocatedError):
    """Recorded or live data cannot be used as they are."""


@contextmanager
def found_in(source: object) -> Iterator[None]:
    """Let data and robot errors that arise within name their source, unless they do already."""
    try:
        yield
    except _LocatedError as error:
        if not error.source:
            error.source = str(source)
            error.args = (f"{source}: {error.args[0]}",)
        raise


class UnreadableError(SysidError):
    """A file is none that can be read; whoever asked for it adds its name and how to mend it."""


class RobotError(_LocatedError):
    """A robot description or its URDF is missing, malformed or contradicts itself."""


class UnknownRobotError(RobotError):
    """No robot description of that `name` exists; `known` are those that do."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        names = ", ".join(known) if known else "none found"
        super().__init__(
            f"unknown robot '{name}'; known robots: {names}. "
            "Give one of these, the path of a robot description, "
            "or make one with 'sysid init my.urdf'"
        )
        self.name, self.known = name, known


class ModelError(SysidError):
    """A model does not belong to the robot or the arrays that it is used with."""


class ParameterError(SysidError):
    """A setting or a parameter vector lies outside what is allowed."""


class EstimationError(SysidError):
    """An identification problem has no usable solution."""


class OutputError(SysidError):
    """A result cannot be written where it should go."""
