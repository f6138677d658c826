# SPDX-License-Identifier: Apache-2.0
"""ROS parameters of the recorder node."""

from __future__ import annotations

from sysid_core.settings import Setting
from sysid_ros.parameters import ROBOT

__all__ = ["SETTINGS"]

SETTINGS = (
    ROBOT,
    Setting(
        "rate",
        0.0,
        "Rate of the joint states [Hz]; 0: measured from the first messages",
        (0.0, 10000.0),
        read_only=True,
    ),
    Setting(
        "cutoff",
        0.0,
        "Cut-off of the low-pass that all signals share [Hz]; 0: the robot description's (half of "
        "it for a floating base without inertial sensor), else 10",
        (0.0, 1000.0),
        read_only=True,
    ),
    Setting(
        "sample_rate",
        100.0,
        "Highest rate of the samples that are published [Hz]",
        (1.0, 10000.0),
        read_only=True,
    ),
    Setting(
        "gap",
        5.0,
        "Longest interruption that is interpolated, in periods [-]",
        (1.5, 1000.0),
        read_only=True,
    ),
    Setting(
        "contact_margin",
        0.02,
        "A foot counts as in contact this long before and after its contact, too [s]",
        (0.0, 1.0),
        read_only=True,
    ),
    Setting(
        "publish_period", 0.05, "Time between batches of samples [s]", (0.005, 1.0), read_only=True
    ),
    Setting(
        "buffer_duration",
        60.0,
        "Time span of the ring buffer that ~/save writes [s]",
        (1.0, 3600.0),
        read_only=True,
    ),
    Setting(
        "stale_after",
        0.5,
        "Without joint states for so long diagnostics report an error [s]",
        (0.01, 60.0),
    ),
)
