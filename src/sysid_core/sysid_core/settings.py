# SPDX-License-Identifier: Apache-2.0
"""Parameters described once, as metadata of a configuration dataclass' fields.

A field made by `parameter` carries its description, range and choices. Node parameters, YAML
defaults and the documentation's tables follow from `settings_of`; `check_config` belongs into
the dataclass' ``__post_init__``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, TypeVar

from sysid_core.errors import ParameterError

__all__ = ["Setting", "check_config", "group", "parameter", "settings_of", "with_values"]

_DESCRIPTION = "sysid_setting"
_GROUP = "sysid_group"

Value = str | float | int | bool | tuple[float, ...]

ConfigT = TypeVar("ConfigT")


@dataclass(frozen=True)
class Setting:
    """One parameter that somebody can set."""

    name: str
    default: Value  # Its type is the parameter's
    description: str  # What it is for, with its unit in brackets
    range: tuple[float, float] | None = None  # Of numbers, ends included
    choices: tuple[str, ...] = ()  # Of texts; empty: any
    read_only: bool = False  # Whether it can be given at the start only

    @property
    def expected(self) -> str:
        """Return what a value has to be, in words."""
        words = {tuple: "a list", int: "an int"}
        kind = words.get(type(self.default), f"a {type(self.default).__name__}")
        span = f" from {self.range[0]:g} to {self.range[1]:g}" if self.range else ""
        return f"{kind}{span}, like {self.default!r}"

    def check(self, value: Any) -> None:
        """Refuse a value of another type, outside the range or among none of the choices.

        Raises
        ------
        ParameterError
            It names the parameter, the value and what is allowed.
        """
        if isinstance(self.default, tuple):
            if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
                raise ParameterError(f"{self.name} must be {self.expected}, got {value!r}")
            numbers = list(value)
            for number in numbers:
                self._check_number(number)
            if not numbers:
                raise ParameterError(f"{self.name} must have a number at least, got none")
        elif isinstance(self.default, (str, bool)):
            if not isinstance(value, type(self.default)):
                raise ParameterError(f"{self.name} must be {self.expected}, got {value!r}")
            if self.choices and value not in self.choices:
                raise ParameterError(
                    f"{self.name} must be one of {', '.join(self.choices)}, got '{value}'"
                )
        else:
            self._check_number(value)

    def _check_number(self, value: Any) -> None:
        kinds = (int,) if isinstance(self.default, int) else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise ParameterError(f"{self.name} must be {self.expected}, got {value!r}")
        if not math.isfinite(value):
            raise ParameterError(f"{self.name} must be finite, got {value}")
        if self.range is not None and not self.range[0] <= value <= self.range[1]:
            low, high = self.range
            raise ParameterError(f"{self.name} must lie in [{low:g}, {high:g}], got {value}")


def parameter(
    default: Value,
    description: str,
    *,
    range: tuple[float, float] | None = None,  # noqa: A002 - the word of ROS 2's descriptors
    choices: tuple[str, ...] = (),
    read_only: bool = False,
) -> Any:
    """Return a dataclass field that is a parameter; the arguments are those of `Setting`.

    A field without this is a constant of the design, which no node offers.
    """
    setting = Setting("", default, description, range, choices, read_only)
    return field(default=default, metadata={_DESCRIPTION: setting})


def group(config: type[Any], prefix: str) -> Any:
    """Return a dataclass field that holds another configuration.

    Its parameters get the prefix, e.g. ``gate.``, in their names; it may be empty.
    """
    return field(default_factory=config, metadata={_GROUP: prefix})


def _own(config: Any, prefix: str) -> Iterator[tuple[Field[Any], Setting]]:
    """Yield a configuration's own parameters, named with the prefix."""
    for each in fields(config):
        if _DESCRIPTION in each.metadata:
            setting = each.metadata[_DESCRIPTION]
            yield each, replace(setting, name=prefix + each.name)


def _groups(config: Any, prefix: str) -> Iterator[tuple[Field[Any], str]]:
    """Yield the fields that hold other configurations, with the prefix of their parameters."""
    for each in fields(config):
        if _GROUP in each.metadata:
            yield each, prefix + each.metadata[_GROUP]


def settings_of(config: Any, prefix: str = "") -> tuple[Setting, ...]:
    """Return all parameters of a configuration (class or instance), nested ones last."""
    nested = (
        setting
        for each, inner in _groups(config, prefix)
        for setting in settings_of(each.default_factory, inner)
    )
    return (*(setting for _, setting in _own(config, prefix)), *nested)


def check_config(config: Any) -> None:
    """Check the values of a configuration's own parameters.

    Raises
    ------
    ParameterError
        If one is not allowed.
    """
    for each, setting in _own(config, ""):
        setting.check(getattr(config, each.name))


def with_values(config: ConfigT, values: Mapping[str, Any]) -> ConfigT:
    """Return a configuration (an instance) with other values of parameters, by their names.

    Raises
    ------
    ParameterError
        If a value is not allowed, or there is no such parameter.
    """
    unknown = sorted(set(values) - {setting.name for setting in settings_of(config)})
    if unknown:
        raise ParameterError(f"there is no parameter '{unknown[0]}'")
    return _changed(config, values, "")


def _changed(config: Any, values: Mapping[str, Any], prefix: str) -> Any:
    changes: dict[str, Any] = {}
    for each, setting in _own(config, prefix):
        if setting.name in values:
            value = values[setting.name]
            setting.check(value)
            lists = isinstance(setting.default, tuple)
            changes[each.name] = tuple(map(float, value)) if lists else value
    for each, inner in _groups(config, prefix):
        changes[each.name] = _changed(getattr(config, each.name), values, inner)
    return replace(config, **changes)
