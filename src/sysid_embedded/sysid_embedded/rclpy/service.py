# SPDX-License-Identifier: Apache-2.0
"""Services."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from sysid_embedded.cdr import HEADER, codec
from sysid_embedded.dds import SERVICE_BODY, Reader, Writer

__all__ = ["Service"]

_DISCOVERY_S = 1.0


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
        self.reader: Reader | None = reader
        self._writer = writer
        self._encode = codec(srv_type.Response.definition).encode
        self.srv_type = srv_type
        self.name = name
        self.callback = callback
        self._unreachable: set[int] = set()

    def _take(self) -> Callable[[], Any] | None:
        """Return what to run for the next request, or None."""
        sample = None if self.reader is None else self.reader.take()
        if sample is None:
            return None
        request, data, info = sample
        head = HEADER + data[len(HEADER) : SERVICE_BODY]
        return partial(self._answer, request, head, info.publication_handle)

    def _answer(self, request: Any, head: bytes, client: int) -> None:
        """Answer a request; `head` tells its number, `client` is the writer that it came from."""
        response = self.callback(request, self.srv_type.Response())
        if inspect.iscoroutine(response):
            self._continue(response, head, client)
        else:
            self._reply(response, head, client)

    def _continue(self, answer: Coroutine[Any, Any, Any], head: bytes, client: int) -> None:
        """Run a coroutine to its end, or to the next future that it awaits."""
        try:
            future = answer.send(None)
        except StopIteration as end:
            self._reply(end.value, head, client)
        else:
            future.add_done_callback(lambda _: self._continue(answer, head, client))

    def _reply(self, response: Any, head: bytes, client: int) -> None:
        if not isinstance(response, self.srv_type.Response):
            raise TypeError(f"Expected {self.srv_type.Response}, got {type(response)}")
        self._await(client)
        data = bytearray(head)
        self._encode(response, data)
        self._writer.write(data)

    def _await(self, client: int) -> None:
        """Give discovery the time to find the client's reader; else the answer would be lost.

        Once per client: one that never reads answers must not hold up the node again and again.
        """
        end = time.monotonic() + _DISCOVERY_S
        while self.reader is not None and client not in self._unreachable:
            identity = (self.reader.writer_data(client) or {}).get("clientid")
            if identity is None:
                return
            if any(end_.get("clientid") == identity for end_ in self._writer.matched()):
                return
            if time.monotonic() > end:
                self._unreachable.add(client)
            time.sleep(0.001)

    def destroy(self) -> None:
        """Answer no more."""
        if self.reader is not None:
            self.reader.close()
            self._writer.close()
            self.reader = None
