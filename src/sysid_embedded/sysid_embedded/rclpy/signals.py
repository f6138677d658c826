# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and termination end the context."""

import signal
import threading
import weakref
from collections.abc import Callable
from enum import IntEnum
from types import FrameType
from typing import Any

from .context import Context

__all__ = ["SignalHandlerOptions", "install_signal_handlers", "uninstall_signal_handlers"]


class SignalHandlerOptions(IntEnum):
    """Which signals to handle."""

    NO = 0
    ALL = 3


_previous: dict[int, Callable[[int, FrameType | None], Any] | int | None] = {}
_contexts: weakref.WeakSet[Context] = weakref.WeakSet()


def _handle(number: int, frame: FrameType | None) -> None:
    for context in list(_contexts):
        context.try_shutdown()
    previous = _previous.get(number)
    if callable(previous):
        previous(number, frame)


def install_signal_handlers(context: Context) -> None:
    _contexts.add(context)
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        if number not in _previous:
            _previous[number] = signal.signal(number, _handle)


def uninstall_signal_handlers() -> None:
    if threading.current_thread() is not threading.main_thread():
        return
    for number in list(_previous):
        signal.signal(number, _previous.pop(number))
