# SPDX-License-Identifier: Apache-2.0
"""Futures, such as that of a service's answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Generator
from typing import Any

__all__ = ["Future", "resume"]


class Future:
    """A result that comes later."""

    def __init__(self) -> None:
        self._done = False
        self._result: Any = None
        self._callbacks: list[Callable[[Any], Any]] = []
        self._lock = threading.Lock()

    def __await__(self) -> Generator[Future, None, Any]:
        if not self._done:
            yield self
        return self._result

    def done(self) -> bool:
        return self._done

    def result(self) -> Any:
        return self._result

    def set_result(self, result: Any) -> None:
        with self._lock:
            self._result = result
            self._done = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        with self._lock:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)


def resume(coroutine: Coroutine[Any, Any, Any], then: Callable[[Any], object]) -> None:
    try:
        future = coroutine.send(None)
    except StopIteration as end:
        then(end.value)
    else:
        future.add_done_callback(lambda _: resume(coroutine, then))
