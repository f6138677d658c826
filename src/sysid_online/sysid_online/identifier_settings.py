# SPDX-License-Identifier: Apache-2.0
"""ROS parameters of the identifier node and the configuration that they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sysid_core.online.settings import OnlineConfig
from sysid_core.settings import Setting, settings_of, with_values
from sysid_ros.parameters import ROBOT

__all__ = ["SETTINGS", "online_settings"]

_ONLINE = settings_of(OnlineConfig)

SETTINGS = (ROBOT, Setting("solve_rate", 20.0, "Solves per second [Hz]", (0.1, 500.0)), *_ONLINE)


def online_settings(values: Mapping[str, Any], sample_rate: float) -> OnlineConfig:
    """Build the core's configuration from parameter values by name.

    Raises
    ------
    ParameterError
        If a value is not allowed.
    """
    chosen = {setting.name: values[setting.name] for setting in _ONLINE}
    return with_values(OnlineConfig(sample_rate=sample_rate), chosen)
