# SPDX-License-Identifier: Apache-2.0
"""Names: which are valid, and what they expand to."""

from __future__ import annotations

import pytest

from sysid_embedded.names import expand, fault_of_namespace, fault_of_node_name, fault_of_topic


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("a", "/ns/a"),
        ("a/b", "/ns/a/b"),
        ("/a", "/a"),
        ("~/a", "/ns/node/a"),
    ],
)
def test_names_expand(name: str, full: str) -> None:
    assert expand(name, "node", "/ns") == full


def test_the_root_namespace_adds_no_second_slash() -> None:
    assert expand("a", "node", "/") == "/a"
    assert expand("~/a", "node", "/") == "/node/a"


@pytest.mark.parametrize("name", ["a", "_a1", "/a/b", "~/a"])
def test_valid_topics(name: str) -> None:
    assert fault_of_topic(name) is None


@pytest.mark.parametrize("name", ["", "1a", "a b", "a//b", "a/", "~a", "~", "{x}/a", "a-b", "/1"])
def test_invalid_topics(name: str) -> None:
    assert fault_of_topic(name) is not None


def test_the_fault_is_located() -> None:
    fault = fault_of_node_name("ab-c")
    assert fault is not None
    assert fault[1] == 2
    assert fault_of_node_name("1a") is not None
    assert fault_of_namespace("a") is not None
    assert fault_of_namespace("/a/") is not None
    assert fault_of_namespace("/") is None
    assert fault_of_namespace("/a/b") is None
