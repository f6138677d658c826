# SPDX-License-Identifier: Apache-2.0
"""Chooses the regression that fits a robot: tree, closed chain, or floating base in contact."""

from __future__ import annotations

from sysid_core.regression.closed_chain import ClosedChainRegression
from sysid_core.regression.contact import ContactRegression
from sysid_core.regression.rows import Regression
from sysid_core.regression.tree import TreeRegression
from sysid_core.robot.model import Robot

__all__ = ["make_regression"]


def make_regression(robot: Robot) -> Regression:
    """Return the regression of a robot's class.

    Raises
    ------
    ModelError
        If the robot has a floating base and no contacts, or loops on a floating base.
    RobotError
        If it has passive joints that no loop determines, or loops that cannot close.
    """
    if robot.floating:
        return ContactRegression(robot)
    if robot.passive.any() or robot.description.loops:
        return ClosedChainRegression(robot)
    return TreeRegression(robot)
