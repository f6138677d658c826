# SPDX-License-Identifier: Apache-2.0
"""Services."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from sysid_embedded.cdr import HEADER, codec
from sysid_embedded.dds import SERVICE_BODY, Reader, Writer

from .callback_groups import CallbackGroup
from .qos import QoSProfile

__all__ = ["Service"]

_DISCOVERY_S = 1.0


class RequestHeader(NamedTuple):
    """Who asks: the identity and number as sent, and the handle of the client's writer."""

    identity: bytes
    writer: int


class Service:
    """Answers requests."""

    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        srv_type: Any,
        srv_name: str,
        callback: Callable[[Any, Any], Any],
        callback_group: CallbackGroup,
        qos_profile: QoSProfile,
    ) -> None:
        self.reader: Reader | None = reader
        self._writer = writer
        self._encode = codec(srv_type.Response.definition).encode
        self.srv_type = srv_type
        self.srv_name = srv_name
        self.callback = callback
        self.callback_group = callback_group
        self.qos_profile = qos_profile
        self._unreachable: set[int] = set()

    def _take(self) -> Callable[[], Any] | None:
        """Return what to run for the next request, or None."""
        sample = None if self.reader is None else self.reader.take()
        if sample is None:
            return None
        request, data, info = sample
        header = RequestHeader(data[len(HEADER) : SERVICE_BODY], info.publication_handle)
        return partial(self._answer, request, header)

    def _answer(self, request: Any, header: RequestHeader) -> None:
        self.send_response(self.callback(request, self.srv_type.Response()), header)

    def send_response(self, response: Any, header: RequestHeader) -> None:
        """Send an answer.

        Raises
        ------
        TypeError
            If it is of another type.
        """
        if not isinstance(response, self.srv_type.Response):
            raise TypeError(f"Expected {self.srv_type.Response}, got {type(response)}")
        self._await_client(header)
        data = bytearray(HEADER + header.identity)
        self._encode(response, data)
        self._writer.write(data)

    def _await_client(self, header: RequestHeader) -> None:
        """Give discovery the time to find the client's reader; else the answer would be lost.

        Once per client: one that never reads answers must not hold up the node again and again.
        """
        end = time.monotonic() + _DISCOVERY_S
        while self.reader is not None and header.writer not in self._unreachable:
            client = self.reader.writer_data(header.writer)
            if client is None or "clientid" not in client:
                return
            if any(end_.get("clientid") == client["clientid"] for end_ in self._writer.matched()):
                return
            if time.monotonic() > end:
                self._unreachable.add(header.writer)
            time.sleep(0.001)

    def destroy(self) -> None:
        """Answer no more."""
        if self.reader is not None:
            self.reader.close()
            self._writer.close()
            self.reader = None
