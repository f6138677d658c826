# SPDX-License-Identifier: Apache-2.0
"""Futures, such as that of a service's answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Future"]


class Future:
    """A result that comes later."""

    def __init__(self) -> None:
        self._done = False
        self._cancelled = False
        self._result: Any = None
        self._callbacks: list[Callable[[Any], Any]] = []
        self._lock = threading.Lock()

    def cancel(self) -> None:
        """Give up on the result."""
        with self._lock:
            if self._done or self._cancelled:
                return
            self._cancelled = True
        self._call_back()

    def cancelled(self) -> bool:
        """Whether it was given up."""
        return self._cancelled

    def done(self) -> bool:
        """Whether there is a result."""
        return self._done

    def result(self) -> Any:
        """Return the result, None as long as there is none."""
        return self._result

    def set_result(self, result: Any) -> None:
        """Complete it with a result."""
        with self._lock:
            self._result = result
            self._done = True
            self._cancelled = False
        self._call_back()

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        """Call a function with the future when it is done; at once if it is."""
        with self._lock:
            if not (self._done or self._cancelled):
                self._callbacks.append(callback)
                return
        callback(self)

    def _call_back(self) -> None:
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)
