# SPDX-License-Identifier: Apache-2.0
"""Writes the figures of the benchmarks into README and docs: ``make docs-figures``.

A Markdown file marks a place by ``<!-- figures: NAME -->`` and ``<!-- end figures -->``; what lies
between is replaced from ``out/bench``. A place whose results are missing is named and kept.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["main"]

_BLOCK = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end figures -->)", re.DOTALL)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _recordings(results: Any) -> str:
    rows = [
        [
            result["recording"],
            *(f"{result['total'][name]:.2f}" for name in ("nominal", "plain", "identified")),
            f"{result['ratio']:.2f}",
            f"{result['plain_cutoff_hz']:g}, {result['cutoff_hz']:.2g} Hz",
            "yes" if result["consistent"] else "no",
        ]
        for result in results["recordings"]
    ]
    header = ("recording", "nominal", "plain", "identified", "identified / plain")
    return _table([*header, "cut-off plain, identified", "physically consistent"], rows)


def _ur10(results: Any) -> str:
    (result,) = (one for one in results["recordings"] if one["recording"] == "ur10")
    nominal, identified = result["own_total"]["nominal"], result["own_total"]["identified"]
    return (
        "```text\n"
        f"torque error over all joints: {nominal:.3g} → {identified:.3g} N·m, "
        f"{nominal / identified:.1f} times smaller than the nominal model's\n"
        "```\n"
    )


FIGURES: dict[str, tuple[str, Callable[[Any], str]]] = {
    "recordings": ("recordings", _recordings),
    "ur10": ("recordings", _ur10),
}
"""Name of a place → the benchmark whose results it shows, and how they are written."""


def fill(text: str, results: Path) -> tuple[str, list[str]]:
    """Return a page with its figures renewed, and the places that have no results."""
    missing: list[str] = []

    def renew(match: re.Match[str]) -> str:
        benchmark, write = FIGURES[match[2]]
        source = results / benchmark / f"{benchmark}.json"
        if not source.exists():
            missing.append(f"{match[2]}: run `python -m bench --only {benchmark}` first")
            return match[0]
        return match[1] + write(json.loads(source.read_text(encoding="utf-8"))) + match[3]

    return _BLOCK.sub(renew, text), missing


def main(arguments: Sequence[str] | None = None) -> int:
    """Renew all pages; 1 if results are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("out/bench"), metavar="DIR")
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
