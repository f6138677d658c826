# SPDX-License-Identifier: Apache-2.0
"""The life of the process' presence in the domain, from init to shutdown."""

import atexit
import os
import sys
import threading
from collections.abc import Callable, Sequence

from cyclonedds.core import DDSException

from sysid_embedded import arguments as _arguments
from sysid_embedded.dds import Participant
from sysid_embedded.discovery import check_security, domain_id
from sysid_embedded.errors import StartError
from sysid_embedded.graph import Graph

from .logging import _configure

__all__ = ["Context", "get_default_context", "ok", "shutdown", "try_shutdown"]


class Context:
    """What `rclpy.init` initialises and `rclpy.shutdown` ends."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._ok = False
        self._used = False
        self._callbacks: list[Callable[[], None]] = []
        self._participant: Participant | None = None
        self._graph: Graph | None = None
        self.arguments = _arguments.Arguments()

    def init(self, args: Sequence[str] | None = None) -> None:
        """Start; the arguments default to the command line.

        Raises
        ------
        RuntimeError
            If it is called twice; `StartError` if the arguments or the environment make no sense,
            or demand security.
        """
        with self._lock:
            if self._used:
                raise RuntimeError("Context.init() must only be called once")
            try:
                check_security(os.environ)
                self.arguments = _arguments.parse(sys.argv if args is None else args)
                domain = domain_id(os.environ)
                _configure(self.arguments)
                self._participant = Participant(domain)
            except ValueError as error:
                raise StartError(str(error)) from error
            except DDSException as error:
                raise StartError(
                    f"can't join domain {domain}; is a network interface up, and does "
                    f"CYCLONEDDS_URI, if set, name a valid configuration? ({error.msg})"
                ) from error
            self._graph = Graph(self._participant)
            self._used = True
            self._ok = True
            # Else the others would miss this process only when its lease has run out.
            atexit.register(self.destroy)

    @property
    def participant(self) -> Participant:
        if self._participant is None:
            raise RuntimeError("Context must be initialized first")
        return self._participant

    @property
    def graph(self) -> Graph:
        """What the others are told of this process' nodes."""
        if self._graph is None:
            raise RuntimeError("Context must be initialized first")
        return self._graph

    def ok(self) -> bool:
        return self._ok

    def shutdown(self) -> None:
        if not self._used:
            raise RuntimeError("Context must be initialized before it can be shutdown")
        self.try_shutdown()

    def try_shutdown(self) -> None:
        with self._lock:
            if not self._ok:
                return
            self._ok = False
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_shutdown(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if self._ok or not self._used:
                self._callbacks.append(callback)
                return
        callback()

    def get_domain_id(self) -> int:
        return self.participant.domain_id

    def destroy(self) -> None:
        """End it and leave the domain."""
        self.try_shutdown()
        atexit.unregister(self.destroy)
        with self._lock:
            if self._graph is not None and self._participant is not None:
                self._graph.close()
                self._participant.close()
                self._graph = self._participant = None


_default: list[Context] = []
_lock = threading.Lock()


def get_default_context() -> Context:
    with _lock:
        if not _default:
            _default.append(Context())
        return _default[0]


def _taken(context: Context | None) -> Context:
    """Return a context to end; the global one is replaced at its next use."""
    if context is not None:
        return context
    context = get_default_context()
    with _lock:
        _default.clear()
    return context


def ok(*, context: Context | None = None) -> bool:
    return (context or get_default_context()).ok()


def shutdown(*, context: Context | None = None) -> None:
    _taken(context).shutdown()


def try_shutdown(*, context: Context | None = None) -> None:
    _taken(context).try_shutdown()
