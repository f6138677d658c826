# SPDX-License-Identifier: Apache-2.0
"""The default context, and helpers around command-line arguments."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence

from sysid_embedded import arguments as _arguments

from .constants import S_TO_NS
from .context import Context

__all__ = [
    "get_available_rmw_implementations",
    "get_default_context",
    "get_rmw_implementation_identifier",
    "ok",
    "remove_ros_args",
    "shutdown",
    "timeout_sec_to_nsec",
    "try_shutdown",
]

_contexts: list[Context] = []
_lock = threading.RLock()


def get_default_context(*, shutting_down: bool = False) -> Context:
    """Return the global context."""
    with _lock:
        if not _contexts:
            _contexts.append(Context())
        return _contexts.pop() if shutting_down else _contexts[-1]


def remove_ros_args(args: Sequence[str] | None = None) -> list[str]:
    """Return the arguments that are not ROS 2's."""
    try:
        return list(_arguments.parse(sys.argv if args is None else args).rest)
    except ValueError as error:
        raise RuntimeError(str(error)) from error


def ok(*, context: Context | None = None) -> bool:
    """Whether the context is initialised and not shut down."""
    return (context or get_default_context()).ok()


def shutdown(*, context: Context | None = None) -> None:
    """End a context."""
    if context is None:
        get_default_context(shutting_down=True).shutdown()
    else:
        context.shutdown()


def try_shutdown(*, context: Context | None = None) -> None:
    """End a context unless that was done already."""
    if context is None:
        get_default_context(shutting_down=True).try_shutdown()
    else:
        context.try_shutdown()


def get_rmw_implementation_identifier() -> str:
    """Return the name of the middleware that the wire format is."""
    return "rmw_cyclonedds_cpp"


def get_available_rmw_implementations() -> set[str]:
    """Return the names of the middlewares to choose from."""
    return {get_rmw_implementation_identifier()}


def timeout_sec_to_nsec(timeout_sec: float | None) -> int:
    """Return a time-out in nanoseconds; -1 for none."""
    if timeout_sec is None or timeout_sec < 0:
        return -1
    return int(timeout_sec * S_TO_NS)
