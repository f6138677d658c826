# SPDX-License-Identifier: Apache-2.0
"""What a launch file comes to: processes to start, messages to print, arguments it takes."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Argument", "Message", "Plan", "Process"]


@dataclass(frozen=True)
class Argument:
    """An argument that a launch file declares.

    Parameters
    ----------
    name, description : str
    default : str or None
        None: it must be given.
    choices : tuple of str
        Empty: anything goes.
    """

    name: str
    default: str | None
    description: str
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Message:
    """A line to print.

    Parameters
    ----------
    text : str
    delay : float
        After the start [s].
    """

    text: str
    delay: float = 0.0


@dataclass(frozen=True)
class Process:
    """A process to start.

    Parameters
    ----------
    name : str
        What to call it in front of its output.
    command : tuple of str
    environment : dict
        All of its environment variables.
    delay : float
        After the start of everything [s].
    cwd : str
        Empty: where the launch was started.
    respawn : bool
        Start it again when it ends.
    respawn_delay : float
        Before it is started again [s].
    shutdown_on_exit : bool
        Stop everything when it ends.
    """

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    delay: float = 0.0
    cwd: str = ""
    respawn: bool = False
    respawn_delay: float = 0.0
    shutdown_on_exit: bool = False


@dataclass
class Plan:
    """Everything that a launch file asks for, in order."""

    arguments: list[Argument] = field(default_factory=list)
    steps: list[Process | Message] = field(default_factory=list)
