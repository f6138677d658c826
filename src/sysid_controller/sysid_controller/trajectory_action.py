# SPDX-License-Identifier: Apache-2.0
"""The action `FollowJointTrajectory` in front of the controller, as MoveIt and others send it."""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from sysid_controller.command import Command, ControlState
from sysid_controller.controller import Controller
from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.errors import ParameterError
from sysid_ros.fields import doubles, seconds

__all__ = ["TrajectoryAction"]

_NAME = "~/follow_joint_trajectory"
_FEEDBACK_PERIOD = 0.05  # [s] between messages of feedback: enough for plots and people
_PATIENCE = 1.0  # [s] after its trajectory in which a robot has to reach a goal that names no time
_LOOK = 0.2  # [s] between looks at whether a client is left


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


class TrajectoryAction:
    """Takes goals one at a time; a newer one, or a trajectory by topic, replaces the one before.

    A goal's execution awaits its end: no callback waits for a motion. Each client listens to the
    feedback, so that a goal without listeners has lost its client. `take` has the controller
    follow a trajectory, or brake where it has no points, and says why not.
    """

    def __init__(
        self,
        node: Node,
        controller: Controller,
        take: Callable[[JointTrajectory], Diagnostic | None],
    ) -> None:
        self._node, self._controller, self._take = node, controller, take
        self._handle: Any = None
        self._ending = Future()
        self._next: TrajectoryGoal | None = None
        self._goal: TrajectoryGoal | None = None
        self._heard, self._told = False, 0.0
        self._server = ActionServer(
            node,
            FollowJointTrajectory,
            _NAME,
            partial(_close, self._ending),  # never called: each goal has an ending of its own
            goal_callback=self._on_goal,
            handle_accepted_callback=self._on_accepted,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
        )
        node.create_timer(_LOOK, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _on_goal(self, request: Any) -> GoalResponse:
        refusal = self._refusal(request)
        if refusal is None:
            return GoalResponse.ACCEPT
        self._node.get_logger().warning(f"goal rejected: {refusal}")
        return GoalResponse.REJECT

    def _refusal(self, request: Any) -> Diagnostic | None:
        """Take over a goal's trajectory, or say why not; what is followed already goes on then."""
        other = ("component_path_tolerance", "component_goal_tolerance")
        if request.multi_dof_trajectory.points or any(getattr(request, name) for name in other):
            return Diagnostic("refused", "is of joints with several degrees of freedom")
        if not request.trajectory.points:
            return Diagnostic("refused", "has no points")
        try:
            self._next = TrajectoryGoal(
                self._controller.joint_names,
                self._tolerance(request.path_tolerance),
                self._tolerance(request.goal_tolerance),
                seconds(request.goal_time_tolerance),
            )
        except ParameterError as error:
            return Diagnostic("refused", str(error))
        return self._take(request.trajectory)

    def _tolerance(self, given: Any) -> GoalTolerance:
        controller = self._controller
        rows = [(one.name, one.position, one.velocity) for one in given]
        aliases = controller.robot.description.names
        return goal_tolerance(controller.joint_names, aliases, rows)

    def _on_accepted(self, handle: Any) -> None:
        self.replace("by a newer goal")
        self._handle, self._goal, self._heard = handle, self._next, False
        self._ending = Future()
        handle.execute(partial(_close, self._ending))

    def replace(self, by: str) -> None:
        """End the goal since another trajectory is followed."""
        self._end(GoalEnd(Outcome.INVALID_GOAL, f"replaced {by}"))

    def tick(self, now: float, command: Command) -> None:
        """Judge the goal by a tick at a time [s]: end it, or tell how it goes."""
        if self._goal is None:
            return
        if self._handle.is_cancel_requested:
            self._brake(GoalEnd(Outcome.SUCCESSFUL, "cancelled; the robot is held"))
            return
        end = self._goal.judge(now, command)
        if end is None:
            if not 0.0 <= now - self._told < _FEEDBACK_PERIOD:
                self._told = now
                self._handle.publish_feedback(self._feedback(command))
        elif end.outcome is Outcome.SUCCESSFUL:
            self._end(end)
        else:
            self._brake(end)

    def _look(self) -> None:
        """Hold the robot if nobody is left who waits for the goal."""
        if self._goal is None:
            return
        count = self._node.count_subscribers(f"{_NAME}/_action/feedback")
        if not count and self._heard:
            self._brake(GoalEnd(Outcome.INVALID_GOAL, "the client is gone; the robot is held"))
        self._heard = bool(count)

    def _brake(self, end: GoalEnd) -> None:
        if self._controller.watchdog.state in (ControlState.HOLDING, ControlState.TRACKING):
            self._take(JointTrajectory())
        self._end(end)

    def _end(self, end: GoalEnd) -> None:
        handle, self._goal, self._handle = self._handle, None, None
        if handle is not None:
            if end.reason:
                self._node.get_logger().warning(f"goal ended: {end.reason}")
            self._ending.set_result(end)

    def _feedback(self, command: Command) -> Any:
        measured, names = self._controller.joint_states, self._controller.joint_names
        actual = (measured.position, measured.velocity)
        error = (command.position_error, command.velocity_error)
        message = FollowJointTrajectory.Feedback(joint_names=list(names))
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.desired = _point(*(a + e for a, e in zip(actual, error, strict=True)))
        message.actual, message.error = _point(*actual), _point(*error)
        return message


def _point(position: FloatArray, velocity: FloatArray) -> JointTrajectoryPoint:
    return JointTrajectoryPoint(positions=doubles(position), velocities=doubles(velocity))


async def _close(ending: Any, handle: Any) -> Any:
    """Await a goal's end, bring it into the state that it ended with, and return its result."""
    end: GoalEnd = await ending
    if handle.is_cancel_requested:
        handle.canceled()
    elif end.outcome is Outcome.SUCCESSFUL:
        handle.succeed()
    else:
        handle.abort()
    return FollowJointTrajectory.Result(error_code=int(end.outcome), error_string=end.reason)
