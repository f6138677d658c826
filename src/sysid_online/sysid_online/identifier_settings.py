# SPDX-License-Identifier: Apache-2.0
"""ROS parameters of the identifier node and the settings that they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sysid_core.estimation import METHODS
from sysid_core.online.gate import GateConfig
from sysid_core.online.payload import PayloadConfig
from sysid_core.online.settings import OnlineConfig
from sysid_core.settings import Setting
from sysid_ros.parameters import ROBOT

__all__ = ["SETTINGS", "online_settings"]

_ONLINE, _GATE, _PAYLOAD = OnlineConfig(), GateConfig(), PayloadConfig()

SETTINGS = (
    ROBOT,
    Setting("solve_rate", 20.0, "Solves per second [Hz]", (0.1, 500.0)),
    Setting("method", _ONLINE.method, "Estimator", choices=METHODS, read_only=True),
    Setting(
        "window",
        _ONLINE.window,
        "Informative samples that make the window full [s]",
        (0.01, 3600.0),
    ),
    Setting(
        "memory",
        _ONLINE.memory,
        "Time in which data that left the window lose half their weight; 0 forgets them [s]",
        (0.0, 86400.0),
    ),
    Setting(
        "r2_window",
        _ONLINE.r2_window,
        "Newest samples that prequential R² is taken over [s]",
        (0.01, 3600.0),
    ),
    Setting(
        "still_velocity",
        _ONLINE.still_velocity,
        "Rows of a joint that moves slower are left out [rad/s]",
        (0.0, 10.0),
    ),
    Setting(
        "correlation",
        _ONLINE.correlation,
        "Number of samples that count as one independent observation [-]",
        (1.0, 10000.0),
    ),
    Setting(
        "gate.r2_threshold",
        _GATE.r2_threshold,
        "Prequential R² over all joints that opens the gate [-]",
        (0.01, 0.9999),
    ),
    Setting(
        "gate.hysteresis",
        _GATE.hysteresis,
        "The gate closes only this far below the threshold [-]",
        (0.0, 0.9),
    ),
    Setting(
        "gate.r2_joint_threshold",
        _GATE.r2_joint_threshold,
        "Prequential R² of a joint that is not better than nominal [-]",
        (-10.0, 0.9999),
    ),
    Setting(
        "gate.min_consistency",
        _GATE.min_consistency,
        "Smallest relative pseudo-inertia eigenvalue of each body [-]",
        (0.0, 1.0),
    ),
    Setting(
        "gate.min_determined",
        _GATE.min_determined,
        "Mean share of the parameters' information that must come from data [-]",
        (0.0, 1.0),
    ),
    Setting(
        "gate.max_change",
        _GATE.max_change,
        "Largest relative change of the predicted torque per second [1/s]",
        (0.001, 1000.0),
    ),
    Setting(
        "gate.max_optimality",
        _GATE.max_optimality,
        "Largest relative optimality residual of a solution [-]",
        (1e-12, 1.0),
    ),
    Setting(
        "gate.stale_after",
        _GATE.stale_after,
        "Without informative samples for so long the estimate is held [s]",
        (0.01, 60.0),
    ),
    Setting("payload.enabled", _PAYLOAD.enabled, "Look for payloads"),
    Setting(
        "payload.window", _PAYLOAD.window, "Span in which a step is looked for [s]", (0.05, 60.0)
    ),
    Setting(
        "payload.rise",
        _PAYLOAD.rise,
        "Rise of the torque errors that counts as a step [-]",
        (1.1, 1000.0),
    ),
    Setting(
        "payload.explained",
        _PAYLOAD.explained,
        "Share of the torque errors' power that a payload must explain [-]",
        (0.01, 1.0),
    ),
    Setting(
        "payload.min_mass",
        _PAYLOAD.min_mass,
        "Smallest payload worth reporting; 0: a hundredth of the robot's mass [kg]",
        (0.0, 1000.0),
    ),
    Setting(
        "payload.significance",
        _PAYLOAD.significance,
        "Mass over its standard deviation from which a payload is real [-]",
        (0.1, 1000.0),
    ),
    Setting(
        "payload.settle",
        _PAYLOAD.settle,
        "Time after which the payload becomes part of the model [s]",
        (0.1, 3600.0),
    ),
    Setting("payload.prior_mass", _PAYLOAD.prior_mass, "Typical mass [kg]", (1e-4, 10000.0)),
    Setting("payload.prior_radius", _PAYLOAD.prior_radius, "Typical size [m]", (1e-3, 100.0)),
    Setting(
        "payload.prior_std",
        _PAYLOAD.prior_std,
        "Relative standard deviation of a payload's prior [-]",
        (0.1, 100.0),
    ),
)


def online_settings(values: Mapping[str, Any], sample_rate: float) -> OnlineConfig:
    """Build the core's settings from parameter values by name.

    Raises
    ------
    ParameterError
        If a value is not allowed.
    """

    def part(prefix: str) -> dict[str, Any]:
        return {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}

    top = {k: v for k, v in values.items() if "." not in k and k not in ("robot", "solve_rate")}
    return OnlineConfig(
        sample_rate=sample_rate,
        gate=GateConfig(**part("gate.")),
        payload=PayloadConfig(**part("payload.")),
        **{key: top[key] for key in OnlineConfig.__dataclass_fields__ if key in top},
    )
