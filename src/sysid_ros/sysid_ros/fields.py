# SPDX-License-Identifier: Apache-2.0
"""The fields that messages of all nodes share: time stamps, arrays of numbers, diagnostics."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from sysid_core.arrays import FloatArray

__all__ = ["NANO", "diagnostic_status", "doubles", "nanoseconds", "seconds", "stamp"]

NANO = 1_000_000_000
"""Nanoseconds in a second."""


def nanoseconds(time: Time) -> int:
    """Return a message's time stamp [ns]."""
    return int(time.sec) * NANO + int(time.nanosec)


def seconds(time: Time) -> float:
    """Return a message's time stamp [s]."""
    return float(time.sec) + 1e-9 * float(time.nanosec)


def stamp(time: float) -> Time:
    """Return a time [s] as a message's time stamp; 0 for what is no time."""
    since = max(0, round(time * NANO)) if np.isfinite(time) else 0
    return Time(sec=since // NANO, nanosec=since % NANO)


def doubles(values: FloatArray) -> array[float]:
    """Return numbers as rclpy takes them without looking at each."""
    return array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes())


def diagnostic_status(
    name: str, hardware: str, level: int, message: str, values: Mapping[str, object]
) -> DiagnosticStatus:
    """Return a diagnostic status; `level` 0 is fine, 1 a warning, 2 an error, 3 stale."""
    return DiagnosticStatus(
        level=bytes([level]),
        name=name,
        message=message,
        hardware_id=hardware,
        values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
    )
