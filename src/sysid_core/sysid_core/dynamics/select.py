# SPDX-License-Identifier: Apache-2.0
"""Chooses the regression that fits a robot: tree, closed chain, or floating base in contact."""

from __future__ import annotations

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.closed_chain import ClosedChainRegression
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.rows import Regression
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.robot.model import Robot

__all__ = ["make_regression"]


def make_regression(robot: Robot, *, still_velocity: float | FloatArray = 0.0) -> Regression:
    """Return the regression of a robot's class.

    Parameters
    ----------
    robot : Robot
    still_velocity : float or (nj,) [rad/s]
        Below it a joint's dry friction is unknown; see `ContactRegression`. Where rows stand for
        single joints, those of joints at rest are left out afterwards, and this has no effect.

    Raises
    ------
    ModelError
        If the robot has a floating base and no contacts, or loops on a floating base.
    RobotError
        If it has passive joints that no loop determines, or loops that cannot close.
    """
    if robot.floating:
        return ContactRegression(robot, still_velocity=still_velocity)
    if robot.passive.any() or robot.description.loops:
        return ClosedChainRegression(robot)
    return TreeRegression(robot)
