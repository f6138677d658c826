# SPDX-License-Identifier: Apache-2.0
"""Which callbacks may run at the same time."""

from __future__ import annotations

import threading

__all__ = ["MutuallyExclusiveCallbackGroup"]


class MutuallyExclusiveCallbackGroup:
    """Callbacks of a group run one at a time; those of different groups at any time."""

    def __init__(self) -> None:
        self._running = threading.Lock()

    def can_execute(self) -> bool:
        """Whether a callback may start now."""
        return not self._running.locked()

    def beginning_execution(self) -> bool:
        """Mark that a callback starts; False if it may not."""
        return self._running.acquire(blocking=False)

    def ending_execution(self) -> None:
        """Mark that a callback ended."""
        self._running.release()
