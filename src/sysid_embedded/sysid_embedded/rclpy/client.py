# SPDX-License-Identifier: Apache-2.0
"""Clients of services."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from sysid_embedded.cdr import HEADER, codec
from sysid_embedded.dds import Reader, Writer

from .context import Context
from .task import Future

__all__ = ["Client"]

_HEADER = struct.Struct("<Qq")
_POLL_S = 0.02


class Client:
    """Asks a service."""

    def __init__(
        self,
        context: Context,
        reader: Reader,
        writer: Writer,
        srv_type: Any,
        name: str,
    ) -> None:
        self.context = context
        self.reader: Reader | None = reader
        self._writer = writer
        self._encode = codec(srv_type.Request.definition).encode
        self.srv_type = srv_type
        self.name = name
        self._numbers = count(1)
        self._pending: dict[int, Future] = {}
        self._lock = threading.Lock()

    def call_async(self, request: Any) -> Future:
        """Ask and return a future of the answer.

        Raises
        ------
        TypeError
            If the request is of another type.
        """
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
            sample = None if self.reader is None else self.reader.take()
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
        """Whether a server's both ends have been discovered."""
        if self.reader is None:
            return False
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
        if self.reader is not None:
            self.reader.close()
            self._writer.close()
            self.reader = None
