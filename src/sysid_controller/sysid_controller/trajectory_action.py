# SPDX-License-Identifier: Apache-2.0
"""The action `FollowJointTrajectory` in front of the controller, as MoveIt and others send it."""

from collections.abc import Callable
from functools import partial
from typing import Any

from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from sysid_controller.command import Command, ControlState
from sysid_controller.controller import Controller
from sysid_controller.trajectory_goal import (
    GoalEnd,
    GoalTolerance,
    Outcome,
    TrajectoryGoal,
    goal_tolerance,
)
from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.errors import ParameterError
from sysid_ros.fields import doubles, seconds

__all__ = ["TrajectoryAction"]

_NAME = "~/follow_joint_trajectory"
_FEEDBACK_PERIOD = 0.05  # [s] between messages of feedback: enough for plots and people
_LOOK = 0.2  # [s] between looks at whether a client is left


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
