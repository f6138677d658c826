# SPDX-License-Identifier: Apache-2.0
"""The default context."""

from __future__ import annotations

import threading

from .context import Context

__all__ = [
    "get_default_context",
    "ok",
    "shutdown",
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
