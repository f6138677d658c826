# SPDX-License-Identifier: Apache-2.0
"""Subscriptions."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from sysid_embedded.dds import Reader
from sysid_embedded.messages import Message

from .callback_groups import CallbackGroup
from .qos import QoSProfile

__all__ = ["Subscription"]


class Subscription:
    """Calls a function with every message of a topic."""

    def __init__(
        self,
        reader: Reader,
        msg_type: type[Message],
        topic: str,
        callback: Callable[..., Any],
        callback_group: CallbackGroup,
        qos_profile: QoSProfile,
    ) -> None:
        self.reader: Reader | None = reader
        self.msg_type = msg_type
        self.topic = topic
        self.callback = callback
        self.callback_group = callback_group
        self.qos_profile = qos_profile

    @property
    def callback(self) -> Callable[..., Any]:
        """The function, of the message or of the message and its information."""
        return self._callback

    @callback.setter
    def callback(self, value: Callable[..., Any]) -> None:
        self._with_info = not _takes(value, 1)
        if self._with_info and not _takes(value, 2):
            raise RuntimeError(
                "Subscription.__init__(): callback should be either be callable with one "
                "argument (to get only the message) or two (to get message and message info)"
            )
        self._callback = value

    def _take(self) -> Callable[[], Any] | None:
        """Return what to run for the next message, or None."""
        sample = None if self.reader is None else self.reader.take()
        if sample is None:
            return None
        message, _, info = sample
        if not self._with_info:
            return partial(self._callback, message)
        return partial(
            self._callback,
            message,
            {
                "source_timestamp": info.source_timestamp,
                "received_timestamp": time.time_ns(),
                "publication_sequence_number": None,
                "reception_sequence_number": None,
            },
        )

    def get_publisher_count(self) -> int:
        """Return the number of publishers that it hears."""
        return 0 if self.reader is None else self.reader.matched_count()

    @property
    def topic_name(self) -> str:
        """The full name of the topic."""
        return self.topic

    def destroy(self) -> None:
        """Leave the topic."""
        if self.reader is not None:
            self.reader.close()
            self.reader = None


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with so many arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        # Some functions of C code don't tell what they take.
        return count == 1
    return True
