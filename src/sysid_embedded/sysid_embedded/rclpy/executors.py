# SPDX-License-Identifier: Apache-2.0
"""The executor that runs the callbacks of nodes in the thread that spins."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sysid_embedded.dds import WaitSet

from .context import Context, get_default_context
from .task import Future

if TYPE_CHECKING:
    from .node import Node

__all__ = ["ExternalShutdownException", "SingleThreadedExecutor"]

# A wait in C code keeps Python from handling signals; so it never is longer than this.
_SLICE_NS = 50_000_000
_WARNING_NS = 500_000_000


class ExternalShutdownException(Exception):  # noqa: N818 - rclpy's name
    """The context was shut down."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args or ("ROS context was shut down",))


class SingleThreadedExecutor:
    """Runs callbacks one at a time; other threads may wake it, change its nodes or end it."""

    def __init__(self, *, context: Context | None = None) -> None:
        self.context = get_default_context() if context is None else context
        self._nodes: list[Node] = []
        self._lock = threading.RLock()
        self._waiting = threading.Lock()
        self._waitset = WaitSet(self.context.participant)
        self._readers: dict[int, Any] = {}
        self._keys: dict[Any, int] = {}
        self._pending: dict[int, Any] = {}
        self._round: Iterator[Callable[[], Any]] = iter(())
        self._stopped = False
        self._closed = False
        self._next_key = 1
        self._next_warning = 0
        self.context.on_shutdown(self.wake)

    def wake(self) -> None:
        """Make the executor look again for what is due."""
        with self._lock:
            if not self._closed:
                self._waitset.wake()

    def add_node(self, node: Node) -> bool:
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
        with self._lock:
            if node not in self._nodes:
                return
            self._nodes.remove(node)
            for entity in node._reading():
                self._detach(entity)
            node._set_executor(None)
        self.wake()

    def get_nodes(self) -> list[Node]:
        return list(self._nodes)

    def _attach(self, entity: Any) -> None:
        """Wait for the data of a subscription, service or client."""
        with self._lock:
            if entity in self._keys or entity.reader.closed or self._closed:
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
            if not (entity.reader.closed or self._closed):
                self._waitset.detach(entity.reader)

    def _look(self) -> Iterator[Callable[[], Any]]:
        """Yield every callback that is due, each once."""
        for node in list(self._nodes):
            for timer in list(node._timers):
                if timer.is_ready():
                    timer._call()
                    yield timer.callback
        for key, entity in list(self._pending.items()):
            function = entity._take() if key in self._readers else None
            if function is None:
                self._pending.pop(key, None)
            else:
                yield function

    def _due(self) -> Callable[[], Any] | None:
        """Return the next callback of this round or, after its end, of a new one."""
        function = next(self._round, None)
        if function is None:
            self._warn()
            self._wait(0)  # so that a timer that is always due keeps no subscription from its turn
            self._round = self._look()
            function = next(self._round, None)
        return function

    def _until_timer(self) -> int:
        """Return the time to the next call of a timer [ns]."""
        timers = [timer for node in list(self._nodes) for timer in list(node._timers)]
        return min((timer._remaining() for timer in timers if not timer._canceled), default=2**62)

    def _wait(self, timeout_ns: int) -> None:
        """Wait for data or a wake-up, and note which readers have data."""
        with self._waiting:
            keys = [] if self._closed else self._waitset.wait(timeout_ns)
        self._pending.update((key, self._readers[key]) for key in keys if key in self._readers)

    def _warn(self) -> None:
        """Now and then, let nodes look for dropped samples and for peers that do not fit."""
        now = time.monotonic_ns()
        if now >= self._next_warning:
            self._next_warning = now + _WARNING_NS
            for node in list(self._nodes):
                node._warn()

    def spin(self) -> None:
        while self.context.ok() and not self._stopped:
            self.spin_once()

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for one callback and run it."""
        self._spin_once(timeout_sec, lambda: False)

    def spin_until_future_complete(self, future: Future, timeout_sec: float | None = None) -> None:
        future.add_done_callback(lambda _: self.wake())
        end = _deadline(timeout_sec)
        while self.context.ok() and not future.done() and not self._stopped:
            left = end - time.monotonic()
            self._spin_once(max(left, 0.0), future.done)
            if left <= 0.0:
                return

    def _spin_once(self, timeout_sec: float | None, done: Callable[[], bool]) -> None:
        """Run one callback; none once time is out, `done` is true or the executor is shut down."""
        end = _deadline(timeout_sec)
        while not (done() or self._stopped):
            if not self.context.ok():
                raise ExternalShutdownException()
            function = self._due()
            left = end - time.monotonic()
            if function is None and left > 0.0:
                self._wait(int(max(0.0, min(1e9 * left, self._until_timer(), _SLICE_NS))))
                continue
            if function is not None:
                function()
            return

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        self._stopped = True
        self.wake()
        for node in self.get_nodes():
            self.remove_node(node)
        with self._waiting, self._lock:
            if not self._closed:
                self._closed = True
                self._waitset.close()
        return True


def _deadline(timeout_sec: float | None) -> float:
    """Return when a time-out ends by the monotonic clock [s]; a negative one never does."""
    endless = timeout_sec is None or timeout_sec < 0.0
    return float("inf") if endless or timeout_sec is None else time.monotonic() + timeout_sec
