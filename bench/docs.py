# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of the benchmarks into README and docs: ``make docs-figures``.

A Markdown file marks a place by ``<!-- figures: BENCHMARK TABLE -->`` and
``<!-- end figures -->``; what lies between is replaced from ``out/bench``, with the command,
commit and date of the run.
The table ``goals`` has the benchmark's goals; ``all missed`` those of all benchmarks that were
missed. A place whose results are missing is named and kept.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.goals import GOALS, Outcome
from bench.runner import OUT, Table

__all__ = ["fill", "main"]

_BLOCK = re.compile(r"(<!-- figures: (\w+) (\w+) -->\n).*?(<!-- end figures -->)", re.DOTALL)


class _NoResultsError(Exception):
    """A benchmark has no results; the text names it."""


def _read(results: Path, benchmark: str) -> Any:
    source = results / benchmark / f"{benchmark}.json"
    if not source.exists():
        raise _NoResultsError(benchmark)
    found = json.loads(source.read_text(encoding="utf-8"))
    if "commit" not in found:  # of an older form
        raise _NoResultsError(benchmark)
    return found


def _markdown(cells: Table) -> str:
    lines = [cells[0], ["---"] * len(cells[0]), *cells[1:]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _goals(found: Any) -> Table:
    rows = [
        [goal.figure, goal.limit, "–" if goal.value is None else f"{goal.value:.3g}", goal.status]
        for goal in (Outcome(**goal) for goal in found["goals"])
    ]
    return [["figure", "goal", "measured", "status"], *rows]


def _missed(results: Path) -> str:
    rows, absent, runs = [], [], set()
    for benchmark in sorted(GOALS):
        try:
            found = _read(results, benchmark)
        except _NoResultsError:
            absent.append(f"`{benchmark}`")
            continue
        runs.add(f"{found['commit']} ({found['date'][:10]})")
        sources = [goal["source"] for goal in found["goals"]]
        rows += [
            [benchmark, *row, source]
            for row, source in zip(_goals(found)[1:], sources, strict=True)
            if row[-1] != "met"
        ]
    header = ["benchmark", "figure", "goal", "measured", "status", "source of the goal"]
    note = f"All benchmarks were run at commit {', '.join(sorted(runs))}."
    if absent:
        note += f" Not run, so that none of their goals is known to be met: {', '.join(absent)}."
    return f"{_markdown([header, *rows])}\n{note}\n"


def _place(results: Path, benchmark: str, name: str) -> str:
    if (benchmark, name) == ("all", "missed"):
        return _missed(results)
    found = _read(results, benchmark)
    tables = {"goals": _goals(found), **found["tables"]}
    if name not in tables:  # of an older form
        raise _NoResultsError(benchmark)
    source = f"`{found['command']}` at commit {found['commit']}, {found['date'][:10]}."
    return f"{_markdown(tables[name])}\n{source}\n"


def fill(text: str, results: Path) -> tuple[str, list[str]]:
    """Return a page with its figures renewed, and the places that have no results."""
    missing: list[str] = []

    def renew(match: re.Match[str]) -> str:
        try:
            return match[1] + _place(results, match[2], match[3]) + match[4]
        except _NoResultsError as error:
            missing.append(f"{match[2]}: run `python -m bench --only {error}` first")
            return match[0]

    return _BLOCK.sub(renew, text), missing


def main(arguments: Sequence[str] | None = None) -> int:
    """Renew all pages; 1 if results are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=OUT, metavar="DIR")
    given = parser.parse_args(arguments)
    lacking: list[str] = []
    for page in [Path("README.md"), *sorted(Path("docs").glob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        renewed, missing = fill(text, given.results)
        lacking += [f"{page}: {name}" for name in missing]
        if renewed != text:
            page.write_text(renewed, encoding="utf-8")
            print(f"renewed {page}")
    for line in lacking:
        print(line, file=sys.stderr)
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
