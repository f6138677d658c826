# SPDX-License-Identifier: Apache-2.0
"""The qualities of service that the nodes use, by what they are for."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

__all__ = ["latched", "newest_reading", "readings"]

_READINGS = 5000
"""Messages that wait at most: some seconds of a 1 kHz robot on a machine that is held up."""


def readings() -> QoSProfile:
    """Return what takes every message that any driver offers."""
    return QoSProfile(depth=_READINGS, reliability=ReliabilityPolicy.BEST_EFFORT)


def newest_reading(drivers: int = 1) -> QoSProfile:
    """Return what takes the newest message of each of so many drivers, and drops older ones."""
    return QoSProfile(depth=drivers, reliability=ReliabilityPolicy.BEST_EFFORT)


def latched() -> QoSProfile:
    """Return what keeps the last message for those who come later."""
    return QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
