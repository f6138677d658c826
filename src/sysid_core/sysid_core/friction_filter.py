# SPDX-License-Identifier: Apache-2.0
"""What the low-pass that torques go through makes of friction's columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.friction import FRICTION, FrictionTerm, JointMotion, smooth_sign
from sysid_core.dynamics.rows import Regression, RowBlock
from sysid_core.friction_way import Slide, filtered_deflections
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.signals.filters import low_pass, neighbourhood, support
from sysid_core.signals.prepare import PrepareReport

__all__ = [
    "LiveFriction",
    "filter_friction",
    "filtered_column",
    "joint_motion",
    "nearby",
    "sign_factor",
]

_ZERO = 1e-9
_STRAIGHT = 3.0
"""Scales of a term beyond which it hardly bends with the speed [-]."""

_FINE = 0.5
"""Share of a scale by which the velocity may change between two places that stand for it [-]."""

_FINEST = 16
"""Times that places may be finer than usual: a bump that needs more counts for little [-]."""


class Nearby(NamedTuple):
    """Velocities around some samples, and how the low-pass weighs them."""

    velocity: FloatArray  # (k, m) [rad/s]
    weights: FloatArray  # (k,) [-]


def sign_factor(robot: Robot, samples: Samples, report: PrepareReport) -> FloatArray:
    """Return what the low-pass does to the sign of every velocity, as a factor on the sign.

    A low-pass rounds off the step of a torque at a change of direction. Compared with an
    unfiltered sign, that looks like an error of the torque; filtering both sides of the regression
    alike takes it away (the parallel filtering of Gautier 1997).
    """
    speed, change = _speeds(robot, samples)
    factor = np.ones_like(speed)
    measured = np.isfinite(speed).all(axis=0)
    step = np.diff(samples.time)
    even = len(step) > 0 and np.ptp(step) < 0.5 / report.rate
    if not (even and measured.any()):
        return factor
    # torques at the ends rest on signs beyond them: there, velocities go on as they change
    beyond = np.arange(1, support(report.rate, report.cutoff) - 1)[:, np.newaxis] / report.rate
    speed = _continued(speed[:, measured], change[:, measured], beyond)
    sign = smooth_sign(speed, robot.description.coulomb_velocity)
    smooth = low_pass(sign, report.rate, report.cutoff)
    sign = sign[len(beyond) : len(beyond) + len(samples)]
    certain = np.abs(sign) > _ZERO
    factor[:, measured] = np.where(certain, smooth / np.where(certain, sign, 1.0), 1.0)
    return factor


def _continued(velocity: FloatArray, acceleration: FloatArray, beyond: FloatArray) -> FloatArray:
    """Return velocities (n, ...) with both ends going on as they change, for times `beyond`."""
    before = velocity[0] - beyond[::-1] * acceleration[0]
    return np.concatenate([before, velocity, velocity[-1] + beyond * acceleration[-1]])


def joint_motion(
    robot: Robot, samples: Samples, factor: FloatArray, rows: IndexArray, j: int
) -> JointMotion:
    """Return the motion (m,) of joint j at some samples; its sign has passed the filter.

    `factor` (n, nj + nc) is what `sign_factor` says of all samples.
    """
    velocity = samples.velocity[rows, j]
    return JointMotion(
        samples.position[rows, j],
        velocity,
        samples.acceleration[rows, j],
        smooth_sign(velocity, robot.description.coulomb_velocity) * factor[rows, j],
    )


def filter_friction(
    regression: Regression,
    blocks: tuple[RowBlock, ...],
    samples: Samples,
    factor: FloatArray,
    report: PrepareReport,
) -> None:
    """Let the columns of friction pass the filter that torques went through."""
    _filter_dry(blocks, _dry(regression), factor)
    robot = regression.robot
    for term, scales, places in _bent(regression):
        for j, place in places:
            rows, scale = blocks[j].sample, float(scales[j])
            if term.scale_unit == "rad":
                slid = filtered_deflections(samples, j, report, np.array([scale]))
                blocks[j].matrix[:, place] = slid[rows, 0]
                continue
            motion = joint_motion(robot, samples, factor, rows, j)._replace(scale=scale)
            near = nearby(samples, rows, j, report, scale)
            blocks[j].matrix[:, place] = filtered_column(term, motion, near)


class LiveFriction:
    """Does what `filter_friction` does while nobody knows how the motion goes on.

    Velocities change on as they do at each sample, before and after it: so does a motion in its
    band, a tenth of the cut-off, within the filter's reach.
    """

    def __init__(self, regression: Regression) -> None:
        self._robot = regression.robot
        self._dry, bent = _dry(regression), tuple(_bent(regression))
        self._bent = [each for each in bent if each[0].scale_unit == "rad/s"]
        self._slides = [(Slide(scales), p) for term, scales, p in bent if term.scale_unit == "rad"]

    def filter(
        self, blocks: tuple[RowBlock, ...], samples: Samples, rate: float, cutoff: float
    ) -> None:
        """Let the columns of friction pass the filter of some rate and cut-off [Hz]."""
        joints, width = len(self._robot.joint_names), self._robot.description.coulomb_velocity
        speed, change = _speeds(self._robot, samples)
        time, weights = neighbourhood(rate, cutoff)
        near = speed + time[:, None, None] * change
        sign, near_sign = smooth_sign(speed, width), smooth_sign(near, width)
        certain = np.abs(sign) > _ZERO  # not where a joint is not measured
        mean = np.tensordot(weights, near_sign, 1)
        factor = np.where(certain, mean / np.where(certain, sign, 1.0), 1.0)
        _filter_dry(blocks, self._dry, factor)
        near, near_sign = near[..., :joints], near_sign[..., :joints]
        motion = JointMotion(samples.position, near, samples.acceleration, near_sign)
        for term, scales, places in self._bent:
            if term.column is None:
                continue
            bent = motion._replace(scale=np.where(scales > 0.0, scales, 1.0))
            columns = np.tensordot(weights, term.column(bent), 1)
            for j, place in places:
                blocks[j].matrix[:, place] = columns[blocks[j].sample, j]
        for slide, places in self._slides:
            columns = slide.go_on(samples, rate, time, weights)
            for j, place in places:
                blocks[j].matrix[:, place] = columns[blocks[j].sample, j]


def _speeds(robot: Robot, samples: Samples) -> tuple[FloatArray, FloatArray]:
    """Return velocities and accelerations (n, nj + nc) of joints, then of coupled motors."""
    speed, change = samples.velocity, samples.acceleration
    if robot.couplings:
        directions = np.array([coupling.direction for coupling in robot.couplings])
        speed, change = (np.hstack([x, x @ directions.T]) for x in (speed, change))
    return speed, change


class _Dry(NamedTuple):
    """Base parameters of a group's rows that follow a sign, and whose sign that is."""

    column: IndexArray  # (k,)
    source: IndexArray  # (k,) joints, then coupled motors


def _dry(regression: Regression) -> list[_Dry]:
    """Return what each group's rows have of dry friction."""
    place, source = regression.layout.dry.T
    column = regression.base.places(place)
    groups = range(len(regression.groups))
    filled = [np.flatnonzero(np.isin(column, regression.supports[g])) for g in groups]
    return [_Dry(column[some], source[some]) for some in filled]


def _filter_dry(blocks: tuple[RowBlock, ...], groups: Sequence[_Dry], factor: FloatArray) -> None:
    """Put factors (n, nj + nc) on the columns that follow a sign."""
    for block, (column, source) in zip(blocks, groups, strict=True):
        block.matrix[:, column] *= factor[block.sample[:, None], source]


_Bent = tuple[FrictionTerm, FloatArray, list[tuple[int, int]]]


def _bent(regression: Regression) -> Iterator[_Bent]:
    """Yield terms that bend at some speed, their scales (nj,), and joints that have them.

    With each joint comes its column among the base parameters.
    """
    robot, layout = regression.robot, regression.layout
    if not (regression.per_joint and robot.is_tree):
        return
    for term, scales in zip(FRICTION, robot.friction_scales, strict=True):
        if term.scale_unit == "-":
            continue
        joints = np.flatnonzero(scales)
        columns = regression.base.places(layout.term(term.name).start + joints)
        places = [(int(j), int(c)) for j, c in zip(joints, columns, strict=True) if c >= 0]
        if places:
            yield term, scales, places


def nearby(
    samples: Samples, rows: IndexArray, j: int, report: PrepareReport, scale: float
) -> Nearby:
    """Return how joint j moved around some samples, fine enough for a term of that scale.

    Between samples it is the cubic that their velocities and accelerations give; beyond the ends
    of a stretch it goes on as it changes.
    """
    speed, change = samples.velocity[:, j], samples.acceleration[:, j]
    step = np.diff(samples.time)
    period = float(np.median(step)) if len(step) else 1.0
    broken = 1 + np.flatnonzero(np.abs(step - period) > 0.5 * period)
    fastest = float(np.abs(change[rows]).max(initial=0.0))
    apart = np.diff(neighbourhood(report.rate, report.cutoff)[0])[0]
    finer = int(np.clip(np.ceil(fastest * apart / (_FINE * scale)), 1, _FINEST))
    time, weights = neighbourhood(report.rate, report.cutoff, finer)
    shift, part = np.divmod(time / period, 1.0)
    beyond = int(np.ceil(time[-1] / period)) + 1
    along: FloatArray = period * np.arange(1.0, beyond + 1.0)
    near = np.empty((len(time), len(speed)))
    f, left = part, 1.0 - part
    here = np.column_stack([(1.0 + 2.0 * f) * left**2, f * left**2])
    after = np.column_stack([(3.0 - 2.0 * f) * f**2, -left * f**2])
    for first, last in itertools.pairwise([0, *broken, len(speed)]):
        v = _continued(speed[first:last], change[first:last], along)
        a = period * np.pad(change[first:last], beyond, mode="edge")
        both = np.stack([v, a])
        for start in np.unique(shift):
            k, place = shift == start, beyond + int(start)
            now, then = (both[:, place + i : place + i + last - first] for i in (0, 1))
            near[k, first:last] = here[k] @ now + after[k] @ then
    return Nearby(near if len(rows) == len(speed) else near[:, rows], weights)  # rows ascend


def filtered_column(term: FrictionTerm, motion: JointMotion, near: Nearby) -> FloatArray:
    """Return a term's column (m,) behind the low-pass that its torques went through.

    Where a term bends with the speed, it is averaged over the filter's neighbourhood. All but the
    step of its sign is smooth there, so that some places stand for all.

    Parameters
    ----------
    motion : JointMotion
        As of `joint_motion`.
    near : Nearby
        Of the same samples.
    """
    if term.column is None:
        return np.ones_like(motion.velocity)
    column = term.column(motion)
    if term.scale_unit == "-":
        return column
    bent = np.abs(near.velocity).min(axis=0) < _STRAIGHT * motion.scale
    velocity = near.velocity[:, bent]
    sign = np.sign(velocity)
    there = term.column(motion._replace(velocity=velocity, sign=sign))
    column[bent] = near.weights @ (there - sign * term.dry) + motion.sign[bent] * term.dry
    return column
