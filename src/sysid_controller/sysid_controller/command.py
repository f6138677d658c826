# SPDX-License-Identifier: Apache-2.0
"""What the controller does: its state, one tick's decision, and who else drives the robot."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from sysid_controller.limits import LimitedEffort
from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.diagnostics import Diagnostic

__all__ = ["Command", "ControlState", "Publishers", "Transition", "Watchdog"]


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
    """The state of the controller; joint states older than a timeout [s] count as stopped."""

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


class Publishers(NamedTuple):
    """How many nodes publish torque commands, this one among them, and references."""

    commands: int = 1
    references: int = 1

    @property
    def rival(self) -> str:
        """Who else drives the robot, in words; empty if nobody does."""
        others = self.commands - 1
        return f"{others} other publisher(s) of torque commands" if others > 0 else ""


@dataclass(frozen=True, eq=False)
class Command:
    """What one tick decided; arrays (na,) in the actuated joints' order."""

    state: ControlState
    output: FloatArray | None
    """(na,) what to send, in the unit that the settings choose; None: send nothing."""
    # effort, effort_model: (na,) [N·m] torque after limits; share of it that the model asked for.
    effort: FloatArray
    effort_model: FloatArray
    # position_error, velocity_error: (na,) [rad, rad/s] reference minus measured; zero while there
    # is no reference.
    position_error: FloatArray
    velocity_error: FloatArray
    limits: LimitedEffort
    clock_jumped: bool  # Whether time went backwards before this tick
    rejoined: bool  # Whether the error had grown too large, so that the reference started anew
    failure: Diagnostic | None = None  # Why the model gave no torque, so that the robot is held
    fallback: Diagnostic | None = None  # Why the projected law stood in for the contact forces' QP
    stopped: str = ""  # Why it stopped the robot or no longer drives it; empty if it does

    @property
    def limited(self) -> BoolArray:
        """Joints (na,) whose torque was limited."""
        return self.limits.limited
