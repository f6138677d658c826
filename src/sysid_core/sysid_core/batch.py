# SPDX-License-Identifier: Apache-2.0
"""From a whole recording to regression rows whose two sides went through the same filter."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sysid_core.aligning import aligned_recording
from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.contacts.condition import condition_contacts
from sysid_core.contacts.noticed import NoticedLog
from sysid_core.diagnostics import as_lines
from sysid_core.dynamics.friction import FRICTION
from sysid_core.dynamics.rows import (
    LeftOut,
    Regression,
    RowBlock,
    Rows,
    moving_rows,
    uncut_rows,
)
from sysid_core.errors import DataError
from sysid_core.friction_filter import filter_friction, sign_factor
from sysid_core.recording import Recording, Samples
from sysid_core.robot.interpretation import STILL
from sysid_core.robot.model import Robot
from sysid_core.signals.align import Aligned
from sysid_core.signals.cutoff import CutoffChoice
from sysid_core.signals.filters import low_pass, rise_time, support
from sysid_core.signals.options import SignalConfig
from sysid_core.signals.prepare import PrepareReport, filter_aligned
from sysid_core.signals.timing import split_at_gaps

__all__ = [
    "GAP",
    "Batch",
    "Progress",
    "batch_at",
    "batch_of",
    "learning_rows",
    "low_passed",
    "near_rest",
    "quiet",
    "rest_speed",
    "rows_of",
    "scored_rows",
    "training_rows",
]

Progress = Callable[[str, float], None]
"""Called with the name of the running stage and its finished share, 0 to 1."""

_CHUNK = 500
GAP = 1.5
"""Periods beyond which two samples do not follow each other."""
_ROUNDING = 1e-6
"""Rates of a recording's parts that differ by less are thinned alike, and an effort that changes
by less is a constant [-]."""
_STICKS = 0.03
"""Share of the time at rest from which a joint sticks or waits: a sine is there for 0.6 % [-]."""
_FEW = 0.08
"""Most of a joint's rows that may be near to its rest and left out: slow ones tell dry friction
from viscous."""


@dataclass(frozen=True)
class Batch:
    """Samples of a recording, thinned out, and how the filter changed their friction."""

    samples: Samples
    sign_factor: FloatArray
    """(n, nj + nc) [-] factor from the sign of each joint's, then each coupled motor's velocity to
    that sign after the filter that torques went through."""
    report: PrepareReport
    carried: FloatArray | None = None
    """(n, p) parameters of a known load that the robot carries; None: none."""

    def __len__(self) -> int:
        return len(self.samples)

    def select(self, chosen: slice | BoolArray) -> Batch:
        """Return the samples that a slice or a mask (n,) picks."""
        return replace(
            self,
            samples=self.samples.select(chosen),
            sign_factor=self.sign_factor[chosen],
            carried=None if self.carried is None else self.carried[chosen],
        )

    def before(self, count: int) -> Batch:
        """Return the first samples."""
        return self.select(slice(0, count))

    @staticmethod
    def concatenate(parts: Sequence[Batch], report: PrepareReport) -> Batch:
        """Join batches of the same fields."""
        loads = [part.carried for part in parts if part.carried is not None]
        return Batch(
            Samples.concatenate([part.samples for part in parts]),
            np.concatenate([part.sign_factor for part in parts]),
            report,
            np.concatenate(loads) if loads else None,
        )


def batch_of(
    robot: Robot, recording: Recording, config: SignalConfig, *, lenient: bool = False
) -> Batch:
    """Turn a recording into samples, at the cut-off of `config` or of the motion's spectrum.

    Raises
    ------
    DataError
        If the recording is not usable.
    """
    aligned = aligned_recording(robot, recording, config, lenient=lenient)
    return batch_at(robot, aligned, aligned.choice, config.oversampling)


def batch_at(
    robot: Robot,
    aligned: Aligned,
    choice: CutoffChoice,
    oversampling: float | None,
    *,
    origin: float | None = None,
    measured: bool | None = None,
) -> Batch:
    """Filter an aligned recording at one cut-off.

    A sample at `origin` [s] is kept, or would be; None: the first of each stretch. `measured` as
    in `filter_aligned`.

    Raises
    ------
    DataError
        If no stretch is longer than the filter's edges.
    """
    prepared = filter_aligned(aligned, choice, measured=measured)
    report = prepared.report
    step = 1
    if oversampling is not None:
        step = max(1, int(report.rate / (oversampling * report.cutoff) * (1.0 + _ROUNDING)))
    factors: list[FloatArray] = []
    thinned: list[Samples] = []
    for segment in prepared.segments:
        first = 0
        if origin is not None:
            first = -round((segment.time[0] - origin) * report.rate) % step
        thin = slice(first, None, step)
        factors.append(sign_factor(robot, segment, report)[thin])
        thinned.append(segment.select(thin))
    segments, keep, findings = _conditioned(robot, thinned)
    samples, factor = Samples.concatenate(segments), np.concatenate(factors)
    warnings = (*report.warnings, *dict.fromkeys(findings))
    report = replace(report, output_rate=report.rate / step, warnings=warnings)
    if robot.floating and samples.cut_off is not None:  # where rows mix joints
        keep &= ~samples.cut_off.any(axis=1)
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
    log = NoticedLog()
    for part in parts:
        log.add(len(part.keep), part.noticed)
    return [part.samples for part in parts], keep, as_lines(log.take())


def quiet(stage: str, share: float) -> None:
    """Report no progress."""


def _chunks(count: int) -> Iterator[slice]:
    for start in range(0, count, _CHUNK):
        yield slice(start, min(start + _CHUNK, count))


def rows_of(
    regression: Regression,
    batch: Batch,
    progress: Progress = quiet,
    still_velocity: FloatArray | float = 0.0,
) -> Rows:
    """Return the rows of a batch, in pieces that let progress be shown.

    Raises
    ------
    DataError
        If a measured joint has gaps.
    """
    parts: list[tuple[RowBlock, ...]] = []
    pushed: list[tuple[FloatArray, ...]] = []
    left_out = LeftOut()
    for piece in _chunks(len(batch)):
        progress("regression", piece.start / len(batch))
        rows = regression.rows(batch.samples.select(piece), still_velocity)
        left_out += rows.left_out
        pushed.append(rows.carried)
        parts.append(tuple(b._replace(sample=b.sample + piece.start) for b in rows.blocks))
    progress("regression", 1.0)
    blocks = tuple(
        RowBlock(*(np.concatenate(columns) for columns in zip(*group, strict=True)))
        for group in zip(*parts, strict=True)
    )
    if not Rows(blocks).finite:
        raise DataError("the samples hold gaps in a measured joint")
    filter_friction(regression, blocks, batch.samples, batch.sign_factor, batch.report)
    torques = [np.concatenate(group) for group in zip(*pushed, strict=True)]
    if batch.carried is not None:
        known = batch.carried @ regression.base.mapping.T
        loads = [np.einsum("mb,mb->m", block.matrix, known[block.sample]) for block in blocks]
        for block, load in zip(blocks, loads, strict=True):
            block.target[:] -= load
        pushes = torques or [np.zeros(1)] * len(loads)
        torques = [load + push for load, push in zip(loads, pushes, strict=True)]
    rows = Rows(blocks, left_out, tuple(torques))
    rows = uncut_rows(rows, batch.samples.cut_off, regression)
    return regression.with_load(rows) if torques else rows


def low_passed(rows: Rows, batch: Batch, cutoff: float) -> Rows:
    """Return a batch's rows of joints behind a low-pass [Hz], without the ends of stretches.

    The motion stays whole: filtering it instead would bend what is not linear in it.
    """
    rate, found = batch.report.output_rate, []
    least = 2 * support(rate, cutoff)
    for block in rows.blocks:
        # of the samples' numbers the filter leaves the one in the middle
        whole = np.column_stack([block.matrix, block.target, block.sample])
        runs = split_at_gaps(batch.samples.time[block.sample], GAP / rate)
        long = [whole[run] for run in runs if run.stop - run.start > least]
        parts = [low_pass(part, rate, cutoff) for part in long]
        matrix, target, sample = np.split(np.concatenate([whole[:0], *parts]), [-2, -1], axis=1)
        found.append(RowBlock(matrix, target[:, 0], np.rint(sample[:, 0]).astype(np.intp)))
    return Rows(tuple(found))


def rest_speed(samples: Samples, still: float) -> FloatArray:
    """Return the speeds (nj,) [rad/s] below which joints are at rest: shares of their top speeds.

    A joint that stands still all along is at rest whatever the noise of its velocity. So is one
    whose effort never changes, as nothing measures it.
    """
    limit: FloatArray = still * np.fmax.reduce(np.abs(samples.velocity), axis=0, initial=0.0)
    if len(samples):
        effort = samples.effort
        mute = np.ptp(effort, axis=0) <= _ROUNDING * np.abs(effort).max(axis=0)
        limit[mute | (np.ptp(samples.position, axis=0) < STILL)] = np.finfo(float).max
    return limit


def training_rows(regression: Regression, rows: Rows, batch: Batch, rest: FloatArray) -> Rows:
    """Return the rows of moving joints: at rest, friction has no sign.

    The batch's rows take all joints to move; `rest` (nj,) [rad/s] as in `rest_speed`.
    """
    if not regression.per_joint:
        return rows_of(regression, batch, still_velocity=rest)
    actuated = regression.robot.actuated
    return moving_rows(rows, batch.samples.velocity[:, actuated], rest[actuated])


def near_rest(regression: Regression, batch: Batch, rest: FloatArray) -> BoolArray:
    """Return where (n, na) driven joints rest within the low-pass's rise time.

    A joint that sticks has any friction up to its dry one, which the low-pass draws out. Only laws
    that bend at some speed or distance can tell it, and learn their bend there: joints with such
    rest where they do. So do those that hardly rest, and those that are near to rest more than a
    twelfth of the time. `rest` (nj,) [rad/s] as in `rest_speed`.
    """
    robot, reach = regression.robot, rise_time(batch.report.cutoff)
    bent = robot.friction_scales[[term.scale_unit != "-" for term in FRICTION]].any(axis=0)
    resting = np.abs(batch.samples.velocity) < rest
    near = resting.copy()
    for run in _runs(batch.samples.time):
        time = batch.samples.time[run]
        for j in np.flatnonzero(~bent):
            rests = np.concatenate([[-np.inf], time[resting[run, j]], [np.inf]])
            after = np.searchsorted(rests, time)
            near[run, j] = np.minimum(time - rests[after - 1], rests[after] - time) <= reach
    few = (near > resting).sum(axis=0) <= _FEW * (~resting).sum(axis=0)
    left_out = few & (resting.sum(axis=0) >= _STICKS * len(resting))
    return np.where(left_out, near, resting)[:, robot.actuated]


def _runs(time: FloatArray) -> Iterator[slice]:
    """Yield the stretches in which times (n,) ascend: recordings follow each other."""
    cuts = np.flatnonzero(np.diff(time) <= 0.0) + 1
    return itertools.starmap(slice, itertools.pairwise([0, *cuts.tolist(), len(time)]))


def learning_rows(regression: Regression, batch: Batch, still: float) -> Rows:
    """Return the rows of a batch to choose a law by; `still` as in `rest_speed`."""
    rest = rest_speed(batch.samples, still)
    return training_rows(regression, rows_of(regression, batch), batch, rest)


def scored_rows(regression: Regression, rows: Rows, batch: Batch, rest: FloatArray) -> Rows:
    """Return the rows to judge models on: where a joint rests, friction may be anything."""
    return training_rows(regression, rows, batch, rest) if regression.per_joint else rows
