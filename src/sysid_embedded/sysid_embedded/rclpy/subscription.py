# SPDX-License-Identifier: Apache-2.0
"""Subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sysid_embedded.dds import Reader

__all__ = ["Subscription"]


class Subscription:
    """Calls a function with every message of a topic."""

    def __init__(
        self,
        reader: Reader,
        name: str,
        callback: Callable[[Any], Any],
    ) -> None:
        self.reader: Reader | None = reader
        self.name = name
        self.callback = callback

    def _take(self) -> Callable[[], Any] | None:
        """Return what to run for the next message, or None."""
        sample = None if self.reader is None else self.reader.take()
        return None if sample is None else partial(self.callback, sample[0])

    def get_publisher_count(self) -> int:
        """Return the number of publishers that it hears."""
        return 0 if self.reader is None else self.reader.matched_count()

    def destroy(self) -> None:
        """Leave the topic."""
        if self.reader is not None:
            self.reader.close()
            self.reader = None
