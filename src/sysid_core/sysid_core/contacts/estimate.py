# SPDX-License-Identifier: Apache-2.0
"""Contact forces and flags from joint torques, for robots that measure neither."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.contact_kinematics import BASE, ContactKinematics
from sysid_core.errors import ParameterError
from sysid_core.robot.model import Robot

__all__ = ["LOAD_OFF", "contact_forces", "contact_loads", "hysteresis", "loaded_contacts"]

_DAMPING = 1e-4
"""Of the force estimate, relative to a leg's mean squared Jacobian: bounds stretched legs."""
_LOAD_ON, LOAD_OFF = 0.3, 0.15
"""Shares of the mean load at rest (weight over number of contacts) from which a contact counts as
loaded, and until below which it does. Between the two a foot that swung may stand lightly.

Between swing legs, whose estimated load is an error of the leg's model, and stance lies a wide
gap: 0.04 to 0.4 on a trotting Solo12 whose prior is 30 % off.
"""


def contact_forces(
    kinematics: ContactKinematics, jacobian: FloatArray, missing: FloatArray
) -> FloatArray:
    """Estimate the force (n, nc, 3) [N] on the robot at every contact, in world axes.

    Damped least squares of ``J_jᵀ f = (Y x)_j − τ``, the torques (n, nj) [N·m] that are `missing`
    for the motion, with the contacts' Jacobians (n, nc, 6, nv). A leg's own joints see its foot's
    force and the leg's inertia, but not the trunk's: the estimate hardly depends on how well the
    heavy trunk is known.
    """
    active = np.ones(len(kinematics.names), dtype=bool)
    first = np.cumsum([0, *np.where(kinematics.flat, 6, 3)[:-1]])
    J = kinematics.constraint_rows(jacobian, active)[:, :, BASE:]
    gram = J @ np.swapaxes(J, 1, 2)
    diagonal = np.arange(gram.shape[1])
    mean = np.trace(gram, axis1=1, axis2=2) / len(diagonal)
    gram[:, diagonal, diagonal] += _DAMPING * mean[:, None]
    solved = np.linalg.solve(gram, J @ missing[:, :, None])[:, :, 0]
    return np.asarray(solved[:, first[:, None] + np.arange(3)])


def hysteresis(values: FloatArray, on: float, off: float) -> BoolArray:
    """Switch on (n, nc) where values (n, nc) reach `on`, off where they fall below `off`.

    Between the thresholds, and where a value is NaN, the last state holds; at the start the
    state is on above the middle of the thresholds.
    """
    decided = np.where(values >= on, 1, np.where(values < off, 0, -1))
    if len(values):
        first = values[0] >= 0.5 * (on + off)
        decided[0] = np.where(decided[0] < 0, first, decided[0])
    last = np.where(decided >= 0, np.arange(len(values))[:, None], 0)
    last = np.maximum.accumulate(last, axis=0)
    return np.take_along_axis(decided, last, axis=0).astype(bool)


def contact_loads(robot: Robot, forces: FloatArray) -> FloatArray:
    """Return what contacts carry by their forces, (n, nc) [-] of their mean load at rest.

    Raises
    ------
    ParameterError
        If the robot has no weight: there is no scale to compare forces with.
    """
    gravity = np.array(robot.description.gravity)
    size = float(np.linalg.norm(gravity))
    weight = size * float(robot.consistent_nominal[robot.layout.masses].sum())
    if weight <= 0.0:
        raise ParameterError(
            "contacts cannot be estimated from torque without gravity; give flags"
        )
    return np.asarray(forces @ (-gravity / size) * (forces.shape[1] / weight))


def loaded_contacts(robot: Robot, forces: FloatArray) -> BoolArray:
    """Return which contacts (n, nc) carry load; see `contact_loads`."""
    return hysteresis(contact_loads(robot, forces), _LOAD_ON, LOAD_OFF)
