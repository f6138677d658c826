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
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.goals import GOALS, Outcome

__all__ = ["main"]

_BLOCK = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end figures -->)", re.DOTALL)
_TORQUE_SCORES = {
    "exact": "exact torques",
    "measured": "measured torques",
    "model": "error of the model alone",
}
"""Scores of `bench.legged` in the order they are shown: the paper's first."""


class _NoResultsError(Exception):
    """A benchmark has no results; the text names it."""


def _read(results: Path, benchmark: str) -> Any:
    source = results / benchmark / f"{benchmark}.json"
    if not source.exists():
        raise _NoResultsError(benchmark)
    return json.loads(source.read_text(encoding="utf-8"))


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _recordings(results: Path) -> str:
    rows = [
        [
            result["recording"],
            *(f"{result['total'][name]:.2f}" for name in ("nominal", "plain", "identified")),
            f"{result['ratio']:.2f}",
            f"{result['plain_cutoff_hz']:g}, {result['cutoff_hz']:.2g} Hz",
            "yes" if result["consistent"] else "no",
        ]
        for result in _read(results, "recordings")["recordings"]
    ]
    header = ("recording", "nominal", "plain", "identified", "identified / plain")
    return _table([*header, "cut-off plain, identified", "physically consistent"], rows)


def _ur10(results: Path) -> str:
    recordings = _read(results, "recordings")["recordings"]
    (result,) = (one for one in recordings if one["recording"] == "ur10")
    nominal, identified = result["own_total"]["nominal"], result["own_total"]["identified"]
    return (
        "```text\n"
        f"torque error over all joints: {nominal:.3g} → {identified:.3g} N·m, "
        f"{nominal / identified:.1f} times smaller than the nominal model's\n"
        "```\n"
    )


def _missed(results: Path) -> str:
    rows, absent = [], []
    for benchmark in sorted(GOALS):
        try:
            goals = _read(results, benchmark)["goals"]
        except _NoResultsError:
            absent.append(f"`{benchmark}`")
            continue
        for goal in (Outcome(**goal) for goal in goals):
            if goal.status != "met":
                value = goal.status if goal.value is None else f"{goal.value:.3g}"
                rows.append([benchmark, goal.figure, goal.limit, value, goal.source])
    table = _table(("benchmark", "figure", "goal", "measured", "source of the goal"), rows)
    if not absent:
        return table
    return (
        f"{table}\nNot run, so that none of their goals is known to be met: {', '.join(absent)}.\n"
    )


def _legged(results: Path) -> str:
    found = _read(results, "legged")
    models = ("truth", "nominal", "SVD", "SVD, same rows", "LMI")
    rows = []
    for kind, score in _TORQUE_SCORES.items():
        for motion, errors in found["tables"][kind].items():
            means = {name: float(np.mean(values)) for name, values in errors.items()}
            cells = [f"{means[name]:.4f}" if name in means else "–" for name in models]
            ratios = [f"{means['LMI'] / means[name]:.2f}" for name in models[2:4]]
            rows.append([score, motion, *cells, *ratios])
    header = ("scored against", "motion", "true parameters", "nominal", "SVD", "SVD, same rows")
    table = _table([*header, "LMI", "LMI / SVD", "LMI / SVD, same rows"], rows)
    seeds, seconds = (found["arguments"][name] for name in ("seeds", "seconds"))
    return f"{table}\nMean over `--seeds {seeds}`, learned from `--seconds {seconds:g}` of trot.\n"


def _compliance(results: Path) -> str:
    rows = [
        [
            name,
            *(f"{100.0 * np.abs(found[what]).max():.2g} %" for what in ("stiffness", "damping")),
            str(found["negative"]),
        ]
        for name, found in _read(results, "compliance")["results"].items()
    ]
    header = ("poses", "largest error of stiffness", "largest error of damping", "negative")
    return _table(header, rows)


def _noise_free(results: Path) -> str:
    found = _read(results, "noise_free")
    keys = ("base", "identification", "validation")
    rows = []
    for name, runs in found.items():
        if name in ("arguments", "goals"):
            continue
        defaults = [one for run in runs for one in run if one["method"] == "entropic"]
        rows.append([name, *(f"{max(one[key] for one in defaults):.1e}" for key in keys)])
    header = ("arm and way", "base parameters", "torque NRMS, identification")
    return _table([*header, "torque NRMS, validation"], rows)


def _digit(results: Path) -> str:
    found = _read(results, "digit")
    rows = [
        [goal.figure, goal.limit, "–" if goal.value is None else f"{goal.value:.3g}", goal.status]
        for goal in (Outcome(**goal) for goal in found["goals"])
    ]
    return _table(("experiment", "goal", "measured", "status"), rows)


def _speed(results: Path) -> str:
    found = _read(results, "speed")
    solves = _table(
        ("bodies", "cold [ms]", "warm [ms]", "Clarabel [ms]", "Clarabel / cold"),
        (
            [
                str(row["bodies"]),
                *(f"{row[name]:.3g}" for name in ("cold_ms", "warm_ms", "clarabel_ms")),
                f"{row['clarabel_ms'] / row['cold_ms']:.3g}",
            ]
            for row in found["solve"]
        ),
    )
    ingestion = _table(
        ("bodies", "ingestion of a sample [µs]", "Pinocchio's regressor [µs]", "ratio"),
        (
            [
                str(row["bodies"]),
                *(f"{row[name]:.3g}" for name in ("ingest_us", "raw_us")),
                f"{row['ingest_us'] / row['raw_us']:.3g}",
            ]
            for row in found["ingestion"]
        ),
    )
    return f"{solves}\n{ingestion}"


def _coverage(results: Path) -> str:
    found = _read(results, "coverage")
    names = ("covered", "parameters alone", "Coulomb")
    shares = [*found["recordings"], {"what": "simulated arms", **found["mean"]}]
    rows = [
        [one["what"], *(f"{one[name]:.3f}" if name in one else "–" for name in names)]
        for one in shares
    ]
    return _table(
        ("data", "torques", "torques, by the parameters alone", "Coulomb friction"), rows
    )


def _figaroh(results: Path) -> str:
    found = _read(results, "figaroh_comparison")
    keys = ("torque_error", "torque_nrms", "mass_error", "mass_error_kg")
    rows = []
    for robot in ("ur10", "panda"):
        for method in found[robot][0]:
            runs = [run[method] for run in found[robot]]
            cells = []
            for key in keys:
                values = [run[key] for run in runs if key in run]
                cells.append(f"{np.exp(np.mean(np.log(values))):.3g}" if values else "–")
            rows.append([robot, method, *cells])
    header = ("robot", "estimate", "torque error [N·m]", "torque NRMS", "mass error")
    speed = found["speed"]
    return (
        _table([*header, "mass error [kg]"], rows)
        + f"\nA consistent model from {speed['rows']} samples of the UR10: FIGAROH "
        f"{speed['figaroh_s']:.2g} s, sysid {speed['sysid_s']:.2g} s.\n"
    )


def _faults(results: Path) -> str:
    found = _read(results, "faults")["table"]
    header = list(found[0])
    return _table(header, ([str(row[name]) for name in header] for row in found))


def _soak(results: Path) -> str:
    found = _read(results, "soak")
    rows = [
        [goal.figure, goal.limit, "–" if goal.value is None else f"{goal.value:.3g}", goal.status]
        for goal in (Outcome(**goal) for goal in found["goals"])
    ]
    arguments = found["arguments"]
    return (
        _table(("figure", "goal", "measured", "status"), rows)
        + f"\nA run of `--seconds {arguments['seconds']:g} --rate {arguments['rate']:g}`.\n"
    )


FIGURES: dict[str, Callable[[Path], str]] = {
    "recordings": _recordings,
    "ur10": _ur10,
    "missed": _missed,
    "legged": _legged,
    "speed": _speed,
    "compliance": _compliance,
    "noise_free": _noise_free,
    "coverage": _coverage,
    "digit": _digit,
    "figaroh": _figaroh,
    "faults": _faults,
    "soak": _soak,
}
"""Name of a place → what writes it from the folder of results."""


def fill(text: str, results: Path) -> tuple[str, list[str]]:
    """Return a page with its figures renewed, and the places that have no results."""
    missing: list[str] = []

    def renew(match: re.Match[str]) -> str:
        try:
            return match[1] + FIGURES[match[2]](results) + match[3]
        except _NoResultsError as error:
            missing.append(f"{match[2]}: run `python -m bench --only {error}` first")
            return match[0]

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
