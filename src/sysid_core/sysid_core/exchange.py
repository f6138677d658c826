# SPDX-License-Identifier: Apache-2.0
"""What nodes tell each other, as plain data: published parameters and joint trajectories."""

from __future__ import annotations

from dataclasses import dataclass

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError

__all__ = ["ParameterSet", "TrajectoryPoints", "check_point_count"]

# Reading and planning a point takes up to 50 µs between two torques: so many, 0.1 s.
_MOST_POINTS = 2000


def check_point_count(count: int) -> None:
    """Refuse trajectories that would keep a controller from its torques for too long.

    Raises
    ------
    ParameterError
        If there are too many points.
    """
    if count > _MOST_POINTS:
        raise ParameterError(
            f"has {count} points, more than {_MOST_POINTS}; send it in pieces that follow each "
            "other in time, or with fewer points: the path between them is smooth"
        )


@dataclass(frozen=True, eq=False)
class ParameterSet:
    """Parameters as they were published."""

    # robot, model_hash: whose they are.
    robot: str
    model_hash: str
    revision: int
    stamp: float  # [s] time of the last sample that they rest on; 0: none
    identified: bool  # False: the robot's nominal parameters are to be used
    vector: FloatArray  # (p,) in the layout of the robot; empty when not identified
    scales: FloatArray | None = None
    """As `Robot.friction_scales`, of the friction that they are of; None: the robot's."""


@dataclass(frozen=True, eq=False)
class TrajectoryPoints:
    """A trajectory as it was received."""

    joint_names: tuple[str, ...]
    start: float | None  # [s] time that the points count from; None: now
    time: FloatArray  # (n,) [s] of each point from the start
    position: FloatArray  # (n, k) [rad]
    velocity: FloatArray | None = None  # (n, k) [rad/s, rad/s²]
    acceleration: FloatArray | None = None  # (n, k) [rad/s, rad/s²]
