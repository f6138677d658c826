# SPDX-License-Identifier: Apache-2.0
"""What all benchmarks share: arguments, tables, the JSON they write, and the goals they print."""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from bench.goals import Outcome, judge
from sysid_core.arrays import FloatArray

__all__ = [
    "OUT",
    "Given",
    "Result",
    "Table",
    "geometric_mean",
    "paired",
    "processor_time",
    "run_benchmark",
    "say",
    "show_goals",
    "show_rows",
    "show_table",
    "timed",
]

OUT = Path("out/bench")


Table = list[list[str]]  # Cells as people read them; the first row has the headings

Given = argparse.Namespace  # The arguments of a benchmark

Option = tuple[Any, str]
"""Default of an argument and what it is; of a tuple, some of its values can be given."""


class Result(NamedTuple):
    """What a benchmark found."""

    figures: Mapping[str, float]  # Those that goals are set for, by their names in `bench.goals`
    details: Mapping[str, Any]  # Everything else, JSON-ready
    tables: Mapping[str, Table] = {}
    """Those that the docs show, by the names that `bench.docs` finds there."""


def say(text: str) -> None:
    """Tell at once how far a long run is."""
    print(text, file=sys.stderr, flush=True)


def show_table(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[object]], form: str = ".4g"
) -> Table:
    """Print rows under headings, and return them; numbers in one form, NaN and None as a dash."""

    def text(cell: object) -> str:
        if isinstance(cell, str):
            return cell
        return "–" if cell is None or cell != cell else f"{cell:{form}}"

    cells = [list(headings), *([text(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    print(f"\n{title}" if title else "")
    for row in cells:
        first, *rest = zip(row, widths, strict=True)
        print(first[0].ljust(first[1]) + "".join(f"  {c.rjust(w)}" for c, w in rest))
    return cells


def show_rows(title: str, rows: Sequence[Mapping[str, object]], form: str = ".4g") -> Table:
    """Print rows whose cells are named by their headings, and return them."""
    return show_table(title, tuple(rows[0]), (tuple(row.values()) for row in rows), form)


def show_goals(outcomes: Sequence[Outcome]) -> None:
    """Print goals, what was measured, and whether they were met."""
    rows = [(o.figure, o.limit, o.value, o.status, o.source) for o in outcomes]
    if rows:
        show_table("goals", ("figure", "goal", "measured", "status", "source"), rows, ".3g")


def geometric_mean(values: Sequence[float] | FloatArray) -> float:
    """Return the geometric mean; NaN of none."""
    return float(np.exp(np.mean(np.log(values)))) if len(values) else np.nan


def timed(function: Callable[[], object], repeats: int) -> float:
    """Return the least processor time [s] of a call after one to warm up."""
    times = []
    for _ in range(repeats + 1):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return min(times[1:])


def processor_time(pid: int) -> float:
    """Return the processor time [s] that a process took so far."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def _provenance(name: str) -> dict[str, str]:
    """Return what was run, when, and of which sources."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    commit = git("rev-parse", "--short=10", "HEAD") or "unknown"
    changed = " with changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    words = [word for word in sys.argv[1:] if not word.startswith("--out=")]
    if "--out" in words:
        at = words.index("--out")
        del words[at : at + 2]
    return {
        "command": shlex.join(["python", "-m", f"bench.{name}", *words]),
        "commit": commit + changed,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M"),
    }


def paired(
    function: Callable[[], object], reference: Callable[[], object], repeats: int
) -> tuple[float, float]:
    """Return the least processor time [s] of a call, and the median of its ratio to another's.

    The two are called in turn, so that whatever else slows the machine slows both.
    """
    seconds = np.empty((repeats, 2))
    for pair in seconds:
        for which, call in enumerate((function, reference)):
            begin = time.process_time()
            call()
            pair[which] = time.process_time() - begin
    return float(seconds[:, 0].min()), float(np.median(seconds[:, 0] / seconds[:, 1]))


def _parsed(name: str, description: str, options: Mapping[str, Option]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m bench.{name}", description=description)
    parser.add_argument("--out", type=Path, default=OUT / name, metavar="DIR")
    for option, (default, meaning) in {"seed": (0, "of all that is random"), **options}.items():
        flag, text = f"--{option}", f"{meaning} [%(default)s]"
        if isinstance(default, tuple):
            parser.add_argument(flag, nargs="+", choices=default, default=default, help=meaning)
        else:
            parser.add_argument(flag, type=type(default), default=default, help=text)
    return parser.parse_args()


def run_benchmark(run: Callable[[Given], Result], **options: Option) -> NoReturn:
    """Run the benchmark of a module from the command line; exit with 0 if it met all its goals."""
    module = sys.modules[run.__module__]
    name = Path(str(module.__file__)).stem
    given = _parsed(name, (module.__doc__ or "").partition("\n")[0], options)
    given.out.mkdir(parents=True, exist_ok=True)
    provenance = _provenance(name)
    result = run(given)
    outcomes = judge(name, result.figures)
    show_goals(outcomes)
    path = given.out / f"{name}.json"
    content = {
        **provenance,
        "goals": [outcome._asdict() for outcome in outcomes],
        "tables": result.tables,
        "details": result.details,
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"\nwritten: {path}")
    sys.exit(not all(outcome.status == "met" for outcome in outcomes))
