# SPDX-License-Identifier: Apache-2.0
"""Parameter files and values, typed as ROS 2's own YAML parser types them (not as YAML 1.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from .errors import YamlError

__all__ = ["NodeParameters", "parse_file", "parse_text", "parse_value", "scalar"]

_TRUE = frozenset(["Y", "y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"])
_FALSE = frozenset(["N", "n", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"])
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)$")
_FLOAT = re.compile(r"[-+]?([0-9]+\.?[0-9]*([eE][-+]?[0-9]+)?|\.[0-9]+([eE][-+]?[0-9]+)?)$")
_SPECIAL = re.compile(r"([-+]?)\.(nan|NaN|NAN|inf|Inf|INF)$")
_ROS_PARAMETERS = "ros__parameters"


class _Loader(yaml.SafeLoader):
    """A loader by which a scalar that is tagged ``!!str`` looks quoted."""

    def compose_scalar_node(self, anchor: dict[Any, yaml.Node]) -> yaml.ScalarNode:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        node = super().compose_scalar_node(anchor)
        if isinstance(event, yaml.ScalarEvent) and event.tag == "tag:yaml.org,2002:str":
            node.style = '"'
        return node


@dataclass(frozen=True)
class NodeParameters:
    """Parameters for the nodes that a pattern names.

    Parameters
    ----------
    pattern : str
        Full name of a node; ``*`` stands for one part of it, ``**`` for any number.
    values : dict
        Dotted parameter name to value.
    """

    pattern: str
    values: dict[str, Any]

    def matches(self, node: str) -> bool:
        """Whether the pattern names the node of this full name."""
        parts = []
        for part in self.pattern.strip("/").split("/"):
            parts.append({"**": r"(/[^/]+)*", "*": r"/[^/]+"}.get(part, "/" + re.escape(part)))
        return re.fullmatch("".join(parts), node) is not None

    @property
    def is_wildcard(self) -> bool:
        """Whether the pattern may name several nodes."""
        return "*" in self.pattern


def scalar(text: str) -> bool | int | float | str:
    """Return the value of an unquoted scalar.

    Parameters
    ----------
    text : str

    Returns
    -------
    bool, int, float or str
        Unlike in YAML 1.1, ``1e-3`` is a number and ``on`` a boolean.
    """
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.match(text):
        octal = len(text.lstrip("+-")) > 1 and text.lstrip("+-")[0] == "0"
        base = 16 if "x" in text.lower() else 8 if octal else 10
        value = int(text, base)
        if -(2**63) <= value < 2**63:
            return value
    special = _SPECIAL.match(text)
    if special:
        return float(special[1] + special[2])
    if _FLOAT.match(text):
        return float(text)
    return text


def _where(node: yaml.Node, source: str) -> str:
    return f"{source}, line {node.start_mark.line + 1}"


def _scalar_node(node: yaml.Node) -> Any:
    quoted = isinstance(node, yaml.ScalarNode) and node.style is not None
    return node.value if quoted else scalar(node.value)


def _sequence(node: yaml.SequenceNode, source: str) -> list[Any]:
    values = []
    for item in node.value:
        if not isinstance(item, yaml.ScalarNode):
            raise YamlError(
                f"{_where(item, source)}: a parameter is a list of scalars; lists of lists or "
                "mappings are not parameters."
            )
        values.append(_scalar_node(item))
    kinds = {type(value).__name__ for value in values}
    if len(kinds) > 1:
        raise YamlError(
            f"{_where(node, source)}: a list must hold values of one type, not "
            f"{' and '.join(sorted(kinds))}; write every number with a decimal point."
        )
    return values


def _flatten(node: yaml.Node, prefix: str, source: str) -> Iterator[tuple[str, Any]]:
    """Yield dotted names and values of the mapping below ``ros__parameters``."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _flatten(value, f"{prefix}.{key.value}" if prefix else key.value, source)
    elif isinstance(node, yaml.SequenceNode):
        yield prefix, _sequence(node, source)
    else:
        yield prefix, _scalar_node(node)


def _nodes(node: yaml.Node, path: str, source: str) -> Iterator[NodeParameters]:
    """Yield the blocks of a parameter file in their order."""
    if not isinstance(node, yaml.MappingNode):
        raise YamlError(
            f"{_where(node, source)}: expected a node name and '{_ROS_PARAMETERS}' below it."
        )
    for key, value in node.value:
        if key.value == _ROS_PARAMETERS:
            if not path:
                raise YamlError(f"{_where(key, source)}: '{_ROS_PARAMETERS}' needs a node name.")
            if isinstance(value, yaml.ScalarNode) and not value.value:
                continue
            if not isinstance(value, yaml.MappingNode):
                raise YamlError(f"{_where(value, source)}: expected 'name: value' lines.")
            yield NodeParameters(path, dict(_flatten(value, "", source)))
        else:
            yield from _nodes(value, f"{path}/{key.value.strip('/')}", source)


def parse_text(text: str, source: str) -> list[NodeParameters]:
    """Read the text of a parameter file.

    Parameters
    ----------
    text : str
    source : str
        What to call it in messages.

    Returns
    -------
    list of NodeParameters

    Raises
    ------
    YamlError
        If it isn't a parameter file.
    """
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise YamlError(f"{source}: not YAML: {' '.join(str(error).split())}") from error
    return [] if root is None else list(_nodes(root, "", source))


def parse_file(path: Path) -> list[NodeParameters]:
    """Read a parameter file.

    Raises
    ------
    YamlError
        If it can't be read or isn't a parameter file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise YamlError(f"{path}: {error.strerror}; name an existing parameter file.") from error
    return parse_text(text, str(path))


def parse_value(text: str) -> Any:
    """Return the value of a parameter given on the command line, a scalar or a list.

    Raises
    ------
    YamlError
        If it is neither.
    """
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise YamlError(f"parameter value {text!r} is not YAML.") from error
    values = list(_flatten(node, "", f"parameter value {text!r}")) if node else [("", text)]
    if len(values) != 1 or values[0][0]:
        raise YamlError(f"parameter value {text!r} must be a scalar or a list.")
    return values[0][1]
