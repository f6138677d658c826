# SPDX-License-Identifier: Apache-2.0
"""Decides from what is known, and how old it is, what the controller does."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

__all__ = ["ControlState", "Transition", "Watchdog"]


class ControlState(IntEnum):
    """What the controller does; the numbers are those of ``sysid_msgs/TrackingStatus``."""

    DISABLED = 0
    WAITING = 1
    HOLDING = 2
    TRACKING = 3
    STALE = 4
    STOPPED = 5


class Transition(NamedTuple):
    """The state before and after a decision."""

    before: ControlState
    after: ControlState

    @property
    def takes_over(self) -> bool:
        """Whether the controller starts to drive."""
        return self.after in _DRIVING and self.before in (
            ControlState.DISABLED,
            ControlState.WAITING,
            ControlState.STOPPED,
        )

    @property
    def recovers(self) -> bool:
        """Whether joint states are back."""
        return self.after in _DRIVING and self.before is ControlState.STALE


_DRIVING = (ControlState.HOLDING, ControlState.TRACKING)
_IN_CHARGE = (*_DRIVING, ControlState.STALE, ControlState.STOPPED)


class Watchdog:
    """The state of the controller.

    Parameters
    ----------
    timeout : float [s]
        Age of the newest joint states beyond which they count as stopped.
    """

    def __init__(self, timeout: float, *, enabled: bool) -> None:
        self.timeout = timeout
        self.enabled = enabled
        self.state = ControlState.WAITING if enabled else ControlState.DISABLED
        self._fed: float | None = None

    @property
    def driving(self) -> bool:
        """Whether torques are sent, if only to stop."""
        return self.state in _IN_CHARGE

    def feed(self, steady: float) -> None:
        """Note that valid joint states arrived at a steady time [s]."""
        self._fed = steady

    def age(self, steady: float) -> float:
        """Return the age [s] of the newest valid joint states; infinite before the first."""
        return float("inf") if self._fed is None else steady - self._fed

    def decide(
        self, steady: float, *, moving: bool, ready: bool = True, stopped: bool = False
    ) -> Transition:
        """Move on to the state at a steady time [s].

        Parameters
        ----------
        moving : bool
            Whether there is a reference motion under way.
        ready : bool
            Whether all else is known that it takes to start driving.
        stopped : bool
            Whether the robot is being stopped, or kept stopped.
        """
        before = self.state
        if not self.enabled:
            self.state = ControlState.DISABLED
        elif self._fed is None or not (ready or before in _IN_CHARGE):
            self.state = ControlState.WAITING
        elif self.age(steady) > self.timeout:
            # a controller that never drove has nothing to stop safely
            idle = before in (ControlState.DISABLED, ControlState.WAITING)
            self.state = ControlState.WAITING if idle else ControlState.STALE
        elif stopped:
            self.state = ControlState.STOPPED
        else:
            self.state = ControlState.TRACKING if moving else ControlState.HOLDING
        return Transition(before, self.state)
