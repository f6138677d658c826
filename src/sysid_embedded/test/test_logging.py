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
def test_the_command_line_sets_the_least_level(capfd: pytest.CaptureFixture[str]) -> None:
    import rclpy
    from rclpy.context import Context
    from rclpy.logging import get_logger

    assert not get_logger("a").debug("hidden")
    for level, shown in (("debug", True), ("info", False)):
        context = Context()
        rclpy.init(args=["--ros-args", "--log-level", level], context=context)
        assert get_logger("a").debug("shown") is shown
        context.destroy()
    assert "hidden" not in capfd.readouterr().err


def test_lines_reach_rosout(node: Any, ros: Any, until: Until) -> None:
    from rcl_interfaces.msg import Log

    got: list[Any] = []
    listener = ros.create_node("listener")
    listener.create_subscription(Log, "/rosout", got.append, 10)

    def arrived() -> bool:
        # The other end of the topic may know of this one a little later.
        node.get_logger().error("broken")
        return bool(until(lambda: [m for m in got if m.msg == "broken"], limit_s=0.2))

    assert until(arrived, listener)
    message = next(m for m in got if m.msg == "broken")
    assert (message.level, message.name) == (40, "node")
