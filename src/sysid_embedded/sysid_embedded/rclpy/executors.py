# SPDX-License-Identifier: Apache-2.0
"""Executors: which thread runs which callback, and when."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from sysid_embedded.dds import WaitSet

from .context import Context, get_default_context
from .task import Future

if TYPE_CHECKING:
    from .node import Node

__all__ = [
    "Executor",
    "ExternalShutdownException",
    "MultiThreadedExecutor",
    "ShutdownException",
    "SingleThreadedExecutor",
]

# A wait in C code keeps Python from handling signals; so it never is longer than this.
_SLICE_NS = 50_000_000
_FOREVER_NS = 2**62
_WARNING_NS = 500_000_000


class ShutdownException(Exception):  # noqa: N818 - rclpy's name
    """The executor was shut down."""


class ExternalShutdownException(Exception):  # noqa: N818 - rclpy's name
    """The context was shut down."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args or ("ROS context was shut down",))


class _Work(NamedTuple):
    """A callback that is due, and the entity whose group must be told when it ends."""

    function: Callable[[], Any]
    entity: Any

    def run(self) -> None:
        """Run it."""
        try:
            self.function()
        finally:
            self.entity.callback_group.ending_execution()


class Executor:
    """Base of executors; collects what is due.

    Parameters
    ----------
    context : Context, optional
        Default: the global one.
    """

    def __init__(self, *, context: Context | None = None) -> None:
        self._context = get_default_context() if context is None else context
        self._nodes: list[Node] = []
        self._lock = threading.RLock()
        self._waiting = threading.Lock()
        self._waitset = WaitSet(self._context.participant)
        self._readers: dict[int, Any] = {}
        self._keys: dict[Any, int] = {}
        self._pending: dict[int, Any] = {}
        self._round: Iterator[_Work] = iter(())
        self._is_shutdown = False
        self._closed = False
        self._next_key = 1
        self._next_warning = 0
        self._context.on_shutdown(self.wake)

    @property
    def context(self) -> Context:
        """The context."""
        return self._context

    def wake(self) -> None:
        """Make the executor look again for what is due."""
        with self._lock:
            if not self._closed:
                self._waitset.wake()

    def add_node(self, node: Node) -> bool:
        """Run a node's callbacks; False if it does already."""
        with self._lock:
            if node in self._nodes:
                return False
            self._nodes.append(node)
            node._set_executor(self)
            for entity in node._reading():
                self._attach(entity)
        self.wake()
        return True

    def remove_node(self, node: Node) -> None:
        """Run a node's callbacks no more."""
        with self._lock:
            if node not in self._nodes:
                return
            self._nodes.remove(node)
            for entity in node._reading():
                self._detach(entity)
            node._set_executor(None)
        self.wake()

    def get_nodes(self) -> list[Node]:
        """Return the nodes whose callbacks are run."""
        return list(self._nodes)

    def _attach(self, entity: Any) -> None:
        """Wait for the data of a subscription, service or client."""
        with self._lock:
            if entity in self._keys or entity.reader is None or self._closed:
                return
            key, self._next_key = self._next_key, self._next_key + 1
            self._keys[entity] = key
            self._readers[key] = entity
            self._waitset.attach(entity.reader, key)
            # What came before must be seen too.
            self._pending[key] = entity

    def _detach(self, entity: Any) -> None:
        with self._lock:
            key = self._keys.pop(entity, None)
            if key is None:
                return
            del self._readers[key]
            self._pending.pop(key, None)
            if entity.reader is not None and not self._closed:
                self._waitset.detach(entity.reader)

    def _look(self) -> Iterator[_Work]:
        """Yield everything that is due, each once."""
        for node in list(self._nodes):
            for timer in list(node._timers):
                if timer.is_ready() and timer.callback_group.beginning_execution():
                    timer._call()
                    yield _Work(timer.callback, timer)
        for key, entity in list(self._pending.items()):
            if key not in self._readers:
                continue
            if not entity.callback_group.beginning_execution():
                entity.reader.acknowledge()
                continue
            function = entity._take()
            if function is None:
                self._pending.pop(key, None)
                entity.callback_group.ending_execution()
            else:
                yield _Work(function, entity)

    def _due(self) -> _Work | None:
        work = next(self._round, None)
        if work is None:
            self._poll()
            self._round = self._look()
            work = next(self._round, None)
        return work

    def _poll(self) -> None:
        """Note which readers have data without waiting.

        Otherwise a timer that is always due would keep subscriptions and services from their turn.
        """
        if not self._waiting.acquire(blocking=False):
            return  # another thread waits for them
        try:
            keys = [] if self._closed else self._waitset.wait(0)
        finally:
            self._waiting.release()
        self._note(keys)

    def _until_timer(self) -> int:
        """Return the time to the next timer that could run [ns]."""
        left = _SLICE_NS
        for node in list(self._nodes):
            for timer in list(node._timers):
                # What a busy group holds up is looked at again when the group is free.
                if not timer._canceled and timer.callback_group.can_execute():
                    left = min(left, timer._remaining())
        return left

    def _next_work(
        self, timeout_sec: float | None, done: Callable[[], bool] = lambda: False
    ) -> _Work | None:
        """Wait for something to be due; None at the time-out or when `done` becomes true."""
        limited = timeout_sec is not None and timeout_sec >= 0
        end = time.monotonic_ns() + (int(timeout_sec * 1e9) if limited and timeout_sec else 0)
        while not done():
            if self._is_shutdown:
                raise ShutdownException()
            if not self._context.ok():
                raise ExternalShutdownException()
            work = self._due()
            if work is not None:
                return work
            left = end - time.monotonic_ns() if limited else _FOREVER_NS
            wait = max(0, min(left, self._until_timer()))
            self._wait(wait)
            if left <= 0:
                return self._due()
        return None

    def _warn(self) -> None:
        """Now and then, let nodes look for dropped samples and for peers that do not fit."""
        now = time.monotonic_ns()
        if now >= self._next_warning:
            self._next_warning = now + _WARNING_NS
            for node in list(self._nodes):
                node._warn()

    def _wait(self, timeout_ns: int) -> None:
        """Wait for data or a wake-up, and note which readers have data."""
        self._warn()
        with self._waiting:
            if self._closed:
                raise ShutdownException()
            keys = self._waitset.wait(timeout_ns)
        self._note(keys)

    def _note(self, keys: list[int]) -> None:
        for key in keys:
            entity = self._readers.get(key)
            if entity is not None:
                self._pending[key] = entity

    def spin(self) -> None:
        """Run callbacks until shutdown."""
        while self._context.ok() and not self._is_shutdown:
            self.spin_once()

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for one callback and run it."""
        self._spin_once(timeout_sec, lambda: False)

    def spin_until_future_complete(self, future: Future, timeout_sec: float | None = None) -> None:
        """Run callbacks until a future is done or the time-out."""
        future.add_done_callback(lambda _: self.wake())
        limited = timeout_sec is not None and timeout_sec >= 0
        end = time.monotonic() + (timeout_sec or 0.0) if limited else float("inf")
        while self._context.ok() and not future.done() and not self._is_shutdown:
            left = end - time.monotonic()
            self._spin_once(max(left, 0.0) if limited else None, future.done)
            if left <= 0:
                return

    def _spin_once(self, timeout_sec: float | None, done: Callable[[], bool]) -> None:
        raise NotImplementedError

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """Stop; True when no callback runs any more."""
        self._is_shutdown = True
        self.wake()
        for node in self.get_nodes():
            self.remove_node(node)
        with self._waiting, self._lock:
            if not self._closed:
                self._closed = True
                self._waitset.close()
        return True

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()


class SingleThreadedExecutor(Executor):
    """Runs callbacks in the thread that spins."""

    def _spin_once(self, timeout_sec: float | None, done: Callable[[], bool]) -> None:
        try:
            work = self._next_work(timeout_sec, done)
        except ShutdownException:
            return
        if work is not None:
            work.run()


class MultiThreadedExecutor(Executor):
    """Runs callbacks in a pool of threads.

    Parameters
    ----------
    num_threads : int, optional
        Default: as many as the machine has cores, at least two.
    context : Context, optional
        Default: the global one.
    """

    def __init__(self, num_threads: int | None = None, *, context: Context | None = None) -> None:
        super().__init__(context=context)
        threads = num_threads or max(2, os.cpu_count() or 1)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="rclpy")
        self._errors: deque[BaseException] = deque()

    def _run(self, work: _Work) -> None:
        try:
            work.run()
        finally:
            self.wake()  # a group may be free now

    def _ended(self, thread: ThreadFuture[None]) -> None:
        error = thread.exception()
        if error is not None:
            self._errors.append(error)
            self.wake()

    def _spin_once(self, timeout_sec: float | None, done: Callable[[], bool]) -> None:
        try:
            work = self._next_work(timeout_sec, lambda: bool(self._errors) or done())
        except ShutdownException:
            return
        if work is not None:
            self._pool.submit(self._run, work).add_done_callback(self._ended)
        if self._errors:
            raise self._errors.popleft()

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """Stop; True when no callback runs any more."""
        self._is_shutdown = True
        self._pool.shutdown(wait=timeout_sec is None or timeout_sec != 0)
        return super().shutdown(timeout_sec)
