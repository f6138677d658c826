# SPDX-License-Identifier: Apache-2.0
"""The parameters of the controller node: all of them, with what they mean, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from sysid_controller.settings import ControllerConfig
from sysid_core.errors import ParameterError
from sysid_core.settings import Setting
from sysid_ros.parameters import ROBOT

__all__ = ["SETTINGS", "changed"]

_DEFAULTS = ControllerConfig()


def _setting(name: str, description: str, *, read_only: bool = False) -> Setting:
    return Setting(
        name,
        getattr(_DEFAULTS, name),
        description,
        range=ControllerConfig.range_of(name),
        choices=ControllerConfig.choices_of(name),
        read_only=read_only,
    )


SETTINGS = (
    ROBOT,
    _setting("mode", "control law"),
    _setting("trigger", "what starts a tick: a timer or each joint state", read_only=True),
    _setting("rate", "rate of the timer [Hz]", read_only=True),
    _setting("status_rate", "highest rate of the tracking status [Hz]"),
    _setting(
        "start_enabled",
        "drive as soon as joint states arrive, without a call of ~/enable",
        read_only=True,
    ),
    _setting("bandwidth", "of the closed loop, where kp or kd is 0 [rad/s]"),
    _setting("damping_ratio", "of the closed loop, where kd is 0 [-]"),
    _setting(
        "kp",
        "proportional gain, one for all joints or one each; 0: from bandwidth "
        "[1/s² in computed_torque, N·m/rad in feed_forward]",
    ),
    _setting(
        "kd",
        "derivative gain, one for all joints or one each; 0: from bandwidth and damping_ratio "
        "[1/s in computed_torque, N·m·s/rad in feed_forward]",
    ),
    _setting("friction_velocity", "velocity that Coulomb friction takes its sign from"),
    _setting("friction_width", "width of the smoothed sign of Coulomb friction [rad/s]"),
    _setting("blend_time", "in which new parameters take over [s]"),
    _setting("effort_scale", "share of the robot description's torque limits in use [-]"),
    _setting("effort_rate", "torque rate limit, in torque limits per second [1/s]"),
    _setting("position_margin", "zone before position limits where outward torque fades [rad]"),
    _setting("stale_timeout", "age of joint states beyond which they count as stopped [s]"),
    _setting("stale_action", "what to do then: compensate gravity or send zero torque"),
    _setting("velocity_cutoff", "of the filter where velocities are not measured [Hz]"),
    _setting("handover_time", "shortest time in which references are joined [s]"),
    _setting(
        "start_tolerance", "largest gap between the reference and a trajectory's start [rad]"
    ),
    _setting(
        "largest_error", "of a joint; beyond it the reference is rejoined from the robot [rad]"
    ),
    _setting("command_unit", "joint torques [N·m], or driver units of the robot description"),
    _setting(
        "contact_control",
        "of a floating base in contact: projected inverse dynamics, or a QP with friction cones",
    ),
    _setting("contact_friction", "friction coefficient of the QP's cones [-]"),
    _setting("contact_hold", "for so long a foot that lost touch still counts as standing [s]"),
    _setting("tilt_limit", "of a floating base; beyond it the robot fell and is not driven [rad]"),
)


def changed(settings: ControllerConfig, values: Mapping[str, Any]) -> ControllerConfig:
    """Return settings with values of parameters in them; those of others are passed over.

    Raises
    ------
    ParameterError
        If a value is not allowed.
    """
    own = {field.name for field in fields(settings)}
    try:
        changes: dict[str, Any] = {
            name: tuple(map(float, value)) if name in ("kp", "kd") else value
            for name, value in values.items()
            if name in own
        }
        return replace(settings, **changes)
    except TypeError as error:
        raise ParameterError(f"a parameter is of the wrong type ({error})") from error
