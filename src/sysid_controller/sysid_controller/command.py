# SPDX-License-Identifier: Apache-2.0
"""What one tick of the controller decided, and who else decides for the same robot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sysid_controller.limits import LimitedEffort
from sysid_controller.watchdog import ControlState
from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.diagnostics import Diagnostic

__all__ = ["Command", "Publishers"]


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
    """What one tick decided; arrays (na,) in the actuated joints' order.

    Attributes
    ----------
    output : (na,) or None
        What to send, in the unit that the settings choose; None: send nothing.
    effort, effort_model : (na,) [N·m]
        Torque after limits; share of it that the model asked for.
    position_error, velocity_error : (na,) [rad, rad/s]
        Reference minus measured; zero while there is no reference.
    clock_jumped : bool
        Whether time went backwards before this tick.
    rejoined : bool
        Whether the position error had grown too large, so that the reference started anew.
    failure : Diagnostic or None
        Why the model gave no torque, so that the robot is held.
    fallback : Diagnostic or None
        Why the projected law stood in for the contact forces' QP.
    stopped : str
        Why the controller stopped the robot or no longer drives it; empty if it does.
    """

    state: ControlState
    output: FloatArray | None
    effort: FloatArray
    effort_model: FloatArray
    position_error: FloatArray
    velocity_error: FloatArray
    limits: LimitedEffort
    clock_jumped: bool
    rejoined: bool
    failure: Diagnostic | None = None
    fallback: Diagnostic | None = None
    stopped: str = ""

    @property
    def limited(self) -> BoolArray:
        """Joints (na,) whose torque was limited."""
        return self.limits.limited
