# SPDX-License-Identifier: Apache-2.0
"""Command-line arguments of ROS 2 nodes: remappings, parameters and log levels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import YamlError
from .names import expand
from .params_yaml import NodeParameters, parse_file, parse_value

__all__ = ["Arguments", "InvalidArgumentError", "Remap", "parse"]

_RULE = re.compile(r"^(?:(?P<node>[A-Za-z_]\w*):)?(?P<source>[^:]+):=(?P<target>.*)$")
_SCHEMES = {"rostopic://": "topic", "rosservice://": "service"}


class InvalidArgumentError(ValueError):
    """Arguments after ``--ros-args`` that make no sense."""


@dataclass(frozen=True)
class Remap:
    """A remapping rule.

    Parameters
    ----------
    node : str
        Name of the only node that it is for; empty: all.
    kind : str
        ``topic``, ``service``, ``both``, ``node`` or ``namespace``.
    source, target : str
        Names before and after.
    """

    node: str
    kind: str
    source: str
    target: str


@dataclass(frozen=True)
class Arguments:
    """What ``--ros-args`` asked for, in order, and the arguments that are not ROS 2's."""

    remaps: tuple[Remap, ...] = ()
    parameters: tuple[NodeParameters, ...] = ()
    log_level: str = ""
    logger_levels: dict[str, str] = field(default_factory=dict)
    rosout: bool = True
    stdout: bool = True
    rest: tuple[str, ...] = ()

    def node_name(self, name: str) -> str:
        """Return what a node of this name is to be called."""
        return self._named("node", name, name)

    def namespace(self, name: str, namespace: str) -> str:
        """Return the namespace that a node of this name is to have."""
        return self._named("namespace", name, namespace)

    def _named(self, kind: str, node: str, default: str) -> str:
        for rule in self.remaps:
            if rule.kind == kind and rule.node in ("", node):
                return rule.target
        return default

    def remap(self, kind: str, full: str, node: str, namespace: str) -> str | None:
        """Return what the first rule that fits makes of a full name, or None."""
        for rule in self.remaps:
            if rule.kind not in (kind, "both") or rule.node not in ("", node):
                continue
            if expand(rule.source, node, namespace) == full:
                return expand(rule.target, node, namespace)
        return None

    def overrides(self, node: str) -> dict[str, Any]:
        """Return the parameters for the node of this full name; exact names beat wildcards."""
        values: dict[str, Any] = {}
        fitting = [block for block in self.parameters if block.matches(node)]
        for block in sorted(fitting, key=lambda block: not block.is_wildcard):
            values |= block.values
        return values


def _remap(text: str) -> Remap:
    match = _RULE.match(text.replace("://", "\0"))
    if match is None:
        raise InvalidArgumentError(f"remapping {text!r} is not of the form 'from:=to'.")
    node = match["node"] or ""
    source, target = (match[key].replace("\0", "://") for key in ("source", "target"))
    if source in ("__node", "__name"):
        return Remap(node, "node", "", target)
    if source == "__ns":
        return Remap(node, "namespace", "", target)
    for scheme, kind in _SCHEMES.items():
        if source.startswith(scheme):
            return Remap(node, kind, source[len(scheme) :], target.removeprefix(scheme))
    return Remap(node, "both", source, target)


def _parameter(text: str) -> NodeParameters:
    match = _RULE.match(text)
    if match is None:
        raise InvalidArgumentError(f"parameter {text!r} is not of the form 'name:=value'.")
    pattern = f"/{match['node']}" if match["node"] else "/**"
    try:
        return NodeParameters(pattern, {match["source"]: parse_value(match["target"])})
    except YamlError as error:
        raise InvalidArgumentError(str(error)) from error


class _Parser:
    def __init__(self) -> None:
        self.remaps: list[Remap] = []
        self.parameters: list[NodeParameters] = []
        self.values: dict[str, Any] = {}
        self.logger_levels: dict[str, str] = {}

    def option(self, name: str, values: list[str]) -> None:
        """Take one option, and its value off the front of `values`."""
        switches = {
            "--enable-rosout-logs": ("rosout", True),
            "--disable-rosout-logs": ("rosout", False),
            "--enable-stdout-logs": ("stdout", True),
            "--disable-stdout-logs": ("stdout", False),
            "--enable-external-lib-logs": ("external", True),
            "--disable-external-lib-logs": ("external", False),
        }
        if name in switches:
            key, value = switches[name]
            self.values[key] = value
            return
        known = ("-r", "--remap", "-p", "--param", "--params-file", "--log-level")
        ignored = ("--log-config-file", "--log-file-name", "-e", "--enclave")
        if name not in known + ignored:
            raise InvalidArgumentError(f"{name!r} is no ROS argument.")
        if not values:
            raise InvalidArgumentError(f"{name!r} needs a value.")
        self.valued(name, values.pop(0))

    def valued(self, name: str, text: str) -> None:
        if name in ("-r", "--remap"):
            self.remaps.append(_remap(text))
        elif name in ("-p", "--param"):
            self.parameters.append(_parameter(text))
        elif name == "--params-file":
            try:
                self.parameters += parse_file(Path(text))
            except YamlError as error:
                raise InvalidArgumentError(str(error)) from error
        elif name == "--log-level":
            logger, separator, level = text.partition(":=")
            if separator:
                self.logger_levels[logger] = level
            else:
                self.values["log_level"] = text


def parse(arguments: Sequence[str]) -> Arguments:
    """Parse a command line.

    Parameters
    ----------
    arguments : sequence of str
        With or without the program's name in front.

    Returns
    -------
    Arguments

    Raises
    ------
    InvalidArgumentError
        If what follows ``--ros-args`` is not understood.
    """
    parser = _Parser()
    rest: list[str] = []
    left = list(arguments)
    ros = False
    while left:
        item = left.pop(0)
        if item == "--ros-args":
            ros = True
        elif ros and item == "--":
            ros = False
        elif ros:
            parser.option(item, left)
        else:
            rest.append(item)
    return Arguments(
        remaps=tuple(parser.remaps),
        parameters=tuple(parser.parameters),
        log_level=parser.values.get("log_level", ""),
        logger_levels=parser.logger_levels,
        rosout=parser.values.get("rosout", True),
        stdout=parser.values.get("stdout", True),
        rest=tuple(rest),
    )
