# SPDX-License-Identifier: Apache-2.0
"""Gathers the samples of all recordings that one model is identified from into one batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.batch import Batch
from sysid_core.dynamics.sums import Sums
from sysid_core.errors import DataError
from sysid_core.pieces import Aligning, Excerpt, Filtering, Stretch
from sysid_core.recordings import Source
from sysid_core.robot.model import Robot
from sysid_core.signals.align import Aligned
from sysid_core.signals.cutoff import CutoffChoice, highest_cutoff
from sysid_core.signals.options import SignalConfig
from sysid_core.signals.prepare import PrepareReport, use_measured
from sysid_core.workers import Workers

__all__ = ["Gathered", "Gathering"]

_EXCERPT = 160.0
"""Time [s] that a cut-off is chosen on: sixteen stretches of ten seconds, whatever the length."""
_STRETCHES = 16
_SAME_RATE = 0.01
"""Recordings whose rates differ by more are not compared at one cut-off [-]."""


class Gathered:
    """Samples of recordings, those to learn from first.

    Attributes
    ----------
    split : int
        First sample that is held out.
    source : (n,)
        Number of the recording that each sample is from.
    weights : (k,) [-]
        By which the rows of each recording count.
    lead : (k,) [s]
        From the start of each recording to its first sample.
    names : tuple of str
        Of the recordings.
    """

    def __init__(
        self,
        batch: Batch,
        split: int,
        source: IndexArray,
        weights: FloatArray,
        lead: FloatArray,
        names: Sequence[str],
    ) -> None:
        self.batch, self.split, self.source, self.weights = batch, split, source, weights
        self.lead, self.names = lead, tuple(names)

    def weighed(self, parts: Sequence[Sums]) -> Sums:
        """Return the total of the recordings' sums, in which each counts by its weight."""
        return Sums.total(parts, self.weights)


class Gathering:
    """Recordings on their way to samples.

    Attributes
    ----------
    choice : CutoffChoice
        What the spectra of the motion, the description or the user say: the highest of them that
        suits the slowest sensors.
    limit : float [Hz]
        Highest cut-off for these sensors.

    Raises
    ------
    DataError
        If a recording is not usable.
    """

    def __init__(
        self,
        robot: Robot,
        sources: Sequence[Source],
        config: SignalConfig,
        lenient: bool,
        workers: Workers,
    ) -> None:
        if not sources:
            raise DataError("there are no recordings; give at least one")
        self._robot, self._sources, self._config = robot, sources, config
        self._workers = workers
        self._carried = [
            None if source.load is None else source.load.parameters(robot) for source in sources
        ]
        found = workers.align(Aligning(robot, config, lenient), sources)
        self._spans = [span for spans, _ in found for span in spans]
        self._warnings = [warnings for _, warnings in found]
        self.limit = highest_cutoff(min(span.sensor_rate for span in self._spans))
        self.choice = self._common()

    def _common(self) -> CutoffChoice:
        choices = [span.choice for span in self._spans]
        given = [choice for choice in choices if choice.given]
        if given:
            return min(given, key=lambda choice: choice.cutoff)
        highest = max(choices, key=lambda choice: choice.cutoff)
        if highest.cutoff <= self.limit:
            return highest
        reason = f"{self.limit:.3g} Hz, a quarter of the slowest sensors' rate"
        return replace(highest, cutoff=self.limit, reason=reason)

    def excerpt(self, train: float) -> tuple[Aligned, float]:
        """Return what to choose a cut-off on, and the share of it that may be looked at.

        Of long recordings that is a part of what is learned from: sixteen stretches, evenly
        spread.
        """
        learned = list(self._learned(train))
        length = sum(last - first for _, first, last in learned)
        if len(self._spans) == 1 and length <= _EXCERPT:
            (aligned,) = self._workers.map(Excerpt(tuple(_joined(self._learned(1.0)))))
            return aligned, train
        chosen = _joined(learned) if length <= _EXCERPT else _stretches(learned)
        parts = list(self._workers.map(Excerpt(tuple(chosen))))
        grids = sorted((g for part in parts for g in part.grids), key=lambda g: g.time[0])
        if not grids:
            raise DataError("the recordings hold too little to learn from; record for longer")
        return replace(parts[0], grids=tuple(grids), choice=self.choice), 1.0

    def _learned(self, train: float) -> Iterator[tuple[int, float, float]]:
        """Yield what is learned from, of recordings whose rate is that of the first.

        Stretches without a gap: number of the recording, first and last time [s].
        """
        alike = [s for s in self._spans if abs(s.rate / self._spans[0].rate - 1.0) <= _SAME_RATE]
        for source in dict.fromkeys(span.source for span in alike):
            stretches = self._motion(source)
            left = train * sum(last - first for first, last in stretches)
            for first, last in stretches:
                if left > 0.0:
                    yield source, first, min(last, first + left)
                left -= last - first

    def _motion(self, source: int) -> list[tuple[float, float]]:
        """Return when a recording moves, without gaps: first and last time [s]; all, if never.

        A recorder runs before a motion and after it, and between one and the next.
        """
        own = [span for span in self._spans if span.source == source]
        stretches = [stretch for span in own for stretch in span.stretches]
        moves: list[tuple[float, float]] = []
        for first, last in sorted(move for span in own for move in span.motion):
            if moves and first <= moves[-1][1]:
                moves[-1] = moves[-1][0], max(moves[-1][1], last)
            else:
                moves.append((first, last))
        both = [
            (max(first, start), min(last, end))
            for start, end in stretches
            for first, last in moves or [(start, end)]
        ]
        return [(start, end) for start, end in both if start < end]

    def gather(self, choice: CutoffChoice, train: float) -> Gathered:
        """Return all samples at one cut-off; the first `train` of each recording learns.

        Raises
        ------
        DataError
            If no stretch is longer than the filter's edges.
        """
        filtering = Filtering(self._robot, choice, self._config.oversampling)
        if len(self._spans) > 1:
            # one choice for all parts, as their velocities belong together
            filtering = replace(
                filtering, measured=use_measured(self.excerpt(train)[0], choice.cutoff)
            )
        found: list[list[Batch]] = [[] for _ in self._sources]
        for span, batch in zip(self._spans, self._workers.map(filtering), strict=True):
            if batch is not None and len(batch):
                found[span.source].append(batch)
        numbers = [number for number, batches in enumerate(found) if batches]
        if not numbers:
            raise DataError("no uninterrupted stretch is long enough to filter; record for longer")
        wholes = [self._moving(number, found[number]) for number in numbers]
        splits = [round(train * len(whole)) for whole in wholes]
        parts = [whole.before(split) for whole, split in zip(wholes, splits, strict=True)]
        parts += [
            whole.select(slice(split, None)) for whole, split in zip(wholes, splits, strict=True)
        ]
        batch = Batch.concatenate(parts, self._report([b for batches in found for b in batches]))
        if len(self._sources) > 1:
            batch = _in_a_row(batch, parts)
        source = np.repeat([*numbers, *numbers], [len(part) for part in parts])
        weights = np.array([source.weight for source in self._sources])
        lead, began = np.zeros(len(weights)), {span.source: span.began for span in self._spans}
        for number, whole in zip(numbers, wholes, strict=True):
            lead[number] = whole.samples.time[0] - began[number]
        return Gathered(batch, sum(splits), source, weights, lead, [s.name for s in self._sources])

    def _moving(self, number: int, batches: Sequence[Batch]) -> Batch:
        """Join a recording's batches where it moves, with its load where any has one."""
        whole = Batch.concatenate(batches, batches[0].report)
        edges = np.ravel(self._motion(number))
        moves = np.searchsorted(edges, whole.samples.time, side="right") % 2 == 1
        if moves.any():
            whole = whole.select(moves)
        if any(carried is not None for carried in self._carried):
            carried = self._carried[number]
            if carried is None:
                carried = np.zeros(self._robot.layout.size)
            whole = replace(whole, carried=np.tile(carried, (len(whole), 1)))
        return whole

    def _report(self, batches: Sequence[Batch]) -> PrepareReport:
        """Return the first report with what all of them count and warn of."""
        reports = [batch.report for batch in batches]
        outliers = Counter[str]()
        for report in reports:
            outliers.update(dict(report.outliers))
        warnings = [text for report in reports for text in report.warnings]
        for texts in self._warnings:
            warnings += texts
        return replace(
            reports[0],
            outliers=tuple(outliers.items()),
            duration=sum(len(batch) / batch.report.output_rate for batch in batches),
            warnings=tuple(dict.fromkeys(warnings)),
        )


def _stretches(learned: Sequence[tuple[int, float, float]]) -> Iterator[Stretch]:
    """Yield what to look at of stretches that are learned from one after the other."""
    length = sum(last - first for _, first, last in learned)
    take = min(_EXCERPT, length) / _STRETCHES
    for k in range(_STRETCHES):
        start = k * length / _STRETCHES
        passed = 0.0
        for source, first, last in learned:
            a, b = max(start, passed), min(start + take, passed + last - first)
            if a < b:
                here = k * take + a - start
                yield Stretch(source, first - passed + a, first - passed + b, here)
            passed += last - first


def _joined(learned: Iterable[tuple[int, float, float]]) -> Iterator[Stretch]:
    """Yield stretches, each set to begin where the last one ends."""
    here = None
    for source, first, last in learned:
        here = first if here is None else here
        yield Stretch(source, first, last, here)
        here += last - first


def _in_a_row(batch: Batch, parts: Sequence[Batch]) -> Batch:
    """Set the time of parts so that it ascends from each to the next."""
    times, now = [], 0.0
    for part in parts:
        if len(part):
            time = part.samples.time - part.samples.time[0] + now
            now = float(time[-1]) + 1.0 / part.report.output_rate
            times.append(time)
    return replace(batch, samples=replace(batch.samples, time=np.concatenate(times)))
