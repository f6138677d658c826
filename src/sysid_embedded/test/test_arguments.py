# SPDX-License-Identifier: Apache-2.0
"""Command-line arguments after --ros-args mean what they mean to ROS 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from sysid_embedded.arguments import InvalidArgumentError, parse


def test_what_is_not_ros_s_is_left() -> None:
    arguments = parse(["prog", "-x", "--ros-args", "-r", "a:=b", "--", "y", "--ros-args"])
    assert arguments.remaps == (("a", "b"),)


def test_names_and_namespaces_are_remapped() -> None:
    arguments = parse(["--ros-args", "-r", "__node:=new", "-r", "__ns:=/deep/er"])
    assert arguments.node_name("old") == "new"
    assert arguments.namespace("/") == "/deep/er"


@pytest.mark.parametrize(
    ("rule", "full", "result"),
    [
        ("chatter:=talk", "/ns/chatter", "/ns/talk"),
        ("chatter:=talk", "/chatter", None),
        ("/chatter:=talk", "/chatter", "/ns/talk"),
        ("~/own:=/other", "/ns/node/own", "/other"),
    ],
)
def test_topics_are_remapped_by_their_full_names(rule: str, full: str, result: str | None) -> None:
    arguments = parse(["--ros-args", "--remap", rule])
    assert arguments.remap(full, "node", "/ns") == result


def test_the_first_rule_that_fits_wins() -> None:
    arguments = parse(["--ros-args", "-r", "a:=b", "-r", "a:=c"])
    assert arguments.remap("/a", "node", "/") == "/b"


def test_later_parameters_win_and_exact_names_beat_wildcards(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        "/node:\n  ros__parameters: {a: 1, b: 1}\n/**:\n  ros__parameters: {a: 2, b: 2, c: 2}\n"
    )
    arguments = parse(
        ["--ros-args", "-p", "b:=3", "--params-file", str(file), "-p", "c:=[1.0, 2.0]"]
    )
    assert arguments.overrides("/node") == {"a": 1, "b": 1, "c": [1.0, 2.0]}
    assert arguments.overrides("/other") == {"a": 2, "b": 2, "c": [1.0, 2.0]}


@pytest.mark.parametrize(
    "items",
    [["--unknown"], ["-r"], ["-r", "nonsense"], ["-p", "a"], ["--params-file", "/no/such/file"]],
)
def test_nonsense_is_refused(items: list[str]) -> None:
    with pytest.raises(InvalidArgumentError):
        parse(["--ros-args", *items])
