# SPDX-License-Identifier: Apache-2.0
"""Loggers."""

from __future__ import annotations

import os
import sys
import time
from enum import IntEnum
from types import FrameType
from typing import Any

from sysid_embedded import log as _log
from sysid_embedded.arguments import Arguments

from .clock import Clock
from .clock_type import ClockType

__all__ = [
    "LoggingSeverity",
    "RcutilsLogger",
    "get_logger",
    "get_logger_effective_level",
    "get_logger_level",
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


_FILTERS = ("throttle_duration_sec", "throttle_time_source_type", "skip_first", "once")
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
        self._calls: dict[tuple[Any, int], dict[str, Any]] = {}

    def get_child(self, name: str) -> RcutilsLogger:
        """Return a logger below this one."""
        if not name:
            raise ValueError("Child logger name must not be empty.")
        return RcutilsLogger(f"{self.name}.{name}" if self.name else name)

    def set_level(self, level: int) -> None:
        """Set the level below which messages are dropped."""
        set_logger_level(self.name, level)

    def get_effective_level(self) -> LoggingSeverity:
        """Return the level that holds, which may be a parent's."""
        return LoggingSeverity(_system.effective_level(self.name))

    def is_enabled_for(self, severity: int) -> bool:
        """Whether messages of a severity are written."""
        return severity >= _system.effective_level(self.name)

    def log(self, message: str, severity: int, **kwargs: Any) -> bool:
        """Write a message, unless its level or a filter says no.

        Parameters
        ----------
        message : str
        severity : int
        **kwargs
            `throttle_duration_sec` [s], `throttle_time_source_type` (a clock), `skip_first`,
            `once`: filters, per line of code that calls.

        Returns
        -------
        bool
            Whether it was written.
        """
        return self._log(message, severity, kwargs)

    def _log(self, message: str, severity: int, kwargs: dict[str, Any]) -> bool:
        if not self.is_enabled_for(severity):
            return False
        name = kwargs.pop("name", self.name)
        frame: FrameType = sys._getframe(2)
        if kwargs and not self._passes(frame, severity, kwargs):
            return False
        code = frame.f_code
        _system.emit(
            _log.Record(
                severity=int(severity),
                time_ns=time.time_ns(),
                name=name,
                message=str(message),
                file=os.path.abspath(code.co_filename),  # noqa: PTH100 - a path that need not exist
                function=code.co_name,
                line=frame.f_lineno,
            )
        )
        return True

    def _passes(self, frame: FrameType, severity: int, kwargs: dict[str, Any]) -> bool:
        """Apply the filters, each with a memory for the calling line."""
        unknown = set(kwargs) - set(_FILTERS)
        if unknown:
            raise TypeError(
                f'parameter "{sorted(unknown)[0]}" is not one of the recognized logging options '
                f'"{list(_FILTERS)}"'
            )
        memory = self._calls.setdefault((frame.f_code, frame.f_lasti), {"severity": severity})
        if memory["severity"] != severity:
            raise ValueError("Logger severity cannot be changed between calls.")
        period = kwargs.get("throttle_duration_sec")
        if period:
            clock = kwargs.get("throttle_time_source_type") or Clock(
                clock_type=ClockType.SYSTEM_TIME
            )
            if not isinstance(clock, Clock):
                raise ValueError(
                    f'Received throttle_time_source_type of "{clock}" is not a clock instance'
                )
            now = clock.now().nanoseconds
            if now < memory.get("last", 0) + period * 1e9:
                return False
            memory["last"] = now
        if kwargs.get("skip_first") and not memory.get("skipped"):
            memory["skipped"] = True
            return False
        if kwargs.get("once"):
            if memory.get("logged"):
                return False
            memory["logged"] = True
        return True

    def debug(self, message: str, **kwargs: Any) -> bool:
        """Log what helps to find errors."""
        return self._log(message, LoggingSeverity.DEBUG, kwargs)

    def info(self, message: str, **kwargs: Any) -> bool:
        """Log what is worth knowing."""
        return self._log(message, LoggingSeverity.INFO, kwargs)

    def warning(self, message: str, **kwargs: Any) -> bool:
        """Log what may go wrong."""
        return self._log(message, LoggingSeverity.WARN, kwargs)

    def warn(self, message: str, **kwargs: Any) -> bool:
        """Log what may go wrong."""
        return self._log(message, LoggingSeverity.WARN, kwargs)

    def error(self, message: str, **kwargs: Any) -> bool:
        """Log what went wrong."""
        return self._log(message, LoggingSeverity.ERROR, kwargs)

    def fatal(self, message: str, **kwargs: Any) -> bool:
        """Log what ends the program."""
        return self._log(message, LoggingSeverity.FATAL, kwargs)


_root = RcutilsLogger()


def get_logger(name: str) -> RcutilsLogger:
    """Return a logger.

    Raises
    ------
    ValueError
        If the name is empty.
    """
    if not name:
        raise ValueError("Logger name must not be empty.")
    return _root.get_child(name)


def set_logger_level(name: str, level: int, detailed_error: bool = False) -> None:
    """Set a logger's level."""
    _system.levels[name] = int(LoggingSeverity(level))


def get_logger_level(name: str) -> LoggingSeverity:
    """Return the level that was set for a logger itself."""
    return LoggingSeverity(_system.levels.get(name, 0))


def get_logger_effective_level(name: str) -> LoggingSeverity:
    """Return the level that holds for a logger."""
    return LoggingSeverity(_system.effective_level(name))
