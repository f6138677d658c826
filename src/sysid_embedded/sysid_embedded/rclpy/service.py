# SPDX-License-Identifier: Apache-2.0
"""Services."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from sysid_embedded.cdr import HEADER, codec
from sysid_embedded.dds import SERVICE_BODY, Reader, Writer

from .task import resume

__all__ = ["Service"]

_DISCOVERY_S = 1.0
_POLL_S = 0.005
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
        self.reader: Reader | None = reader
        self._writer = writer
        self._encode = codec(srv_type.Response.definition).encode
        self.srv_type = srv_type
        self.name = name
        self.callback = callback
        # beside the node's callbacks, which a client that never reads must not hold up
        self._late = threading.BoundedSemaphore(_MOST_LATE)

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
        identity = (self.reader.writer_data(client) or {}).get("clientid") if self.reader else None
        return identity is None or any(
            end.get("clientid") == identity for end in self._writer.matched()
        )

    def _write_late(self, data: bytearray, client: int) -> None:
        """Give discovery the time to find the client's reader; else the answer would be lost."""
        end = time.monotonic() + _DISCOVERY_S
        while time.monotonic() < end and not self._hears(client):
            time.sleep(_POLL_S)
        if self.reader is not None:
            self._writer.write(data)
        self._late.release()

    def destroy(self) -> None:
        """Answer no more."""
        if self.reader is not None:
            self.reader.close()
            self._writer.close()
            self.reader = None
