# SPDX-License-Identifier: Apache-2.0
"""Logging: levels, filters, the form of a line, and /rosout."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

Until = Callable[..., bool]


def test_lines_have_ros_s_form(node: Any, capfd: pytest.CaptureFixture[str]) -> None:
    node.get_logger().warning("look")
    line = capfd.readouterr().err.splitlines()[-1]
    assert re.fullmatch(r"\[WARN\] \[\d+\.\d{9}\] \[node\]: look", line)


@pytest.mark.embedded
def test_the_form_can_be_chosen(
    node: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RCUTILS_CONSOLE_OUTPUT_FORMAT", "{severity}|{function_name}|{message}")
    node.get_logger().info("x")
    assert capfd.readouterr().err.endswith("INFO|test_the_form_can_be_chosen|x\n")


def test_levels_are_inherited(ros: Any, capfd: pytest.CaptureFixture[str]) -> None:
    from rclpy.logging import LoggingSeverity, get_logger

    parent = get_logger("parent")
    child = parent.get_child("child")
    assert not child.debug("hidden")
    parent.set_level(LoggingSeverity.DEBUG)
    assert child.get_effective_level() == LoggingSeverity.DEBUG
    assert child.debug("shown")
    child.set_level(LoggingSeverity.ERROR)
    assert not child.warning("hidden")
    assert parent.debug("shown")
    assert "hidden" not in capfd.readouterr().err


def test_filters_work_per_line(node: Any) -> None:
    logger = node.get_logger()
    assert [logger.info("x", once=True) for _ in range(3)] == [True, False, False]
    assert [logger.info("x", skip_first=True) for _ in range(3)] == [False, True, True]
    throttled = [logger.info("x", throttle_duration_sec=60.0) for _ in range(3)]
    assert throttled == [True, False, False]
    assert logger.info("x", throttle_duration_sec=60.0)
    with pytest.raises(TypeError, match="twice"):
        logger.info("x", twice=True)


def test_throttling_goes_by_the_given_clock(ros: Any) -> None:
    from rclpy.clock import ROSClock
    from rclpy.logging import get_logger
    from rclpy.time import Time

    clock = ROSClock()
    clock._set_ros_time_is_active(True)
    logger = get_logger("throttled")
    written = []
    for seconds in (10, 11, 14, 16):
        clock.set_ros_time_override(Time(seconds=seconds))
        written.append(
            logger.info("x", throttle_duration_sec=3.0, throttle_time_source_type=clock)
        )
    assert written == [True, False, True, False]


def test_lines_reach_rosout(node: Any, ros: Any, until: Until) -> None:
    from rcl_interfaces.msg import Log

    got: list[Any] = []
    listener = ros.create_node("listener")
    listener.create_subscription(Log, "/rosout", got.append, 10)

    def arrived() -> bool:
        # The other end of the topic may know of this one a little later.
        node.get_logger().get_child("part").error("broken")
        return bool(until(lambda: [m for m in got if m.msg == "broken"], limit_s=0.2))

    assert until(arrived, listener)
    message = next(m for m in got if m.msg == "broken")
    assert (message.level, message.name) == (40, "node.part")
    assert message.function == "arrived"
