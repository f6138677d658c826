# SPDX-License-Identifier: Apache-2.0
"""Writes the report: everything that was found, in one page that needs nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from html import escape
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
from sysid_core.scores import Scores

__all__ = ["write_report"]

_STYLE_SHEET = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; background: #f6f7f9; color: #1d2430;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 26px; margin: 0 0 2px; }
h2 { font-size: 18px; margin: 34px 0 8px; }
p { margin: 6px 0; max-width: 80ch; }
.muted { color: #667085; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 12px;
  margin: 18px 0 6px; }
.card { background: #fff; border: 1px solid #e4e7ec; border-radius: 10px; padding: 12px 14px; }
.card b { display: block; font-size: 22px; line-height: 1.25; }
.card span { color: #667085; font-size: 13px; }
.good b { color: #12805c; } .bad b { color: #c0362c; }
.panel { background: #fff; border: 1px solid #e4e7ec; border-radius: 10px; padding: 14px;
  overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 5px 10px; border-bottom: 1px solid #edf0f3;
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td.wrap { white-space: normal; text-align: left; }
th { color: #667085; font-weight: 600; font-size: 13px; white-space: normal;
  vertical-align: bottom; }
@media (max-width: 640px) { main { padding: 20px 10px 40px; } .panel { padding: 10px 6px; }
  table { font-size: 13px; } th { font-size: 11px; } th, td { padding: 5px; } }
td.better { color: #12805c; font-weight: 600; } td.worse { color: #c0362c; font-weight: 600; }
ul { margin: 6px 0; padding-left: 20px; } li { margin: 4px 0; max-width: 95ch; }
details { background: #fff; border: 1px solid #e4e7ec; border-radius: 10px; margin-top: 10px; }
summary { cursor: pointer; padding: 10px 14px; font-weight: 600; }
details > div { padding: 0 14px 12px; overflow-x: auto; }
.warning li { color: #8a4b08; }
code { background: #eef0f4; border-radius: 4px; padding: 1px 5px; font-size: 13px; }
"""

_SPARE_BUTTONS = [
    "zoomIn2d",
    "zoomOut2d",
    "autoScale2d",
    "select2d",
    "lasso2d",
    "sendChartToCloud",
]
"""Without these the legend stays free on a narrow screen, and nothing leaves the page."""


def _number(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}g}" if math.isfinite(value) else "–"


def _r2(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "–"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(h)}</th>" for h in headings)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str, kind: str = "") -> str:
    return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"


def _scores(scores: Scores) -> str:
    rows = []
    for j, joint in enumerate(scores.joints):
        before, after = scores.rmse_nominal[j], scores.rmse_identified[j]
        rows.append(
            [
                _cell(joint),
                _cell(_number(before)),
                _cell(_number(after), "better" if after < before else "worse"),
                _cell(f"{after / before:.2f}" if before > 0.0 else "–"),
                _cell(_r2(scores.r2_nominal[j])),
                _cell(_r2(scores.r2_identified[j])),
            ]
        )
    return _table(
        [
            "joint",
            "RMSE nominal [N·m]",
            "RMSE identified [N·m]",
            "ratio",
            "R² nominal",
            "R² identified",
        ],
        rows,
    )


def _cards(found: Identification) -> str:
    estimate = found.estimate
    judged = found.train if found.validation is None else found.validation
    where = "on all data, learned from" if found.validation is None else "on held-out data"
    total = np.sqrt((judged.rmse_identified**2).sum())
    consistent = float(np.min(estimate.consistency)) > 0.0
    determined = int((estimate.determined >= 0.5).sum())
    cards = [
        (f"{_number(total)} N·m", f"torque error over all joints, {where}", ""),
        (
            f"{judged.improvement:.1f} ×",
            "smaller than the nominal model's",
            "good" if judged.improvement > 1.0 else "bad",
        ),
        (
            "yes" if consistent else "no",
            "physically consistent",
            "good" if consistent else "bad",
        ),
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
    config = {
        "displaylogo": False,
        "responsive": True,
        "modeBarButtonsToRemove": _SPARE_BUTTONS,
    }
    # "</" would end the script.
    parts = (json.dumps(part).replace("</", "<\\/") for part in (*figure, config))
    return (
        f'<div class="panel"><div id="{name}"></div>'
        f'<script>Plotly.newPlot("{name}", {", ".join(parts)})</script></div>'
    )


def _list(items: Sequence[str], kind: str = "") -> str:
    return f'<ul class="{kind}">{"".join(f"<li>{escape(i)}</li>" for i in items)}</ul>'


def _parameters(found: Identification) -> str:
    estimate = found.estimate
    rows = (
        [
            _cell(label),
            _cell(_number(before, 5)),
            _cell(_number(after, 5)),
            _cell(_number(std, 2)),
        ]
        for label, before, after, std in zip(
            found.robot.layout.labels,
            found.nominal,
            estimate.parameters,
            estimate.std,
            strict=True,
        )
    )
    return _table(["parameter", "nominal", "identified", "σ"], rows)


def _base_parameters(found: Identification) -> str:
    estimate, base = found.estimate, found.regression.base
    nominal = base.project(found.nominal)
    rows = (
        [
            _cell(text, "wrap"),
            _cell(_number(before, 4)),
            _cell(_number(after, 4)),
            _cell(f"{share:.0%}"),
        ]
        for text, before, after, share in zip(
            base.expressions(3),
            nominal,
            estimate.base_parameters,
            estimate.determined,
            strict=True,
        )
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
            ", ".join(_number(value, 2) for value in found.correlation),
        ),
        ("noise of the rows [N·m]", ", ".join(_number(v, 2) for v in estimate.noise_std)),
        (
            "solver",
            f"{estimate.method}, {estimate.iterations} iterations, optimality residual "
            f"{estimate.optimality:.1g}, {'converged' if estimate.converged else 'not converged'}",
        ),
        ("model", f"{found.robot.name}, hash {found.robot.model_hash}"),
    ]
    return _table(["", ""], ([_cell(k), _cell(v, "wrap")] for k, v in facts))


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
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE_SHEET}</style>"
        f"<script>{plotly_script()}</script></head>\n<body><main>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def write_report(found: Identification, folder: Path, *, source: str = "") -> None:
    """Write ``report.html``, which needs no other file.

    Parameters
    ----------
    found : Identification
    folder : Path
    source : str
        Name of the recording, for the heading.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    write_text(folder / "report.html", _page(found, source))
