# SPDX-License-Identifier: Apache-2.0
"""Command-line arguments of ROS 2 nodes, and the names that they remap."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import YamlError
from .params_yaml import NodeParameters, parse_file, parse_value

__all__ = ["Arguments", "InvalidArgumentError", "expand", "is_valid", "join", "parse"]

_TOKEN = "[A-Za-z_][A-Za-z0-9_]*"
_VALID = {
    "node name": re.compile(_TOKEN),
    "namespace": re.compile(rf"/|(/{_TOKEN})+"),
    "topic name": re.compile(rf"(~?/)?{_TOKEN}(/{_TOKEN})*"),
}
_VALID["service name"] = _VALID["topic name"]


def is_valid(kind: str, name: str) -> bool:
    """Whether a name, before its expansion, is a valid one of a kind in `_VALID`."""
    return _VALID[kind].fullmatch(name) is not None


def join(namespace: str, name: str) -> str:
    """Return the full name of `name` in a namespace."""
    return f"/{name}" if namespace == "/" else f"{namespace}/{name}"


def expand(name: str, node: str, namespace: str) -> str:
    """Return the full name of an absolute, relative or private (``~``) one, of a node."""
    if name.startswith("~"):
        return join(namespace, node) + name[1:]
    return name if name.startswith("/") else join(namespace, name)


class InvalidArgumentError(ValueError):
    """Arguments after ``--ros-args`` that make no sense."""


@dataclass(frozen=True)
class Arguments:
    """What ``--ros-args`` asked for, in order."""

    remaps: tuple[tuple[str, str], ...] = ()
    """Names before and after; ``__node`` and ``__ns`` stand for the node's own."""
    parameters: tuple[NodeParameters, ...] = ()
    log_level: str = ""  # Empty: the default

    def node_name(self, name: str) -> str:
        """Return what a node of this name is to be called."""
        return next((target for source, target in self.remaps if source == "__node"), name)

    def namespace(self, namespace: str) -> str:
        """Return the namespace that a node is to have instead of this one."""
        return next((target for source, target in self.remaps if source == "__ns"), namespace)

    def remap(self, full: str, node: str, namespace: str) -> str | None:
        """Return what the first rule that fits makes of a topic's or service's full name."""
        for source, target in self.remaps:
            if expand(source, node, namespace) == full:
                return expand(target, node, namespace)
        return None

    def overrides(self, node: str) -> dict[str, Any]:
        """Return the parameters for the node of this full name; exact names beat wildcards."""
        values: dict[str, Any] = {}
        fitting = [block for block in self.parameters if block.matches(node)]
        for block in sorted(fitting, key=lambda block: not block.is_wildcard):
            values |= block.values
        return values


def _split(text: str) -> tuple[str, str]:
    source, separator, target = text.partition(":=")
    if not separator or not source or ":" in source:
        raise InvalidArgumentError(f"{text!r} is not of the form 'name:=value'.")
    return source, target


def _parameters(option: str, text: str) -> list[NodeParameters]:
    try:
        if option == "--params-file":
            return parse_file(Path(text))
        name, value = _split(text)
        return [NodeParameters("/**", {name: parse_value(value)})]
    except YamlError as error:
        raise InvalidArgumentError(str(error)) from error


def parse(arguments: Sequence[str]) -> Arguments:
    """Parse a command line, with or without the program's name in front.

    Raises
    ------
    InvalidArgumentError
        If what follows ``--ros-args`` is not understood.
    """
    remaps: list[tuple[str, str]] = []
    parameters: list[NodeParameters] = []
    log_level = ""
    left = iter(arguments)
    ros = False
    for item in left:
        if item in ("--ros-args", "--") or not ros:
            ros = item == "--ros-args" or (ros and item != "--")
            continue
        text = next(left, "")
        if not text:
            raise InvalidArgumentError(f"ROS argument {item!r} is unknown or lacks its value.")
        if item in ("-r", "--remap"):
            remaps.append(_split(text))
        elif item in ("-p", "--param", "--params-file"):
            parameters += _parameters(item, text)
        elif item == "--log-level":
            log_level = text
        else:
            raise InvalidArgumentError(
                f"ROS argument {item!r} is unknown to the embedded runtime; these are known: "
                "-r, -p, --params-file, --log-level."
            )
    return Arguments(tuple(remaps), tuple(parameters), log_level)
