# SPDX-License-Identifier: Apache-2.0
"""Loggers."""

from __future__ import annotations

import os
import sys
import time
from enum import IntEnum
from types import FrameType

from sysid_embedded import log as _log
from sysid_embedded.arguments import Arguments

__all__ = [
    "LoggingSeverity",
    "RcutilsLogger",
    "get_logger",
    "get_logging_severity_from_string",
    "set_logger_level",
]


class LoggingSeverity(IntEnum):
    """How grave a message is."""

    UNSET = 0
    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40
    FATAL = 50


_system = _log.LogSystem()


def get_logging_severity_from_string(log_severity: str) -> LoggingSeverity:
    """Return the severity of a name."""
    try:
        return LoggingSeverity[log_severity.upper()]
    except KeyError:
        raise RuntimeError(
            f"'{log_severity}' is no log level; use one of "
            f"{', '.join(level.name for level in LoggingSeverity)}."
        ) from None


def _configure(arguments: Arguments) -> None:
    """Set levels and outlets as the command line asks."""
    if arguments.log_level:
        set_logger_level("", get_logging_severity_from_string(arguments.log_level))
    for name, level in arguments.logger_levels.items():
        set_logger_level(name, get_logging_severity_from_string(level))
    _system.to_stderr = arguments.stdout


class RcutilsLogger:
    """A named logger."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def get_child(self, name: str) -> RcutilsLogger:
        """Return a logger below this one."""
        return RcutilsLogger(f"{self.name}.{name}" if self.name else name)

    def is_enabled_for(self, severity: int) -> bool:
        """Whether messages of a severity are written."""
        return severity >= _system.effective_level(self.name)

    def _log(self, message: str, severity: int) -> bool:
        if not self.is_enabled_for(severity):
            return False
        frame: FrameType = sys._getframe(2)
        code = frame.f_code
        _system.emit(
            _log.Record(
                severity=int(severity),
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

    def warn(self, message: str) -> bool:
        """Log what may go wrong."""
        return self._log(message, LoggingSeverity.WARN)

    def error(self, message: str) -> bool:
        """Log what went wrong."""
        return self._log(message, LoggingSeverity.ERROR)

    def fatal(self, message: str) -> bool:
        """Log what ends the program."""
        return self._log(message, LoggingSeverity.FATAL)


def get_logger(name: str) -> RcutilsLogger:
    """Return a logger.

    Raises
    ------
    ValueError
        If the name is empty.
    """
    if not name:
        raise ValueError("Logger name must not be empty.")
    return RcutilsLogger(name)


def set_logger_level(name: str, level: int) -> None:
    """Set a logger's level."""
    _system.levels[name] = int(LoggingSeverity(level))
