# SPDX-License-Identifier: Apache-2.0
"""Equations of motion of a floating base in contact at one state, and their solution."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.contact_kinematics import BASE, ContactKinematics
from sysid_core.dynamics.open_tree import OpenTree
from sysid_core.errors import ModelError
from sysid_core.robot.model import Robot

__all__ = ["ContactDynamics", "ContactTerms", "Forward"]


class ContactTerms(NamedTuple):
    """``M v̇ + h = Sᵀτ + Jᵀw`` at one state; contacts in world axes, linear before angular."""

    inertia: FloatArray  # (nv, nv): M, rotors included
    bias: FloatArray  # (nv,) [N, N·m]: h: gravity, velocity terms, friction and offsets
    jacobian: FloatArray  # (nc, 6, nv) of the contact frames
    drift: FloatArray  # (nc, 6) [m/s², rad/s²] their classical acceleration at v̇ = 0
    # position, velocity: (nc, 3) [m, m/s] of the contact frames.
    position: FloatArray
    velocity: FloatArray


class Forward(NamedTuple):
    """Solution of the equations of motion: v̇ (nv,) and contact wrenches (nc, 6).

    Wrenches are about the contact frames' origins, in world axes.
    """

    acceleration: FloatArray
    wrenches: FloatArray


class ContactDynamics:
    """Dynamics of a floating robot in contact with exchangeable parameters.

    The width of the smoothed sign of dry friction [rad/s] is the description's, unless given.

    Raises
    ------
    ModelError
        If the robot is not floating, has no contacts, or has passive joints or loops.
    """

    def __init__(self, robot: Robot, sign_width: float | None = None) -> None:
        if not robot.floating:
            raise ModelError(f"robot '{robot.name}' needs a floating base to stand in contact")
        if robot.passive.any() or robot.linked:
            raise ModelError(
                f"robot '{robot.name}' has passive joints or loops, which dynamics in contact "
                "do not cover; lock these joints in its description"
            )
        self.robot = robot
        self.kinematics = ContactKinematics(robot)
        self.joint_names = robot.joint_names
        self.tree = OpenTree(robot, sign_width)
        self.set_parameters = self.tree.set_parameters

    def terms(
        self, q: FloatArray, v: FloatArray, sliding: FloatArray | None = None
    ) -> ContactTerms:
        """Return the equations of motion at a configuration (nq,) and velocities (nv,).

        q: base position [m], unit quaternion x, y, z, w, joints [rad]; v: base twist in the base
        frame [m/s, rad/s], joints [rad/s]. Friction sees the velocity `sliding` (nj,) [rad/s],
        by default that of `v`.
        """
        bias = self.tree.bias(q, v, sliding)
        M = self.tree.inertia(q)
        geometry = self.kinematics.evaluate(q[None])
        jacobian = geometry.jacobian[0]
        velocity = jacobian[:, :3] @ v
        drift = self.kinematics.accelerations(q[None], v[None], np.zeros((1, len(v))))[0]
        return ContactTerms(M, bias, jacobian, drift, geometry.position[0], velocity)

    def constraint(self, terms: ContactTerms, active: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return Jacobian (k, nv) and drift (k,) of what the active contacts (nc,) hold fast."""
        J = self.kinematics.constraint_rows(terms.jacobian[None], active)[0]
        drift = self.kinematics.constraint_rows(terms.drift[None, :, :, None], active)[0, :, 0]
        return J, drift

    def forward(
        self,
        terms: ContactTerms,
        effort: FloatArray,
        active: BoolArray,
        acceleration: FloatArray | None = None,
    ) -> Forward:
        """Return the motion under joint torques (nj,) [N·m], the active contacts (nc,) held fast.

        Their constrained directions have an acceleration (k,) [m/s², rad/s²], by default zero.
        """
        J, drift = self.constraint(terms, active)
        force = -terms.bias
        force[BASE:] += effort
        free = np.linalg.solve(terms.inertia, np.column_stack([force, J.T]))
        if not len(J):
            return Forward(free[:, 0], np.zeros((len(active), 6)))
        wanted = -drift if acceleration is None else acceleration - drift
        # least squares: a stretched leg makes some contact forces indeterminate
        gap = wanted - J @ free[:, 0]
        multipliers = np.asarray(
            np.linalg.lstsq(J @ free[:, 1:], gap, rcond=1e-10)[0], dtype=np.float64
        )
        wrenches = self.kinematics.wrenches(multipliers, active)
        return Forward(free[:, 0] + free[:, 1:] @ multipliers, wrenches)
