# SPDX-License-Identifier: Apache-2.0
"""A lifecycle as ROS 2's managed nodes have one, by its services alone, on any runtime."""

from collections.abc import Callable
from typing import Any, NamedTuple

from lifecycle_msgs.msg import State, Transition, TransitionDescription, TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetAvailableStates, GetAvailableTransitions, GetState
from rclpy.node import Node

__all__ = ["Lifecycle"]

_STATES = {
    "unconfigured": 1,
    "inactive": 2,
    "active": 3,
    "finalized": 4,
    "configuring": 10,
    "cleaningup": 11,
    "shuttingdown": 12,
    "activating": 13,
    "deactivating": 14,
}
"""Of ``lifecycle_msgs/State``: those that last, and those on the way."""


class _Way(NamedTuple):
    """One transition of ``lifecycle_msgs/Transition``: its number, its states by name."""

    number: int
    label: str
    start: str
    under_way: str
    goal: str


_WAYS = (
    _Way(1, "configure", "unconfigured", "configuring", "inactive"),
    _Way(2, "cleanup", "inactive", "cleaningup", "unconfigured"),
    _Way(3, "activate", "inactive", "activating", "active"),
    _Way(4, "deactivate", "active", "deactivating", "inactive"),
    _Way(5, "shutdown", "unconfigured", "shuttingdown", "finalized"),
    _Way(6, "shutdown", "inactive", "shuttingdown", "finalized"),
    _Way(7, "shutdown", "active", "shuttingdown", "finalized"),
)
_END, _SUCCESS, _FAILURE = 10, 0, 1
"""How a transition's own end is numbered: ten times its number, and how it ended."""


class Lifecycle:
    """The state of a node that managers and ``ros2 lifecycle`` see and change.

    `change` does what a transition's label stands for; it returns why it cannot, or nothing.
    """

    def __init__(self, node: Node, change: Callable[[str], str]) -> None:
        self.state = "unconfigured"  # ``unconfigured``, ``inactive``, ``active`` or ``finalized``
        self._node, self._change = node, change
        self._events = node.create_publisher(TransitionEvent, "~/transition_event", 10)
        for kind, name, answer in (
            (ChangeState, "change_state", self._on_change),
            (GetState, "get_state", self._on_state),
            (GetAvailableStates, "get_available_states", self._on_states),
            (GetAvailableTransitions, "get_available_transitions", self._on_transitions),
            (GetAvailableTransitions, "get_transition_graph", self._on_graph),
        ):
            node.create_service(kind, f"~/{name}", answer)

    def go(self, *labels: str) -> str:
        """Make those of some transitions that start where the node is then, in turn.

        Returns why one could not be made; empty if the last of them has been.
        """
        for label in labels:
            way = next((w for w in self._ways() if w.label == label), None)
            why = "" if way is None else self._take(way)
            if why:
                return why
        reached = self.state in {way.goal for way in _WAYS if way.label == labels[-1]}
        return "" if reached else f"the controller is {self.state}"

    def _ways(self) -> list[_Way]:
        return [way for way in _WAYS if way.start == self.state]

    def _take(self, way: _Way) -> str:
        why = self._change(way.label)
        self._move(way, _FAILURE if why else _SUCCESS)
        return why

    def _move(self, way: _Way, end: int) -> None:
        """Go to a transition's goal, or stay where it failed, and tell both its halves."""
        self.state = way.start if end else way.goal
        self._tell(way.number, way.label, way.start, way.under_way)
        number = _END * min(way.number, 5) + end
        label = "transition_failure" if end else "transition_success"
        self._tell(number, label, way.under_way, self.state)

    def _tell(self, number: int, label: str, start: str, goal: str) -> None:
        self._events.publish(
            TransitionEvent(
                timestamp=self._node.get_clock().now().nanoseconds,
                transition=Transition(id=number, label=label),
                start_state=_state(start),
                goal_state=_state(goal),
            )
        )

    # -- services ---------------------------------------------------------------------------

    def _on_change(self, request: Any, response: Any) -> Any:
        """Make the transition of a number; a number of 0 stands for its label."""
        asked = request.transition
        ways = (w for w in self._ways() if asked.id in (0, w.number))
        way = next((w for w in ways if asked.id or w.label == asked.label), None)
        why = f"no such transition from '{self.state}'" if way is None else self._take(way)
        response.success = not why
        if why:
            self._node.get_logger().warning(f"transition {asked.label or asked.id} refused: {why}")
        return response

    def _on_state(self, _: Any, response: Any) -> Any:
        response.current_state = _state(self.state)
        return response

    def _on_states(self, _: Any, response: Any) -> Any:
        response.available_states = [_state(name) for name in _STATES]
        return response

    def _on_transitions(self, _: Any, response: Any) -> Any:
        response.available_transitions = [_description(way) for way in self._ways()]
        return response

    def _on_graph(self, _: Any, response: Any) -> Any:
        response.available_transitions = [_description(way) for way in _WAYS]
        return response


def _state(name: str) -> State:
    return State(id=_STATES[name], label=name)


def _description(way: _Way) -> TransitionDescription:
    return TransitionDescription(
        transition=Transition(id=way.number, label=way.label),
        start_state=_state(way.start),
        goal_state=_state(way.under_way),
    )
