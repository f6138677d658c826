# SPDX-License-Identifier: Apache-2.0
"""Where a floating base carries its inertial sensor."""

from collections.abc import Callable

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.errors import RobotError
from sysid_core.robot.description import FrameOnLink, RobotDescription

__all__ = ["described_cutoff", "imu_mounting"]

_BASE_JOINT = 1  # The free-flyer's index in Pinocchio's model


_BY_ODOMETRY = 0.5
"""Share of the described cut-off where accelerations of the base come from odometry alone."""


def described_cutoff(
    description: RobotDescription, *, inertial: bool, otherwise: float | None = None
) -> float | None:
    """Return the cut-off [Hz] that a description asks for, or another one if it says nothing.

    Without an inertial sensor differentiated odometry is too noisy for the whole of it.
    """
    described = description.signals.cutoff or otherwise
    if described is None or inertial or description.base != "floating":
        return described
    return _BY_ODOMETRY * described


def imu_mounting(
    description: RobotDescription, root: str, place: Callable[[FrameOnLink], tuple[int, pin.SE3]]
) -> tuple[FloatArray, FloatArray]:
    """Return the rotation (3, 3) from the sensor's axes to the base's, and its place (3,) [m].

    Without a description the sensor sits at the base's origin, its axes along the base's. `place`
    returns the joint that carries a frame, and the frame's placement there.

    Raises
    ------
    RobotError
        If the description puts the sensor on a fixed base, on a link that the URDF lacks, or on
        one that moves against the base.
    """
    mounted = description.imu
    if mounted is None:
        return np.eye(3), np.zeros(3)
    source = str(description.source or description.name)
    if description.base != "floating":
        raise RobotError(
            "'imu' tells the motion of a floating base, but this base is fixed; leave 'imu' out "
            "or give 'base: floating'",
            source=source,
        )
    joint, placement = place(mounted)
    if joint != _BASE_JOINT:
        raise RobotError(
            f"'imu.link' is '{mounted.link}', which moves against the base; give a link that is "
            f"fixed to '{root}'",
            source=source,
        )
    return np.array(placement.rotation), np.array(placement.translation)
