# SPDX-License-Identifier: Apache-2.0
"""Loggers: lines go to standard error in ROS 2's form, and to /rosout."""

import sys
import threading
import time
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from sysid_embedded.arguments import Arguments

__all__ = ["LoggingSeverity", "RcutilsLogger", "get_logger"]

_COLOURS = {"DEBUG": "\033[32m", "WARN": "\033[33m", "ERROR": "\033[31m", "FATAL": "\033[31m"}


class LoggingSeverity(IntEnum):
    """How grave a message is."""

    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40
    FATAL = 50


class Record(NamedTuple):
    """One log line."""

    severity: LoggingSeverity
    time_ns: int
    name: str
    message: str


class _LogSystem:
    """The least level that is written out, and where else the lines of nodes go."""

    def __init__(self) -> None:
        self.level = LoggingSeverity.INFO
        self._outlets: dict[str, Callable[[Record], None]] = {}
        self._lock = threading.Lock()

    def add_outlet(self, name: str, outlet: Callable[[Record], None]) -> None:
        """Send the lines of a logger and of its children to a function too."""
        with self._lock:
            self._outlets[name] = outlet

    def remove_outlet(self, name: str) -> None:
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
    seconds, nanoseconds = divmod(record.time_ns, 10**9)
    severity = record.severity.name
    line = f"[{severity}] [{seconds}.{nanoseconds:09d}] [{record.name}]: {record.message}"
    if severity in _COLOURS and sys.stderr.isatty():
        line = f"{_COLOURS[severity]}{line}\033[0m"
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
    _system.level = LoggingSeverity[name]


class RcutilsLogger:
    """A named logger."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _log(self, message: str, severity: LoggingSeverity) -> bool:
        if severity < _system.level:
            return False
        _system.emit(Record(severity, time.time_ns(), self.name, str(message)))
        return True

    def debug(self, message: str) -> bool:
        return self._log(message, LoggingSeverity.DEBUG)

    def info(self, message: str) -> bool:
        return self._log(message, LoggingSeverity.INFO)

    def warning(self, message: str) -> bool:
        return self._log(message, LoggingSeverity.WARN)

    def error(self, message: str) -> bool:
        return self._log(message, LoggingSeverity.ERROR)

    def fatal(self, message: str) -> bool:
        return self._log(message, LoggingSeverity.FATAL)


def get_logger(name: str) -> RcutilsLogger:
    return RcutilsLogger(name)
