# SPDX-License-Identifier: Apache-2.0
"""Callbacks that other threads ask an executor to run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .callback_groups import CallbackGroup

if TYPE_CHECKING:
    from .context import Context

__all__ = ["GuardCondition"]


class GuardCondition:
    """Something that `trigger` makes ready."""

    def __init__(
        self,
        callback: Callable[[], Any] | None,
        callback_group: CallbackGroup | None,
        context: Context | None = None,
    ) -> None:
        self.callback = callback
        self.callback_group: Any = callback_group
        self._triggered = False
        self._wake: Callable[[], None] | None = None

    def trigger(self) -> None:
        """Make it ready; may be called from any thread."""
        self._triggered = True
        if self._wake is not None:
            self._wake()

    def _take(self) -> bool:
        triggered, self._triggered = self._triggered, False
        return triggered

    def destroy(self) -> None:
        """Be triggered no more."""
        self._wake = None
        self._triggered = False
