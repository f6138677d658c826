# SPDX-License-Identifier: Apache-2.0
"""Messages of any type to plain data, as in YAML, and back."""

import contextlib
import importlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import yaml

from sysid_core.errors import ParameterError, UnreadableError
from sysid_core.untrusted import parse_yaml

__all__ = ["fill", "import_type", "installed_type", "message_text", "plain", "read_values"]

_MESSAGES = re.compile(r"(?:sequence<)?(\w+)/(\w+)(?:>|, \d+>|\[\d+\])?")
"""A field's type where its values are messages: ``pkg/Name``, alone, in a sequence or an array."""


def read_values(text: str) -> Mapping[str, Any]:
    """Return the fields that a YAML text gives.

    Raises
    ------
    ParameterError
        If it is not a mapping in YAML.
    """
    try:
        values = parse_yaml(text)
    except UnreadableError as error:
        raise ParameterError(f"'{text:.60}' {error}") from error
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ParameterError(f"'{text:.60}' gives no fields; write e.g. '{{data: true}}'")
    return values


def import_type(name: str, folder: str) -> Any:
    """Return the class of an interface such as ``std_srvs/srv/SetBool``, or ``std_srvs/SetBool``.

    Raises
    ------
    ParameterError
        If there is none of that name.
    """
    parts = name.split("/")
    if len(parts) == 2 or parts[1:-1] == [folder]:
        with contextlib.suppress(ImportError, AttributeError, ValueError):
            return getattr(importlib.import_module(f"{parts[0]}.{folder}"), parts[-1])
    raise ParameterError(f"there is no type '{name}'; the form is package/{folder}/Name")


def installed_type(name: str, package: str, otherwise: str = "") -> Any:
    """Return the class of an interface of full name, as `import_type`, that a package brings.

    The package is the distribution's; where there is none, `otherwise` says all that can be done.

    Raises
    ------
    ParameterError
        If it is not installed; the message says what to install, and what else to do.
    """
    owner, folder, kind = name.split("/")
    try:
        return getattr(importlib.import_module(f"{owner}.{folder}"), kind)
    except ModuleNotFoundError as error:
        how = f"install ros-$ROS_DISTRO-{package}" if package else ""
        raise ParameterError(f"{owner} is not installed: {how}{otherwise}") from error


def fill(message: Any, values: Mapping[str, Any], where: str = "") -> Any:
    """Set fields of a message and return it.

    Raises
    ------
    ParameterError
        If a field does not exist or a value does not fit it; the message names the field.
    """
    kinds = message.get_fields_and_field_types()
    for name, value in values.items():
        path = f"{where}{name}"
        if name not in kinds:
            raise ParameterError(f"there is no field '{path}'; there are: {', '.join(kinds)}")
        try:
            setattr(message, name, _field(kinds[name], getattr(message, name), value, path))
        except (AssertionError, TypeError, ValueError, OverflowError) as error:
            raise ParameterError(f"field '{path}' is {kinds[name]}: {error}") from error
    return message


def _field(kind: str, now: Any, value: Any, path: str) -> Any:
    """Return a field's value from plain data."""
    inner = _MESSAGES.fullmatch(kind)
    if inner and isinstance(value, Mapping):
        return fill(now, value, f"{path}.")
    if inner and isinstance(value, list):
        made = import_type(f"{inner[1]}/{inner[2]}", "msg")
        return [fill(made(), each, f"{path}[{i}].") for i, each in enumerate(value)]
    if isinstance(now, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(now, bytes):
        return bytes([value])
    if isinstance(value, list) and ("double" in kind or "float" in kind):
        return [float(each) for each in value]
    return value


def plain(message: Any) -> Any:
    """Return a message, or a field of one, as mappings, lists, numbers and texts."""
    if hasattr(message, "get_fields_and_field_types"):
        return {
            name: plain(getattr(message, name)) for name in message.get_fields_and_field_types()
        }
    if isinstance(message, bytes):
        return message[0] if len(message) == 1 else list(message)
    if isinstance(message, np.generic):  # first: numpy's float64 is a float, too
        return message.item()
    if message is None or isinstance(message, (str, bool, int, float)):
        return message
    return [plain(value) for value in message]


def message_text(value: Any) -> str:
    """Return plain data as YAML, innermost lists on one line."""
    if not isinstance(value, (Mapping, list)):
        return f"{value}\n"
    text = yaml.safe_dump(
        value, sort_keys=False, default_flow_style=None, allow_unicode=True, width=10**6
    )
    return str(text)
