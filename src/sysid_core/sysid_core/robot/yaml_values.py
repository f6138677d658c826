# SPDX-License-Identifier: Apache-2.0
"""Values of a YAML file, checked one by one, with errors that name their place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from sysid_core.errors import RobotError
from sysid_core.robot.description import FrameOnLink, Vector3

__all__ = ["Values"]


class Values:
    """Takes values out of parsed YAML; `sections` has the keys of each section, by its path.

    Raises
    ------
    RobotError
        By all methods, if a value is not of its kind.
    """

    def __init__(self, data: Mapping[str, Any], sections: Mapping[str, str]) -> None:
        self.data = data
        for section, keys in sections.items():
            known = set(keys.split())
            unknown = set(self.section(section)) - known
            if unknown:
                where = section or "the file"
                names = sorted(map(str, unknown))
                raise RobotError(f"unknown key {names} in {where}; known keys: {sorted(known)}")

    def section(self, path: str) -> Mapping[str, Any]:
        """Return a section by its path; an absent one is empty."""
        node: Any = self.data
        for key in filter(None, path.split(".")):
            node = node.get(key) or {}
            if not isinstance(node, Mapping):
                raise RobotError(f"'{path}' must be a mapping of keys to values")
        return node

    def number(self, value: Any, where: str, *, low: float = -math.inf) -> float:
        """Return a finite number."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise RobotError(f"'{where}' must be a number, got {value!r}")
        if not math.isfinite(value) or value < low:
            raise RobotError(f"'{where}' must be finite and at least {low:g}, got {value!r}")
        return float(value)

    def positive(self, value: Any, where: str) -> float:
        """Return a number above zero."""
        number = self.number(value, where, low=0.0)
        if number == 0.0:
            raise RobotError(f"'{where}' must be above zero")
        return number

    def vector(self, value: Any, where: str) -> Vector3:
        """Return three numbers."""
        if not isinstance(value, (list, tuple)) or len(value) != 3:
            raise RobotError(f"'{where}' must be a list of three numbers, got {value!r}")
        x, y, z = (self.number(v, where) for v in value)
        return (x, y, z)

    def strings(self, value: Any, where: str) -> tuple[str, ...]:
        """Return a list of different names."""
        if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
            raise RobotError(f"'{where}' must be a list of names, got {value!r}")
        if len(set(value)) != len(value):
            raise RobotError(f"'{where}' names something twice")
        return tuple(value)

    def mapping(self, value: Any, where: str) -> dict[str, Any]:
        """Return a mapping of names to anything."""
        if not isinstance(value or {}, Mapping):
            raise RobotError(f"'{where}' must map names to values, got {value!r:.60}")
        return {str(key): entry for key, entry in (value or {}).items()}

    def numbers(self, value: Any, where: str) -> dict[str, float]:
        """Return a mapping of names to numbers."""
        return {k: self.number(v, f"{where}.{k}") for k, v in self.mapping(value, where).items()}

    def items(self, where: str) -> list[Any]:
        """Return a list at the top level."""
        value = self.data.get(where) or []
        if not isinstance(value, list):
            raise RobotError(f"'{where}' must be a list, got {value!r:.60}")
        return value

    def choice(self, value: Any, where: str, choices: Iterable[str]) -> str:
        """Return one of some words."""
        if value not in choices:
            raise RobotError(f"'{where}' must be one of {sorted(choices)}, got {value!r}")
        return str(value)

    def frame(self, value: Any, where: str) -> FrameOnLink:
        """Return a frame on a link."""
        if not isinstance(value, Mapping) or "link" not in value:
            raise RobotError(f"'{where}' must have a 'link' and may have 'xyz' and 'rpy'")
        return FrameOnLink(
            str(value["link"]),
            self.vector(value.get("xyz", (0.0, 0.0, 0.0)), f"{where}.xyz"),
            self.vector(value.get("rpy", (0.0, 0.0, 0.0)), f"{where}.rpy"),
        )
