# SPDX-License-Identifier: Apache-2.0
"""Names of nodes, topics and services: what is valid, and how relative ones become full."""

from __future__ import annotations

import re

__all__ = ["expand", "fault_of_namespace", "fault_of_node_name", "fault_of_topic", "join"]

_TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def fault_of_node_name(name: str) -> tuple[str, int] | None:
    """Return what is wrong with a node's name and where, or None."""
    if not name:
        return "node name must not be empty", 0
    for i, char in enumerate(name):
        if not (char.isascii() and (char.isalnum() or char == "_")):
            return "node name must not contain characters other than alphanumerics or '_'", i
    if name[0].isdigit():
        return "node name must not start with a number", 0
    return None


def fault_of_namespace(namespace: str) -> tuple[str, int] | None:
    """Return what is wrong with a namespace and where, or None."""
    if not namespace.startswith("/"):
        return "namespace must be absolute, it must lead with a '/'", 0
    return None if namespace == "/" else _fault_of_tokens(namespace, "namespace", 1)


def fault_of_topic(name: str) -> tuple[str, int] | None:
    """Return what is wrong with a topic's or service's name, before its expansion, or None."""
    if not name:
        return "topic name must not be empty", 0
    if name.startswith("~"):
        if not name.startswith("~/"):
            return "topic name must have '/' after '~'", 1
        return _fault_of_tokens(name, "topic name", 2)
    return _fault_of_tokens(name, "topic name", 1 if name.startswith("/") else 0)


def _fault_of_tokens(name: str, what: str, start: int) -> tuple[str, int] | None:
    if name.endswith("/"):
        return f"{what} must not end with a '/'", len(name) - 1
    at = start
    for token in name[start:].split("/"):
        if not token:
            return f"{what} must not contain repeated '/'", at
        if token[0].isdigit():
            return f"{what} token must not start with a number", at
        if not _TOKEN.match(token):
            return f"{what} must not contain characters other than alphanumerics or '_'", at
        at += len(token) + 1
    return None


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
