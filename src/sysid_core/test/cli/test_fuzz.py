# SPDX-License-Identifier: Apache-2.0
"""A few of the benchmark's spoiled files, bombs and bad arguments end as they should."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from sysid_core.cli.main import main

faults = pytest.importorskip("bench.faults", reason="the benchmarks are not at hand")
from bench.fault_cases import Corpus, prepare  # noqa: E402 - looked for first

COUNTS = {"spoiled files": 40, "bombs and special files": 20, "arguments": 8}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return prepare(tmp_path_factory.mktemp("corpus"), main)


@pytest.mark.parametrize("kind", COUNTS)
def test_what_is_spoiled_ends_with_a_status_and_a_line(
    kind: str,
    corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    make: Callable[[Corpus, Path, random.Random], list[str]] = faults.KINDS[kind]
    for seed in range(COUNTS[kind]):
        folder = tmp_path / str(seed)
        folder.mkdir()
        monkeypatch.chdir(folder)
        words = make(corpus, folder, random.Random(f"{kind} {seed}"))
        status = faults.execute(words)
        said = capfd.readouterr().err
        lines = [line for line in said.splitlines() if not line.startswith("warning:")]
        assert status in (0, 1, 2), (words, said)
        assert status != 2 or len(lines) == 1, (words, said)
