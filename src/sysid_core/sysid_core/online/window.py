# SPDX-License-Identifier: Apache-2.0
"""Statistics of the newest samples, kept exactly and in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.rows import Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import ParameterError

__all__ = ["SlidingWindow", "Sums", "WindowConfig"]

Supports = tuple[IndexArray, ...]


@dataclass(frozen=True)
class WindowConfig:
    """Size of a sliding window."""

    samples: int = 200  # Samples that make the window full; it holds up to one block more
    blocks: int = 20
    """Number of blocks that the window is kept in; old data leave a block at a time."""
    memory_half_life: float = 0.0
    """Number of windows after which data that left the window count half; 0 forgets them at
    once."""

    def __post_init__(self) -> None:
        if self.samples < 1 or self.blocks < 1 or self.blocks > self.samples:
            raise ParameterError(
                f"a window needs 1 ≤ blocks ≤ samples, got {self.blocks} and {self.samples}"
            )
        if not (np.isfinite(self.memory_half_life) and self.memory_half_life >= 0.0):
            raise ParameterError("memory_half_life must be finite and not negative")


class _Places:
    """Where the sums of each group's squares and products lie in one array of values (v,).

    First Σ y² and the number of rows of each group, then all Σ aᵀa, then all Σ aᵀy.
    """

    def __init__(self, size: int, supports: Supports) -> None:
        self.size, self.supports = size, supports
        groups, widths = len(supports), np.array([len(s) for s in supports], dtype=np.intp)
        grams = 2 * groups + np.concatenate([[0], np.cumsum(widths**2)])
        moments = grams[-1] + np.concatenate([[0], np.cumsum(widths)])
        self.gram, self.moment = slice(grams[0], grams[-1]), slice(moments[0], moments[-1])
        # per group: where its Σ aᵀa and Σ aᵀy begin, and how many columns they have
        self.parts = tuple(zip(grams.tolist(), moments.tolist(), widths.tolist(), strict=False))
        # where the same values lie in arrays (G, b, b) and (G, b)
        rows = [g * size + support for g, support in enumerate(supports)]
        self.moment_target = np.concatenate(rows)
        products = zip(rows, supports, strict=True)
        self.gram_target = np.concatenate(
            [(row[:, None] * size + support).ravel() for row, support in products]
        )


class Sums:
    """A running sum of statistics, each group on the columns that its rows can touch."""

    def __init__(self, places: _Places) -> None:
        self._places = places
        # all sums in one array, so that adding another is one operation
        self._values = np.zeros(places.moment.stop)
        self.samples = 0

    def __getstate__(self) -> dict[str, object]:
        """Return what a copy is made of: its views are its own."""
        return {key: value for key, value in vars(self).items() if key != "parts"}

    @property
    def square(self) -> FloatArray:
        """Σ y² of each group (G,), a view."""
        return self._values[: len(self._places.supports)]

    @property
    def count(self) -> FloatArray:
        """Number of rows of each group (G,), a view."""
        groups = len(self._places.supports)
        return self._values[groups : 2 * groups]

    @cached_property
    def parts(self) -> list[tuple[IndexArray, FloatArray, FloatArray]]:
        """The support (k,) of each group, and Σ aᵀa (k, k) and Σ aᵀy (k,) on it (views)."""
        places, values = self._places, self._values
        return [
            (support, values[g : g + n * n].reshape(n, n), values[m : m + n])
            for support, (g, m, n) in zip(places.supports, places.parts, strict=True)
        ]

    @staticmethod
    def of(statistics: Statistics, places: _Places) -> Sums:
        """Return the same sums, of which only those on the supports are kept."""
        total = Sums(places)
        total._values[places.gram] = statistics.gram.take(places.gram_target)
        total._values[places.moment] = statistics.moment.take(places.moment_target)
        total.square[:], total.count[:] = statistics.square, statistics.count
        return total

    def add_rows(self, rows: Rows, samples: int) -> None:
        """Add the rows of some samples."""
        for g, (block, part) in enumerate(zip(rows.blocks, self.parts, strict=True)):
            matrix, (support, gram, moment) = block.matrix, part
            if len(support) < matrix.shape[1]:
                matrix = matrix.take(support, axis=1)
            gram += matrix.T @ matrix
            moment += block.target @ matrix
            self.square[g] += block.target @ block.target
            self.count[g] += len(block.target)
        self.samples += samples

    def add(self, other: Sums) -> None:
        """Add another sum of the same supports."""
        self._values += other._values
        self.samples += other.samples

    def fade(self, factor: float) -> None:
        """Let every row count less by a factor."""
        self._values *= factor

    def predicted_square(self, base_vector: FloatArray) -> FloatArray:
        """Return Σ (a·β)² (G,) [N²·m²] per group for base parameters β (b,)."""
        return np.array([base_vector[s] @ gram @ base_vector[s] for s, gram, _ in self.parts])

    def residual_square(self, base_vector: FloatArray) -> FloatArray:
        """Return Σ (y − a·β)² (G,) [N²·m²] per group for base parameters β (b,)."""
        along = np.array([moment @ base_vector[support] for support, _, moment in self.parts])
        return np.maximum(self.square - 2.0 * along + self.predicted_square(base_vector), 0.0)

    def statistics(self) -> Statistics:
        """Return the same on all columns (a copy)."""
        places = self._places
        total = Statistics.zero(len(places.supports), places.size)
        total.gram.reshape(-1)[places.gram_target] = self._values[places.gram]
        total.moment.reshape(-1)[places.moment_target] = self._values[places.moment]
        total.square[:], total.count[:] = self.square, self.count
        return total


class SlidingWindow:
    """Exact statistics of the last samples, without ever subtracting.

    Samples are summed into blocks. The window's sum is kept as two stacks: suffix sums over the
    older blocks, one of which is dropped as its oldest block leaves, and one sum over the newer
    blocks. When the older stack runs out, it is rebuilt from the newer blocks. Every sum is made
    of additions of squares alone, so rounding does not build up however long the window slides;
    cost per block is constant on average and memory is bounded by twice the number of blocks.
    `supports` has per group the base columns in which its rows can differ from zero; default: all.
    """

    def __init__(
        self, groups: int, size: int, config: WindowConfig, supports: Supports | None = None
    ) -> None:
        self.config = config
        self._places = _Places(size, supports or (np.arange(size),) * groups)
        self._block_size = -(-config.samples // config.blocks)
        half_life = config.memory_half_life * config.blocks
        self._forget = 0.5 ** (1.0 / half_life) if half_life > 0.0 else 0.0
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._open = self._sums()
        self._newer: deque[Sums] = deque()
        self._newer_sum = self._sums()
        self._older: list[tuple[Sums, Sums]] = []  # (block, sum of it and all newer older blocks)
        self._memory = self._sums()
        self._total: Sums | None = None

    @property
    def samples(self) -> int:
        """Number of samples in the window."""
        older = self._older[-1][1].samples if self._older else 0
        return older + self._newer_sum.samples + self._open.samples

    @property
    def fill(self) -> float:
        """Share of the window that is filled, 0 to 1."""
        return min(1.0, self.samples / self.config.samples)

    def push(self, rows: Rows, samples: int) -> None:
        """Add the rows of a batch of samples.

        A batch should not be larger than a block; it is counted into one.
        """
        self._open.add_rows(rows, samples)
        self._total = None
        if self._open.samples >= self._block_size:
            self._newer.append(self._open)
            self._newer_sum.add(self._open)
            self._open = self._sums()
            self._evict()

    def _sums(self) -> Sums:
        return Sums(self._places)

    def sums(self) -> Sums:
        """Return the sums over the samples in the window, not to be changed."""
        if self._total is None:
            total = self._sums()
            total.add(self._newer_sum)
            total.add(self._open)
            if self._older:
                total.add(self._older[-1][1])
            self._total = total
        return self._total

    def newest(self, *samples: int) -> Iterator[Sums]:
        """Yield the sums over at least the newest so many samples (whole blocks).

        The numbers rise, and a sum is good until the next one is asked for.
        """
        total = self._sums()
        total.add(self._open)
        blocks = [block for block, _ in reversed(self._older)] + list(self._newer)
        for enough in samples:
            while blocks and total.samples < enough:
                total.add(blocks.pop())
            yield total

    @property
    def memory(self) -> Statistics:
        """Faded statistics of the samples that left the window."""
        return self._memory.statistics()

    @property
    def learned(self) -> Statistics:
        """Statistics of the window and its memory."""
        total = self._sums()
        total.add(self.sums())
        total.add(self._memory)
        return total.statistics()

    def older(self, samples: int) -> Statistics:
        """Return the statistics of the window without the blocks that `newest` sums."""
        total = self._sums()
        blocks = [block for block, _ in reversed(self._older)] + list(self._newer)
        newest = self._open.samples
        while blocks and newest < samples:
            newest += blocks.pop().samples
        for block in blocks:
            total.add(block)
        return total.statistics()

    def adopt_memory(self, memory: Statistics) -> None:
        """Replace the memory, e.g. by data carried over a known change of the robot."""
        self._memory = Sums.of(memory, self._places)

    def _evict(self) -> None:
        while self.samples - self._oldest_samples() >= self.config.samples:
            if not self._older:
                self._rebuild()
            block, _ = self._older.pop()
            if self._forget > 0.0:
                self._memory.fade(self._forget)
                self._memory.add(block)

    def _oldest_samples(self) -> int:
        if self._older:
            return self._older[-1][0].samples
        return self._newer[0].samples if self._newer else self.samples

    def _rebuild(self) -> None:
        suffix: Sums | None = None
        for block in reversed(self._newer):
            total = self._sums()
            total.add(block)
            if suffix is not None:
                total.add(suffix)
            self._older.append((block, total))
            suffix = total
        self._newer.clear()
        self._newer_sum = self._sums()
