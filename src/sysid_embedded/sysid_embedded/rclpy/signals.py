# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and termination end all contexts."""

from __future__ import annotations

import signal
import threading
import weakref
from collections.abc import Callable
from enum import IntEnum
from types import FrameType
from typing import Any

from .context import Context

__all__ = [
    "SignalHandlerOptions",
    "install_signal_handlers",
    "uninstall_signal_handlers",
]


class SignalHandlerOptions(IntEnum):
    """Which signals to handle."""

    NO = 0
    SIGINT = 1
    SIGTERM = 2
    ALL = 3


_SIGNALS = {
    signal.SIGINT: SignalHandlerOptions.SIGINT,
    signal.SIGTERM: SignalHandlerOptions.SIGTERM,
}
_previous: dict[int, Callable[[int, FrameType | None], Any] | int | None] = {}
_contexts: weakref.WeakSet[Context] = weakref.WeakSet()


def _handle(number: int, frame: FrameType | None) -> None:
    for context in list(_contexts):
        context.try_shutdown()
    previous = _previous.get(number)
    if callable(previous):
        previous(number, frame)


def _watch(context: Context) -> None:
    """End a context too when a signal comes."""
    _contexts.add(context)


def install_signal_handlers(
    options: SignalHandlerOptions = SignalHandlerOptions.ALL,
) -> None:
    """Handle signals; in the main thread alone, as Python demands."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number, option in _SIGNALS.items():
        if options & option and number not in _previous:
            _previous[number] = signal.signal(number, _handle)


def uninstall_signal_handlers() -> None:
    """Handle signals as before."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in list(_previous):
        signal.signal(number, _previous.pop(number))
