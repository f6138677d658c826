# SPDX-License-Identifier: Apache-2.0
"""Settings of the controller as plain data, checked when they are made."""

from dataclasses import dataclass

from sysid_core.settings import check_config, parameter

__all__ = [
    "COMMAND_UNITS",
    "CONTACT_METHODS",
    "MODES",
    "STALE_ACTIONS",
    "TRIGGERS",
    "ControllerConfig",
]

MODES = ("computed_torque", "feed_forward")  # Names of the laws in `laws.LAWS`
STALE_ACTIONS = ("gravity", "zero")
TRIGGERS = ("timer", "joint_states")
COMMAND_UNITS = ("joint", "driver")
CONTACT_METHODS = ("projected", "qp")  # See `contact_torque.ContactTorque.configure`


@dataclass(frozen=True)
class ControllerConfig:
    """What can be set on the controller.

    Raises
    ------
    ParameterError
        If a value is out of its range; the message names it and the range.
    """

    mode: str = parameter(
        "computed_torque",
        "Control law: linear error dynamics through the model, or the model along the reference "
        "plus feedback",
        choices=MODES,
    )
    trigger: str = parameter(
        "timer",
        "What starts a tick: a timer, or each joint state, which saves its delay",
        choices=TRIGGERS,
        read_only=True,
    )
    rate: float = parameter(
        500.0,
        "Rate of the timer [Hz]; also that of the joint states that trigger a tick",
        range=(1.0, 5000.0),
        read_only=True,
    )
    start_enabled: bool = parameter(
        True,
        "Whether to drive as soon as joint states arrive, without a call of ~/enable",
        read_only=True,
    )
    bandwidth: float = parameter(
        20.0,
        "Of the closed loop, where kp or kd is 0 [rad/s]. Less where commands act late",
        range=(0.1, 500.0),
    )
    damping_ratio: float = parameter(
        1.0, "Of the closed loop, where kd is 0 [-]", range=(0.05, 10.0)
    )
    kp: tuple[float, ...] = parameter(
        (0.0,),
        "Proportional gain, one for all joints or one each; 0: from bandwidth [1/s² in "
        "computed_torque, N·m/rad in feed_forward]",
        range=(0.0, 1e9),
    )
    kd: tuple[float, ...] = parameter(
        (0.0,),
        "Derivative gain, one for all joints or one each; 0: from bandwidth and damping_ratio "
        "[1/s in computed_torque, N·m·s/rad in feed_forward]",
        range=(0.0, 1e9),
    )
    blend_time: float = parameter(
        1.0, "Time in which new parameters take over [s]", range=(0.0, 60.0)
    )
    effort_scale: float = parameter(
        1.0,
        "Share of the robot description's torque limits that may be used [-]. Less for a first "
        "try",
        range=(0.01, 1.0),
    )
    stale_timeout: float = parameter(
        0.1,
        "Age of the newest joint states beyond which they count as stopped [s]",
        range=(0.001, 10.0),
    )
    stale_action: str = parameter(
        "gravity", "What to send then: gravity compensation or zero torque", choices=STALE_ACTIONS
    )
    command_unit: str = parameter(
        "joint",
        "Unit of the commands: joint torques [N·m], or the driver's, with effort gain and "
        "transmission of the robot description undone",
        choices=COMMAND_UNITS,
    )
    contact_control: str = parameter(
        "qp",
        "Law of a floating base in contact: a QP with friction cones, or projected inverse "
        "dynamics",
        choices=CONTACT_METHODS,
    )
    contact_friction: float = parameter(
        0.5, "Friction coefficient of the ground that the QP reckons with [-]", range=(0.01, 10.0)
    )
    tilt_limit: float = parameter(
        0.8,
        "Tilt of a floating base [rad] beyond which the robot fell and is not driven",
        range=(0.05, 3.2),
    )
    effort_rate: float = 20.0
    """[1/s] torque rate limit in torque limits per second: from none to all in 50 ms."""

    def __post_init__(self) -> None:
        check_config(self)
