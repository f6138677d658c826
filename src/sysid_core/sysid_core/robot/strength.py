# SPDX-License-Identifier: Apache-2.0
"""How strong and fast a robot's motors are thought, where its description does not say."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.robot.limits import PLACEHOLDER_SPEED, Limits
from sysid_core.robot.model import Robot

__all__ = ["borne_mass", "moved_inertia", "torque_scale", "working_limits"]

_STATES = 64
_LIVELY = 10.0
"""Acceleration of a lively motion [rad/s²]."""
_WEAKEST = 0.15
"""Share of the strongest joint's torque that one without an effort limit has at least, as wrists
do: too much friction is unlearned sooner than too little [-]."""
_STRONGEST = 10.0
"""Factor of what a joint needs from which its effort limit is a placeholder [-]."""
_ASSUMED_EFFORT = 4.0
"""Factor of what a joint needs that it may give where no limit is known: of twenty arms' strongest
joints, eighteen have one to five times what they need, Digit's two thirteen times [-]."""
_WEIGHTLESS = 1e-6
"""Share of the largest torque of gravity below which a joint bears no weight [-]."""
_ASSUMED_SPEED = 2.0
"""Speed [rad/s] that a joint may have where no limit is known: nearly all can turn as fast."""


@lru_cache(maxsize=4)  # a recording's stretches and cut-offs all ask of the same robot
def _carried(robot: Robot) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return RMS torques of gravity and of standing [N·m], and mean inertia [kg·m²] (nj,) each.

    Who stands carries all of the robot on one foot at times.
    """
    model = robot.with_parameters(robot.consistent_nominal)
    data = model.createData()
    feet = robot.description.contacts if robot.floating else ()
    links = [model.getFrameId(foot.frame.link) for foot in feet]
    weight = pin.computeTotalMass(model) * float(np.linalg.norm(model.gravity.linear))
    gravity, inertia = np.zeros((2, model.nv))
    standing = np.zeros((len(feet), model.nv))
    drawn = np.random.default_rng(0)
    base = pin.neutral(model)[: model.nq - len(robot.joint_names)]
    for _ in range(_STATES):
        q = np.r_[base, drawn.uniform(*robot.sampling_range)]
        gravity += pin.computeGeneralizedGravity(model, data, q) ** 2 / _STATES
        inertia += np.diag(pin.crba(model, data, q)) / _STATES
        for torque, link in zip(standing, links, strict=True):
            lever = pin.computeFrameJacobian(model, data, q, link, pin.LOCAL_WORLD_ALIGNED)[2]
            torque += (weight * lever) ** 2 / _STATES
    first = model.nv - len(robot.joint_names)
    stands = standing.max(axis=0, initial=0.0)
    return np.sqrt(gravity)[first:], np.sqrt(stands)[first:], inertia[first:]


def moved_inertia(robot: Robot) -> FloatArray:
    """Return the mean inertia (nj,) [kg·m²] that each joint moves."""
    return _carried(robot)[2]


def borne_mass(robot: Robot) -> float:
    """Return the mass [kg] of the bodies that joints bear the weight of.

    A gantry's beams and the rail under an arm only ride along, as does all of a planar robot: its
    whole mass stands for none.
    """
    gravity, first = _carried(robot)[0], robot.model.njoints - len(robot.joint_names)
    bearing = gravity > _WEIGHTLESS * gravity.max()
    subtrees = zip(robot.model.subtrees[first:], bearing, strict=True)
    moved = {j for joints, bears in subtrees if bears for j in joints}
    borne = np.isin(robot.body_joint_ids, list(moved)) | robot.floating
    masses = robot.nominal[robot.layout.masses]
    return float(masses[borne].sum()) or float(masses.sum())


def _needed(robot: Robot) -> FloatArray:
    """Return the torque (nj,) [N·m] that each joint needs at least in a lively motion.

    A motor is as strong as those that it carries, and no weaker for a load that nothing weighs.
    """
    gravity, standing, inertia = _carried(robot)
    own = 2.0 * gravity + standing + _LIVELY * inertia
    first = robot.model.njoints - len(own)
    carried = [[j - first for j in subtree] for subtree in robot.model.subtrees[first:]]
    needed = np.array([own[joints].max() for joints in carried])
    return np.maximum(needed, _WEAKEST * needed.max())


def torque_scale(robot: Robot) -> FloatArray:
    """Return a usual torque (nj,) [N·m] per joint: its effort limit, else what it needs."""
    limit, needed = robot.limits.effort, _needed(robot)
    if not robot.floating and (limit < _carried(robot)[0]).any():
        return needed  # it cannot hold itself: its limits are placeholders
    # URDFs that mean "no limit" often say 1000 or more
    return np.where(limit <= _STRONGEST * needed, limit, needed)


def working_limits(robot: Robot) -> Limits:
    """Return the limits (na,) to drive the joints by: assumed where none is known or meant.

    Efforts that the description gives are meant, whatever they are. Of a URDF's, those far beyond
    what any joint needs are not: wrists often have larger motors than they need.
    """
    limits, needed = robot.limits, _needed(robot)
    given = np.isin(robot.joint_names, list(robot.description.limits.get("effort", {})))
    meant = (limits.effort <= _STRONGEST * needed.max()) | (given & np.isfinite(limits.effort))
    fast = limits.velocity < PLACEHOLDER_SPEED
    working = limits._replace(
        effort=np.where(meant, limits.effort, _ASSUMED_EFFORT * needed),
        velocity=np.where(fast, limits.velocity, _ASSUMED_SPEED * robot.travel),
    )
    return working.of_joints(robot.actuated)
