# SPDX-License-Identifier: Apache-2.0
"""The fields that messages share: time stamps, arrays of numbers, vectors, quaternions."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Quaternion, Vector3

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError

__all__ = [
    "NANO",
    "doubles",
    "duration",
    "known_doubles",
    "nanoseconds",
    "quaternion",
    "rows",
    "seconds",
    "stamp",
    "vector",
    "vector_array",
]

NANO = 1_000_000_000  # Nanoseconds in a second


def nanoseconds(time: Time) -> int:
    """Return a message's time stamp [ns]."""
    return int(time.sec) * NANO + int(time.nanosec)


def seconds(time: Time | Duration) -> float:
    """Return a message's time stamp or duration [s]."""
    return float(time.sec) + 1e-9 * float(time.nanosec)


def stamp(time: float) -> Time:
    """Return a time [s] as a message's time stamp; 0 where the time is unknown or negative."""
    since = max(0, round(time * NANO)) if np.isfinite(time) else 0
    return Time(sec=since // NANO, nanosec=since % NANO)


def duration(time: float) -> Duration:
    """Return a time span [s] as a message."""
    sec, nanosec = divmod(round(time * NANO), NANO)
    return Duration(sec=sec, nanosec=nanosec)


def doubles(values: FloatArray) -> array[float]:
    """Return numbers as rclpy takes them without looking at each."""
    return array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes())


def known_doubles(values: FloatArray) -> array[float]:
    """Return numbers for a message; nothing at all if one of them is unknown."""
    return doubles(values) if np.isfinite(values).all() else array("d")


def rows(values: Sequence[float], count: int, width: int, what: str) -> FloatArray:
    """Return a message's numbers as an array (count, width).

    Raises
    ------
    DataError
        If there are more or fewer.
    """
    flat = np.asarray(values, dtype=np.float64)
    if len(flat) != count * width:
        raise DataError(f"{what} has {len(flat)} numbers instead of {count} × {width}")
    return flat.reshape(count, width)


def vector(values: FloatArray) -> Vector3:
    """Return three numbers as a message."""
    x, y, z = values.tolist()
    return Vector3(x=x, y=y, z=z)


def vector_array(*vectors: Vector3) -> FloatArray:
    """Return the numbers (3·n,) of vectors or points, one after another."""
    return np.array([number for v in vectors for number in (v.x, v.y, v.z)])


def quaternion(values: FloatArray) -> Quaternion:
    """Return a quaternion x, y, z, w as a message."""
    x, y, z, w = values.tolist()
    return Quaternion(x=x, y=y, z=z, w=w)
