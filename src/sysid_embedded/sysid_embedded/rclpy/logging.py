# SPDX-License-Identifier: Apache-2.0
"""Loggers: lines go to standard error in ROS 2's form, and to /rosout."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from enum import IntEnum
from types import FrameType
from typing import NamedTuple

from sysid_embedded.arguments import Arguments

__all__ = ["LoggingSeverity", "RcutilsLogger", "get_logger", "set_logger_level"]

_FORMAT = "[{severity}] [{time}] [{name}]: {message}"
_COLOURS = {"DEBUG": "\033[32m", "WARN": "\033[33m", "ERROR": "\033[31m", "FATAL": "\033[31m"}


class LoggingSeverity(IntEnum):
    """How grave a message is."""

    UNSET = 0
    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40
    FATAL = 50


class Record(NamedTuple):
    """One log line and where it came from."""

    severity: LoggingSeverity
    time_ns: int
    name: str
    message: str
    file: str
    function: str
    line: int


class _LogSystem:
    """The levels of all loggers, and where else the lines of nodes go."""

    def __init__(self) -> None:
        self.levels: dict[str, int] = {"": LoggingSeverity.INFO}
        self._outlets: dict[str, Callable[[Record], None]] = {}
        self._lock = threading.Lock()

    def effective_level(self, name: str) -> int:
        """Return the level that holds for a logger: its own or that of its nearest ancestor."""
        while name and name not in self.levels:
            name = name.rpartition(".")[0]
        return self.levels[name]

    def add_outlet(self, name: str, outlet: Callable[[Record], None]) -> None:
        """Send the lines of a logger and of its children to a function too."""
        with self._lock:
            self._outlets[name] = outlet

    def remove_outlet(self, name: str) -> None:
        """Undo `add_outlet`."""
        with self._lock:
            self._outlets.pop(name, None)

    def emit(self, record: Record) -> None:
        """Write a line out."""
        _print(record)
        with self._lock:
            outlets = list(self._outlets.items())
        for name, outlet in outlets:
            if record.name == name or record.name.startswith(f"{name}."):
                outlet(record)


_system = _LogSystem()


def _print(record: Record) -> None:
    line = os.environ.get("RCUTILS_CONSOLE_OUTPUT_FORMAT") or _FORMAT
    seconds, nanoseconds = divmod(record.time_ns, 10**9)
    values = {
        "severity": record.severity.name,
        "time": f"{seconds}.{nanoseconds:09d}",
        "name": record.name,
        "message": record.message,
        "function_name": record.function,
        "file_name": record.file,
        "line_number": str(record.line),
    }
    for key, value in values.items():
        line = line.replace(f"{{{key}}}", value)
    coloured = os.environ.get("RCUTILS_COLORIZED_OUTPUT")
    colour = _COLOURS.get(record.severity.name, "")
    if colour and (coloured == "1" or (coloured != "0" and sys.stderr.isatty())):
        line = f"{colour}{line}\033[0m"
    # One call per line, so that processes that share a terminal don't mix their lines.
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _configure(arguments: Arguments) -> None:
    """Set the level that the command line asks for."""
    name = arguments.log_level.upper()
    if not name:
        return
    if name not in LoggingSeverity.__members__:
        known = ", ".join(level.name for level in LoggingSeverity)
        raise ValueError(f"'{arguments.log_level}' is not a log level; use one of {known}.")
    set_logger_level("", LoggingSeverity[name])


class RcutilsLogger:
    """A named logger."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _log(self, message: str, severity: LoggingSeverity) -> bool:
        if severity < _system.effective_level(self.name):
            return False
        frame: FrameType = sys._getframe(2)
        code = frame.f_code
        _system.emit(
            Record(
                severity=severity,
                time_ns=time.time_ns(),
                name=self.name,
                message=str(message),
                file=os.path.abspath(code.co_filename),  # noqa: PTH100 - a path that need not exist
                function=code.co_name,
                line=frame.f_lineno,
            )
        )
        return True

    def debug(self, message: str) -> bool:
        """Log what helps to find errors."""
        return self._log(message, LoggingSeverity.DEBUG)

    def info(self, message: str) -> bool:
        """Log what is worth knowing."""
        return self._log(message, LoggingSeverity.INFO)

    def warning(self, message: str) -> bool:
        """Log what may go wrong."""
        return self._log(message, LoggingSeverity.WARN)

    def error(self, message: str) -> bool:
        """Log what went wrong."""
        return self._log(message, LoggingSeverity.ERROR)

    def fatal(self, message: str) -> bool:
        """Log what ends the program."""
        return self._log(message, LoggingSeverity.FATAL)


def get_logger(name: str) -> RcutilsLogger:
    """Return a logger."""
    return RcutilsLogger(name)


def set_logger_level(name: str, level: int) -> None:
    """Set a logger's level; loggers below it without one of their own follow."""
    _system.levels[name] = level
