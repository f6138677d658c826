# SPDX-License-Identifier: Apache-2.0
"""Declares a node's ROS parameters from a table, and refuses bad changes with a reason."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.exceptions import ParameterException
from rclpy.node import Node
from rclpy.parameter import Parameter

from sysid_core.errors import ParameterError, SysidError
from sysid_sim.node_settings import Setting

__all__ = ["declare", "watch"]


def _descriptor(setting: Setting) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        name=setting.name, description=setting.description, read_only=setting.read_only
    )
    if setting.range is None:
        return descriptor
    low, high = setting.range
    if isinstance(setting.default, float):
        limits = FloatingPointRange(from_value=float(low), to_value=float(high))
        descriptor.floating_point_range = [limits]
    else:
        span = IntegerRange(from_value=int(low), to_value=int(high), step=1)
        descriptor.integer_range = [span]
    return descriptor


def declare(node: Node, settings: Sequence[Setting]) -> dict[str, Any]:
    """Declare parameters on a node and return their values by name.

    Raises
    ------
    ParameterError
        If the node was started with a value of another type or out of range.
    """
    values = {}
    for s in settings:
        try:
            values[s.name] = node.declare_parameter(s.name, s.default, _descriptor(s)).value
        except ParameterException as error:
            kind = type(s.default).__name__
            span = f" from {s.range[0]:g} to {s.range[1]:g}" if s.range else ""
            raise ParameterError(
                f"parameter '{s.name}' must be a {kind}{span}, like {s.default!r} ({error})"
            ) from error
    return values


def watch(
    node: Node, values: Mapping[str, Any], apply: Callable[[Mapping[str, Any]], None]
) -> None:
    """Let parameters be changed while the node runs.

    Parameters
    ----------
    node : Node
    values : Mapping
        Values by name, as declared.
    apply : callable
        Gets all values as they would be; raises `SysidError` to refuse them.
    """
    current = dict(values)

    def change(parameters: list[Parameter]) -> SetParametersResult:
        wanted = {p.name: p.value for p in parameters if p.name in current}
        for name, value in wanted.items():
            if isinstance(value, float) and not math.isfinite(value):
                return SetParametersResult(successful=False, reason=f"{name} must be finite")
        try:
            apply({**current, **wanted})
        except SysidError as error:
            return SetParametersResult(successful=False, reason=str(error))
        current.update(wanted)
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(change)
