# SPDX-License-Identifier: Apache-2.0
"""From a whole recording to regression rows whose two sides went through the same filter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.contacts import condition_contacts
from sysid_core.dynamics.rows import Regression, RowBlock, Rows
from sysid_core.dynamics.tree import coulomb_sign
from sysid_core.recording import Recording, Samples
from sysid_core.robot.imu import described_cutoff
from sysid_core.robot.interpretation import interpret
from sysid_core.robot.model import Robot
from sysid_core.signals import PrepareReport, SignalConfig, prepare
from sysid_core.signals.filters import low_pass

__all__ = ["Batch", "Progress", "batch_of", "moving_rows", "rows_of", "select_rows"]

Progress = Callable[[str, float], None]
"""Called with the name of the running stage and its finished share, 0 to 1."""

_CHUNK = 500
_ZERO = 1e-9


@dataclass(frozen=True)
class Batch:
    """Samples of a recording, thinned out, and how the filter changed their friction.

    Attributes
    ----------
    samples : Samples
    coulomb : (n, nj + nc) [-]
        Factor from the sign of each joint's, then each coupled motor's velocity to that sign
        after the filter that torques went through.
    report : PrepareReport
    """

    samples: Samples
    coulomb: FloatArray
    report: PrepareReport

    def __len__(self) -> int:
        return len(self.samples)

    def before(self, count: int) -> Batch:
        """Return the first samples."""
        first = slice(0, count)
        return replace(self, samples=self.samples.select(first), coulomb=self.coulomb[first])


def batch_of(
    robot: Robot, recording: Recording, options: SignalConfig, *, lenient: bool = False
) -> Batch:
    """Interpret a recording as a robot's and turn it into samples.

    The description's `signals` apply where `options` leave the choice open.

    Raises
    ------
    DataError
        If the recording is not usable.
    """
    interpreted = interpret(robot, recording, lenient=lenient)
    if options.cutoff is None:
        inertial = interpreted.imu is not None and options.inertial
        options = replace(options, cutoff=described_cutoff(robot, inertial=inertial))
    prepared = prepare(interpreted, replace(options, oversampling=None))
    report = prepared.report
    step = 1
    if options.oversampling is not None:
        step = max(1, int(report.rate / (options.oversampling * report.cutoff)))
    thin = slice(None, None, step)
    factors = [
        _coulomb_factor(robot, segment, report, options.order)[thin]
        for segment in prepared.segments
    ]
    thinned = [segment.select(thin) for segment in prepared.segments]
    segments, keep, findings = _conditioned(robot, thinned)
    samples, factor = Samples.concatenate(segments), np.concatenate(factors)
    warnings = (*report.warnings, *dict.fromkeys(findings))
    report = replace(report, output_rate=report.rate / step, warnings=warnings)
    return Batch(samples.select(keep), factor[keep], report)


def _conditioned(
    robot: Robot, segments: list[Samples]
) -> tuple[list[Samples], BoolArray, list[str]]:
    """Complete a legged robot's contacts; return which samples are fit, and what was noticed.

    Others pass as they are.
    """
    with_base = all(segment.base_pose is not None for segment in segments)
    if not (robot.floating and robot.description.contacts and with_base):
        return segments, np.ones(sum(map(len, segments)), dtype=np.bool_), []
    parts = [condition_contacts(robot, segment) for segment in segments]
    keep = np.concatenate([part.keep for part in parts])
    return [p.samples for p in parts], keep, [text for p in parts for text in p.warnings]


def _coulomb_factor(
    robot: Robot, samples: Samples, report: PrepareReport, order: int
) -> FloatArray:
    """Return what the low-pass does to the sign of every velocity, as a factor on the sign.

    A low-pass rounds off the step of a torque at a change of direction. Compared with an
    unfiltered sign, that looks like an error of the torque; filtering both sides of the regression
    alike takes it away (the parallel filtering of Gautier 1997).
    """
    speed = samples.velocity
    if robot.couplings:
        directions = np.array([coupling.direction for coupling in robot.couplings])
        speed = np.hstack([speed, speed @ directions.T])
    factor = np.ones_like(speed)
    measured = np.isfinite(speed).all(axis=0)
    step = np.diff(samples.time)
    even = len(step) > 0 and np.ptp(step) < 0.5 / report.rate
    if not (even and measured.any()):
        return factor
    sign = coulomb_sign(speed[:, measured], robot.description.coulomb_velocity)
    smooth = low_pass(sign, report.rate, report.cutoff, order=order)
    certain = np.abs(sign) > _ZERO
    factor[:, measured] = np.where(certain, smooth / np.where(certain, sign, 1.0), 1.0)
    return factor


def _quiet(stage: str, share: float) -> None:
    """Report no progress."""


def _chunks(count: int) -> Iterator[slice]:
    for start in range(0, count, _CHUNK):
        yield slice(start, min(start + _CHUNK, count))


def rows_of(regression: Regression, batch: Batch, progress: Progress = _quiet) -> Rows:
    """Return the rows of a batch, in pieces that let progress be shown."""
    parts: list[tuple[RowBlock, ...]] = []
    for piece in _chunks(len(batch)):
        progress("regression", piece.start / len(batch))
        blocks = regression.rows(batch.samples.select(piece)).blocks
        parts.append(tuple(b._replace(sample=b.sample + piece.start) for b in blocks))
    progress("regression", 1.0)
    rows = Rows(
        tuple(
            RowBlock(*(np.concatenate(columns) for columns in zip(*group, strict=True)))
            for group in zip(*parts, strict=True)
        )
    )
    return _filtered_friction(regression, rows, batch.coulomb)


def _filtered_friction(regression: Regression, rows: Rows, factor: FloatArray) -> Rows:
    layout = regression.layout
    places = [
        place
        for term in (layout.term("coulomb"), layout.coupling_term("coulomb"))
        for place in range(term.start, term.stop)
    ]
    for source, place in enumerate(places):
        column = np.flatnonzero(regression.base.columns == place)
        for block in rows.blocks:
            block.matrix[:, column] *= factor[block.sample, source, None]
    return rows


def select_rows(rows: Rows, keep: Callable[[int, RowBlock], BoolArray]) -> Rows:
    """Return the rows for which ``keep(group, block)`` is true."""
    return Rows(
        tuple(block.select(np.flatnonzero(keep(g, block))) for g, block in enumerate(rows.blocks))
    )


def moving_rows(robot: Robot, rows: Rows, samples: Samples, still: float) -> Rows:
    """Leave out rows of joints that hardly move, whose friction has no certain sign.

    Groups that stand for no single joint keep all their rows.

    Parameters
    ----------
    still : float [-]
        Share of a joint's top speed below which it hardly moves.
    """
    actuated = np.flatnonzero(robot.actuated)
    if len(rows.blocks) != len(actuated) or still == 0.0:
        return rows
    speed = np.abs(samples.velocity[:, actuated])
    slow = speed < still * speed.max(axis=0)
    return select_rows(rows, lambda g, block: ~slow[block.sample, g])
