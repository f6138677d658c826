# SPDX-License-Identifier: Apache-2.0
"""Futures and tasks that an executor runs."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .executors import Executor

__all__ = ["Future", "Task"]


class Future:
    """A result that comes later."""

    def __init__(self, *, executor: Executor | None = None) -> None:
        self._done = False
        self._cancelled = False
        self._result: Any = None
        self._exception: BaseException | None = None
        self._callbacks: list[Callable[[Any], Any]] = []
        self._lock = threading.Lock()
        self._executor = executor

    def __await__(self) -> Generator[Future, None, Any]:
        while not self._done and not self._cancelled:
            yield self
        return self.result()

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
        """Whether there is a result or an exception."""
        return self._done

    def result(self) -> Any:
        """Return the result, None as long as there is none; raise it if it is an exception."""
        if self._exception is not None:
            raise self._exception
        return self._result

    def exception(self) -> BaseException | None:
        """Return the exception, if any."""
        return self._exception

    def set_result(self, result: Any) -> None:
        """Complete it with a result."""
        with self._lock:
            self._result = result
            self._done = True
            self._cancelled = False
        self._call_back()

    def set_exception(self, exception: BaseException) -> None:
        """Complete it with an exception."""
        with self._lock:
            self._exception = exception
            self._done = True
            self._cancelled = False
        self._call_back()

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        """Call a function with the future when it is done; at once if it is."""
        with self._lock:
            if not (self._done or self._cancelled):
                self._callbacks.append(callback)
                return
        self._schedule(callback)

    def _call_back(self) -> None:
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self._schedule(callback)

    def _schedule(self, callback: Callable[[Any], Any]) -> None:
        if self._executor is not None:
            self._executor.create_task(callback, self)
        else:
            callback(self)


class Task(Future):
    """A function or coroutine for an executor to run; a future of its result."""

    def __init__(
        self,
        handler: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        executor: Executor | None = None,
    ) -> None:
        super().__init__(executor=executor)
        self._handler = handler
        self._args = args
        self._kwargs = kwargs or {}
        self.awaits: Future | None = None

    def __call__(self) -> None:
        """Run it, or a coroutine up to the next future that isn't done (then `awaits` is it)."""
        if self._done or self._cancelled:
            return
        self.awaits = None
        try:
            if not inspect.iscoroutine(self._handler):
                result = self._handler(*self._args, **self._kwargs)
                if not inspect.iscoroutine(result):
                    self.set_result(result)
                    return
                self._handler = result
            self.awaits = self._handler.send(None)
        except StopIteration as stop:
            self.set_result(stop.value)
        except Exception as error:
            self.set_exception(error)
