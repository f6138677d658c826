# SPDX-License-Identifier: Apache-2.0
"""Tells of a tool that carries more in some parts of a recording than in others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from sysid_core.arrays import MAD_TO_STD, FloatArray, IndexArray
from sysid_core.batch import rest_speed
from sysid_core.diagnostics import Diagnostic
from sysid_core.disturbances import Disturbed, whereabouts
from sysid_core.dynamics.rows import Regression
from sysid_core.gathering import Gathered
from sysid_core.online.intake import MODEL_ERROR
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.scores import Curve

__all__ = ["find_changing_load"]

_WINDOW, _MOST = 1.0, 4000  # [s], and so many of them at most
_EACH = 20  # samples of a window that are looked at
_FEWEST = 16  # windows that tell of the load
_TELLING = 0.1  # Share of the usual information from which a window does
_RARE = 0.1  # Share of the windows below which some of them are no kind: see `disturbances`
_MOST_OF_IT = 0.5  # Share of what is disturbed that a load must be held in
_SEPARATE = 3.5
"""Distance of two kinds over the deviation within them: 2.7 where all masses are as likely, and
3.7 or more where a load comes and goes. What friction leaves may be as far apart, but is small."""
_TINY = 1e-20  # [N²·m²] keeps what is exactly zero from dividing


def find_changing_load(
    regression: Regression,
    gathered: Gathered,
    curves: Sequence[Curve],
    still: float,
    disturbed: Disturbed,
) -> tuple[Diagnostic, ...]:
    """Return what is to be said of a load at the tool that comes and goes, as in daily work.

    A model between the two would be learned. The mass at the tool frame that explains what the
    model leaves is estimated in windows of a second; a load that comes and goes leaves two kinds
    of them. Of arms only; the curves are those of all joints, by the model that was learned.
    What is said of what was `disturbed` is returned where there is no such load, or where that is
    not held there: a push bends the model, which then errs elsewhere as for a load.
    """
    robot = regression.robot
    if not regression.per_joint or robot.floating or robot.linked:
        return disturbed.said
    # the time of several recordings is that of each only in what is learned from
    count = gathered.split if len(gathered.names) > 1 else len(gathered.batch)
    samples = gathered.batch.samples.select(slice(count))
    masses = _masses(robot, samples, curves, still)
    if len(masses.mass) < _FEWEST:
        return disturbed.said
    middle, gap, within = _two_kinds(masses.mass)
    heavy = masses.mass > middle
    rare = min(heavy.mean(), 1.0 - heavy.mean()) < _RARE
    if rare or gap <= _SEPARATE * within or gap * masses.share <= MODEL_ERROR:
        return disturbed.said
    held = set(masses.window[heavy].tolist())
    for (first, last), both in zip(pairwise(masses.window), heavy[:-1] & heavy[1:], strict=True):
        if both:  # windows that tell nothing are as those around them
            held.update(range(first, last))
    edges = masses.edges
    if disturbed.said:
        window = np.searchsorted(edges, disturbed.samples, side="right") - 1
        if np.isin(window, list(held)).mean() < _MOST_OF_IT:
            return disturbed.said
    where, option = whereabouts(gathered, edges, sorted(held))
    message = f"the tool seems to carry {gap:.2g} kg or more in a part of the recording ({where})"
    message += " and not in the rest; what is learned lies between the two"
    return (Diagnostic("load_changes", message, hint=f"leave that part out by {option}"),)


class _Masses(NamedTuple):
    window: IndexArray  # (k,) windows that tell
    mass: FloatArray  # (k,) [kg] at the tool beyond the model's
    edges: IndexArray  # First sample of each window, and the end of the last
    share: float  # [1/kg] of a joint's usual torque that a mass at the tool makes, at most


def _masses(robot: Robot, samples: Samples, curves: Sequence[Curve], still: float) -> _Masses:
    """Return the mass at the tool that explains what a model leaves in each window that tells."""
    time = samples.time - samples.time[0]
    width = max(_WINDOW, time[-1] / _MOST)
    chosen = np.arange(0, len(time), max(1, int(width / _EACH / np.median(np.diff(time)))))
    joints = np.array([robot.joint_names.index(curve.joint) for curve in curves], dtype=np.intp)
    left = np.full((len(time), len(curves)), np.nan)
    for errors, curve in zip(left.T, curves, strict=True):
        rows = np.searchsorted(samples.time, curve.time[curve.time <= samples.time[-1]])
        errors[rows] = (curve.measured - curve.identified)[: len(rows)]
    moves = np.abs(samples.velocity) >= rest_speed(samples, still)
    left = np.where(moves[:, joints], left, np.nan)[chosen]
    seen = np.isfinite(left).any(axis=0)
    left, joints = left[:, seen], joints[seen]
    torque = _torque_of_one(robot, samples.select(chosen))[:, joints]
    usual = np.mean(samples.effort[:, joints] ** 2, axis=0)
    shares = np.mean(torque**2, axis=0) / np.maximum(usual, _TINY)
    weight = np.isfinite(left) / np.maximum(np.nanmean(left**2, axis=0), _TINY)
    window = (time[chosen] / width).astype(int)
    information, moment = np.zeros((2, window[-1] + 1, len(joints)))
    np.add.at(information, window, weight * torque**2)
    np.add.at(moment, window, weight * torque * np.nan_to_num(left))
    # what a single joint shows may be its friction
    several = np.count_nonzero(information, axis=1) > 1
    information, moment = information.sum(axis=1), moment.sum(axis=1)
    least = _TELLING * np.median(information[several]) if several.any() else np.inf
    tells = np.flatnonzero(several & (information > least))
    edges = np.searchsorted(time, width * np.arange(len(information) + 1))
    share = float(np.sqrt(shares.max(initial=0.0)))
    return _Masses(tells, moment[tells] / information[tells], edges, share)


def _torque_of_one(robot: Robot, samples: Samples) -> FloatArray:
    """Return the torque (n, nj) [N·m] that a mass of 1 kg at the tool frame needs."""
    model, tool = robot.model.copy(), robot.frame(robot.tool_frame)
    for body in range(model.njoints):
        model.inertias[body] = pin.Inertia.Zero()
    one = pin.Inertia(1.0, np.zeros(3), np.zeros((3, 3)))
    model.appendBodyToJoint(tool.parentJoint, one, tool.placement)
    data = model.createData()
    states = zip(samples.position, samples.velocity, samples.acceleration, strict=True)
    return np.array([pin.rnea(model, data, *state).copy() for state in states])


def _two_kinds(values: FloatArray) -> tuple[float, float, float]:
    """Split values where their squares about two means are least (Otsu 1979).

    Returns the middle between the kinds' medians, their distance, and the deviation within.
    """
    ordered = np.sort(values)
    below = np.arange(1, len(ordered))
    total = np.cumsum(ordered)
    means = total[:-1] / below, (total[-1] - total[:-1]) / (len(ordered) - below)
    apart = below * (len(ordered) - below) * (means[1] - means[0]) ** 2
    low, high = np.split(ordered, [int(np.argmax(apart)) + 1])
    centres = np.median(low), np.median(high)
    within = np.median(np.abs(np.concatenate([low - centres[0], high - centres[1]])))
    return float(np.mean(centres)), float(centres[1] - centres[0]), float(MAD_TO_STD * within)
