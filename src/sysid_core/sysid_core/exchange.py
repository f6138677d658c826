# SPDX-License-Identifier: Apache-2.0
"""What nodes tell each other, as plain data: published parameters and joint trajectories."""

from __future__ import annotations

from dataclasses import dataclass

from sysid_core.arrays import FloatArray

__all__ = ["ParameterSet", "TrajectoryPoints"]


@dataclass(frozen=True, eq=False)
class ParameterSet:
    """Parameters as they were published.

    Attributes
    ----------
    robot, model_hash : str
        Whose they are.
    revision : int
    stamp : float [s]
        Time of the last sample that they rest on; 0: none.
    identified : bool
        False: the robot's nominal parameters are to be used.
    vector : (p,)
        In the layout of the robot; empty when not identified.
    """

    robot: str
    model_hash: str
    revision: int
    stamp: float
    identified: bool
    vector: FloatArray


@dataclass(frozen=True, eq=False)
class TrajectoryPoints:
    """A trajectory as it was received.

    Attributes
    ----------
    joint_names : tuple[str, ...]
    start : float or None [s]
        Time that the points count from; None: now.
    time : (n,) [s]
        Of each point from the start.
    position : (n, k) [rad]
    velocity, acceleration : (n, k) or None [rad/s, rad/s²]
    """

    joint_names: tuple[str, ...]
    start: float | None
    time: FloatArray
    position: FloatArray
    velocity: FloatArray | None = None
    acceleration: FloatArray | None = None
