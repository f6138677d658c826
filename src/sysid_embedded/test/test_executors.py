# SPDX-License-Identifier: Apache-2.0
"""Executors and timers: what runs when, where and what happens to its errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

Until = Callable[..., bool]
LIMIT_S = 10.0


def test_an_error_in_a_callback_comes_out_of_spin(node: Any, ros: Any) -> None:
    def fail() -> None:
        raise ZeroDivisionError("in the callback")

    node.create_timer(0.001, fail)
    with pytest.raises(ZeroDivisionError, match="in the callback"):
        ros.spin(node)


def test_spinning_ends_at_shutdown(node: Any, ros: Any) -> None:
    node.create_timer(0.001, ros.try_shutdown)
    ros.spin(node)
    assert not ros.ok()


def test_waiting_ends_with_an_error_at_shutdown(node: Any, ros: Any) -> None:
    from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor

    executor = SingleThreadedExecutor()
    executor.add_node(node)
    waiting = threading.Event()

    def begin() -> None:
        once.cancel()
        waiting.set()

    once = node.create_timer(0.0, begin)
    thread = threading.Thread(target=lambda: waiting.wait(LIMIT_S) and ros.shutdown())
    thread.start()

    def spin() -> None:
        for _ in range(100):
            executor.spin_once()

    with pytest.raises(ExternalShutdownException):
        spin()
    thread.join(LIMIT_S)
    executor.shutdown()


def test_a_timeout_of_zero_doesn_t_wait(node: Any, ros: Any) -> None:
    start = time.monotonic()
    for _ in range(5):
        ros.spin_once(node, timeout_sec=0.0)
    assert time.monotonic() - start < 1.0


def test_a_timer_keeps_its_rate_without_drift(node: Any, until: Until) -> None:
    period = 0.005
    calls: list[float] = []
    node.create_timer(period, lambda: calls.append(time.monotonic()))
    assert until(lambda: len(calls) >= 100, node)
    # Calls may be late, but each is due at a multiple of the period after the first.
    assert (calls[-1] - calls[0]) / period >= 98.0


def test_missed_calls_are_skipped(node: Any, until: Until) -> None:
    calls: list[float] = []

    def slow() -> None:
        calls.append(time.monotonic())
        if len(calls) == 1:
            time.sleep(0.1)

    node.create_timer(0.01, slow)
    assert until(lambda: len(calls) >= 4, node)
    # one call is due at once, the others a period apart; late ones only lengthen this
    assert calls[3] - calls[0] > 0.109


def test_a_cancelled_timer_rests_until_it_is_reset(node: Any, until: Until) -> None:
    calls: list[int] = []

    def once() -> None:
        calls.append(1)
        timer.cancel()

    timer: Any = node.create_timer(0.001, once)
    assert until(lambda: calls, node)
    assert timer.is_canceled()
    assert not until(lambda: len(calls) > 1, limit_s=0.05)
    timer.reset()
    assert until(lambda: len(calls) == 2)


def test_timers_and_topics_share_the_time(node: Any, until: Until) -> None:
    from std_msgs.msg import Int32

    got: list[int] = []
    publisher = node.create_publisher(Int32, "t", 10)
    node.create_subscription(Int32, "t", lambda m: got.append(m.data), 10)
    node.create_timer(0.0, lambda: publisher.publish(Int32(data=1)))
    assert until(lambda: len(got) > 10, node)


def test_a_timer_that_is_always_late_starves_nobody(node: Any, until: Until) -> None:
    from std_msgs.msg import Int32

    got: list[int] = []
    publisher = node.create_publisher(Int32, "t", 10)
    node.create_subscription(Int32, "t", lambda m: got.append(m.data), 10)

    def work_longer_than_the_period() -> None:
        publisher.publish(Int32(data=1))
        end = time.monotonic() + 0.005
        while time.monotonic() < end:
            pass

    node.create_timer(0.001, work_longer_than_the_period)
    assert until(lambda: len(got) > 10, node)


def test_an_executor_spins_in_a_thread_until_it_is_shut_down(node: Any, ros: Any) -> None:
    from rclpy.executors import SingleThreadedExecutor

    ticked = threading.Event()
    node.create_timer(0.001, ticked.set)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    thread = threading.Thread(target=executor.spin)
    thread.start()
    assert ticked.wait(LIMIT_S)
    executor.shutdown()
    thread.join(LIMIT_S)
    assert not thread.is_alive()


def test_a_node_belongs_to_one_executor(node: Any, ros: Any) -> None:
    from rclpy.executors import SingleThreadedExecutor

    first, second = SingleThreadedExecutor(), SingleThreadedExecutor()
    assert first.add_node(node)
    assert not first.add_node(node)
    assert second.add_node(node)
    assert first.get_nodes() == []
    assert second.get_nodes() == [node]
    first.shutdown()
    second.shutdown()
