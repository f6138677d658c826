# SPDX-License-Identifier: Apache-2.0
"""Time: clocks, sim time and its jumps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

Until = Callable[..., bool]


def test_clocks_run() -> None:
    from rclpy.clock import Clock, ClockType

    steady = Clock(clock_type=ClockType.STEADY_TIME)
    assert steady.now().nanoseconds <= steady.now().nanoseconds
    system = Clock().now()
    assert abs(system.nanoseconds - time.time_ns()) < 10**9
    message = system.to_msg()
    assert message.sec * 10**9 + message.nanosec == system.nanoseconds


def _simulate(ros: Any) -> tuple[Any, Any, Callable[[float], None]]:
    from rosgraph_msgs.msg import Clock

    overrides = [ros.Parameter("use_sim_time", value=True)]
    node = ros.create_node("sim", parameter_overrides=overrides)
    source = ros.create_node("source")
    publisher = source.create_publisher(Clock, "/clock", 10)

    def set_time(seconds: float) -> None:
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(int(seconds * 1e9), 10**9)
        publisher.publish(message)

    return node, publisher, set_time


def test_sim_time_follows_the_clock_topic(ros: Any, until: Until) -> None:
    node, publisher, set_time = _simulate(ros)
    assert node.get_clock().ros_time_is_active
    assert node.get_clock().now().nanoseconds == 0
    assert until(lambda: publisher.get_subscription_count() == 1, node)
    set_time(12.5)
    assert until(lambda: node.get_clock().now().nanoseconds == 12_500_000_000, node)
    node.set_parameters([ros.Parameter("use_sim_time", value=False)])
    assert abs(node.get_clock().now().nanoseconds - time.time_ns()) < 10**9


def test_timers_follow_sim_time(ros: Any, until: Until) -> None:
    node, publisher, set_time = _simulate(ros)
    calls: list[float] = []
    node.create_timer(1.0, lambda: calls.append(node.get_clock().now().nanoseconds / 1e9))
    assert until(lambda: publisher.get_subscription_count() == 1, node)
    for seconds in (0.5, 1.5, 1.9, 2.1, 6.0):
        set_time(seconds)
        assert until(lambda s=seconds: node.get_clock().now().nanoseconds == int(s * 1e9), node)
        until(lambda: False, node, limit_s=0.02)
    assert calls == [1.5, 2.1, 6.0]
    # Back to the start: the next call is one period later.
    set_time(0.2)
    assert until(lambda: node.get_clock().now().nanoseconds == 200_000_000, node)
    set_time(1.3)
    assert until(lambda: calls[-1] == 1.3, node)


def test_use_sim_time_is_a_bool(node: Any, ros: Any) -> None:
    (result,) = node.set_parameters([ros.Parameter("use_sim_time", value=1)])
    assert not result.successful
