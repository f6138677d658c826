# SPDX-License-Identifier: Apache-2.0
"""Finds positions of a recording that leap as no joint moves: a lost encoder, or another zero."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.recording import Recording
from sysid_core.robot.model import Robot
from sysid_core.signals.outliers import HALF_WINDOW, hampel, unwrapped, without_spoiled

__all__ = ["without_leaps"]

_FAST = 1.5  # Times its speed limit that a joint that leaps moves at [-]
_APART = 5.0
"""Times every other step that a leap is long [-]: a motion has many that are nearly its longest,
whatever repeats or holds its values."""
_MOST = 20  # Leaps of a joint; more of them are how its values come
_BRIEF = 2.0  # [s] after which a joint that leapt and leaps back had another zero
_BACK = 0.2  # Share of a leap that is left when it has leapt back [-]


def without_leaps(
    robot: Robot, recording: Recording, began: float | None = None
) -> tuple[Recording, tuple[str, ...]]:
    """Return a recording without the rows between a leap and the one back, and what to say.

    Where a joint does not leap back, one of both sides has another zero: nobody knows which. Of a
    part, `began` [s] is when the whole recording did.
    """
    time, limits = recording.time, _FAST * robot.limits.velocity
    if len(time) <= 2 * HALF_WINDOW:
        return recording, ()
    steps = np.diff(time)
    steps = np.maximum(steps, np.median(steps))[:, None]
    position = unwrapped(recording.position)[0]
    with np.errstate(invalid="ignore", over="ignore"):
        fast = (np.abs(np.diff(position, axis=0)) > limits * steps).any(axis=0)
    keep = np.ones(len(time), dtype=np.bool_)
    said = []
    for j in np.flatnonzero(fast).tolist():
        values = hampel(without_spoiled(position[:, [j]])).values[:, 0]
        leaps = _leaps(values, limits[j] * steps[:, 0])
        left = dict(zip(leaps.tolist(), np.diff(values)[leaps].tolist(), strict=True))
        out = 0
        for first, last in pairwise(leaps.tolist()):
            if first not in left or time[last] - time[first] >= _BRIEF:
                continue
            if abs(left[first] + left[last]) < _BACK * abs(left[first]):
                keep[first + 1 : last + 1] = False
                out += last - first
                del left[first], left[last]
        name = robot.joint_names[j]
        if out:
            message = f"its position leapt away and back: {out} rows are left out"
            hint = "see whether its encoder or the messages of its drive were lost"
            said.append(str(Diagnostic("leap", message, subject=name, hint=hint)))
        for k, by in left.items():
            at = time[k] - (time[0] if began is None else began)
            message = f"its position leaps by {by:.2g} rad at {at:.1f} s, faster than it can move"
            hint = "if its zero is another then, leave one side out by --without START:END"
            said.append(str(Diagnostic("leap", message, subject=name, hint=hint)))
    return (recording if keep.all() else recording.select(keep)), tuple(said)


def _leaps(values: FloatArray, limits: FloatArray) -> IndexArray:
    """Return after which of positions (n,) come leaps: steps beyond limits (n - 1,) [rad]."""
    steps = np.nan_to_num(np.abs(np.diff(values)))
    order = np.argsort(-steps)[: _MOST + 1]
    longest = steps[order]
    apart = np.flatnonzero(longest[:-1] > _APART * longest[1:])
    if not len(apart):
        return np.zeros(0, dtype=np.intp)
    found = np.sort(order[: apart[-1] + 1])
    return found if (steps[found] > limits[found]).all() else found[:0]
