# SPDX-License-Identifier: Apache-2.0
"""Tells of recordings with parts of two kinds: with a load and without, or moved by a hand."""

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

__all__ = ["find_two_kinds"]

_WINDOW, _MOST = 1.0, 4000  # [s], and so many of them at most
_EACH = 20  # samples of a window that are looked at
_FEWEST = 16  # windows that tell of a cause
_TELLING = 0.1  # Share of the usual information from which a window does
_RARE = 0.1  # Share of the windows below which some of them are no kind: see `disturbances`
_MOST_OF_IT = 0.5  # Share of what is disturbed that the cause must be there in
_SEPARATE = 3.5
"""Distance of two kinds over the deviation within them: 2.7 where all values are as likely, and
3.7 or more where a load comes and goes. What friction leaves may be as far apart, but is small."""
_LED = 0.5, 1.5
"""What a hand takes of the inertial torque by the nominal inertias, at least and at most [-]."""
_LED_FRICTION = 0.5, 2.5
"""The same of the friction learned, which lies between that of the drives and what is left of it
where a hand leads. Motions whose speed changes, and friction that drifts, reach 0.25."""
_LED_SHARE = 0.2
"""Share of a joint's torque that either must be; of less, errors of the model tell more [-]."""
_NONE = 1e-4
"""Share of the largest torque's square below which a joint bears none [-]."""
_TINY = 1e-20  # [N²·m²] keeps what is exactly zero from dividing


class _Cause(NamedTuple):
    """What acts on the robot in some parts of a recording and not in others."""

    kind: str
    unit: FloatArray  # (m, nj) [N·m] torque that one of it takes from the drives
    amount: tuple[float, float]  # Of it that is believed, at least and at most
    share: float  # [-] of a joint's usual torque that it must be
    message: str  # With places for the amount and for when


def find_two_kinds(
    regression: Regression,
    parameters: FloatArray,
    gathered: Gathered,
    curves: Sequence[Curve],
    still: float,
    disturbed: Disturbed,
) -> Disturbed:
    """Return what is to be said of an arm that carries something or is led by a hand at times.

    A model between the two would be learned. How much of a cause explains what the model leaves
    is estimated in windows of a second; one that comes and goes leaves two kinds of them. Of arms
    only; `parameters` (p,) were learned, and the curves are those of all joints by them. What is
    said of what was `disturbed` is returned where there is no such cause, or where that is not
    there: a push bends the model, which then errs elsewhere as for a load.
    """
    robot = regression.robot
    if not regression.per_joint or robot.floating or robot.linked:
        return disturbed
    # the time of several recordings is that of each only in what is learned from
    count = gathered.split if len(gathered.names) > 1 else len(gathered.batch)
    left = _left(robot, gathered.batch.samples.select(slice(count)), curves, still)
    causes = [_load(robot, left.samples), _hand(robot, left.samples)]
    if len(gathered.names) == 1:  # which several would have of each its own
        causes.append(_little_friction(robot, parameters, left))
    found = [kinds for cause in causes if (kinds := _kinds(left, cause))]
    if not found:
        return disturbed
    there = max(found, key=lambda kinds: kinds.explained)
    if disturbed.said:
        window = np.searchsorted(left.edges, disturbed.samples, side="right") - 1
        if np.isin(window, there.windows).mean() < _MOST_OF_IT:
            return disturbed
    where, option = whereabouts(gathered, left.edges, there.windows)
    message = there.cause.message.format(amount=there.amount, where=where)
    said = Diagnostic(there.cause.kind, message, hint=f"leave that part out by {option}")
    return Disturbed((said,))


def _load(robot: Robot, samples: Samples) -> _Cause:
    """Return what a mass of 1 kg at the tool frame takes."""
    model, tool = robot.model.copy(), robot.frame(robot.tool_frame)
    for body in range(model.njoints):
        model.inertias[body] = pin.Inertia.Zero()
    one = pin.Inertia(1.0, np.zeros(3), np.zeros((3, 3)))
    model.appendBodyToJoint(tool.parentJoint, one, tool.placement)
    message = "the tool seems to carry {amount:.2g} kg or more in a part of the recording "
    message += "({where}) and not in the rest; what is learned lies between the two"
    return _Cause("load_changes", _torques(model, samples), (0.0, np.inf), MODEL_ERROR, message)


_LED_BY_HAND = "the robot seems to be led by hand{} in a part of the recording ({{where}}): its "
_LED_BY_HAND += "efforts lack {{amount:.0%}} of {} there; what is learned lies between the two"


def _hand(robot: Robot, samples: Samples) -> _Cause:
    """Return what accelerates the robot, which a hand spares the drives."""
    nominal = robot.with_parameters(robot.consistent_nominal)
    nominal.gravity.linear = np.zeros(3)
    message = _LED_BY_HAND.format("", "what accelerates it")
    return _Cause("led_by_hand", -_torques(nominal, samples), _LED, _LED_SHARE, message)


def _little_friction(robot: Robot, parameters: FloatArray, left: _Left) -> _Cause:
    """Return the friction learned, which a hand spares them as well."""
    rigid = _torques(robot.with_parameters(parameters), left.samples)
    unit = np.zeros_like(rigid)
    unit[:, left.joints] = rigid[:, left.joints] - left.predicted
    message = _LED_BY_HAND.format(", or its friction to change,", "the friction learned")
    return _Cause("led_by_hand", unit, _LED_FRICTION, _LED_SHARE, message)


def _torques(model: pin.Model, samples: Samples) -> FloatArray:
    data = model.createData()
    states = zip(samples.position, samples.velocity, samples.acceleration, strict=True)
    return np.array([pin.rnea(model, data, *state).copy() for state in states])


class _Left(NamedTuple):
    """What a model leaves of the torques at joints that move, and in which windows."""

    samples: Samples  # m of them
    joints: IndexArray  # (k,)
    # predicted, errors: (m, k) [N·m]; NaN without a row.
    predicted: FloatArray
    errors: FloatArray
    usual: FloatArray  # (k,) [N²·m²] mean square of the whole torque
    window: IndexArray  # (m,)
    edges: IndexArray  # First sample of each window among all, and the end of the last


def _left(robot: Robot, samples: Samples, curves: Sequence[Curve], still: float) -> _Left:
    time = samples.time - samples.time[0]
    width = max(_WINDOW, time[-1] / _MOST)
    chosen = np.arange(0, len(time), max(1, int(width / _EACH / np.median(np.diff(time)))))
    joints = np.array([robot.joint_names.index(curve.joint) for curve in curves], dtype=np.intp)
    both = np.full((2, len(time), len(curves)), np.nan)
    for j, curve in enumerate(curves):
        rows = np.searchsorted(samples.time, curve.time[curve.time <= samples.time[-1]])
        values = np.array([curve.identified, curve.measured - curve.identified])
        both[:, rows, j] = values[:, : len(rows)]
    moves = np.abs(samples.velocity) >= rest_speed(samples, still)
    both = np.where(moves[:, joints], both, np.nan)[:, chosen]
    seen = np.isfinite(both[1]).any(axis=0)
    joints, window = joints[seen], (time[chosen] / width).astype(int)
    predicted, errors = both[:, :, seen]
    usual = np.mean(samples.effort[:, joints] ** 2, axis=0)
    usual = np.maximum(usual, _NONE * usual.max(initial=_TINY))
    edges = np.searchsorted(time, width * np.arange(window[-1] + 2))
    return _Left(samples.select(chosen), joints, predicted, errors, usual, window, edges)


class _Kinds(NamedTuple):
    """The windows that a cause is there in, and how much more of it than in the others."""

    cause: _Cause
    windows: list[int]
    amount: float
    explained: float  # Of the errors' squares, each joint's by its mean


def _kinds(left: _Left, cause: _Cause) -> _Kinds | None:
    """Return where a cause is there; None where it does not come and go."""
    unit = np.nan_to_num(cause.unit[:, left.joints])
    weight = np.isfinite(left.errors) / np.maximum(np.nanmean(left.errors**2, axis=0), _TINY)
    information, moment = np.zeros((2, len(left.edges) - 1, len(left.joints)))
    np.add.at(information, left.window, weight * unit**2)
    np.add.at(moment, left.window, weight * unit * np.nan_to_num(left.errors))
    # what a single joint shows may be its friction
    several = np.count_nonzero(information, axis=1) > 1
    information, moment = information.sum(axis=1), moment.sum(axis=1)
    least = _TELLING * np.median(information[several]) if several.any() else np.inf
    tells = np.flatnonzero(several & (information > least))
    if len(tells) < _FEWEST:
        return None
    values = moment[tells] / information[tells]
    middle, gap, within = _split(values)
    there, (lowest, highest) = values > middle, cause.amount
    rare = min(there.mean(), 1.0 - there.mean()) < _RARE
    share = gap * np.sqrt(np.max(np.mean(unit**2, axis=0) / left.usual))
    if rare or gap <= _SEPARATE * within or share <= cause.share or not lowest < gap < highest:
        return None
    windows = set(tells[there].tolist())
    for (first, last), both in zip(pairwise(tells), there[:-1] & there[1:], strict=True):
        if both:  # windows that tell nothing are as those around them
            windows.update(range(first, last))
    return _Kinds(cause, sorted(windows), gap, float(moment[tells] @ values))


def _split(values: FloatArray) -> tuple[float, float, float]:
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
