# SPDX-License-Identifier: Apache-2.0
"""The interactive figures of the report, as the JSON that plotly.js draws.

plotly's Python classes check every property against a schema, which took a second per report.
"""

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.identification import Identification
from sysid_core.inertia import pseudo_inertia
from sysid_core.scores import Curve

__all__ = [
    "Figure",
    "consistency_figure",
    "determination_figure",
    "friction_figure",
    "mass_figure",
    "plotly_script",
    "residual_figure",
    "torque_figure",
]

_MEASURED = "#333a45"
_NOMINAL = "#e08214"
_IDENTIFIED = "#1f6fd1"
_HELD_OUT = "#eef3fa"
_INK = "#1d2430"
_MUTED = "#667085"
_MOST_POINTS = 1500
_POINTS_OF_ALL = 12000


class Figure(NamedTuple):
    """What ``Plotly.newPlot`` takes: traces and layout."""

    data: list[dict[str, Any]]
    layout: dict[str, Any]


def plotly_script() -> str:
    """Return the JavaScript of plotly.js."""
    return (files("plotly") / "package_data" / "plotly.min.js").read_text("utf-8")


def _figure(height: int, **layout: Any) -> Figure:
    template = (files("plotly") / "package_data/templates/plotly_white.json").read_text("utf-8")
    common = {
        "template": json.loads(template),
        "height": height,
        "margin": {"l": 60, "r": 20, "t": 60, "b": 40},
        "font": {"family": "system-ui, DejaVu Sans, sans-serif", "size": 12, "color": _INK},
        "legend": {"orientation": "h", "y": 0.995, "xref": "container", "yref": "container"},
        "hovermode": "x unified",
    }
    return Figure([], {**common, **layout})


def _number(field: int) -> str:
    """Return what plotly.js puts behind ``x``, ``y``, ``xaxis`` and ``yaxis`` of a field."""
    return str(field + 1) if field else ""


def _fields(titles: Sequence[str], columns: int, height: int) -> Figure:
    """Return a figure with a field per title, row by row; the fields of a column share their x."""
    grid = {"rows": -(-len(titles) // columns), "columns": columns, "pattern": "independent"}
    figure = _figure(height, grid=grid, annotations=[], shapes=[])
    for k, title in enumerate(titles):
        field = _number(k)
        lowest = k % columns + columns * ((len(titles) - 1 - k % columns) // columns)
        shared = {"showticklabels": False, "matches": f"x{_number(lowest)}"}
        figure.layout[f"xaxis{field}"] = {"automargin": True} | (shared if k != lowest else {})
        figure.layout[f"yaxis{field}"] = {}
        above = {"xref": f"x{field} domain", "yref": f"y{field} domain", "x": 0, "y": 1}
        look = {"yanchor": "bottom", "showarrow": False, "font": {"size": 13}}
        figure.layout["annotations"].append({"text": title, **above, **look})
    return figure


def _thin(values: FloatArray, curves: int) -> list[float]:
    """Return few enough points, with few enough digits, for a page that loads at once."""
    step = max(1, -(-len(values) // max(200, min(_MOST_POINTS, _POINTS_OF_ALL // curves))))
    return [float(f"{v:.5g}") for v in values[::step]]


def _over_time(
    curves: Sequence[Curve], lines: Sequence[dict[str, tuple[FloatArray, str]]], row_height: int
) -> Figure:
    """Draw, below each other, the lines (name → values, colour) of every joint."""
    titles = [curve.joint for curve in curves]
    figure = _fields(titles, 1, 100 + row_height * len(curves))
    for k, (curve, entries) in enumerate(zip(curves, lines, strict=True)):
        axis = _number(k)
        figure.layout[f"yaxis{axis}"]["title"] = {"text": "N·m", "font": {"size": 11}}
        time = curve.time - curve.time[0]
        held = time[curve.held_out]
        if len(held):
            place = {"xref": f"x{axis}", "x0": float(held[0]), "x1": float(held[-1])}
            place |= {"yref": f"y{axis} domain", "y0": 0, "y1": 1}
            look = {"fillcolor": _HELD_OUT, "layer": "below", "line": {"width": 0}}
            figure.layout["shapes"].append({"type": "rect", **place, **look})
        for name, (values, colour) in entries.items():
            legend = {"name": name, "legendgroup": name, "showlegend": k == 0}
            look = {"mode": "lines", "line": {"color": colour, "width": 1.2}}
            points = {"x": _thin(time, len(curves)), "y": _thin(values, len(curves))}
            axes = {"xaxis": f"x{axis}", "yaxis": f"y{axis}"}
            figure.data.append({"type": "scattergl", **points, **axes, **legend, **look})
    figure.layout[f"xaxis{_number(len(curves) - 1)}"]["title"] = {"text": "time [s]"}
    return figure


def torque_figure(curves: Sequence[Curve]) -> Figure:
    """Draw measured, nominal and identified torque of every joint over time."""
    lines = [
        {
            "nominal": (curve.nominal, _NOMINAL),
            "measured": (curve.measured, _MEASURED),
            "identified": (curve.identified, _IDENTIFIED),
        }
        for curve in curves
    ]
    return _over_time(curves, lines, 190)


def residual_figure(curves: Sequence[Curve]) -> Figure:
    """Draw measured minus predicted torque of every joint over time."""
    lines = [
        {
            "nominal": (curve.measured - curve.nominal, _NOMINAL),
            "identified": (curve.measured - curve.identified, _IDENTIFIED),
        }
        for curve in curves
    ]
    return _over_time(curves, lines, 140)


def _with_bars(
    figure: Figure,
    names: Sequence[str],
    triple: tuple[FloatArray, FloatArray, FloatArray],
    field: int,
    signed: bool,
) -> None:
    """Draw nominal and identified values, and bars of two standard deviations, into a field."""
    nominal, identified, std = triple
    up = 2.0 * np.nan_to_num(std)
    down = up if signed else np.minimum(up, np.maximum(identified, 0.0))
    axes = {"xaxis": f"x{_number(field)}", "yaxis": f"y{_number(field)}"}
    common = {"type": "scatter", "x": list(names), "mode": "markers", "showlegend": field == 0}
    dash = {"symbol": "line-ew-open", "size": 18, "color": _NOMINAL, "line": {"width": 3}}
    dot = {"size": 8, "color": _IDENTIFIED}
    bars = {"type": "data", "array": up.tolist(), "arrayminus": down.tolist()}
    for name, values, look in (
        ("nominal", nominal, {"marker": dash}),
        ("identified ± 2 σ", identified, {"marker": dot, "error_y": bars}),
    ):
        legend = {"name": name, "legendgroup": name}
        figure.data.append({**common, **axes, "y": values.tolist(), **legend, **look})


def friction_figure(found: Identification) -> Figure:
    """Draw the friction terms of every joint with bars of two standard deviations."""
    layout, estimate = found.robot.layout, found.estimate
    titles = [f"{term.name} [{term.unit}]" for term in found.robot.friction_terms]
    figure = _fields(titles, 2, 310 * ((len(titles) + 1) // 2))
    for field, term in enumerate(found.robot.friction_terms):
        where = layout.term(term.name)
        values = (found.nominal[where], estimate.parameters[where], estimate.std[where])
        _with_bars(figure, layout.joints, values, field, term.lower < 0.0)
    return figure


def mass_figure(found: Identification) -> Figure:
    """Draw masses and first moments of every body with bars of two standard deviations."""
    layout, estimate = found.robot.layout, found.estimate
    titles = ("mass [kg]", "m·cx [kg·m]", "m·cy [kg·m]", "m·cz [kg·m]")
    figure = _fields(titles, 2, 620)
    vectors = (found.nominal, estimate.parameters, estimate.std)
    nominal, identified, std = (layout.inertias(vector) for vector in vectors)
    for k in range(len(titles)):
        values = (nominal[:, k], identified[:, k], std[:, k])
        _with_bars(figure, layout.bodies, values, k, k > 0)
    return figure


def consistency_figure(found: Identification) -> Figure:
    """Draw the smallest pseudo-inertia eigenvalue of every body, relative to its largest."""
    layout = found.robot.layout
    title = {"text": "smallest / largest eigenvalue"}
    figure = _figure(340, yaxis={"type": "log", "title": title, "exponentformat": "e"})
    for name, vector, colour in (
        ("nominal", found.nominal, _NOMINAL),
        ("identified", found.estimate.parameters, _IDENTIFIED),
    ):
        eigenvalues = np.linalg.eigvalsh(pseudo_inertia(layout.inertias(vector)))
        ratio = eigenvalues[:, 0] / np.maximum(eigenvalues[:, -1], 1e-300)
        figure.data.append(
            {
                "type": "bar",
                "x": list(layout.bodies),
                "y": [float(r) if r > 0.0 else None for r in ratio],
                "name": name,
                "marker": {"color": colour},
            }
        )
    return figure


def determination_figure(found: Identification) -> Figure:
    """Draw which share of each base parameter's information the data brought."""
    order = np.argsort(-found.estimate.determined)
    share = found.estimate.determined[order]
    labels = found.regression.base.expressions(3)
    y = {"title": {"text": "share from the data"}, "tickformat": ".0%", "range": [0.0, 1.02]}
    x = {"title": {"text": "base parameters, the best determined first"}}
    figure = _figure(320, yaxis=y, xaxis=x, hovermode="closest")
    figure.data.append(
        {
            "type": "bar",
            "x": list(range(1, len(share) + 1)),
            "y": share.tolist(),
            "customdata": [labels[i][:90] for i in order],
            "hovertemplate": "%{customdata}<br>%{y:.0%} from the data<extra></extra>",
            "marker": {"color": [_IDENTIFIED if s >= 0.5 else _MUTED for s in share]},
        }
    )
    return figure
