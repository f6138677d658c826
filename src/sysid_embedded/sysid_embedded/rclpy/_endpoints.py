# SPDX-License-Identifier: Apache-2.0
"""Publishers and subscriptions, services and their clients."""

import inspect
import struct
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from sysid_embedded.cdr import HEADER, codec
from sysid_embedded.dds import SERVICE_BODY, DDSException, Reader, Writer
from sysid_embedded.messages import Message

from .context import Context
from .exceptions import InvalidHandle
from .logging import get_logger
from .task import Future, resume

__all__ = ["Client", "Publisher", "Service", "Subscription"]

_WARNING_S = 5.0  # Least time between two warnings of lost messages


class Publisher:
    """Publishes messages of one type on one topic."""

    def __init__(
        self, writer: Writer, msg_type: type[Message], topic_name: str, logger_name: str
    ) -> None:
        self.handle = writer  # The DDS writer
        self._encode = codec(msg_type.definition).encode
        self.msg_type = msg_type
        self.topic_name = topic_name
        self._logger_name = logger_name
        self._next_warning = 0.0

    def publish(self, msg: Any) -> None:
        """Publish a message, or one that is encoded already."""
        if not isinstance(msg, (self.msg_type, bytes)):
            raise TypeError(f"Expected {self.msg_type}, got {type(msg)}")
        if self.handle.closed:
            raise InvalidHandle("cannot use Destroyable because destruction was requested")
        if isinstance(msg, bytes):
            data = bytearray(msg + bytes(-len(msg) % 4))
        else:
            data = bytearray(HEADER)
            self._encode(msg, data)
        if self.handle.write(data) or time.monotonic() < self._next_warning:
            return
        self._next_warning = time.monotonic() + _WARNING_S
        get_logger(self._logger_name).warning(
            f"dropped a message on '{self.topic_name}': a reliable subscriber does not keep up"
        )

    def get_subscription_count(self) -> int:
        return self.handle.matched_count()

    def destroy(self) -> None:
        """Leave the topic."""
        self.handle.close()


class Subscription:
    """Calls a function with every message of a topic."""

    def __init__(self, reader: Reader, name: str, callback: Callable[[Any], Any]) -> None:
        self.reader, self.callback = reader, callback
        self.name = self.topic_name = name

    def _take(self) -> Callable[[], Any] | None:
        """Return what to run for the next message, or None."""
        sample = self.reader.take()
        return None if sample is None else partial(self.callback, sample[0])

    def get_publisher_count(self) -> int:
        return self.reader.matched_count()

    def destroy(self) -> None:
        """Leave the topic."""
        self.reader.close()


_HEADER = struct.Struct("<Qq")
_POLL_S = 0.02


class Client:
    """Asks a service."""

    def __init__(
        self, context: Context, reader: Reader, writer: Writer, srv_type: Any, name: str
    ) -> None:
        self.context = context
        self.reader, self._writer = reader, writer
        self._encode = codec(srv_type.Request.definition).encode
        self.srv_type = srv_type
        self.name = name
        self._numbers = count(1)
        self._pending: dict[int, Future] = {}
        self._lock = threading.Lock()

    def call_async(self, request: Any) -> Future:
        """Ask and return a future of the answer."""
        if not isinstance(request, self.srv_type.Request):
            raise TypeError(f"Expected {self.srv_type.Request}, got {type(request)}")
        future = Future()
        with self._lock:
            number = next(self._numbers)
            self._pending[number] = future
        data = bytearray(HEADER + _HEADER.pack(self._writer.handle, number))
        self._encode(request, data)
        self._writer.write(data)
        return future

    def _take(self) -> Callable[[], Any] | None:
        """Return what to run for the next answer, or None; others' answers are passed over."""
        while True:
            sample = self.reader.take()
            if sample is None:
                return None
            answer, data, _ = sample
            handle, number = _HEADER.unpack_from(data, len(HEADER))
            with self._lock:
                mine = handle == self._writer.handle
                future = self._pending.pop(number, None) if mine else None
            if future is not None:
                return partial(future.set_result, answer)

    def service_is_ready(self) -> bool:
        servers = {end.get("serviceid") for end in self._writer.matched()}
        answers = {end.get("serviceid") for end in self.reader.matched()}
        return bool(servers & answers)

    def wait_for_service(self, timeout_sec: float | None = None) -> bool:
        """Wait for a server; False if none came in time."""
        end = float("inf") if timeout_sec is None else time.monotonic() + timeout_sec
        while self.context.ok():
            if self.service_is_ready():
                return True
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_POLL_S, left))
        return False

    def destroy(self) -> None:
        """Ask no more."""
        self.reader.close()
        self._writer.close()


_DISCOVERY_S = 1.0
_LATE_POLL_S = 0.005
_MOST_LATE = 8


class Service:
    """Answers requests."""

    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        srv_type: Any,
        name: str,
        callback: Callable[[Any, Any], Any],
    ) -> None:
        self.reader, self._writer = reader, writer
        self._encode = codec(srv_type.Response.definition).encode
        self.srv_type = srv_type
        self.name = name
        self.callback = callback
        # beside the node's callbacks, which a client that never reads must not hold up
        self._late = threading.BoundedSemaphore(_MOST_LATE)

    def _take(self) -> Callable[[], Any] | None:
        """Return what to run for the next request, or None."""
        sample = self.reader.take()
        if sample is None:
            return None
        request, data, info = sample
        head = HEADER + data[len(HEADER) : SERVICE_BODY]
        return partial(self._answer, request, head, info.publication_handle)

    def _answer(self, request: Any, head: bytes, client: int) -> None:
        """Answer a request; `head` tells its number, `client` is the writer that it came from."""
        response = self.callback(request, self.srv_type.Response())
        if inspect.iscoroutine(response):
            resume(response, lambda answer: self._reply(answer, head, client))
        else:
            self._reply(response, head, client)

    def _reply(self, response: Any, head: bytes, client: int) -> None:
        if not isinstance(response, self.srv_type.Response):
            raise TypeError(f"Expected {self.srv_type.Response}, got {type(response)}")
        data = bytearray(head)
        self._encode(response, data)
        if self._hears(client) or not self._late.acquire(blocking=False):
            self._writer.write(data)
        else:
            threading.Thread(target=self._write_late, args=(data, client), daemon=True).start()

    def _hears(self, client: int) -> bool:
        """Whether discovery has found the reader of the client that asked by a writer."""
        identity = (self.reader.writer_data(client) or {}).get("clientid")
        return identity is None or any(
            end.get("clientid") == identity for end in self._writer.matched()
        )

    def _write_late(self, data: bytearray, client: int) -> None:
        """Give discovery the time to find the client's reader; else the answer would be lost."""
        end = time.monotonic() + _DISCOVERY_S
        try:
            while time.monotonic() < end and not self._hears(client):
                time.sleep(_LATE_POLL_S)
            if not self._writer.closed:
                self._writer.write(data)
        except DDSException:
            if not self._writer.closed:  # else the service ended meanwhile
                raise
        finally:
            self._late.release()

    def destroy(self) -> None:
        """Answer no more."""
        self.reader.close()
        self._writer.close()
