# SPDX-License-Identifier: Apache-2.0
"""Names of nodes, topics and services: what is valid, and how relative ones become full."""

from __future__ import annotations

import re

__all__ = ["expand", "is_valid", "join"]

_TOKEN = "[A-Za-z_][A-Za-z0-9_]*"
_VALID = {
    "node name": re.compile(_TOKEN),
    "namespace": re.compile(rf"/|(/{_TOKEN})+"),
    "topic name": re.compile(rf"(~?/)?{_TOKEN}(/{_TOKEN})*"),
}
_VALID["service name"] = _VALID["topic name"]


def is_valid(kind: str, name: str) -> bool:
    """Whether a name, before its expansion, is a valid one of its kind.

    Parameters
    ----------
    kind : {"node name", "namespace", "topic name", "service name"}
    """
    return _VALID[kind].fullmatch(name) is not None


def join(namespace: str, name: str) -> str:
    """Return the full name of `name` in a namespace."""
    return f"/{name}" if namespace == "/" else f"{namespace}/{name}"


def expand(name: str, node: str, namespace: str) -> str:
    """Return a topic's or service's full name.

    Parameters
    ----------
    name : str
        Absolute, relative or private (``~``) name.
    node : str
        Name of the node.
    namespace : str
        Namespace of the node, absolute.
    """
    if name.startswith("~"):
        return join(namespace, node) + name[1:]
    return name if name.startswith("/") else join(namespace, name)
