# SPDX-License-Identifier: Apache-2.0
"""Friction terms that a joint's motion could show."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.batch import Batch
from sysid_core.dynamics.friction import FRICTION, FrictionTerm, JointMotion
from sysid_core.signals.filters import rise_time
from sysid_core.signals.prepare import PrepareReport

__all__ = ["APART", "Candidate", "bending_terms", "presliding_terms"]

_SPEEDS = tuple(0.02 * 2.0 ** (k / 4.0) for k in range(17))
"""Where friction may bend, as shares of a joint's top speed: halfway, errors change by 0.2 %."""
_DISTANCES = tuple(2e-4 * 2.0**k for k in range(10))
"""Distances over which friction may change sign, as shares of a joint's range of motion: halfway,
errors change by 1 %. Over more it would be a spring."""
APART = 4
"""Places between bends that are tried at first: halfway, errors change by 3 %."""


class Candidate(NamedTuple):
    """A term with its scale, its place among the term's scales, and its column of a joint."""

    term: FrictionTerm
    scale: float
    place: int
    column: int


def bending_terms(
    motion: JointMotion, report: PrepareReport
) -> list[tuple[FrictionTerm, float, int]]:
    """Return the terms that may be chosen whatever the way, with scales and places of these.

    Interpolation draws a step of the torque out over two periods of the sensors: friction that
    bends within less looks alike, and is not offered. The low-pass draws it out over its rise
    time: a sigmoid that bends within that would take the place of Coulomb friction, and of a
    Stribeck term that comes and goes within it only the mean is seen.
    """
    speed, change = np.abs(motion.velocity), np.abs(motion.acceleration)
    places = (speed.max(initial=0.0) * np.array(_SPEEDS)).tolist()
    interpolated, filtered = _drawn_out(report)

    def bends(shortest: float) -> list[tuple[float, int]]:
        return [
            (scale, place)
            for place, scale in enumerate(places)
            if shortest * change[speed <= scale].sum() < scale * (speed <= scale).sum()
        ]

    smooth = bends(max(interpolated, filtered))
    stepped = bends(max(interpolated, 0.5 * filtered))  # it comes and goes at twice the scale
    return [
        (term, scale, place)
        for term in FRICTION
        if term.chosen and term.scale_unit != "rad"
        for scale, place in (
            ((1.0, 0),) if term.scale_unit == "-" else stepped if term.dry else smooth
        )
    ]


def _drawn_out(report: PrepareReport) -> tuple[float, float]:
    """Return times [s] over which interpolation and the low-pass draw a step of the torque out."""
    return 2.0 / report.sensor_rate, rise_time(report.cutoff)


def presliding_terms(batch: Batch, j: int) -> list[tuple[FrictionTerm, float, int]]:
    """Return the terms that joint j may get which change over a distance, likewise.

    After a usual turn the joint takes longer for it than a step is drawn out by both sides of.
    """
    samples, interpolated, filtered = batch.samples, *_drawn_out(batch.report)
    velocity = samples.velocity[:, j]
    turns = np.flatnonzero(velocity[1:] * velocity[:-1] < 0.0)
    if not len(turns):
        return []
    change = float(np.median(np.abs(samples.acceleration[turns, j])))
    least = 0.5 * change * max(interpolated, 0.5 * filtered) ** 2
    span = float(np.ptp(samples.position[:, j]))
    return [
        (term, share * span, APART * k)
        for term in FRICTION
        if term.chosen and term.scale_unit == "rad"
        for k, share in enumerate(_DISTANCES)
        if share * span > least
    ]
