# SPDX-License-Identifier: Apache-2.0
"""The ROS parameters of the controller node: all of them, with what they mean, in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from sysid_controller.settings import ControllerSettings
from sysid_core.errors import ParameterError

__all__ = ["NODE_PARAMETERS", "NodeParameter", "changed", "declare", "defaults"]


@dataclass(frozen=True)
class NodeParameter:
    """One parameter: its name, what it means, and whether it can be changed while running."""

    name: str
    description: str
    read_only: bool = False


NODE_PARAMETERS = (
    NodeParameter(
        "robot", "name of a robot description, or the path of its YAML (required)", read_only=True
    ),
    NodeParameter("mode", "control law"),
    NodeParameter("trigger", "what starts a tick: a timer or each joint state", read_only=True),
    NodeParameter("rate", "rate of the timer [Hz]", read_only=True),
    NodeParameter("status_rate", "highest rate of the tracking status [Hz]"),
    NodeParameter(
        "start_enabled",
        "drive as soon as joint states arrive, without a call of ~/enable",
        read_only=True,
    ),
    NodeParameter("bandwidth", "of the closed loop, where kp or kd is 0 [rad/s]"),
    NodeParameter("damping_ratio", "of the closed loop, where kd is 0 [-]"),
    NodeParameter(
        "kp",
        "proportional gain, one for all joints or one each; 0: from bandwidth "
        "[1/s² in computed_torque, N·m/rad in feed_forward]",
    ),
    NodeParameter(
        "kd",
        "derivative gain, one for all joints or one each; 0: from bandwidth and damping_ratio "
        "[1/s in computed_torque, N·m·s/rad in feed_forward]",
    ),
    NodeParameter("friction_velocity", "velocity that Coulomb friction takes its sign from"),
    NodeParameter("friction_width", "width of the smoothed sign of Coulomb friction [rad/s]"),
    NodeParameter("blend_time", "in which new parameters take over [s]"),
    NodeParameter("effort_scale", "share of the robot description's torque limits in use [-]"),
    NodeParameter("effort_rate", "torque rate limit, in torque limits per second [1/s]"),
    NodeParameter(
        "position_margin", "zone before position limits where outward torque fades [rad]"
    ),
    NodeParameter("stale_timeout", "age of joint states beyond which they count as stopped [s]"),
    NodeParameter("stale_action", "what to do then: compensate gravity or send zero torque"),
    NodeParameter("velocity_cutoff", "of the filter where velocities are not measured [Hz]"),
    NodeParameter("handover_time", "shortest time in which references are joined [s]"),
    NodeParameter(
        "start_tolerance", "largest gap between the reference and a trajectory's start [rad]"
    ),
    NodeParameter(
        "largest_error", "of a joint; beyond it the reference is rejoined from the robot [rad]"
    ),
    NodeParameter("command_unit", "joint torques [N·m], or driver units of the robot description"),
    NodeParameter(
        "contact_control",
        "of a floating base in contact: projected inverse dynamics, or a QP with friction cones",
    ),
    NodeParameter("contact_friction", "friction coefficient of the QP's cones [-]"),
    NodeParameter(
        "contact_hold", "for so long a foot that lost touch still counts as standing [s]"
    ),
    NodeParameter(
        "tilt_limit", "of a floating base; beyond it the robot fell and is not driven [rad]"
    ),
)


def defaults() -> dict[str, Any]:
    """Return the parameters' default values by name."""
    settings = ControllerSettings()
    values: dict[str, Any] = {"robot": ""}
    for field in fields(settings):
        value = getattr(settings, field.name)
        values[field.name] = list(value) if isinstance(value, tuple) else value
    return values


def _descriptor(parameter: NodeParameter) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        description=parameter.description, read_only=parameter.read_only
    )
    allowed = ControllerSettings.range_of(parameter.name)
    if allowed is not None:
        span = FloatingPointRange(from_value=allowed[0], to_value=allowed[1])
        descriptor.floating_point_range = [span]
    choices = ControllerSettings.choices_of(parameter.name)
    if choices is not None:
        descriptor.additional_constraints = "one of: " + ", ".join(choices)
    return descriptor


def declare(node: Node) -> tuple[str, ControllerSettings]:
    """Declare all parameters on a node and return the robot and the settings.

    Raises
    ------
    ParameterError
        If a value is not allowed, or the robot is not given.
    """
    values = defaults()
    for parameter in NODE_PARAMETERS:
        declared = node.declare_parameter(
            parameter.name, values[parameter.name], _descriptor(parameter)
        )
        values[parameter.name] = declared.value
    robot = values.pop("robot")
    if not robot:
        raise ParameterError(
            "parameter 'robot' is empty; give a robot description, e.g. -p robot:=panda"
        )
    return robot, changed(ControllerSettings(), values)


def changed(
    settings: ControllerSettings, changes: Sequence[Parameter] | dict[str, Any]
) -> ControllerSettings:
    """Return settings with changes applied; parameters of others are passed over.

    Raises
    ------
    ParameterError
        If a value is not allowed.
    """
    if not isinstance(changes, dict):
        changes = {parameter.name: parameter.value for parameter in changes}
    own = {field.name for field in fields(settings)}
    try:
        values: dict[str, Any] = {
            name: tuple(map(float, value)) if name in ("kp", "kd") else value
            for name, value in changes.items()
            if name in own
        }
        return replace(settings, **values)
    except TypeError as error:
        raise ParameterError(f"a parameter is of the wrong type ({error})") from error
