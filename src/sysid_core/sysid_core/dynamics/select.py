# SPDX-License-Identifier: Apache-2.0
"""Chooses what fits a robot's class: tree, closed chain, or floating base in contact."""

from __future__ import annotations

from typing import Protocol

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.closed_chain import ClosedChainDynamics, ClosedChainRegression
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.friction import FrictionLaw
from sysid_core.dynamics.rows import Regression
from sysid_core.dynamics.tree import TreeDynamics, TreeRegression
from sysid_core.robot.model import Robot

__all__ = ["Dynamics", "make_dynamics", "make_regression"]


class Dynamics(Protocol):
    """What control asks of a model; all arrays (na,) are in the actuated joints' order.

    Where there is no solution, results are NaN and `failure` says why: a control loop looks, it
    does not catch.
    """

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The actuated joints."""
        ...

    @property
    def home(self) -> FloatArray:
        """Positions (na,) [rad] that the robot can take, mid-range if possible."""
        ...

    @property
    def friction(self) -> FrictionLaw:
        """The friction law in use."""
        ...

    @property
    def failure(self) -> Diagnostic | None:
        """Why the last result is NaN; None where it is not."""
        ...

    def set_parameters(self, parameters: FloatArray, scales: FloatArray | None = None, /) -> None:
        """Use a parameter vector (p,) of the robot's layout from now on.

        `scales` are those of its friction, as `Robot.friction_scales`; None: the present ones.
        """

    def torque(
        self,
        position: FloatArray,
        velocity: FloatArray,
        acceleration: FloatArray,
        sliding: FloatArray | None = None,
        /,
    ) -> FloatArray:
        """Return the torque (na,) [N·m] of a motion [rad, rad/s, rad/s²].

        `sliding` [rad/s] is the velocity that friction sees, by default `velocity`.
        """

    def gravity(self, position: FloatArray, /) -> FloatArray:
        """Return the torque (na,) [N·m] that holds a configuration at rest."""

    def inertia(self, position: FloatArray, /) -> FloatArray:
        """Return the inertia (na, na) [kg·m²] that the joints feel, rotors included."""

    def unreachable(self, positions: FloatArray) -> Diagnostic | None:
        """Say why the robot cannot follow positions (n, na) [rad]; None if it can."""


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
    if robot.passive.any() or robot.linked:
        return ClosedChainRegression(robot)
    return TreeRegression(robot)


def make_dynamics(
    robot: Robot, sign_width: float | None = None
) -> TreeDynamics | ClosedChainDynamics:
    """Return the dynamics of a robot on a fixed base.

    `sign_width` [rad/s] is the width of the smoothed sign of dry friction; None: the
    description's.

    Raises
    ------
    ModelError
        If its base floats.
    RobotError
        If it has passive joints that no loop determines, or loops that cannot close.
    """
    if robot.linked:
        return ClosedChainDynamics(robot, sign_width)
    return TreeDynamics(robot, sign_width)
