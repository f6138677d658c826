# SPDX-License-Identifier: Apache-2.0
"""Statistics of the newest samples, kept exactly and in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sysid_core.dynamics.rows import Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.dynamics.sums import Places, Sums
from sysid_core.errors import ParameterError

__all__ = ["SlidingWindow", "WindowConfig"]


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


class SlidingWindow:
    """Exact statistics of the last samples, without ever subtracting.

    Samples are summed into blocks. The window's sum is kept as two stacks: suffix sums over the
    older blocks, one of which is dropped as its oldest block leaves, and one sum over the newer
    blocks. When the older stack runs out, it is rebuilt from the newer blocks. Every sum is made
    of additions of squares alone, so rounding does not build up however long the window slides;
    cost per block is constant on average and memory is bounded by twice the number of blocks.
    """

    def __init__(self, places: Places, config: WindowConfig) -> None:
        self.config, self._places = config, places
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
