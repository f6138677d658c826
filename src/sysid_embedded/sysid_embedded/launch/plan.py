# SPDX-License-Identifier: Apache-2.0
"""What a launch file comes to: processes to start, arguments it takes."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Argument", "Plan", "Process"]


@dataclass(frozen=True)
class Argument:
    """An argument that a launch file declares.

    Parameters
    ----------
    default : str or None
        None: it must be given.
    """

    name: str
    default: str | None
    description: str


@dataclass(frozen=True)
class Process:
    """A process to start.

    Parameters
    ----------
    name : str
        What to call it in front of its output.
    environment : dict
        All of its environment variables.
    """

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]


@dataclass
class Plan:
    """Everything that a launch file asks for, in order."""

    arguments: list[Argument] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
