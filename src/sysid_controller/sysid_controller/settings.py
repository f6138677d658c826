# SPDX-License-Identifier: Apache-2.0
"""Settings of the controller as plain data, checked when they are made."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sysid_controller.contact_torque import CONTACT_METHODS
from sysid_controller.laws import LAWS
from sysid_core.errors import ParameterError

__all__ = [
    "COMMAND_UNITS",
    "FRICTION_VELOCITIES",
    "MODES",
    "STALE_ACTIONS",
    "TRIGGERS",
    "ControllerConfig",
]

MODES = tuple(LAWS)
FRICTION_VELOCITIES = ("desired", "measured")
STALE_ACTIONS = ("gravity", "zero")
TRIGGERS = ("timer", "joint_states")
COMMAND_UNITS = ("joint", "driver")

_CHOICES = {
    "mode": MODES,
    "friction_velocity": FRICTION_VELOCITIES,
    "stale_action": STALE_ACTIONS,
    "trigger": TRIGGERS,
    "command_unit": COMMAND_UNITS,
    "contact_control": CONTACT_METHODS,
}

_RANGES = {
    "rate": (1.0, 5000.0),
    "status_rate": (0.1, 1000.0),
    "bandwidth": (0.1, 500.0),
    "damping_ratio": (0.05, 10.0),
    "friction_width": (1e-4, 10.0),
    "blend_time": (0.0, 60.0),
    "effort_scale": (0.01, 1.0),
    "effort_rate": (0.1, 1e4),
    "position_margin": (1e-4, 1.0),
    "stale_timeout": (0.001, 10.0),
    "velocity_cutoff": (0.1, 2000.0),
    "handover_time": (0.01, 10.0),
    "start_tolerance": (0.001, 10.0),
    "largest_error": (0.01, 1e3),
    "contact_friction": (0.01, 10.0),
    "contact_hold": (0.0, 1.0),
    "tilt_limit": (0.05, 3.2),
}


@dataclass(frozen=True)
class ControllerConfig:
    """What can be set on the controller; the defaults are those of the node and its YAML.

    Attributes
    ----------
    mode : str
        Control law, by its name in `laws.LAWS`.
    trigger : str
        What starts a tick: ``timer`` or ``joint_states``.
    rate : float [Hz]
        Of the timer; also the longest step that the torque rate limit reckons with.
    status_rate : float [Hz]
        At most so often the tracking status is published.
    start_enabled : bool
    bandwidth : float [rad/s]
    damping_ratio : float [-]
        Of the closed loop, where `kp` or `kd` leaves a gain open.
    kp, kd : tuple[float, ...]
        Gains of all joints (one number) or per actuated joint; 0 takes the gain from `bandwidth`
        and `damping_ratio`. [1/s², 1/s] in computed torque, [N·m/rad, N·m·s/rad] in feed forward.
    friction_velocity : str
        Whose velocity gives Coulomb friction its sign: ``desired`` or ``measured``.
    friction_width : float [rad/s]
        Width of the smoothed sign, ``tanh(q̇/width)``.
    blend_time : float [s]
        In which new parameters take over.
    effort_scale : float [-]
        Share of the description's torque limits that may be used.
    effort_rate : float [1/s]
        Torque rate limit as a multiple of the torque limit per second.
    position_margin : float [rad]
        Zone before the position limits in which outward torque fades away.
    stale_timeout : float [s]
        Age of the newest joint states beyond which they count as stopped.
    stale_action : str
        Then: ``gravity`` compensation or ``zero`` torque.
    velocity_cutoff : float [Hz]
        Of the filter on differentiated positions, where velocities are not measured.
    handover_time : float [s]
        Shortest time in which a difference between two references is taken back.
    start_tolerance : float [rad]
        Largest difference between the current reference and a new one that starts at once.
    largest_error : float [rad]
        Of a joint's position; beyond it the reference starts anew from where the robot is.
    command_unit : str
        ``joint``: N·m at the joints; ``driver``: what the description's effort gain and
        transmission make of it.
    contact_control : str
        Of a floating base: ``projected`` inverse dynamics, or a ``qp`` with friction cones.
    contact_friction : float [-]
        Friction coefficient that the QP's cones reckon with.
    contact_hold : float [s]
        For so long a foot that lost touch still counts as standing.
    tilt_limit : float [rad]
        Of a floating base; beyond it the robot fell, and is not driven any more.

    Raises
    ------
    ParameterError
        If a value is out of its range; the message names it and the range.
    """

    mode: str = "computed_torque"
    trigger: str = "timer"
    rate: float = 500.0
    status_rate: float = 50.0
    start_enabled: bool = True
    bandwidth: float = 20.0
    damping_ratio: float = 1.0
    kp: tuple[float, ...] = (0.0,)
    kd: tuple[float, ...] = (0.0,)
    friction_velocity: str = "desired"
    friction_width: float = 0.05
    blend_time: float = 1.0
    effort_scale: float = 1.0
    effort_rate: float = 20.0
    position_margin: float = 0.05
    stale_timeout: float = 0.1
    stale_action: str = "gravity"
    velocity_cutoff: float = 50.0
    handover_time: float = 0.3
    start_tolerance: float = 0.2
    largest_error: float = 1.0
    command_unit: str = "joint"
    contact_control: str = "qp"
    contact_friction: float = 0.5
    contact_hold: float = 0.015
    tilt_limit: float = 0.8

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ParameterError(f"{name} must be one of {', '.join(choices)}, got '{value}'")
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:  # NaN fails every comparison
                raise ParameterError(f"{name} must lie in [{low:g}, {high:g}], got {value!r}")
        for name in ("kp", "kd"):
            values = getattr(self, name)
            if not values or not all(math.isfinite(v) and v >= 0.0 for v in values):
                raise ParameterError(
                    f"{name} must be one finite number or one per joint, none below 0, "
                    f"got {list(values)}"
                )

    @staticmethod
    def range_of(name: str) -> tuple[float, float] | None:
        """Return the allowed range of a number, None where there is none."""
        return _RANGES.get(name)

    @staticmethod
    def choices_of(name: str) -> tuple[str, ...]:
        """Return the allowed texts of a setting, empty where any will do."""
        return _CHOICES.get(name, ())
