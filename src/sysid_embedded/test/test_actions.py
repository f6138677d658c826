# SPDX-License-Identifier: Apache-2.0
"""Actions: goals are judged, give feedback, end with a result, and can be cancelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

Until = Callable[..., bool]
LIMIT_S = 10.0
SUCCEEDED, CANCELED, ABORTED = 4, 5, 6


class Server:
    """A server that holds its goals until it is told how they end."""

    def __init__(self, node: Any) -> None:
        from control_msgs.action import FollowJointTrajectory
        from rclpy.action import ActionServer, CancelResponse, GoalResponse

        self.kind, self.goals = FollowJointTrajectory, []  # type: tuple[Any, list[Any]]
        self.server = ActionServer(
            node,
            FollowJointTrajectory,
            "~/follow",
            self.end,
            goal_callback=lambda goal: (
                GoalResponse.ACCEPT if goal.trajectory.joint_names else GoalResponse.REJECT
            ),
            handle_accepted_callback=self.goals.append,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
        )

    def end(self, goal: Any) -> Any:
        text = goal.request.trajectory.joint_names[0]
        if goal.is_cancel_requested:
            goal.canceled()
        elif text != "forgets":
            goal.succeed()
        return self.kind.Result(error_string=text)


@pytest.fixture
def both(node: Any) -> Iterator[tuple[Server, Any]]:
    from rclpy.action import ActionClient

    server = Server(node)
    client = ActionClient(node, server.kind, "/node/follow")
    assert client.wait_for_server(timeout_sec=LIMIT_S)
    yield server, client
    client.destroy()


def goal(server: Server, name: str) -> Any:
    made = server.kind.Goal()
    made.trajectory.joint_names = [name] if name else []
    return made


def send(ros: Any, node: Any, both: tuple[Server, Any], name: str, heard: Any = None) -> Any:
    server, client = both
    sent = client.send_goal_async(goal(server, name), feedback_callback=heard)
    ros.spin_until_future_complete(node, sent, timeout_sec=LIMIT_S)
    return sent.result()


@pytest.mark.parametrize(("name", "status"), [("a", SUCCEEDED), ("forgets", ABORTED)])
def test_a_goal_gives_feedback_and_ends_with_a_result(
    name: str, status: int, node: Any, ros: Any, until: Until, both: tuple[Server, Any]
) -> None:
    server, _ = both
    heard: list[Any] = []
    handle = send(ros, node, both, name, heard.append)
    assert handle.accepted
    assert until(lambda: server.goals, node)
    feedback = server.kind.Feedback(joint_names=["b"])
    server.goals[0].publish_feedback(feedback)
    assert until(lambda: heard, node)
    assert heard[0].feedback == feedback
    asked = handle.get_result_async()
    assert not until(asked.done, node, limit_s=0.1)
    server.goals[0].execute(server.end)
    assert until(asked.done, node)
    assert (asked.result().status, asked.result().result.error_string) == (status, name)
    assert not server.goals[0].is_active
    again = handle.get_result_async()
    assert until(again.done, node)
    assert again.result() == asked.result()


def test_a_goal_can_be_refused(node: Any, ros: Any, both: tuple[Server, Any]) -> None:
    assert not send(ros, node, both, "").accepted
    assert not both[0].goals


def test_a_goal_is_cancelled_once(
    node: Any, ros: Any, until: Until, both: tuple[Server, Any]
) -> None:
    server, _ = both
    handle = send(ros, node, both, "a")
    other = send(ros, node, both, "b")
    for code in (0, 3):
        cancelled = handle.cancel_goal_async()
        assert until(cancelled.done, node)
        assert cancelled.result().return_code == code
        for known in server.goals:
            if known.is_cancel_requested:
                known.execute(server.end)
        until(lambda: not server.goals[0].is_active, node)
    asked = handle.get_result_async()
    assert until(asked.done, node)
    assert asked.result().status == CANCELED
    assert [known.is_active for known in server.goals] == [False, True]
    assert other.accepted


def test_a_server_that_isn_t_there_is_not_ready(node: Any) -> None:
    from control_msgs.action import FollowJointTrajectory
    from rclpy.action import ActionClient

    client = ActionClient(node, FollowJointTrajectory, "absent")
    assert not client.server_is_ready()
    assert not client.wait_for_server(timeout_sec=0.05)
