# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks, each in a process of its own: ``python -m bench [--only NAME …]``.

Those that measure time run one by one, the others on all cores. Ends with status 1 where a goal of
`bench.goals` was missed or was not run.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from bench.goals import GOALS, Outcome, judge
from bench.runner import OUT, show_goals

__all__ = ["main"]

_NEEDS = {"figaroh_comparison": ("figaroh", "picos", "cvxopt")}
"""What a benchmark needs beyond the product."""
_ALONE = ("speed", "live", "soak", "length", "figaroh_comparison", "legged")
"""Benchmarks whose goals are times, or which keep all cores busy."""


def _run(name: str, out: Path) -> list[Outcome]:
    """Run a benchmark, show its output at the end; what it did not write was not run."""
    result = out / f"{name}.json"
    result.unlink(missing_ok=True)
    missing = [module for module in _NEEDS.get(name, ()) if find_spec(module) is None]
    if missing:
        print(f"{name}: not run: {', '.join(missing)} not installed (requirements-bench.lock)")
        return judge(name, {})
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", f"bench.{name}", "--out", str(out)]
    begin = time.perf_counter()
    ended = subprocess.run(
        command, env={**threads, **os.environ}, stdout=subprocess.PIPE, text=True, check=False
    )
    took = f"{time.perf_counter() - begin:.0f} s, status {ended.returncode}"
    print(f"\n── {name}: {took} ──\n{ended.stdout}", flush=True)
    if not result.is_file():
        return judge(name, {})
    goals = json.loads(result.read_text(encoding="utf-8"))["goals"]
    return [Outcome(**goal) for goal in goals]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks; 0 if every goal was run and met."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--out", metavar="DIR", type=Path, default=OUT, help="[%(default)s]")
    names = sorted(GOALS)
    parser.add_argument(
        "--only", metavar="NAME", nargs="+", choices=names, default=names, help=", ".join(names)
    )
    given = parser.parse_args(arguments)
    names = sorted(given.only, key=lambda name: name not in _ALONE)
    alone = sum(name in _ALONE for name in names)
    found = [_run(name, given.out / name) for name in names[:alone]]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found += pool.map(lambda name: _run(name, given.out / name), names[alone:])
    outcomes = [outcome for outcomes in found for outcome in outcomes]
    print("\n── summary ──")
    show_goals(outcomes)
    return 0 if all(outcome.status == "met" for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
