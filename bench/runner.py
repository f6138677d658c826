# SPDX-License-Identifier: Apache-2.0
"""What all benchmarks share: arguments, tables, the JSON they write, and the goals they print."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.goals import Outcome, judge

__all__ = ["OUT", "Result", "run_benchmark", "say", "show_goals", "show_table", "timed"]

OUT = Path("out/bench")


class Result(NamedTuple):
    """What a benchmark found.

    Attributes
    ----------
    figures : Mapping[str, float]
        Those that goals are set for, by their names in `bench.goals`.
    details : Mapping[str, Any]
        Everything else, JSON-ready.
    """

    figures: Mapping[str, float]
    details: Mapping[str, Any]


def say(text: str) -> None:
    """Tell at once how far a long run is."""
    print(text, file=sys.stderr, flush=True)


def show_table(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[object]], form: str = ".4g"
) -> None:
    """Print rows under headings; numbers in one form, the first column to the left."""
    cells = [[c if isinstance(c, str) else f"{c:{form}}" for c in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    print(f"\n{title}" if title else "")
    for row in (list(headings), *cells):
        first, *rest = zip(row, widths, strict=True)
        print(first[0].ljust(first[1]) + "".join(f"  {c.rjust(w)}" for c, w in rest))


def show_goals(outcomes: Sequence[Outcome]) -> None:
    """Print goals, what was measured, and whether they were met."""
    rows = [
        (o.figure, o.limit, "–" if o.value is None else o.value, o.status, o.source)
        for o in outcomes
    ]
    if rows:
        show_table("goals", ("figure", "goal", "measured", "status", "source"), rows, ".3g")


def timed(function: Callable[[], object], repeats: int) -> float:
    """Return the least processor time [s] of a call after one to warm up."""
    times = []
    for _ in range(repeats + 1):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return min(times[1:])


def run_benchmark(
    name: str,
    run: Callable[[argparse.Namespace], Result],
    add_arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
    description: str | None = None,
) -> int:
    """Run a benchmark from the command line; 0 if all its goals were measured and met."""
    text = (description or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog=f"python -m bench.{name}", description=text)
    parser.add_argument("--out", type=Path, default=OUT / name, metavar="DIR")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random [%(default)s]")
    add_arguments(parser)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    result = run(given)
    outcomes = judge(name, result.figures)
    show_goals(outcomes)
    path = given.out / f"{name}.json"
    content = {
        "arguments": {name: value for name, value in vars(given).items() if name != "out"},
        "goals": [outcome._asdict() for outcome in outcomes],
        **result.details,
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"\nwritten: {path}")
    return 0 if all(outcome.status == "met" for outcome in outcomes) else 1
