# SPDX-License-Identifier: Apache-2.0
"""Names: which are valid, and what they expand to."""

from __future__ import annotations

import pytest

from sysid_embedded.arguments import expand, is_valid


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
    assert is_valid("topic name", name)


@pytest.mark.parametrize("name", ["", "1a", "a b", "a//b", "a/", "~a", "~", "{x}/a", "a-b", "/1"])
def test_invalid_topics(name: str) -> None:
    assert not is_valid("topic name", name)


def test_names_of_nodes_and_namespaces() -> None:
    for kind, good, bad in (
        ("node name", ("a", "_a1"), ("", "ab-c", "1a", "a/b", "a\n")),
        ("namespace", ("/", "/a/b"), ("a", "/a/", "/a//b")),
    ):
        assert all(is_valid(kind, name) for name in good)
        assert not any(is_valid(kind, name) for name in bad)
