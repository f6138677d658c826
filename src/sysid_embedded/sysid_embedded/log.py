# SPDX-License-Identifier: Apache-2.0
"""Where log lines go: to standard error in ROS 2's form, and to /rosout."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["DEBUG", "ERROR", "FATAL", "INFO", "NAMES", "UNSET", "WARN", "LogSystem", "Record"]

UNSET, DEBUG, INFO, WARN, ERROR, FATAL = 0, 10, 20, 30, 40, 50
NAMES = {
    UNSET: "UNSET",
    DEBUG: "DEBUG",
    INFO: "INFO",
    WARN: "WARN",
    ERROR: "ERROR",
    FATAL: "FATAL",
}
_COLOURS = {DEBUG: "\033[32m", WARN: "\033[33m", ERROR: "\033[31m", FATAL: "\033[31m"}
_FORMAT = "[{severity}] [{time}] [{name}]: {message}"


class Record(NamedTuple):
    """One log line and where it came from."""

    severity: int
    time_ns: int
    name: str
    message: str
    file: str
    function: str
    line: int


class LogSystem:
    """The levels of all loggers and the outlets of the process."""

    def __init__(self) -> None:
        self.levels: dict[str, int] = {"": INFO}
        self.to_stderr = True
        self._outlets: dict[str, Callable[[Record], None]] = {}
        self._lock = threading.Lock()

    def effective_level(self, name: str) -> int:
        """Return the level that holds for a logger: its own or that of its nearest ancestor."""
        while True:
            level = self.levels.get(name, UNSET)
            if level != UNSET or not name:
                return level or INFO
            name = name.rpartition(".")[0]

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
        if self.to_stderr:
            self._print(record)
        with self._lock:
            outlets = list(self._outlets.items())
        for name, outlet in outlets:
            if record.name == name or record.name.startswith(f"{name}."):
                outlet(record)

    def _print(self, record: Record) -> None:
        form = os.environ.get("RCUTILS_CONSOLE_OUTPUT_FORMAT") or _FORMAT
        seconds, nanoseconds = divmod(record.time_ns, 10**9)
        values = {
            "severity": NAMES[record.severity],
            "time": f"{seconds}.{nanoseconds:09d}",
            "time_as_nanoseconds": str(record.time_ns),
            "name": record.name,
            "message": record.message,
            "function_name": record.function,
            "file_name": record.file,
            "line_number": str(record.line),
        }
        for key, value in values.items():
            form = form.replace(f"{{{key}}}", value)
        coloured = os.environ.get("RCUTILS_COLORIZED_OUTPUT")
        colour = _COLOURS.get(record.severity, "")
        if colour and (coloured == "1" or (coloured != "0" and sys.stderr.isatty())):
            form = f"{colour}{form}\033[0m"
        # One call per line, so that processes that share a terminal don't mix their lines.
        sys.stderr.write(form + "\n")
        sys.stderr.flush()
