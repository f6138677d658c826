# SPDX-License-Identifier: Apache-2.0
"""Finds efforts of a recording that stood because a drive was off, or its messages were lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.signals.chain import Grid
from sysid_core.signals.plateaus import FEWEST
from sysid_core.signals.updates import longest_by_chance, quantum

__all__ = ["Run", "lost_runs"]

_STILL = 1e-9
"""Share of its RMS by which an effort may change that stands: rounding [-]."""
_BESIDE = 2  # Samples to a value that is not drawn towards the one that stood
_LEAP = 4.0
"""Usual steps by which an effort leaps to zero, or from where it stood."""
_NOISY = 0.5
"""Share of the usual step by which steps differ from each other where they are noise [-]."""
_FINE = 0.1
"""Share of the usual step within which a fine effort takes other values [-]."""
_WHOLE = 0.98
"""Share of the samples at zero that are so in long runs [-]: where small torques are swallowed, or
efforts are coarse, they are there now and then for a short while, too."""
_BEYOND = 3.0
"""Times the least effort that there is beside zero by which it leaps to zero [-]: where small
torques are swallowed, few leap far beyond those."""
_OFTEN = 0.5
"""Share of the runs at zero that leap [-]."""
_MOVES = 0.01
"""Share of the greatest travel of a joint in some time from which it moves [-]."""
_SELDOM = 0.5
"""Share of the samples in which a joint's effort stood at most [-]: in more it is measured so."""


class Run(NamedTuple):
    """Samples of a grid in which an effort stands."""

    grid: int
    where: slice
    level: float  # [N·m]
    moves: bool  # Whether its own joint moves
    # leap_to, leap_from: [N·m] from what is before, to what comes after; infinite without any.
    leap_to: float
    leap_from: float

    @property
    def inside(self) -> bool:
        """Whether something is before and after it."""
        return bool(np.isfinite(self.leap_to) and np.isfinite(self.leap_from))

    @property
    def length(self) -> int:
        """Number of samples."""
        return int(self.where.stop - self.where.start)


class _Effort(NamedTuple):
    """The efforts (n,) [N·m] of a joint, and what is usual of them."""

    values: FloatArray
    steps: FloatArray  # (n - 1,) that are not zero
    rounding: float

    @property
    def usual(self) -> float:
        """What it changes by from sample to sample, where it does."""
        return float(np.median(self.steps))

    def held(self, runs: Sequence[Run]) -> list[Run]:
        """Return the runs in which it keeps a value that it had but once, while its joint moves.

        To one at which it is cut off it returns, as to those of a coarse one; or it is an extreme.
        """
        if not runs or quantum(self.values) > _FINE * self.usual:
            return []
        noisy = float(np.median(np.abs(np.diff(self.steps)))) >= _NOISY * self.usual
        lowest, highest = self.values.min(), self.values.max()
        return [
            run
            for run in runs
            if run.moves
            and (noisy or run.leap_from > _LEAP * self.usual)
            and lowest < run.level < highest
            and (np.abs(self.values - run.level) <= self.rounding).sum() == run.length
        ]

    def off(self, runs: Sequence[Run]) -> list[Run]:
        """Return the runs at zero, unless a driver swallows small torques.

        Then no effort goes through zero gently, and few leap to it from far beyond the least that
        there is.
        """
        size = np.abs(self.values)
        zero = size <= self.rounding
        if not runs or sum(run.length for run in runs) < _WHOLE * zero.sum():
            return []
        beside = np.convolve(zero, np.ones(3), "same") > 0.0  # drawn towards zero by the grid
        small = ~beside & (size <= _LEAP * self.usual)
        through = small[1:] & small[:-1] & (self.values[1:] * self.values[:-1] < 0.0)
        next_ = float(size.min(initial=np.inf, where=~beside))
        least = max(_LEAP * self.usual, _BEYOND * next_ if next_ > _FINE * self.usual else 0.0)
        leaps = sum(min(run.leap_to, run.leap_from) > least for run in runs)
        if through.sum() <= len(runs) and leaps < _OFTEN * len(runs):
            return []
        return [run for run in runs if run.moves or run.inside]


def lost_runs(j: int, grids: Sequence[Grid]) -> list[Run]:
    """Return where the effort of joint j stood and was none: kept, or zero."""
    efforts = [grid.joints["effort"][:, j] for grid in grids]
    values = np.concatenate(efforts)
    rounding = _STILL * float(np.sqrt(np.mean(values**2)))
    steps = np.concatenate([np.abs(np.diff(effort)) for effort in efforts])
    changes = steps > rounding
    if not changes.any():
        return []
    effort = _Effort(values, steps[changes], rounding)
    shortest = int(max(FEWEST, longest_by_chance(changes))) + 1
    runs = list(_runs(j, grids, rounding, shortest))
    at_zero = [run for run in runs if not run.level]
    lost = effort.off(at_zero) + effort.held([run for run in runs if run.level])
    seldom = sum(run.length for run in lost) <= _SELDOM * len(values)
    return lost if seldom else []


def _runs(j: int, grids: Sequence[Grid], rounding: float, shortest: int) -> Iterator[Run]:
    """Yield where the effort of joint j stands for so many samples, but not all the time."""
    positions = [grid.joints["position"][:, j] for grid in grids]
    travel = max(np.abs(q[shortest:] - q[:-shortest]).max(initial=0.0) for q in positions)
    for number, (q, grid) in enumerate(zip(positions, grids, strict=True)):
        effort = grid.joints["effort"][:, j]
        edges = np.flatnonzero(np.abs(np.diff(effort, prepend=np.inf, append=np.inf)) > rounding)
        for k in np.flatnonzero(np.diff(edges) >= shortest):
            start, stop = edges[[k, k + 1]].tolist()
            before, after = start - _BESIDE, stop - 1 + _BESIDE
            if before < 0 and after >= len(effort):
                continue
            level = float(effort[start])
            yield Run(
                number,
                slice(start, stop),
                level if abs(level) > rounding else 0.0,
                bool(np.ptp(q[start:stop]) * shortest > _MOVES * travel * (stop - start)),
                abs(float(effort[before]) - level) if before >= 0 else np.inf,
                abs(float(effort[after]) - level) if after < len(effort) else np.inf,
            )
