# SPDX-License-Identifier: Apache-2.0
"""Points in time."""

from __future__ import annotations

from typing import Any

from sysid_embedded.messages import message_class

from .clock_type import ClockType
from .constants import S_TO_NS
from .duration import Duration

__all__ = ["Time"]


class Time:
    """A point in time of one kind of clock.

    Parameters
    ----------
    seconds : float
        [s]
    nanoseconds : int
        [ns], added to the seconds.
    clock_type : ClockType
    """

    def __init__(
        self,
        *,
        seconds: float = 0,
        nanoseconds: int = 0,
        clock_type: ClockType = ClockType.SYSTEM_TIME,
    ) -> None:
        if not isinstance(clock_type, ClockType):
            raise TypeError("Clock type must be a ClockType enum")
        if seconds < 0:
            raise ValueError("Seconds value must not be negative")
        if nanoseconds < 0:
            raise ValueError("Nanoseconds value must not be negative")
        total = int(seconds * S_TO_NS) + int(nanoseconds)
        if total >= 2**63:
            raise OverflowError("Total nanoseconds value is too large to store in C time point.")
        self._nanoseconds = total
        self._clock_type = clock_type

    @property
    def nanoseconds(self) -> int:
        """The time since the epoch [ns]."""
        return self._nanoseconds

    def seconds_nanoseconds(self) -> tuple[int, int]:
        """Return whole seconds [s] and the rest [ns]."""
        return divmod(self._nanoseconds, S_TO_NS)

    @property
    def clock_type(self) -> ClockType:
        """The kind of clock that it belongs to."""
        return self._clock_type

    def __repr__(self) -> str:
        return f"Time(nanoseconds={self._nanoseconds}, clock_type={self._clock_type.name})"

    def __add__(self, other: Duration) -> Time:
        if not isinstance(other, Duration):
            return NotImplemented
        return self._at(self._nanoseconds + other.nanoseconds)

    __radd__ = __add__

    def __sub__(self, other: Time | Duration) -> Any:
        if isinstance(other, Time):
            self._check_clock(other, "subtract")
            return Duration(nanoseconds=self._nanoseconds - other.nanoseconds)
        if isinstance(other, Duration):
            return self._at(self._nanoseconds - other.nanoseconds)
        return NotImplemented

    def _at(self, nanoseconds: int) -> Time:
        if not 0 <= nanoseconds < 2**63:
            raise OverflowError("Time leads to overflow or is negative.")
        return Time(nanoseconds=nanoseconds, clock_type=self._clock_type)

    def _check_clock(self, other: Time, what: str) -> None:
        if self._clock_type != other.clock_type:
            raise TypeError(f"Can't {what} times with different clock types")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Time):
            self._check_clock(other, "compare")
            return self._nanoseconds == other.nanoseconds
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self._nanoseconds, self._clock_type))

    def __lt__(self, other: Time) -> bool:
        if not isinstance(other, Time):
            return NotImplemented
        self._check_clock(other, "compare")
        return self._nanoseconds < other.nanoseconds

    def __le__(self, other: Time) -> bool:
        if not isinstance(other, Time):
            return NotImplemented
        self._check_clock(other, "compare")
        return self._nanoseconds <= other.nanoseconds

    def __gt__(self, other: Time) -> bool:
        return NotImplemented if not isinstance(other, Time) else not self <= other

    def __ge__(self, other: Time) -> bool:
        return NotImplemented if not isinstance(other, Time) else not self < other

    def to_msg(self) -> Any:
        """Return it as a `builtin_interfaces/Time`."""
        seconds, nanoseconds = self.seconds_nanoseconds()
        return message_class("builtin_interfaces/msg/Time")(sec=seconds, nanosec=nanoseconds)

    @classmethod
    def from_msg(cls, msg: Any, clock_type: ClockType = ClockType.ROS_TIME) -> Time:
        """Return it from a `builtin_interfaces/Time`."""
        if not isinstance(msg, message_class("builtin_interfaces/msg/Time")):
            raise TypeError("Must pass a builtin_interfaces.msg.Time object")
        return cls(seconds=msg.sec, nanoseconds=msg.nanosec, clock_type=clock_type)
