# SPDX-License-Identifier: Apache-2.0
"""Actions: goals that take time, with feedback, cancelling and a result."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable
from enum import Enum
from typing import Any

from sysid_embedded.messages import message_class

from .callback_groups import MutuallyExclusiveCallbackGroup
from .qos import qos_profile_action_status_default
from .task import Future, resume

__all__ = ["ActionClient", "ActionServer", "CancelResponse", "GoalResponse"]

_ACCEPTED, _EXECUTING, _CANCELING, _SUCCEEDED, _CANCELED, _ABORTED = range(1, 7)
_NO_ERROR, _REJECTED, _UNKNOWN_GOAL, _TERMINATED = range(4)
_KEPT = 100  # Goals that are known, those whose results may still be asked for among them


class GoalResponse(Enum):
    """What a server says to a goal."""

    REJECT = 1
    ACCEPT = 2


class CancelResponse(Enum):
    """What a server says to a request to cancel."""

    REJECT = 1
    ACCEPT = 2


def _nanoseconds(stamp: Any) -> int:
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


class ServerGoalHandle:
    """One goal that a server accepted."""

    def __init__(self, server: ActionServer, goal_id: Any, request: Any, stamp: Any) -> None:
        self._server = server
        self.goal_id, self.request, self.stamp = goal_id, request, stamp
        self.status = _ACCEPTED
        self.answer = Future()

    @property
    def is_active(self) -> bool:
        return self.status < _SUCCEEDED

    @property
    def is_cancel_requested(self) -> bool:
        return self.status == _CANCELING

    def update(self, status: int) -> None:
        """Go on to a status, and tell it."""
        self.status = status
        self._server.publish_status()

    def publish_feedback(self, feedback: Any) -> None:
        message = self._server.action_type.Impl.FeedbackMessage
        self._server.feedback.publish(message(goal_id=self.goal_id, feedback=feedback))

    def execute(self, execute_callback: Callable[[ServerGoalHandle], Any]) -> None:
        if not self.is_cancel_requested:
            self.update(_EXECUTING)
        result = execute_callback(self)
        if inspect.iscoroutine(result):
            resume(result, self._finish)
        else:
            self._finish(result)

    def _finish(self, result: Any) -> None:
        if self.is_active:
            self.abort()
        response = self._server.action_type.Impl.GetResultService.Response
        self.answer.set_result(response(status=self.status, result=result))

    def succeed(self) -> None:
        self.update(_SUCCEEDED)

    def abort(self) -> None:
        self.update(_ABORTED)

    def canceled(self) -> None:
        self.update(_CANCELED)


class ActionServer:
    """Takes goals; an accepted one goes to `handle_accepted_callback`, which executes it later."""

    def __init__(
        self,
        node: Any,
        action_type: Any,
        action_name: str,
        execute_callback: Callable[[ServerGoalHandle], Any],
        *,
        callback_group: MutuallyExclusiveCallbackGroup | None = None,
        goal_callback: Callable[[Any], Any] = lambda _: GoalResponse.ACCEPT,
        handle_accepted_callback: Callable[[ServerGoalHandle], Any] | None = None,
        cancel_callback: Callable[[ServerGoalHandle], CancelResponse] = (
            lambda _: CancelResponse.REJECT
        ),
    ) -> None:
        self.action_type = action_type
        self._node, self._goal_callback = node, goal_callback
        self._cancel_callback = cancel_callback
        self._accepted = handle_accepted_callback or (lambda goal: goal.execute(execute_callback))
        self._goals: dict[bytes, ServerGoalHandle] = {}
        wire, hidden = action_type.Impl, f"{action_name}/_action"
        self._status = node.create_publisher(
            wire.GoalStatusMessage, f"{hidden}/status", qos_profile_action_status_default
        )
        self.feedback = node.create_publisher(wire.FeedbackMessage, f"{hidden}/feedback", 10)
        for kind, name, callback in (
            (wire.SendGoalService, "send_goal", self._on_goal),
            (wire.CancelGoalService, "cancel_goal", self._on_cancel),
            (wire.GetResultService, "get_result", self._on_result),
        ):
            node.create_service(kind, f"{hidden}/{name}", callback, callback_group=callback_group)

    def publish_status(self) -> None:
        """Tell the status of every goal that is known."""
        one = message_class("action_msgs/msg/GoalStatus")
        statuses = [one(goal_info=_info(g), status=g.status) for g in self._goals.values()]
        self._status.publish(self.action_type.Impl.GoalStatusMessage(status_list=statuses))

    async def _on_goal(self, request: Any, response: Any) -> Any:
        """Take a goal if its callback, which may await something itself, accepts it."""
        key = bytes(request.goal_id.uuid)
        said = GoalResponse.REJECT if key in self._goals else self._goal_callback(request.goal)
        said = await said if inspect.isawaitable(said) else said
        response.accepted = said is GoalResponse.ACCEPT
        if not response.accepted:
            return response
        response.stamp = self._node.get_clock().now().to_msg()
        goal = ServerGoalHandle(self, request.goal_id, request.goal, response.stamp)
        ended = [key for key, goal in self._goals.items() if not goal.is_active]
        for old in ended[: max(0, len(self._goals) + 1 - _KEPT)]:
            del self._goals[old]
        self._goals[key] = goal
        self.publish_status()
        self._accepted(goal)
        return response

    def _on_cancel(self, request: Any, response: Any) -> Any:
        """Cancel a goal, all, or those that are no younger than a time, as their message says."""
        info = request.goal_info
        key, before = bytes(info.goal_id.uuid), _nanoseconds(info.stamp)
        named = self._goals.get(key)
        wanted = [
            goal
            for goal in self._goals.values()
            if goal is named
            or (before and _nanoseconds(goal.stamp) <= before)
            or not (any(key) or before)
        ]
        for goal in wanted:
            if goal.is_active and self._cancel_callback(goal) is CancelResponse.ACCEPT:
                goal.update(_CANCELING)
                response.goals_canceling.append(_info(goal))
        if any(key) and named is None:
            response.return_code = _UNKNOWN_GOAL
        elif named is not None and not named.is_active:
            response.return_code = _TERMINATED
        else:
            response.return_code = _NO_ERROR if response.goals_canceling else _REJECTED
        return response

    async def _on_result(self, request: Any, response: Any) -> Any:
        goal = self._goals.get(bytes(request.goal_id.uuid))
        return response if goal is None else await goal.answer


def _info(goal: ServerGoalHandle) -> Any:
    return message_class("action_msgs/msg/GoalInfo")(goal_id=goal.goal_id, stamp=goal.stamp)


class ClientGoalHandle:
    """One goal that a client sent, and what the server said to it."""

    def __init__(self, client: ActionClient, goal_id: Any, response: Any) -> None:
        self._client = client
        self.goal_id, self.accepted, self.stamp = goal_id, response.accepted, response.stamp

    def get_result_async(self) -> Future:
        client = self._client
        return client.result.call_async(client.result.srv_type.Request(goal_id=self.goal_id))

    def cancel_goal_async(self) -> Future:
        info = message_class("action_msgs/msg/GoalInfo")(goal_id=self.goal_id)
        client = self._client
        return client.cancel.call_async(client.cancel.srv_type.Request(goal_info=info))


class ActionClient:
    """Sends goals to a server."""

    def __init__(self, node: Any, action_type: Any, action_name: str) -> None:
        wire, hidden = action_type.Impl, f"{action_name}/_action"
        self._node = node
        self._send = node.create_client(wire.SendGoalService, f"{hidden}/send_goal")
        self.cancel = node.create_client(wire.CancelGoalService, f"{hidden}/cancel_goal")
        self.result = node.create_client(wire.GetResultService, f"{hidden}/get_result")
        self._told: dict[bytes, Callable[[Any], Any]] = {}
        self._feedback = node.create_subscription(
            wire.FeedbackMessage, f"{hidden}/feedback", self._on_feedback, 10
        )

    def _on_feedback(self, message: Any) -> None:
        callback = self._told.get(bytes(message.goal_id.uuid))
        if callback is not None:
            callback(message)

    def server_is_ready(self) -> bool:
        services = (self._send, self.cancel, self.result)
        return all(client.service_is_ready() for client in services)

    def wait_for_server(self, timeout_sec: float | None = None) -> bool:
        services = (self._send, self.cancel, self.result)
        return all(client.wait_for_service(timeout_sec) for client in services)

    def send_goal_async(
        self, goal: Any, feedback_callback: Callable[[Any], Any] | None = None
    ) -> Future:
        number = uuid.uuid4().bytes
        goal_id = message_class("unique_identifier_msgs/msg/UUID")(uuid=list(number))
        if feedback_callback is not None:
            self._told[number] = feedback_callback
        sent = self._send.call_async(self._send.srv_type.Request(goal_id=goal_id, goal=goal))
        answered = Future()
        sent.add_done_callback(
            lambda future: answered.set_result(ClientGoalHandle(self, goal_id, future.result()))
        )
        return answered

    def destroy(self) -> None:
        """Send and hear no more."""
        for client in (self._send, self.cancel, self.result):
            self._node.destroy_client(client)
        self._node.destroy_subscription(self._feedback)
