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
    from rclpy.logging import LoggingSeverity, get_logger, set_logger_level

    parent, child = get_logger("parent"), get_logger("parent.child")
    assert not child.debug("hidden")
    set_logger_level("parent", LoggingSeverity.DEBUG)
    assert child.debug("shown")
    set_logger_level("parent.child", LoggingSeverity.ERROR)
    assert not child.warning("hidden")
    assert parent.debug("shown")
    assert "hidden" not in capfd.readouterr().err


def test_lines_reach_rosout(node: Any, ros: Any, until: Until) -> None:
    from rcl_interfaces.msg import Log
    from rclpy.logging import get_logger

    got: list[Any] = []
    listener = ros.create_node("listener")
    listener.create_subscription(Log, "/rosout", got.append, 10)

    def arrived() -> bool:
        # The other end of the topic may know of this one a little later.
        get_logger("node.part").error("broken")
        return bool(until(lambda: [m for m in got if m.msg == "broken"], limit_s=0.2))

    assert until(arrived, listener)
    message = next(m for m in got if m.msg == "broken")
    assert (message.level, message.name) == (40, "node.part")
    assert message.function == "arrived"
