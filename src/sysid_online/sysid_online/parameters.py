# SPDX-License-Identifier: Apache-2.0
"""Declares a node's ROS parameters from one table, and refuses bad values with a reason."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from sysid_core.errors import SysidError

__all__ = ["Setting", "declare", "watch"]

Value = str | float | int | bool


@dataclass(frozen=True)
class Setting:
    """One ROS parameter.

    Attributes
    ----------
    name : str
    default : str, float, int or bool
    description : str
        With its unit in brackets.
    low, high : float or None
        Range of numbers, ends included.
    read_only : bool
    """

    name: str
    default: Value
    description: str
    low: float | None = None
    high: float | None = None
    read_only: bool = False

    @property
    def descriptor(self) -> ParameterDescriptor:
        """The descriptor that ``ros2 param describe`` shows."""
        descriptor = ParameterDescriptor(
            name=self.name, description=self.description, read_only=self.read_only
        )
        if self.low is not None and self.high is not None:
            if isinstance(self.default, float):
                limits = FloatingPointRange(from_value=float(self.low), to_value=float(self.high))
                descriptor.floating_point_range = [limits]
            else:
                span = IntegerRange(from_value=int(self.low), to_value=int(self.high), step=1)
                descriptor.integer_range = [span]
        return descriptor


def declare(node: Node, settings: Sequence[Setting]) -> dict[str, Any]:
    """Declare parameters on a node; returns their values by name."""
    return {
        s.name: node.declare_parameter(s.name, s.default, s.descriptor).value for s in settings
    }


def watch(node: Node, values: dict[str, Any], apply: Callable[[Mapping[str, Any]], None]) -> None:
    """Let parameters be changed while the node runs.

    Parameters
    ----------
    node : Node
    values : dict
        Current values by name; updated when a change is taken.
    apply : callable
        Gets all values as they would be; raises `SysidError` to refuse them, in which case the
        old ones stay.
    """

    def change(parameters: list[Parameter]) -> SetParametersResult:
        wanted = dict(values)
        for parameter in parameters:
            if parameter.name not in values:
                continue
            value = parameter.value
            if isinstance(value, float) and not math.isfinite(value):
                return SetParametersResult(
                    successful=False, reason=f"{parameter.name} must be finite, got {value}"
                )
            wanted[parameter.name] = value
        try:
            apply(wanted)
        except SysidError as error:
            return SetParametersResult(successful=False, reason=str(error))
        values.update(wanted)
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(change)
