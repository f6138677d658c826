# SPDX-License-Identifier: Apache-2.0
"""Points in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sysid_embedded.messages import message_class

from .clock_type import ClockType

__all__ = ["NANO", "Time"]

NANO = 1_000_000_000
"""Nanoseconds in a second."""


@dataclass(frozen=True)
class Time:
    """A point in time of one kind of clock.

    Parameters
    ----------
    nanoseconds : int
        Since the epoch [ns].
    clock_type : ClockType
    """

    nanoseconds: int = 0
    clock_type: ClockType = ClockType.SYSTEM_TIME

    def to_msg(self) -> Any:
        """Return it as a `builtin_interfaces/Time`."""
        seconds, nanoseconds = divmod(self.nanoseconds, NANO)
        return message_class("builtin_interfaces/msg/Time")(sec=seconds, nanosec=nanoseconds)
