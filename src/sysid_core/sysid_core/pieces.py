# SPDX-License-Identifier: Apache-2.0
"""The steps from recordings of any length to samples, piece by piece, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sysid_core.aligning import aligned_interpreted, aligned_recording
from sysid_core.batch import Batch, batch_at
from sysid_core.errors import DataError
from sysid_core.recording import Part, Recording
from sysid_core.recordings import Source
from sysid_core.robot.conversion import JointConversion
from sysid_core.robot.interpretation import interpret
from sysid_core.robot.model import Robot
from sysid_core.robot.plausibility import STILL
from sysid_core.signals.align import Aligned
from sysid_core.signals.chain import Grid
from sysid_core.signals.cutoff import CutoffChoice
from sysid_core.signals.filters import support
from sysid_core.signals.options import SignalConfig

__all__ = [
    "Aligning",
    "Excerpt",
    "Filtering",
    "Piece",
    "Span",
    "Stretch",
    "align_source",
]

_REACHES = 2.5
"""What samples rest on, in periods of the cut-off: the low-pass, and that of friction's sign."""
_NONE = np.zeros((0, 0))
_LOWEST = 1.0
"""Lowest cut-off [Hz] that is tried where none is given."""
_KEPT_ROWS = 500
"""Rows of a part that are kept to judge the whole recording by."""

_AROUND = 1.0
"""Rest [s] before and after a motion that belongs to it."""
_BLOCK, _WHILE = 0.1, 0.5
"""A robot moves where means of positions over the one differ within the other [s]."""


class Piece(NamedTuple):
    """A part of a recording on its grid."""

    source: int  # Number of the recording
    aligned: Aligned
    # start, end: [s] its own samples lie between.
    start: float
    end: float
    origin: float  # [s] start of the recording's first grid

    @property
    def whole(self) -> bool:
        """Whether it is all of the recording."""
        return bool(self.start == -np.inf and self.end == np.inf)


class Span(NamedTuple):
    """What a choice of cut-off needs to know of a piece."""

    source: int
    choice: CutoffChoice
    rate: float
    sensor_rate: float
    stretches: tuple[tuple[float, float], ...]  # [s] first and last of each without a gap
    began: float  # [s] when the recording did
    motion: tuple[tuple[float, float], ...]  # [s] first and last of each stretch that it moves in


class Aligning(NamedTuple):
    """How recordings are brought onto grids."""

    robot: Robot
    config: SignalConfig
    lenient: bool


def align_source(
    how: Aligning, number: int, source: Source, keep: Callable[[Piece], None]
) -> tuple[list[Span], tuple[str, ...]]:
    """Align a recording piece by piece; return what the pieces span, and warnings.

    A recording of one part is treated as a whole. In others each part may rest, and what only the
    whole can show is judged by some of its rows.

    Raises
    ------
    DataError
        If the recording is not usable.
    """
    robot, config, lenient = how
    reach = _REACHES / min(_LOWEST, config.cutoff or _LOWEST)
    conversion = JointConversion(robot)
    rows: list[Recording] = []
    spans: list[Span] = []
    trouble: DataError | None = None
    origin = 0.0
    for part in source.parts(robot, reach):
        try:
            piece = _aligned(how, number, part, conversion)
        except _UnusablePartError as error:
            trouble = error
            continue
        if spans:
            piece = piece._replace(origin=origin)
        origin = piece.origin
        a = piece.aligned
        stretches = tuple(
            (max(float(grid.time[0]), part.start), min(float(grid.time[-1]), part.end))
            for grid in a.grids
        )
        sensors, motion = (a.choice, a.rate, a.sensor_rate), stretches
        if not robot.floating:  # which bears itself at rest, too
            motion = tuple(_motion(piece))
        spans.append(Span(number, *sensors, stretches, part.origin, motion))
        keep(piece)
        if not piece.whole:
            rows.append(_some_rows(part))
    if not spans:
        raise trouble or DataError("holds no rows; record again", source=source.name)
    if not rows:
        return spans, ()
    judged = interpret(robot, _stacked(rows), lenient=lenient)
    return spans, judged.warnings


def _motion(piece: Piece) -> Iterator[tuple[float, float]]:
    """Yield when a piece moves [s], with some rest before and after."""
    for grid in piece.aligned.grids:
        time, position = grid.time, grid.joints["position"]
        size = max(1, round(_BLOCK * piece.aligned.rate))
        count = len(time) // size
        lag = min(round(_WHILE / _BLOCK), count - 1)
        if lag < 1:
            continue
        blocks = position[: count * size].reshape(count, size, -1).mean(axis=1)
        moves = np.fmax.reduce(np.abs(blocks[lag:] - blocks[:-lag]), axis=1) > STILL
        start, end = np.inf, -np.inf
        for first in np.flatnonzero(moves) * size:
            if time[first] - _AROUND > end:
                if start < end:
                    yield start, end
                start = max(piece.start, float(time[first]) - _AROUND)
            last = min(first + (lag + 1) * size, len(time) - 1)
            end = min(piece.end, float(time[last]) + _AROUND)
        if start < end:
            yield start, end


class _UnusablePartError(DataError):
    """No stretch of a part is usable, where those of others may be."""


def _aligned(how: Aligning, number: int, part: Part, conversion: JointConversion) -> Piece:
    robot, config, lenient = how
    if part.start == -np.inf and part.end == np.inf:
        aligned = aligned_recording(robot, part.recording, config, lenient=lenient)
    else:
        interpreted = interpret(robot, part.recording, lenient=lenient, part_of=conversion)
        try:
            aligned = aligned_interpreted(robot, interpreted, config, part.origin)
        except DataError as error:
            raise _UnusablePartError(str(error)) from error
    # the grid has what was recorded
    bare = replace(aligned.recording, time=_NONE, position=_NONE, velocity=None, effort=None)
    aligned = replace(aligned, recording=bare)
    return Piece(number, aligned, part.start, part.end, float(aligned.grids[0].time[0]))


def _some_rows(part: Part) -> Recording:
    """Return some of a part's own rows, without the sensors."""
    recording = part.recording
    own = np.flatnonzero((recording.time >= part.start) & (recording.time < part.end))
    chosen = own[:: max(1, len(own) // _KEPT_ROWS)]
    columns: dict[str, Any] = {
        name: None if (values := getattr(recording, name)) is None else values[chosen]
        for name in ("time", "position", "velocity", "effort")
    }
    return replace(recording, base=None, imu=None, contacts=None, warnings=(), **columns)


def _stacked(parts: Sequence[Recording]) -> Recording:
    """Join rows; joints that some of the parts lack are left out."""
    names = [n for n in parts[0].joint_names if all(n in part.joint_names for part in parts)]
    columns: dict[str, Any] = {"time": np.concatenate([part.time for part in parts])}
    for quantity in ("position", "velocity", "effort"):
        given = [getattr(part, quantity) for part in parts]
        columns[quantity] = None
        if all(values is not None for values in given):
            columns[quantity] = np.concatenate(
                [
                    values[:, [part.joint_names.index(name) for name in names]]
                    for part, values in zip(parts, given, strict=True)
                ]
            )
    return replace(parts[0], joint_names=tuple(names), **columns)


class Stretch(NamedTuple):
    """A stretch of recording `source` from `start` to `end`, set to begin at `here` [s]."""

    source: int
    start: float
    end: float
    here: float


@dataclass(frozen=True)
class Excerpt:
    """Cuts stretches of recordings out of their pieces, and sets them one after the other."""

    stretches: tuple[Stretch, ...]

    def __call__(self, piece: Piece) -> Aligned:
        """Return what a piece holds of the stretches."""
        found = []
        for stretch in self.stretches:
            if stretch.source != piece.source:
                continue
            ends = max(stretch.start, piece.start), min(stretch.end, piece.end)
            for grid in piece.aligned.grids:
                first, stop = np.searchsorted(grid.time, ends)
                if stop - first > 1:
                    rows = slice(int(first), int(stop))
                    found.append(
                        Grid(
                            grid.time[rows] - stretch.start + stretch.here,
                            {name: values[rows].copy() for name, values in grid.joints.items()},
                            {name: values[rows].copy() for name, values in grid.sensors.items()},
                        )
                    )
        return replace(piece.aligned, grids=tuple(found))


@dataclass(frozen=True)
class Filtering:
    """Turns pieces into batches of their own samples; None where no stretch is long enough."""

    robot: Robot
    choice: CutoffChoice
    oversampling: float | None
    measured: bool | None = None

    def __call__(self, piece: Piece) -> Batch | None:
        """Return the samples of a piece.

        Raises
        ------
        DataError
            If the piece is a whole recording and too short.
        """
        a = piece.aligned
        try:
            # without other parts, each stretch may begin as it likes
            origin = None
            if not piece.whole:
                origin = piece.origin + support(a.rate, self.choice.cutoff) / a.rate
            batch = batch_at(
                self.robot,
                a,
                self.choice,
                self.oversampling,
                origin=origin,
                measured=self.measured,
            )
        except DataError:
            if piece.whole:
                raise
            return None
        time = batch.samples.time
        return batch if piece.whole else batch.select((time >= piece.start) & (time < piece.end))
