# SPDX-License-Identifier: Apache-2.0
"""Unitree's messages as arrays: which motor is which joint, inertial unit, feet, base and time.

The orders are those of unitree_sdk2, `dds_wrapper/robots/{go2,g1}/defines.h`.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.errors import DataError
from sysid_core.signals.rotation import normalised, rotate_into_body

__all__ = [
    "ROBOTS",
    "FootLoads",
    "RobotClock",
    "UnitreeRobot",
    "base_state",
    "inertial",
    "motor_rows",
    "orientation",
]

_FEET = ("FR", "FL", "RR", "RL")
_SIDES = ("left", "right")
_LEG = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
_ARM = (
    *("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow"),
    *("wrist_roll", "wrist_pitch", "wrist_yaw"),
)

_AVERAGED = 2500
"""Messages over which the feet's mean is taken: 5 s at 500 Hz, many steps."""
_BLOCK = 25  # Messages of which the least delayed is kept
_BLOCKS = 200
"""Such blocks from which the robot's clock is told, 10 s at 500 Hz: a backlog is gone by then."""
_BEGIN = 12  # Such blocks that show how the clock goes; before, uneven stamps would hide the rate
_WRONG = 0.125
"""Part by which a clock may seem to go wrong. One that stands or counts twos is wrong by 0.5."""
_LONGEST = 20_000_000_000
"""Time [ns] for which no message is held up: the robot's clock was set."""


@dataclass(frozen=True)
class UnitreeRobot:
    """What a model's messages mean."""

    package: str  # That defines its LowState
    odometry: str  # Topic of its SportModeState
    joints: tuple[str, ...]  # By motor, named as in Unitree's URDFs
    feet: tuple[str, ...]  # By force sensor; empty: it has none
    base: str  # Link whose pose the odometry is


def _joints(groups: Iterable[tuple[str, tuple[str, ...]]]) -> tuple[str, ...]:
    return tuple(f"{part}_{joint}_joint" for part, joints in groups for joint in joints)


ROBOTS = {
    "g1": UnitreeRobot(
        "unitree_hg",
        "odommodestate",
        _joints(
            (
                *((side, _LEG) for side in _SIDES),
                ("waist", ("yaw", "roll", "pitch")),
                *((side, _ARM) for side in _SIDES),
            )
        ),
        (),
        "pelvis",
    ),
    "go2": UnitreeRobot(
        "unitree_go",
        "sportmodestate",
        _joints((foot, ("hip", "thigh", "calf")) for foot in _FEET),
        _FEET,
        "base",
    ),
}


def motor_rows(state: Any, count: int) -> FloatArray:
    """Return position, velocity and torque (3, count) [rad, rad/s, N·m] of a LowState's motors.

    Raises
    ------
    DataError
        If it has fewer motors, numbers that are not finite, or ankles as pairs of motors.
    """
    if getattr(state, "mode_pr", 0):  # 1: motors of the linkages, 0: their pitch and roll
        raise DataError("states of ankle motors A and B instead of pitch and roll")
    motors = state.motor_state[:count]
    if len(motors) < count:
        raise DataError(f"states of fewer than {count} motors: is 'model' the robot's?")
    rows = np.array([[m.q, m.dq, m.tau_est] for m in motors], dtype=float).T
    if not np.isfinite(rows).all():
        raise DataError("states with numbers that are not finite")
    return rows


def inertial(unit: Any) -> tuple[FloatArray, FloatArray]:
    """Return angular velocity and specific force, each (3,) [rad/s, m/s²], of an IMUState.

    Raises
    ------
    DataError
        If they are not finite.
    """
    rows = np.array([unit.gyroscope, unit.accelerometer], dtype=float)
    if not np.isfinite(rows).all():
        raise DataError("inertial readings that are not finite")
    return rows[0], rows[1]


def orientation(unit: Any) -> FloatArray | None:
    """Return an IMUState's quaternion (4,) as x, y, z, w, of length one; None if it has none."""
    given = np.array(unit.quaternion, dtype=float)[[1, 2, 3, 0]]  # Unitree's w comes first
    return normalised(given) if given.any() and np.isfinite(given).all() else None


def base_state(state: Any, unit: Any, velocity_frame: str) -> tuple[FloatArray, FloatArray]:
    """Return a SportModeState's pose (7,) and twist (6,) [m/s, rad/s] in the base frame.

    The angular velocity is the gyroscope's. Where the state leaves quaternion or gyroscope at
    zero, as unitree_mujoco does, those of `unit`, the newest LowState's, are taken.

    Raises
    ------
    DataError
        If there is no orientation.
    """
    own = state.imu_state
    turn = orientation(own)
    turn = orientation(unit) if turn is None else turn
    if turn is None:
        raise DataError("odometry without an orientation")
    rate = own.gyroscope if np.any(own.gyroscope) else unit.gyroscope
    velocity = np.array(state.velocity, dtype=float)
    if velocity_frame == "world":
        velocity = rotate_into_body(turn[np.newaxis], velocity[np.newaxis])[0]
    return np.r_[state.position, turn], np.r_[velocity, rate]


class FootLoads:
    """Tells which feet stand from raw forces, whose unit and offset nobody publishes.

    Over many steps the ground carries the robot's weight, however it walks: the mean over time
    and feet is what a foot shows while all of them stand.
    """

    def __init__(self) -> None:
        self._mean, self._count = 0.0, 0

    def standing(self, forces: FloatArray, share: float) -> BoolArray | None:
        """Return which feet (nc,) show more than a share [-] of that; None while none shows any.

        Raw forces (nc,) come at an even rate.
        """
        self._count = min(self._count + 1, _AVERAGED)
        self._mean += (float(forces.mean()) - self._mean) / self._count
        return np.asarray(forces > share * self._mean) if self._mean > 0.0 else None


class RobotClock:
    """Tells when messages were sent, on this computer's clock, from the robot's own time in them.

    No message comes before it was sent, so the least delay of late is the clocks' distance.
    Messages that were held up on their way, or by a busy computer, keep their times apart.
    Where the robot's time stands still, is set or has another unit, arrival must do.
    """

    def __init__(self) -> None:
        self._least: deque[list[int]] = deque(maxlen=_BLOCKS)  # [arrival, least delay] of blocks
        self._count = 0

    def sent(self, told: int, now: int) -> int | None:
        """Return when a message was sent [ns] that tells the robot's time and comes now [ns].

        None at the start, while that cannot be known.
        """
        if self._count % _BLOCK == 0:
            self._least.append([now, now - told])
        self._count += 1
        self._least[-1][1] = min(self._least[-1][1], now - told)
        if len(self._least) < _BEGIN:
            return None
        arrivals, delays = zip(*self._least, strict=True)
        middle = len(delays) // 2
        early, late = min(delays[:middle]), min(delays[middle:])
        sent = told + min(early, late)
        lasting = now - sent < _LONGEST
        goes = abs(late - early) < _WRONG * (arrivals[-1] - arrivals[0])
        return sent if lasting and goes else now
