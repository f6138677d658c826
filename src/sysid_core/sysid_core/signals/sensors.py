# SPDX-License-Identifier: Apache-2.0
"""The sensors beside the joints': what their messages hold, and how rows of numbers come of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.recording import Recording
from sysid_core.signals.rotation import continuous, normalised

__all__ = ["SENSORS", "SOURCES", "Rows", "Sensor"]


class Rows(NamedTuple):
    """One row of numbers per message."""

    time: FloatArray  # (m,) [s]
    values: FloatArray  # (m, nc)


@dataclass(frozen=True)
class Sensor:
    """A source of signals that joins the joints' on their grid."""

    name: str
    rows: Callable[[Recording], Rows | None]
    """Takes a recording; returns the sensor's rows, None where it was not recorded."""
    source: str  # Field of a recording that holds its messages
    messages: str
    """What faulty messages are counted as; empty where another sensor of the source counts
    them."""
    flags: bool = False  # Take the nearest row instead of interpolating
    required: bool = True  # Leave samples without it out


def _odometry(recording: Recording) -> Rows | None:
    """Position 3, unit quaternion 4 without jumps of sign, twist in the base 6."""
    base = recording.base
    if base is None:
        return None
    orientation = continuous(normalised(base.orientation))
    return Rows(base.time, np.hstack([base.position, orientation, base.twist]))


def _inertial(recording: Recording) -> Rows | None:
    """Angular velocity 3, specific force 3, in the sensor's axes."""
    imu = recording.imu
    if imu is None:
        return None
    return Rows(imu.time, np.hstack([imu.angular_velocity, imu.linear_acceleration]))


def _contacts(recording: Recording) -> Rows | None:
    """One flag per contact."""
    contacts = recording.contacts
    return None if contacts is None else Rows(contacts.time, contacts.active.astype(np.float64))


def _wrenches(recording: Recording) -> Rows | None:
    """Force 3 and torque 3 per contact."""
    contacts = recording.contacts
    if contacts is None or contacts.wrenches is None:
        return None
    return Rows(contacts.time, contacts.wrenches.reshape(len(contacts.time), -1))


SENSORS = (
    Sensor("base", _odometry, "base", "odometry"),
    Sensor("imu", _inertial, "imu", "imu", required=False),
    Sensor("contacts", _contacts, "contacts", "contacts", flags=True),
    Sensor("wrenches", _wrenches, "contacts", ""),
)
"""A new sensor is an entry here, and a step in `sysid_core.signals.chain` that uses its rows."""

SOURCES = tuple(dict.fromkeys(sensor.source for sensor in SENSORS))
"""Fields of a recording that hold messages of sensors beside the joints'."""
