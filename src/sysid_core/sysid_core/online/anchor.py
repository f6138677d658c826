# SPDX-License-Identifier: Apache-2.0
"""The nominal model's torques on a wide motion, which hold what the data leave open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sysid_core.dynamics.open_tree import random_states
from sysid_core.dynamics.rows import Regression
from sysid_core.dynamics.statistics import Statistics
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot

__all__ = ["wide_motion"]

_STATES = 200
"""Random states that stand for a wide motion: several times the number of base parameters of an
arm; the mean over more of them differs by a few percent."""

_WEIGHT = 0.1
"""Weight of the motion as a share of one independent sample: ten times as much costs accuracy
where data are rich, a tenth leaves small motions to the prior, which knows no torques [-]."""

_SPEED = 0.3
"""Root mean square speed of a wide motion, as a share of the limit [-]."""

_RATE = 3.0
"""Acceleration per speed of such a motion: half a turn per second [rad/s]."""

_USUAL_SPEED = 1.0
"""Speed limit where none is known [rad/s]."""


def wide_motion(robot: Robot, regression: Regression) -> Statistics:
    """Return statistics of a motion through the robot's range, without torques, as a faint sample.

    Let the identified model minimise its error on the data plus its distance from the nominal
    torques on this motion. Where the data determine the torques, they outweigh it; where they do
    not, nothing else pulls the model away. Among the models that explain the data it is then
    the projection of the nominal one, in the metric of the error on a wide motion, on a set that
    holds the true one: no farther from the truth than the nominal model is, whatever moved.
    """
    q, v, a = random_states(robot, _STATES)
    base = v.shape[1] - len(robot.joint_names)
    limit = robot.limits.velocity
    speed = _SPEED * np.where(np.isfinite(limit), limit, _USUAL_SPEED)
    joints = q[:, -len(speed) :].copy()
    joints[:, ~robot.actuated] = np.nan  # solved from the loops
    nothing = np.zeros_like(joints)
    samples = Samples(
        np.arange(_STATES, dtype=float),
        joints,
        v[:, base:] * speed,
        a[:, base:] * _RATE * speed,
        nothing,
    )
    if robot.floating:
        samples = replace(
            samples,
            base_pose=q[:, :7],
            base_twist=v[:, :base],
            base_acceleration=a[:, :base],
            contacts=np.ones((_STATES, len(robot.description.contacts)), dtype=bool),
        )
    rows = regression.rows(samples)
    used = len(np.unique(np.concatenate([block.sample for block in rows.blocks])))
    return Statistics.of(rows).scaled(_WEIGHT / max(used, 1))
