# SPDX-License-Identifier: Apache-2.0
"""Publishers."""

from __future__ import annotations

import time
from typing import Any

from sysid_embedded.cdr import HEADER, codec
from sysid_embedded.dds import Writer
from sysid_embedded.messages import Message

from .exceptions import InvalidHandle
from .logging import get_logger

__all__ = ["Publisher"]

_WARNING_S = 5.0
"""Least time between two warnings of lost messages."""


class Publisher:
    """Publishes messages of one type on one topic."""

    def __init__(
        self,
        writer: Writer,
        msg_type: type[Message],
        topic_name: str,
        logger_name: str,
    ) -> None:
        self._writer: Writer | None = writer
        self._encode = codec(msg_type.definition).encode
        self.msg_type = msg_type
        self.topic_name = topic_name
        self._logger_name = logger_name
        self._next_warning = 0.0

    @property
    def handle(self) -> Writer:
        """The DDS writer.

        Raises
        ------
        InvalidHandle
            If the publisher has been destroyed.
        """
        if self._writer is None:
            raise InvalidHandle("cannot use Destroyable because destruction was requested")
        return self._writer

    def publish(self, msg: Any) -> None:
        """Publish a message.

        Raises
        ------
        TypeError
            If it is of another type.
        """
        if not isinstance(msg, self.msg_type):
            raise TypeError(f"Expected {self.msg_type}, got {type(msg)}")
        data = bytearray(HEADER)
        self._encode(msg, data)
        if self.handle.write(data) or time.monotonic() < self._next_warning:
            return
        self._next_warning = time.monotonic() + _WARNING_S
        get_logger(self._logger_name).warning(
            f"dropped a message on '{self.topic_name}': a reliable subscriber does not keep up"
        )

    def get_subscription_count(self) -> int:
        """Return the number of subscriptions that get the messages."""
        return self.handle.matched_count()

    def destroy(self) -> None:
        """Leave the topic."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
