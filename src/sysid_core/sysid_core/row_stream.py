# SPDX-License-Identifier: Apache-2.0
"""Goes over the rows of a batch in pieces: rows take a hundred times the memory of samples."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.batch import (
    Batch,
    Progress,
    near_rest,
    quiet,
    rest_speed,
    rows_of,
    scored_rows,
    training_rows,
)
from sysid_core.dynamics.rows import (
    LeftOut,
    Regression,
    RowBlock,
    Rows,
    effective_sample_factor,
    select_rows,
)
from sysid_core.dynamics.sums import Places, Sums
from sysid_core.errors import DataError
from sysid_core.gathering import Gathered
from sysid_core.scores import Curve, Scores, Tally, curves

__all__ = ["Judged", "Learned", "RowStream"]

_PIECE = 2000
"""Samples whose rows are in memory at once: 15 MB of an arm's."""


class Learned(NamedTuple):
    """What the rows to learn from say."""

    parts: list[list[Sums]]  # Of each stretch, of each recording
    edges: IndexArray  # First sample of each stretch, and the end of the last
    left_out: LeftOut
    rows: int  # Their number


class Judged(NamedTuple):
    """Scores on what was learned from and on the rest, torques over time, samples left out."""

    train: Scores
    held: Scores | None
    curves: tuple[Curve, ...]
    left_out: LeftOut


class RowStream:
    """The rows of gathered samples, made anew in pieces each time that they are gone over.

    `still` as in `rest_speed`; messages call the samples by their source.

    Raises
    ------
    DataError
        By all methods, if a measured joint has gaps.
    """

    def __init__(
        self, regression: Regression, gathered: Gathered, still: float, source: str
    ) -> None:
        self.regression, self._gathered = regression, gathered
        self._source = source
        samples = gathered.batch.samples
        self._rest_learned = rest_speed(samples.select(slice(gathered.split)), still)
        self._rest = rest_speed(samples, still)
        self._near = near_rest(regression, gathered.batch, self._rest_learned)

    @property
    def learned(self) -> Batch:
        """The samples to learn from."""
        return self._gathered.batch.before(self._gathered.split)

    def _pieces(self, edges: list[int]) -> Iterator[tuple[int, Batch, Rows]]:
        """Yield pieces between edges: where each starts, its samples and its rows."""
        for first, last in pairwise(edges):
            for start in range(first, last, _PIECE):
                batch = self._gathered.batch.select(slice(start, min(start + _PIECE, last)))
                try:
                    rows = rows_of(self.regression, batch)
                except DataError as error:
                    raise DataError(str(error), source=self._source) from error
                yield start, batch, rows

    def _used(self, start: int, batch: Batch, rows: Rows) -> Rows:
        if not self.regression.per_joint:
            return training_rows(self.regression, rows, batch, self._rest_learned)
        return select_rows(rows, lambda g, block: ~self._near[start + block.sample, g])

    def learn(self, stretches: int, progress: Progress = quiet) -> Learned:
        """Return the sums over what is learned from, in stretches of equal length."""
        gathered, split = self._gathered, self._gathered.split
        cuts = np.ceil(np.linspace(0, split, stretches + 1)).astype(int)
        changes = np.flatnonzero(np.diff(gathered.source[:split])) + 1
        edges = np.unique(np.concatenate([cuts, changes])).tolist()
        places = Places.of(self.regression)
        parts = [[Sums(places) for _ in gathered.weights] for _ in range(stretches)]
        left_out, count = LeftOut(), 0
        for start, batch, rows in self._pieces(edges):
            progress("regression", start / max(split, 1))
            used = self._used(start, batch, rows)
            left_out += used.left_out
            count += sum(len(block.target) for block in used.blocks)
            k = int(np.searchsorted(cuts, start, side="right")) - 1
            parts[k][int(gathered.source[start])].add_rows(used)
        progress("regression", 1.0)
        return Learned(parts, cuts, left_out, count)

    def used_rows(self) -> Rows:
        """Return all rows to learn from at once, for estimators that look at each."""
        found = [
            tuple(
                b._replace(sample=b.sample + start) for b in self._used(start, batch, rows).blocks
            )
            for start, batch, rows in self._pieces([0, self._gathered.split])
        ]
        return Rows(
            tuple(
                RowBlock(*(np.concatenate(columns) for columns in zip(*group, strict=True)))
                for group in zip(*found, strict=True)
            )
        )

    def correlation(self, parameters: FloatArray) -> FloatArray:
        """Return the factors (G,) of the residuals of parameters (p,); see `Regression`."""
        regression, split = self.regression, self._gathered.split
        if not regression.per_joint:
            samples = self._gathered.batch.before(split).samples
            return regression.correlation(Rows(()), samples, parameters)
        base_vector = regression.base.project(parameters)
        residuals = [
            self._used(start, batch, rows).residuals(base_vector)
            for start, batch, rows in self._pieces([0, split])
        ]
        series = [np.concatenate(parts) for parts in zip(*residuals, strict=True)]
        return np.array([effective_sample_factor(e) for e in series])

    def judge(self, nominal: FloatArray, identified: FloatArray) -> Judged:
        """Compare two parameter vectors (p,) on what was learned from and on the rest."""
        regression, split = self.regression, self._gathered.split
        count = len(self._gathered.batch)
        tallies = [Tally(len(regression.groups)) for _ in range(2)]
        drawn: list[tuple[Curve, ...]] = []
        left_out = LeftOut()
        for start, batch, rows in self._pieces([0, split, count]):
            left_out += rows.left_out
            judged = scored_rows(regression, rows, batch, self._rest)
            tallies[start >= split].add(judged, regression, nominal, identified)
            time = batch.samples.time
            drawn.append(curves(rows, regression, time, nominal, identified, split - start))
        if left_out.count and all(tally.empty for tally in tallies):
            raise DataError("; ".join(map(str, left_out.diagnostics)), source=self._source)
        train = tallies[0].scores(regression.groups)
        held = tallies[1].scores(regression.groups) if split < count else None
        whole = tuple(Curve.joined(parts) for parts in zip(*drawn, strict=True))
        return Judged(train, held, whole, left_out)
