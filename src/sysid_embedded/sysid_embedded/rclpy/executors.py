# SPDX-License-Identifier: Apache-2.0
"""The executor that runs the callbacks of nodes in the thread that spins."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from cyclonedds.core import GuardCondition, WaitSet

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
        participant = self.context.participant.entity
        self._waitset, self._guard = WaitSet(participant), GuardCondition(participant)
        self._waitset.attach(self._guard)
        self._entities: list[Any] = []  # What data come for
        self._round: Iterator[Callable[[], Any]] = iter(())
        self._stopped = False
        self._closed = False
        self._next_warning = 0
        self.context.on_shutdown(self.wake)

    def wake(self) -> None:
        """Make the executor look again for what is due."""
        with self._lock:
            if not self._closed:
                self._guard.set(True)

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
            if not (entity in self._entities or entity.reader.closed or self._closed):
                self._entities.append(entity)
                self._waitset.attach(entity.reader.entity)

    def _detach(self, entity: Any) -> None:
        with self._lock:
            if entity in self._entities:
                self._entities.remove(entity)
                if not (entity.reader.closed or self._closed):
                    self._waitset.detach(entity.reader.entity)

    def _look(self) -> Iterator[Callable[[], Any]]:
        """Yield every callback that is due, each once."""
        for node in list(self._nodes):
            for timer in list(node._timers):
                if timer.is_ready():
                    timer._call()
                    yield timer.callback
        for entity in list(self._entities):
            function = entity._take() if entity in self._entities else None
            if function is not None:
                yield function

    def _due(self) -> Callable[[], Any] | None:
        """Return the next callback of this round or, after its end, of a new one."""
        function = next(self._round, None)
        if function is None:
            self._warn()
            self._round = self._look()
            function = next(self._round, None)
        return function

    def _until_timer(self) -> int:
        """Return the time to the next call of a timer [ns]."""
        timers = [timer for node in list(self._nodes) for timer in list(node._timers)]
        return min((timer._remaining() for timer in timers if not timer._canceled), default=2**62)

    def _wait(self, timeout_ns: int) -> None:
        """Wait for data or a wake-up."""
        with self._waiting:
            if not self._closed and self._waitset.wait(timeout_ns):
                self._guard.take()

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
                del self._waitset, self._guard
        return True


def _deadline(timeout_sec: float | None) -> float:
    """Return when a time-out ends by the monotonic clock [s]; a negative one never does."""
    endless = timeout_sec is None or timeout_sec < 0.0
    return float("inf") if endless or timeout_sec is None else time.monotonic() + timeout_sec
