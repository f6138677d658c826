# SPDX-License-Identifier: Apache-2.0
"""Command-line arguments after --ros-args mean what they mean to ROS 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from sysid_embedded.arguments import InvalidArgumentError, parse


def test_what_is_not_ros_s_is_left() -> None:
    arguments = parse(["prog", "-x", "--ros-args", "-r", "a:=b", "--", "y", "--ros-args"])
    assert arguments.rest == ("prog", "-x", "y")
    assert len(arguments.remaps) == 1


def test_names_and_namespaces_are_remapped() -> None:
    arguments = parse(["--ros-args", "-r", "__node:=new", "-r", "__ns:=/deep/er"])
    assert arguments.node_name("old") == "new"
    assert arguments.namespace("old", "/") == "/deep/er"


def test_a_rule_for_one_node_leaves_others_alone() -> None:
    arguments = parse(["--ros-args", "-r", "a:__node:=b", "-r", "c:topic:=other"])
    assert arguments.node_name("a") == "b"
    assert arguments.node_name("x") == "x"
    assert arguments.remap("topic", "/topic", "c", "/") == "/other"
    assert arguments.remap("topic", "/topic", "x", "/") is None


@pytest.mark.parametrize(
    ("rule", "full", "result"),
    [
        ("chatter:=talk", "/ns/chatter", "/ns/talk"),
        ("chatter:=talk", "/chatter", None),
        ("/chatter:=talk", "/chatter", "/ns/talk"),
        ("~/own:=/other", "/ns/node/own", "/other"),
        ("rostopic://chatter:=talk", "/ns/chatter", "/ns/talk"),
        ("rosservice://chatter:=talk", "/ns/chatter", None),
    ],
)
def test_topics_are_remapped_by_their_full_names(rule: str, full: str, result: str | None) -> None:
    arguments = parse(["--ros-args", "--remap", rule])
    assert arguments.remap("topic", full, "node", "/ns") == result


def test_the_first_rule_that_fits_wins() -> None:
    arguments = parse(["--ros-args", "-r", "a:=b", "-r", "a:=c"])
    assert arguments.remap("topic", "/a", "node", "/") == "/b"


def test_later_parameters_win_and_exact_names_beat_wildcards(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        "/node:\n  ros__parameters: {a: 1, b: 1}\n/**:\n  ros__parameters: {a: 2, b: 2, c: 2}\n"
    )
    arguments = parse(
        ["--ros-args", "-p", "node:b:=3", "--params-file", str(file), "-p", "c:=[1.0, 2.0]"]
    )
    assert arguments.overrides("/node") == {"a": 1, "b": 1, "c": [1.0, 2.0]}
    assert arguments.overrides("/other") == {"a": 2, "b": 2, "c": [1.0, 2.0]}


def test_log_levels_are_for_all_or_for_one_logger() -> None:
    arguments = parse(["--ros-args", "--log-level", "debug", "--log-level", "x:=error"])
    assert arguments.log_level == "debug"
    assert arguments.logger_levels == {"x": "error"}


@pytest.mark.parametrize(
    "items",
    [["--unknown"], ["-r"], ["-r", "nonsense"], ["-p", "a"], ["--params-file", "/no/such/file"]],
)
def test_nonsense_is_refused(items: list[str]) -> None:
    with pytest.raises(InvalidArgumentError):
        parse(["--ros-args", *items])
