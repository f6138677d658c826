# SPDX-License-Identifier: Apache-2.0
"""A node's ROS parameters, declared and checked from a configuration dataclass."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

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
from sysid_core.settings import Setting, settings_of, with_values

__all__ = ["NodeParameters"]

ConfigT = TypeVar("ConfigT")


class NodeParameters(Generic[ConfigT]):
    """The parameters of a running node: all that change at a time are taken, or none.

    Those of a configuration (an instance) are declared, with its values as defaults.

    Raises
    ------
    ParameterError
        If the node was started with a value of another type, out of range or not among the
        choices, or with values that contradict each other.
    """

    def __init__(self, node: Node, config: ConfigT) -> None:
        self._settings = {setting.name: setting for setting in settings_of(config)}
        values = {name: _declare(node, setting) for name, setting in self._settings.items()}
        self.config = with_values(config, values)
        self._apply: Callable[[ConfigT], None] | None = None
        node.add_on_set_parameters_callback(self._change)

    def on_change(self, apply: Callable[[ConfigT], None]) -> None:
        """Have a function called with what is to be used; it raises `SysidError` to refuse it."""
        self._apply = apply

    def _change(self, parameters: list[Parameter]) -> SetParametersResult:
        changes = {p.name: p.value for p in parameters if p.name in self._settings}
        try:
            config = with_values(self.config, changes)
            if self._apply is not None:
                self._apply(config)
        except SysidError as error:
            return SetParametersResult(successful=False, reason=str(error))
        self.config = config
        return SetParametersResult(successful=True)


def _declare(node: Node, setting: Setting) -> Any:
    """Declare a parameter and return the value that the node was started with."""
    default: Any = setting.default
    default = list(default) if isinstance(default, tuple) else default
    try:
        return node.declare_parameter(setting.name, default, _descriptor(setting)).value
    except ParameterException as error:
        raise ParameterError(
            f"parameter '{setting.name}' must be {setting.expected} ({error})"
        ) from error


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
    if isinstance(setting.default, int):
        span = IntegerRange(from_value=int(low), to_value=int(high), step=1)
        descriptor.integer_range = [span]
    elif isinstance(setting.default, float):
        limits = FloatingPointRange(from_value=float(low), to_value=float(high))
        descriptor.floating_point_range = [limits]
    return descriptor
