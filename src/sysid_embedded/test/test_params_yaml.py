# SPDX-License-Identifier: Apache-2.0
"""Parameter files are typed as ROS 2's parser types them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from sysid_embedded.errors import YamlError
from sysid_embedded.params_yaml import NodeParameters, parse_file, parse_text, parse_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-0x10", -16),
        ("010", 8),
        ("1.0", 1.0),
        ("1.", 1.0),
        ("1e-3", 1e-3),
        ("-.5", -0.5),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("true", True),
        ("on", True),
        ("No", False),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 1", "1"),
        ("!!str 1e-3", "1e-3"),
        ("1.0.0", "1.0.0"),
        ("word", "word"),
        ("[1, 2]", [1, 2]),
        ("[1.0, 2e0]", [1.0, 2.0]),
        ("[a, 'b']", ["a", "b"]),
        ("[]", []),
    ],
)
def test_values_are_typed(text: str, value: Any) -> None:
    found = parse_value(text)
    assert found == value
    assert type(found) is type(value)


def test_nan_is_a_number() -> None:
    assert math.isnan(parse_value(".nan"))


@pytest.mark.parametrize("text", ["[1, 2.0]", "[[1], [2]]", "{a: 1}", "[1, a]"])
def test_what_no_parameter_can_hold_is_refused(text: str) -> None:
    with pytest.raises(YamlError):
        parse_value(text)


def test_nested_names_are_joined_by_dots_and_nodes_by_slashes() -> None:
    blocks = parse_text(
        """
        ns:
          node:
            ros__parameters:
              a: {b: 1, c: [x]}
        /**:
          ros__parameters: {d: 2.0}
        """,
        "file",
    )
    assert blocks == [
        NodeParameters("/ns/node", {"a.b": 1, "a.c": ["x"]}),
        NodeParameters("/**", {"d": 2.0}),
    ]


@pytest.mark.parametrize(
    ("pattern", "node", "fits"),
    [
        ("/**", "/a", True),
        ("/**", "/a/b/c", True),
        ("/*", "/a", True),
        ("/*", "/a/b", False),
        ("/**/c", "/a/b/c", True),
        ("/**/c", "/c", True),
        ("/*/c", "/a/c", True),
        ("/a/*", "/a/c", True),
        ("/a", "/ab", False),
        ("/a.b", "/axb", False),
    ],
)
def test_patterns_name_nodes(pattern: str, node: str, fits: bool) -> None:
    assert NodeParameters(pattern, {}).matches(node) is fits


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("ros__parameters: {a: 1}", "needs a node name"),
        ("node: 1", "expected a node name"),
        ("node:\n  ros__parameters: 1", "name: value"),
        ("node: [", "not valid YAML"),
    ],
)
def test_what_is_no_parameter_file_is_refused_with_its_place(text: str, what: str) -> None:
    with pytest.raises(YamlError, match=what):
        parse_text(text, "some.yaml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(YamlError, match=r"absent\.yaml"):
        parse_file(tmp_path / "absent.yaml")
