# SPDX-License-Identifier: Apache-2.0
"""Judges how a robot follows the trajectory of one goal, and when the goal has ended."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from sysid_controller.command import Command, ControlState
from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError

__all__ = ["GoalEnd", "GoalTolerance", "Outcome", "TrajectoryGoal", "goal_tolerance"]

_PATIENCE = 1.0  # [s] after its trajectory in which a robot has to reach a goal that names no time


class Outcome(IntEnum):
    """How a goal ended; the numbers are those of ``control_msgs/FollowJointTrajectory``."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


class GoalEnd(NamedTuple):
    """How a goal ended, and why in words."""

    outcome: Outcome
    reason: str


class GoalTolerance(NamedTuple):
    """Largest errors (na,) [rad, rad/s]; infinite where anything goes."""

    position: FloatArray
    velocity: FloatArray

    def violated(self, names: Sequence[str], command: Command) -> str:
        """Say which joint is too far off; empty if none is."""
        errors = (command.position_error, command.velocity_error)
        for what, unit, error, most in zip(
            ("position", "velocity"), ("rad", "rad/s"), errors, self, strict=True
        ):
            beyond = np.abs(error) > most
            if beyond.any():
                j = int(np.argmax(beyond))
                return (
                    f"the {what} of joint '{names[j]}' is {error[j]:+.4g} {unit} off, its "
                    f"tolerance is {most[j]:.4g}"
                )
        return ""


def goal_tolerance(
    names: tuple[str, ...], aliases: Mapping[str, str], given: Sequence[tuple[str, float, float]]
) -> GoalTolerance:
    """Return tolerances of joints; zero and less stand for none, as in the action's definition.

    They are given as name, position [rad], velocity [rad/s]; aliases lead to joints' names.

    Raises
    ------
    ParameterError
        If one is of another joint, or is not a number.
    """
    found = GoalTolerance(*np.full((2, len(names)), np.inf))
    for name, *values in given:
        if aliases.get(name, name) not in names:
            raise ParameterError(f"has a tolerance of '{name}', which is not a joint to move")
        if np.isnan(values).any():
            raise ParameterError(f"has a tolerance of '{name}' that is not a number")
        j = names.index(aliases.get(name, name))
        for most, value in zip(found, values, strict=True):
            most[j] = value if value > 0.0 else np.inf
    return found


class TrajectoryGoal:
    """One trajectory that a controller was given as a goal for some joints.

    It has tolerances for its path and for its end, which the robot has to reach within `patience`
    [s]; 0: a second; less: however long it takes.
    """

    def __init__(
        self, names: tuple[str, ...], path: GoalTolerance, goal: GoalTolerance, patience: float
    ) -> None:
        self._names, self._path, self._goal = names, path, goal
        self._patience = patience or _PATIENCE
        self._ended: float | None = None

    def judge(self, now: float, command: Command) -> GoalEnd | None:
        """Return how the goal ended with a tick at a time [s]; None while it goes on."""
        if command.state not in (ControlState.TRACKING, ControlState.HOLDING):
            why = command.stopped or f"the controller is {command.state.name}"
            return GoalEnd(Outcome.PATH_TOLERANCE_VIOLATED, why)
        if command.rejoined or command.clock_jumped:
            why = "the clock was set back" if command.clock_jumped else "the robot was too far off"
            return GoalEnd(Outcome.PATH_TOLERANCE_VIOLATED, f"{why}, the trajectory is dropped")
        if command.state is ControlState.TRACKING:
            lack = self._path.violated(self._names, command)
            return GoalEnd(Outcome.PATH_TOLERANCE_VIOLATED, lack) if lack else None
        self._ended = now if self._ended is None else self._ended
        lack = self._goal.violated(self._names, command)
        if not lack:
            return GoalEnd(Outcome.SUCCESSFUL, "")
        if 0.0 <= self._patience < now - self._ended:
            return GoalEnd(Outcome.GOAL_TOLERANCE_VIOLATED, lack)
        return None
