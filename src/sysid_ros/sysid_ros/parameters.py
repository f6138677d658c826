# SPDX-License-Identifier: Apache-2.0
"""Declares a node's ROS parameters from a table, and refuses bad values with a reason."""

from __future__ import annotations

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
from sysid_core.robot import Robot, load_robot
from sysid_core.settings import Setting

__all__ = ["ROBOT", "chosen_robot", "declare", "watch"]

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


def _descriptor(setting: Setting) -> ParameterDescriptor:
    """Return what ``ros2 param describe`` shows."""
    descriptor = ParameterDescriptor(
        name=setting.name, description=setting.description, read_only=setting.read_only
    )
    if setting.choices:
        descriptor.additional_constraints = "one of: " + ", ".join(setting.choices)
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
        If the node was started with a value of another type, out of range or not among the
        choices.
    """
    values = {}
    for s in settings:
        default = list(s.default) if isinstance(s.default, tuple) else s.default
        try:
            value = node.declare_parameter(s.name, default, _descriptor(s)).value
        except ParameterException as error:
            raise ParameterError(f"parameter '{s.name}' must be {s.expected} ({error})") from error
        s.check(value)
        values[s.name] = value
    return values


def watch(
    node: Node,
    settings: Sequence[Setting],
    values: dict[str, Any],
    apply: Callable[[Mapping[str, Any]], None] | None = None,
) -> None:
    """Let parameters be changed while the node runs: all that change at a time, or none.

    Parameters
    ----------
    node : Node
    settings : Sequence[Setting]
        As declared.
    values : dict
        Current values by name; updated when a change is taken.
    apply : callable or None
        Gets all values as they would be; raises `SysidError` to refuse them.
    """
    known = {setting.name: setting for setting in settings}

    def change(parameters: list[Parameter]) -> SetParametersResult:
        changes = {p.name: p.value for p in parameters if p.name in known}
        try:
            for name, value in changes.items():
                known[name].check(value)
            if apply is not None:
                apply({**values, **changes})
        except SysidError as error:
            return SetParametersResult(successful=False, reason=str(error))
        values.update(changes)
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(change)
