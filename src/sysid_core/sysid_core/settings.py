# SPDX-License-Identifier: Apache-2.0
"""What can be set on a node, as plain data: one entry a parameter, from which all else follows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sysid_core.errors import ParameterError
from sysid_core.robot import Robot, load_robot

__all__ = ["ROBOT", "Setting", "chosen_robot"]


@dataclass(frozen=True)
class Setting:
    """One parameter of a node.

    Attributes
    ----------
    name : str
    default : str, float, int, bool or tuple of float
        Its type is the parameter's.
    description : str
        With its unit in brackets.
    range : tuple[float, float] or None
        Of numbers, ends included.
    choices : tuple[str, ...]
        Of texts; empty: any.
    read_only : bool
        Whether it can be given at the start only.
    """

    name: str
    default: str | float | int | bool | tuple[float, ...]
    description: str
    range: tuple[float, float] | None = None
    choices: tuple[str, ...] = ()
    read_only: bool = False

    @property
    def expected(self) -> str:
        """Return what a value has to be, in words."""
        words = {tuple: "a list", int: "an int"}
        kind = words.get(type(self.default), f"a {type(self.default).__name__}")
        span = f" from {self.range[0]:g} to {self.range[1]:g}" if self.range else ""
        return f"{kind}{span}, like {self.default!r}"

    def check(self, value: Any) -> None:
        """Refuse what a parameter's type and range let pass.

        Raises
        ------
        ParameterError
            If a text is none of the choices, or a number is not finite.
        """
        if self.choices and value not in self.choices:
            raise ParameterError(
                f"{self.name} must be one of {', '.join(self.choices)}, got '{value}'"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise ParameterError(f"{self.name} must be finite, got {value}")


ROBOT = Setting(
    "robot", "", "Name of a robot in config/robots, or path of its description", read_only=True
)


def chosen_robot(values: Mapping[str, Any]) -> Robot:
    """Load the robot that a node's parameters name.

    Raises
    ------
    SysidError
        If none is named or it cannot be loaded.
    """
    if not values[ROBOT.name]:
        raise ParameterError(
            "parameter 'robot' is empty: give a robot's name or description, e.g. -p robot:=panda"
        )
    return load_robot(values[ROBOT.name])
