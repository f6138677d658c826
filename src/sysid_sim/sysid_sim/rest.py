# SPDX-License-Identifier: Apache-2.0
"""Where robots rest."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.robot import Robot
from sysid_core.robot.loops import LoopClosure
from sysid_sim.mjcf import foot_radii

__all__ = ["rest_configuration", "standing_configuration"]


def rest_configuration(robot: Robot) -> FloatArray:
    """Return a configuration (nq,) in the middle of the joints' ranges, with closed loops.

    A joint without a range rests at zero; a floating base is at the origin.

    Raises
    ------
    RobotError
        If the loops cannot close.
    """
    lower, upper = robot.limits.lower, robot.limits.upper
    ranged = np.isfinite(lower) & np.isfinite(upper)
    joints = np.zeros(len(lower))
    joints[ranged] = 0.5 * (lower[ranged] + upper[ranged])
    if robot.floating:
        return np.concatenate([np.zeros(6), [1.0], joints])
    if not robot.description.loops:
        return joints
    return LoopClosure(robot).solve(joints[robot.actuated]).configuration


def standing_configuration(robot: Robot) -> FloatArray:
    """Return the configuration at rest (nq,); a floating robot's lowest foot is on the ground."""
    q = rest_configuration(robot)
    if robot.floating:
        model = robot.model
        data = model.createData()
        pin.forwardKinematics(model, data, q)
        feet = [robot.place(contact.frame) for contact in robot.description.contacts]
        heights = [(data.oMi[joint] * placement).translation[2] for joint, placement in feet]
        if heights:
            q[2] = float(np.max(foot_radii(robot) - np.array(heights)))
    return q
