# SPDX-License-Identifier: Apache-2.0
"""Spans of time."""

from __future__ import annotations

from typing import Any

from sysid_embedded.messages import message_class

from .constants import S_TO_NS

__all__ = ["Duration", "Infinite"]


class Duration:
    """A span of time with the resolution of a nanosecond.

    Parameters
    ----------
    seconds : float
        [s]
    nanoseconds : int
        [ns], added to the seconds.
    """

    def __init__(self, *, seconds: float = 0, nanoseconds: int = 0) -> None:
        total = int(seconds * S_TO_NS) + int(nanoseconds)
        if not -(2**63) <= total < 2**63:
            raise OverflowError("Total nanoseconds value is too large to store in C duration.")
        self._nanoseconds = total

    @property
    def nanoseconds(self) -> int:
        """The span [ns]."""
        return self._nanoseconds

    def __repr__(self) -> str:
        return f"Duration(nanoseconds={self._nanoseconds})"

    def __str__(self) -> str:
        if self == Infinite:
            return "Infinite"
        return f"{self._nanoseconds} nanoseconds"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Duration):
            return self._nanoseconds == other._nanoseconds
        return False

    def __hash__(self) -> int:
        return hash(self._nanoseconds)

    def __lt__(self, other: Duration) -> bool:
        return (
            self._nanoseconds < other.nanoseconds
            if isinstance(other, Duration)
            else NotImplemented
        )

    def __le__(self, other: Duration) -> bool:
        return (
            self._nanoseconds <= other.nanoseconds
            if isinstance(other, Duration)
            else NotImplemented
        )

    def __gt__(self, other: Duration) -> bool:
        return (
            self._nanoseconds > other.nanoseconds
            if isinstance(other, Duration)
            else NotImplemented
        )

    def __ge__(self, other: Duration) -> bool:
        return (
            self._nanoseconds >= other.nanoseconds
            if isinstance(other, Duration)
            else NotImplemented
        )

    def to_msg(self) -> Any:
        """Return it as a `builtin_interfaces/Duration`."""
        seconds, nanoseconds = divmod(self._nanoseconds, S_TO_NS)
        return message_class("builtin_interfaces/msg/Duration")(sec=seconds, nanosec=nanoseconds)

    @classmethod
    def from_msg(cls, msg: Any) -> Duration:
        """Return it from a `builtin_interfaces/Duration`."""
        if not isinstance(msg, message_class("builtin_interfaces/msg/Duration")):
            raise TypeError("Must pass a builtin_interfaces.msg.Duration object")
        return cls(seconds=msg.sec, nanoseconds=msg.nanosec)


Infinite = Duration(nanoseconds=2**63 - 1)
