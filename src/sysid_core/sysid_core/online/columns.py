# SPDX-License-Identifier: Apache-2.0
"""Which of the published joints are a robot's, and what samples of it hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.recording import Recording, Samples
from sysid_core.robot.model import Robot

__all__ = ["columns_of", "no_samples", "values_of"]


def columns_of(robot: Robot, names: Sequence[str]) -> IndexArray | None:
    """Return which of the published joints are the robot's actuated ones (nm,), in its order.

    None where one is missing.
    """
    renamed = [robot.description.names.get(name, name) for name in names]
    wanted = [robot.joint_names[j] for j in np.flatnonzero(robot.actuated)]
    complete = set(wanted) <= set(renamed)
    return np.array([renamed.index(name) for name in wanted]) if complete else None


def values_of(robot: Robot, messages: Recording) -> FloatArray:
    """Return positions and efforts (n, 2 nm) of the robot's joints as published.

    NaN stands for efforts that are missing; without the joints there are no columns.
    """
    columns = columns_of(robot, messages.joint_names)
    if columns is None:
        return np.zeros((len(messages), 0))
    position, effort = messages.position, messages.effort
    effort = np.full_like(position, np.nan) if effort is None else effort
    return np.hstack([position[:, columns], effort[:, columns]])


def no_samples(robot: Robot) -> Samples:
    """Return samples of a robot with all that they hold, none of them."""
    none = np.zeros((0, len(robot.joint_names)))
    samples = Samples(np.zeros(0), none, none, none, none)
    if not robot.floating:
        return samples
    samples = replace(
        samples,
        base_pose=np.zeros((0, 7)),
        base_twist=np.zeros((0, 6)),
        base_acceleration=np.zeros((0, 6)),
    )
    count = len(robot.description.contacts)
    return replace(samples, contacts=np.zeros((0, count), dtype=bool)) if count else samples
