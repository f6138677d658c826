# SPDX-License-Identifier: Apache-2.0
"""The window's statistics equal a batch computation, however long it slides."""

import tracemalloc
from copy import deepcopy

import numpy as np
import pytest

from sysid_core.dynamics.rows import RowBlock, Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.dynamics.sums import Places
from sysid_core.errors import ParameterError
from sysid_core.online.window import SlidingWindow, WindowConfig

GROUPS, SIZE = 3, 8
PLACES = Places(SIZE, [np.arange(SIZE)] * GROUPS)


def batch(rng: np.random.Generator, samples: int) -> Rows:
    """Return random rows with columns of very different size."""
    scale = 10.0 ** np.linspace(-3, 3, SIZE)
    blocks = []
    for _ in range(GROUPS):
        matrix = rng.normal(size=(samples, SIZE)) * scale
        blocks.append(RowBlock(matrix, rng.normal(size=samples), np.arange(samples)))
    return Rows(tuple(blocks))


def join(parts: list[Rows]) -> Rows:
    return Rows(
        tuple(
            RowBlock(*(np.concatenate(field) for field in zip(*blocks, strict=True)))
            for blocks in zip(*(part.blocks for part in parts), strict=True)
        )
    )


def assert_same(actual: Statistics, expected: Statistics, tolerance: float = 1e-9) -> None:
    for name in ("gram", "moment", "square", "count"):
        a, e = getattr(actual, name), getattr(expected, name)
        scale = np.abs(e)
        if name == "gram":
            diagonal = np.sqrt(np.einsum("gii->gi", expected.gram))
            scale = diagonal[:, :, None] * diagonal[:, None, :]
        if name == "moment":
            diagonal = np.sqrt(np.einsum("gii->gi", expected.gram))
            scale = diagonal * np.sqrt(expected.square)[:, None]
        assert np.all(np.abs(a - e) <= tolerance * scale), name


def held_by_windows() -> int:
    """Return the bytes that the window's modules took, whatever else runs in this process."""
    taken = [tracemalloc.Filter(True, f"*/{name}.py") for name in ("window", "statistics")]
    traces = tracemalloc.take_snapshot().filter_traces(taken).traces
    return sum(trace.size for trace in traces)


@pytest.mark.heavy
def test_many_samples_leave_the_statistics_of_the_last_ones() -> None:
    """As `bench.speed` does with a million."""
    rng = np.random.default_rng(0)
    window = SlidingWindow(PLACES, WindowConfig(samples=1000, blocks=20))
    parts: list[Rows] = []
    tracemalloc.start()
    early, late = 0, 0
    for step in range(4_000):
        part = batch(rng, 50)
        window.push(part, 50)
        parts = [*parts[-25:], part]
        # the two stacks take turns in being full: look at the most of a hundred steps
        if 100 <= step < 200:
            early = max(early, held_by_windows())
        if step >= 3_900:
            late = max(late, held_by_windows())
    tracemalloc.stop()
    held = window.samples
    assert 1000 <= held < 1050
    assert_same(window.sums().statistics(), Statistics.of(join(parts[-(held // 50) :])))
    assert 0 < late < 1.2 * early


@pytest.mark.parametrize("size", [1, 7, 13])
def test_batches_of_any_size_are_counted_whole(size: int) -> None:
    rng = np.random.default_rng(1)
    window = SlidingWindow(PLACES, WindowConfig(samples=60, blocks=6))
    parts: list[Rows] = []
    for _ in range(200):
        part = batch(rng, size)
        window.push(part, size)
        parts.append(part)
        held = window.samples
        assert held % size == 0
        assert_same(
            window.sums().statistics(), Statistics.of(join(parts[-(held // size) :])), 1e-12
        )
    assert window.fill == 1.0


def test_recent_and_older_share_the_window() -> None:
    rng = np.random.default_rng(2)
    window = SlidingWindow(PLACES, WindowConfig(samples=100, blocks=10))
    for _ in range(57):
        window.push(batch(rng, 5), 5)
        assert_same(
            window.older(20) + next(window.newest(20)).statistics(),
            window.sums().statistics(),
            1e-12,
        )
    assert next(window.newest(20)).count[0] >= 20


def test_a_copy_slides_on_by_itself() -> None:
    rng = np.random.default_rng(4)
    window = SlidingWindow(PLACES, WindowConfig(samples=40, blocks=4, memory_half_life=1.0))
    window.push(batch(rng, 7), 7)
    taken, until_now = deepcopy(window), window.learned
    for _ in range(9):
        rows = batch(rng, 9)
        for one in (window, taken):
            one.push(rows, 9)
    assert_same(taken.learned, window.learned)
    assert not np.array_equal(until_now.gram, window.learned.gram)


def test_memory_halves_in_its_half_life() -> None:
    rng = np.random.default_rng(3)
    settings = WindowConfig(samples=100, blocks=10, memory_half_life=3.0)
    window = SlidingWindow(PLACES, settings)
    for _ in range(100):
        window.push(batch(rng, 10), 10)
    count = window.memory.count[0]
    # a geometric series of blocks of 10, each remembered by 2^(−1/30)
    assert count == pytest.approx(10 * (1 - 0.5 ** (90 / 30)) / (1 - 0.5 ** (1 / 30)), rel=1e-9)


def test_shifted_statistics_are_those_of_shifted_targets() -> None:
    rng = np.random.default_rng(4)
    rows, shift = batch(rng, 40), rng.normal(size=SIZE)
    moved = Rows(tuple(b._replace(target=b.target + b.matrix @ shift) for b in rows.blocks))
    assert_same(Statistics.of(rows).shifted(shift), Statistics.of(moved), 1e-12)


@pytest.mark.parametrize("more", [-2, 0, 2])
def test_leading_columns_are_those_of_the_rows_or_zero(more: int) -> None:
    rows = batch(np.random.default_rng(5), 40)
    wide = [np.pad(block.matrix, ((0, 0), (0, 2)))[:, : SIZE + more] for block in rows.blocks]
    cut = [block._replace(matrix=m) for block, m in zip(rows.blocks, wide, strict=True)]
    assert_same(Statistics.of(rows).leading(SIZE + more), Statistics.of(Rows(tuple(cut))))


@pytest.mark.parametrize(
    "bad",
    [
        {"samples": 0},
        {"samples": 5, "blocks": 6},
        {"memory_half_life": -1.0},
        {"memory_half_life": np.nan},
    ],
)
def test_impossible_windows_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        WindowConfig(**bad)  # type: ignore[arg-type]
