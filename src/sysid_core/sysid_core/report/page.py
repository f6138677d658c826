# SPDX-License-Identifier: Apache-2.0
"""Writes the report: everything that was found, in one page that needs nothing else."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np

from sysid_core.files import write_text
from sysid_core.identification import Identification
from sysid_core.report.advice import advice
from sysid_core.report.figures import (
    Figure,
    consistency_figure,
    determination_figure,
    friction_figure,
    mass_figure,
    plotly_script,
    residual_figure,
    torque_figure,
)
from sysid_core.robot.model import Robot
from sysid_core.scores import SCORE_HEADINGS, Scores
from sysid_core.wording import number

__all__ = ["write_report"]

_SPARE_BUTTONS = [
    "zoomIn2d",
    "zoomOut2d",
    "autoScale2d",
    "select2d",
    "lasso2d",
    "sendChartToCloud",
]
"""Without these the legend stays free on a narrow screen, and nothing leaves the page."""


_Cell = str | tuple[str, str]  # Text of a cell, or its class and text


def _table(headings: Sequence[str], rows: Iterable[Sequence[_Cell]]) -> str:
    head = "".join(f"<th>{escape(h)}</th>" for h in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(cell: _Cell) -> str:
    kind, text = ("", cell) if isinstance(cell, str) else cell
    return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"


def _scores(scores: Scores) -> str:
    rows: list[list[_Cell]] = [
        [joint, before, ("better" if better else "worse", after), *rest]
        for (joint, before, after, *rest), better in scores.rows()
    ]
    return _table(SCORE_HEADINGS, rows)


def _cards(found: Identification) -> str:
    estimate = found.estimate
    judged = found.train if found.validation is None else found.validation
    where = "on all data, learned from" if found.validation is None else "on held-out data"
    total = np.sqrt((judged.rmse_identified**2).sum())
    consistent = float(np.min(estimate.consistency)) > 0.0
    determined = int((estimate.determined >= 0.5).sum())
    cards = [
        (f"{number(total)} N·m", f"torque error over all joints, {where}", ""),
        (
            f"{judged.improvement:.1f} ×",
            "smaller than the nominal model's",
            "good" if judged.improvement > 1.0 else "bad",
        ),
        ("yes" if consistent else "no", "physically consistent", "good" if consistent else "bad"),
        (f"{determined} of {len(estimate.determined)}", "base parameters set by the data", ""),
        (f"{estimate.condition:,.0f}", "condition number of the information", ""),
        (
            f"{found.signals.duration:.1f} s",
            f"of samples, low-pass {found.signals.cutoff:.3g} Hz",
            "",
        ),
    ]
    for load in found.loads:
        cards.insert(0, (f"{load.mass:.2f} ± {load.mass_std:.2f} kg", f"load on {load.body}", ""))
    return "".join(
        f'<div class="card {kind}"><b>{escape(value)}</b><span>{escape(text)}</span></div>'
        for value, text, kind in cards
    )


def _figure(name: str, figure: Figure) -> str:
    config = {"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": _SPARE_BUTTONS}
    # "</" would end the script.
    parts = (json.dumps(part).replace("</", "<\\/") for part in (*figure, config))
    return (
        f'<div class="panel"><div id="{name}"></div>'
        f'<script>Plotly.newPlot("{name}", {", ".join(parts)})</script></div>'
    )


def _list(items: Sequence[str], kind: str = "") -> str:
    return f'<ul class="{kind}">{"".join(f"<li>{escape(i)}</li>" for i in items)}</ul>'


def _parameters(found: Identification) -> str:
    estimate, labels = found.estimate, found.robot.layout.labels
    rows = (
        (label, number(before, 5), number(after, 5), number(std, 2))
        for label, before, after, std in zip(
            labels, found.nominal, estimate.parameters, estimate.std, strict=True
        )
    )
    return _table(["parameter", "nominal", "identified", "σ"], rows)


def _base_parameters(found: Identification) -> str:
    estimate, base = found.estimate, found.regression.base
    values = base.project(found.nominal), estimate.base_parameters, estimate.determined
    rows = (
        (("wrap", text), number(before, 4), number(after, 4), f"{share:.0%}")
        for text, before, after, share in zip(base.expressions(3), *values, strict=True)
    )
    return _table(["base parameter", "nominal", "identified", "from the data"], rows)


def _data(found: Identification) -> str:
    signals, estimate = found.signals, found.estimate
    facts = [
        ("sensors", f"{signals.sensor_rate:.4g} Hz, {signals.velocity} velocities"),
        ("low-pass", signals.cutoff_reason),
        (
            "samples",
            f"{found.split} learned from, {len(found.samples) - found.split} held out, at "
            f"{signals.output_rate:.4g} Hz",
        ),
        (
            "samples per independent observation",
            ", ".join(number(value, 2) for value in found.correlation),
        ),
        ("noise of the rows [N·m]", ", ".join(number(v, 2) for v in estimate.noise_std)),
        (
            "solver",
            f"{estimate.method}, {estimate.iterations} iterations, optimality residual "
            f"{estimate.optimality:.1g}, {'converged' if estimate.converged else 'not converged'}",
        ),
        ("model", f"{found.robot.name}, hash {found.robot.model_hash}"),
    ]
    return _table(["", ""], ((name, ("wrap", value)) for name, value in facts))


def _units(robot: Robot) -> list[str]:
    """Say which joints' figures are forces, where a robot has such joints."""
    if not robot.prismatic_names:
        return []
    names = escape(", ".join(robot.prismatic_names))
    return [f'<p class="muted">Prismatic, so in N, N·s/m and kg: {names}.</p>']


def _page(found: Identification, source: str) -> str:
    """Return the HTML of the report on a recording of a name."""
    robot = found.robot
    parts = [
        f"<h1>{escape(robot.name)}</h1>",
        f'<p class="muted">Identified by {escape(found.estimate.method)} from '
        f"<code>{escape(source or found.curves[0].joint)}</code></p>",
        f'<div class="cards">{_cards(found)}</div>',
        "<h2>What to do next</h2>",
        _list(advice(found)),
    ]
    if found.warnings:
        parts += ["<h2>Warnings</h2>", _list(found.warnings, "warning")]
    if found.validation is not None:
        parts += [
            "<h2>Held-out data</h2>",
            f'<div class="panel">{_scores(found.validation)}</div>',
        ]
    parts += [
        "<h2>Data that were learned from</h2>",
        f'<div class="panel">{_scores(found.train)}</div>',
        *_units(robot),
        "<h2>Torques</h2>",
        '<p class="muted">The shaded part was held out: it was predicted, not learned from.</p>',
        _figure("torque", torque_figure(found.curves)),
        "<h2>Residuals</h2>",
        '<p class="muted">Measured minus predicted torque.</p>',
        _figure("residual", residual_figure(found.curves)),
        "<h2>Friction and armature</h2>",
        _figure("friction", friction_figure(found)),
        "<h2>Masses and first moments</h2>",
        '<p class="muted">Single parameters of a body often cannot be told apart by torques: wide '
        "bars are normal here, and the combinations below are what counts.</p>",
        _figure("mass", mass_figure(found)),
        f"<details><summary>All parameters</summary><div>{_parameters(found)}</div></details>",
        "<h2>Physical consistency</h2>",
        '<p class="muted">A body exists if its pseudo-inertia has no negative eigenvalue; bars '
        "that are missing belong to impossible bodies.</p>",
        _figure("consistency", consistency_figure(found)),
        "<h2>What the data determined</h2>",
        '<p class="muted">Per base parameter, the share of the knowledge that came from the data '
        "rather than from the prior.</p>",
        _figure("determination", determination_figure(found)),
        "<details><summary>Base parameters as expressions</summary><div>"
        f"{_base_parameters(found)}</div></details>",
        "<h2>Data and solver</h2>",
        f'<div class="panel">{_data(found)}</div>',
    ]
    return _document(f"{robot.name} · sysid", parts)


def _document(title: str, parts: list[str]) -> str:
    style = (files(__package__) / "style.css").read_text("utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style>"
        f"<script>{plotly_script()}</script></head>\n<body><main>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def write_report(found: Identification, folder: Path, *, source: str = "") -> None:
    """Write ``report.html``, which needs no other file.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    write_text(folder / "report.html", _page(found, source))
