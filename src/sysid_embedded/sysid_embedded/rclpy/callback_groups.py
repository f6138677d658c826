# SPDX-License-Identifier: Apache-2.0
"""Which callbacks may run at the same time."""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["CallbackGroup", "MutuallyExclusiveCallbackGroup", "ReentrantCallbackGroup"]


class CallbackGroup:
    """Base of callback groups."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def can_execute(self, entity: Any) -> bool:
        """Whether a callback of the entity may start now."""
        raise NotImplementedError

    def beginning_execution(self, entity: Any) -> bool:
        """Mark that a callback starts; False if it may not."""
        raise NotImplementedError

    def ending_execution(self, entity: Any) -> None:
        """Mark that a callback ended."""
        raise NotImplementedError


class ReentrantCallbackGroup(CallbackGroup):
    """Callbacks may run at any time, also twice at once."""

    def can_execute(self, entity: Any) -> bool:
        """Whether a callback of the entity may start now."""
        return True

    def beginning_execution(self, entity: Any) -> bool:
        """Mark that a callback starts; False if it may not."""
        return True

    def ending_execution(self, entity: Any) -> None:
        """Mark that a callback ended."""


class MutuallyExclusiveCallbackGroup(CallbackGroup):
    """One callback at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._active: Any = None

    def can_execute(self, entity: Any) -> bool:
        """Whether a callback of the entity may start now."""
        return self._active is None

    def beginning_execution(self, entity: Any) -> bool:
        """Mark that a callback starts; False if it may not."""
        with self._lock:
            if self._active is not None:
                return False
            self._active = entity
            return True

    def ending_execution(self, entity: Any) -> None:
        """Mark that a callback ended."""
        with self._lock:
            self._active = None
