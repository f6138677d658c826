# SPDX-License-Identifier: Apache-2.0
"""Time: arithmetic, clocks, sim time and its jumps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

Until = Callable[..., bool]


def test_arithmetic_keeps_kinds_apart() -> None:
    from rclpy.clock import ClockType
    from rclpy.duration import Duration
    from rclpy.time import Time

    time_ = Time(seconds=1, nanoseconds=5)
    assert time_.seconds_nanoseconds() == (1, 5)
    assert (time_ + Duration(seconds=0.5)).nanoseconds == 1_500_000_005
    assert (time_ - Time(seconds=1)) == Duration(nanoseconds=5)
    assert (time_ - Duration(seconds=1)) == Time(nanoseconds=5)
    assert Time(seconds=2) > time_ >= time_
    with pytest.raises(TypeError):
        _ = time_ < Time(seconds=1, clock_type=ClockType.ROS_TIME)
    with pytest.raises(ValueError, match="negative"):
        Time(seconds=-1)
    assert Duration(seconds=1) < Duration(seconds=2)


def test_messages_keep_nanoseconds() -> None:
    from rclpy.clock import ClockType
    from rclpy.duration import Duration
    from rclpy.time import Time

    time_ = Time(nanoseconds=1_700_000_000_123_456_789, clock_type=ClockType.ROS_TIME)
    assert Time.from_msg(time_.to_msg()) == time_
    span = Duration(nanoseconds=-1)
    assert Duration.from_msg(span.to_msg()) == span


def test_clocks_run() -> None:
    from rclpy.clock import Clock, ClockType, ROSClock

    assert isinstance(Clock(clock_type=ClockType.ROS_TIME), ROSClock)
    steady = Clock(clock_type=ClockType.STEADY_TIME)
    assert steady.now() <= steady.now()
    system = Clock().now().nanoseconds
    assert abs(system - time.time_ns()) < 10**9


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
