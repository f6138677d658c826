# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks, each in a process of its own: ``python -m bench [--only NAME …]``.

A benchmark that misses a goal says "not met" or "missed", or ends with status 1.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

__all__ = ["main"]

BENCHMARKS: dict[str, tuple[str, ...]] = {
    "speed": (),
    "noise_free": (),
    "compliance": (),
    "figaroh_comparison": ("figaroh", "picos", "cvxopt"),
    "digit": (),
    "legged": (),
    "live": (),
}
"""Name of each benchmark's module → what it needs beyond the product."""

_MISSED = re.compile(r"\b(not met|missed)\b", re.IGNORECASE)


class Outcome(NamedTuple):
    """How a benchmark ended.

    Attributes
    ----------
    name, verdict : str
    seconds : float
    good : bool
        Nothing was missed or broken.
    """

    name: str
    verdict: str
    seconds: float
    good: bool


def _run(name: str, out: Path | None) -> Outcome:
    missing = [module for module in BENCHMARKS[name] if find_spec(module) is None]
    if missing:
        reason = f"skipped: {', '.join(missing)} not installed (requirements-bench.lock)"
        return Outcome(name, reason, 0.0, True)
    print(f"\n── {name} ──", flush=True)
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    begin, missed = time.perf_counter(), False
    command = [sys.executable, "-m", f"bench.{name}"]
    if out is not None:
        command += ["--out", str(out / name)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        env={**threads, **os.environ},
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            missed |= _MISSED.search(line) is not None
    seconds = time.perf_counter() - begin
    if process.returncode not in (0, 1) or (process.returncode == 1 and not missed):
        return Outcome(name, f"failed with status {process.returncode}", seconds, False)
    return Outcome(name, "goals missed" if missed else "goals met", seconds, not missed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks; 0 if no goal was missed."""
    present = [name for name in BENCHMARKS if find_spec(f"bench.{name}") is not None]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="results go to DIR/<name>; default: each benchmark's own place in out/bench",
    )
    parser.add_argument(
        "--only",
        metavar="NAME",
        nargs="+",
        choices=present,
        default=present,
        help=f"of {', '.join(present)}",
    )
    given = parser.parse_args(arguments)
    outcomes = [_run(name, given.out) for name in given.only]
    print("\n── summary ──")
    for outcome in outcomes:
        print(f"{outcome.name:20}{outcome.seconds:8.1f} s  {outcome.verdict}")
    return 0 if all(outcome.good for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
