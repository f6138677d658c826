# SPDX-License-Identifier: Apache-2.0
"""Parameter files and values, typed as ROS 2's own YAML parser types them (not as YAML 1.1)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sysid_core.errors import UnreadableError
from sysid_core.untrusted import YamlLoader, parse_yaml, read_bytes

from .errors import YamlError

__all__ = ["NodeParameters", "parse_file", "parse_text", "parse_value"]

_BOOLEAN = "y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF"
# No longer than what 64 bits surely hold.
_INTEGER = "[-+]?(0[xX][0-9a-fA-F]{1,15}|0[0-7]{0,20}|[1-9][0-9]{0,17})"
_FLOAT = (
    r"[-+]?([0-9]+\.?[0-9]*([eE][-+]?[0-9]+)?|\.[0-9]+([eE][-+]?[0-9]+)?"
    r"|\.(nan|NaN|NAN|inf|Inf|INF))"
)
_ROS_PARAMETERS = "ros__parameters"


class _Loader(YamlLoader):  # type: ignore[misc,valid-type]
    """A loader by which ``1e-3`` is a number, ``y`` a boolean, and every key a text."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - pyyaml's own, to be filled below
    bool_values = {**YamlLoader.bool_values, "y": True, "n": False}  # noqa: RUF012

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        return {key.value: self.construct_object(value, deep=True) for key, value in node.value}


for _kind, _pattern in (("bool", _BOOLEAN), ("int", _INTEGER), ("float", _FLOAT)):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(f"({_pattern})$"), None)


@dataclass(frozen=True)
class NodeParameters:
    """Parameters for the nodes that a pattern names."""

    pattern: str  # Full name of a node; ``*`` stands for one part of it, ``**`` for any number
    values: dict[str, Any]  # Dotted parameter name to value

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


def _load(text: str | bytes, source: str) -> Any:
    try:
        return parse_yaml(text, _Loader)
    except UnreadableError as error:
        raise YamlError(f"{source}: {error}") from error


def _flatten(value: Any, name: str, source: str) -> Iterator[tuple[str, Any]]:
    """Yield dotted names and values of the mapping below ``ros__parameters``."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flatten(inner, f"{name}.{key}" if name else key, source)
        return
    kinds = {type(item).__name__ for item in value} if isinstance(value, list) else set()
    if kinds & {"dict", "list"}:
        raise YamlError(
            f"{source}: '{name}' holds lists or mappings; a parameter is a list of scalars."
        )
    if len(kinds) > 1:
        raise YamlError(
            f"{source}: '{name}' must hold values of one type, not "
            f"{' and '.join(sorted(kinds))}; write every number with a decimal point."
        )
    yield name, value


def _nodes(content: Any, path: str, source: str) -> Iterator[NodeParameters]:
    """Yield the blocks of a parameter file in their order."""
    if not isinstance(content, dict):
        raise YamlError(
            f"{source}: expected a node name and '{_ROS_PARAMETERS}' below it, not {content!r}."
        )
    for key, value in content.items():
        if key != _ROS_PARAMETERS:
            yield from _nodes(value, f"{path}/{key.strip('/')}", source)
        elif not path:
            raise YamlError(f"{source}: '{_ROS_PARAMETERS}' needs a node name.")
        elif isinstance(value, dict):
            yield NodeParameters(path, dict(_flatten(value, "", source)))
        elif value != "":
            raise YamlError(f"{source}: expected 'name: value' lines, not {value!r}.")


def parse_text(text: str | bytes, source: str) -> list[NodeParameters]:
    """Read the text of a parameter file.

    Raises
    ------
    YamlError
        If it isn't a parameter file.
    """
    content = _load(text, source)
    return [] if content is None else list(_nodes(content, "", source))


def parse_file(path: Path) -> list[NodeParameters]:
    """Read a parameter file.

    Raises
    ------
    YamlError
        If it can't be read or isn't a parameter file.
    """
    try:
        return parse_text(read_bytes(path), str(path))
    except UnreadableError as error:
        raise YamlError(f"{path}: {error}; name an existing parameter file.") from error


def parse_value(text: str) -> Any:
    """Return the value of a parameter given on the command line, a scalar or a list.

    Raises
    ------
    YamlError
        If it is neither.
    """
    source = f"parameter value {text!r}"
    content = _load(text, source)
    if isinstance(content, dict):
        raise YamlError(f"{source} must be a scalar or a list.")
    (_, value), *_ = _flatten("" if content is None else content, "", source)
    return value
