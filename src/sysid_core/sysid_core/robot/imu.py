# SPDX-License-Identifier: Apache-2.0
"""Where a floating base carries its inertial sensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin

from sysid_core.errors import RobotError
from sysid_core.recording import FloatArray

if TYPE_CHECKING:
    from sysid_core.robot.model import Robot

__all__ = ["imu_mounting"]

_BASE_JOINT = 1
"""The free-flyer's index in Pinocchio's model."""


def imu_mounting(robot: Robot) -> tuple[FloatArray, FloatArray]:
    """Return the rotation (3, 3) from the sensor's axes to the base's, and its place (3,) [m].

    Without a description the sensor sits at the base's origin, its axes along the base's.

    Raises
    ------
    RobotError
        If the description puts the sensor on a fixed base, on a link that the URDF lacks, or on
        one that moves against the base.
    """
    mounted = robot.description.imu
    if mounted is None:
        return np.eye(3), np.zeros(3)
    source = str(robot.description.source or robot.name)
    if not robot.floating:
        raise RobotError(
            "'imu' tells the motion of a floating base, but this base is fixed; leave 'imu' out "
            "or give 'base: floating'",
            source=source,
        )
    link = robot.frame(mounted.link)
    if link.parentJoint != _BASE_JOINT:
        raise RobotError(
            f"'imu.link' is '{mounted.link}', which moves against the base; give a link that is "
            f"fixed to '{robot.urdf.root}'",
            source=source,
        )
    placement = link.placement * pin.SE3(pin.rpy.rpyToMatrix(*mounted.rpy), np.array(mounted.xyz))
    return np.array(placement.rotation), np.array(placement.translation)
