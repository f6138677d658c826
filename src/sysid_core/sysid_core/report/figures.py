# SPDX-License-Identifier: Apache-2.0
"""The interactive figures of the report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from sysid_core.arrays import FloatArray
from sysid_core.identification import Identification
from sysid_core.inertia import pseudo_inertia
from sysid_core.parameters import FRICTION_TERMS
from sysid_core.report.style import HELD_OUT, IDENTIFIED, INK, MEASURED, MUTED, NOMINAL
from sysid_core.scores import Curve

__all__ = [
    "consistency_figure",
    "determination_figure",
    "friction_figure",
    "mass_figure",
    "residual_figure",
    "torque_figure",
]

_MOST_POINTS = 1500
_POINTS_OF_ALL = 12000
_UNITS = {"viscous": "N·m·s/rad", "coulomb": "N·m", "armature": "kg·m²", "offset": "N·m"}


def _thin(values: FloatArray, curves: int) -> list[float]:
    """Return few enough points, with few enough digits, for a page that loads at once."""
    step = max(1, -(-len(values) // max(200, min(_MOST_POINTS, _POINTS_OF_ALL // curves))))
    return [float(f"{v:.5g}") for v in values[::step]]


def _axes(figure: go.Figure, height: int) -> go.Figure:
    figure.update_layout(
        template="plotly_white",
        height=height,
        margin={"l": 60, "r": 20, "t": 60, "b": 40},
        font={"family": "system-ui, DejaVu Sans, sans-serif", "size": 12, "color": INK},
        legend={
            "orientation": "h",
            "y": 0.995,
            "yanchor": "top",
            "x": 0.0,
            "xanchor": "left",
            "xref": "container",
            "yref": "container",
        },
        hovermode="x unified",
    )
    figure.update_annotations(font_size=13)
    return figure


def _stack(curves: Sequence[Curve], unit: str) -> go.Figure:
    figure = make_subplots(
        rows=len(curves),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=min(0.04, 0.25 / len(curves)),
        subplot_titles=[curve.joint for curve in curves],
    )
    figure.update_annotations(x=0.0, xanchor="left")
    for row, curve in enumerate(curves, start=1):
        figure.update_yaxes(title_text=unit, row=row, col=1, title_font_size=11)
        held = curve.time[curve.held_out]
        if len(held):
            figure.add_vrect(
                x0=held[0] - curve.time[0],
                x1=held[-1] - curve.time[0],
                fillcolor=HELD_OUT,
                layer="below",
                line_width=0,
                row=row,
                col=1,
                exclude_empty_subplots=False,
            )
    figure.update_xaxes(title_text="time [s]", row=len(curves), col=1)
    return figure


def _line(
    figure: go.Figure,
    curve: Curve,
    values: FloatArray,
    place: tuple[int, int],
    name: str,
    colour: str,
) -> None:
    row, count = place
    figure.add_trace(
        go.Scattergl(
            x=_thin(curve.time - curve.time[0], count),
            y=_thin(values, count),
            name=name,
            legendgroup=name,
            showlegend=row == 1,
            mode="lines",
            line={"color": colour, "width": 1.2},
        ),
        row=row,
        col=1,
    )


def torque_figure(curves: Sequence[Curve]) -> go.Figure:
    """Draw measured, nominal and identified torque of every joint over time."""
    figure = _stack(curves, "N·m")
    for row, curve in enumerate(curves, start=1):
        place = (row, len(curves))
        _line(figure, curve, curve.nominal, place, "nominal", NOMINAL)
        _line(figure, curve, curve.measured, place, "measured", MEASURED)
        _line(figure, curve, curve.identified, place, "identified", IDENTIFIED)
    return _axes(figure, 100 + 190 * len(curves))


def residual_figure(curves: Sequence[Curve]) -> go.Figure:
    """Draw measured minus predicted torque of every joint over time."""
    figure = _stack(curves, "N·m")
    for row, curve in enumerate(curves, start=1):
        place = (row, len(curves))
        _line(figure, curve, curve.measured - curve.nominal, place, "nominal", NOMINAL)
        _line(figure, curve, curve.measured - curve.identified, place, "identified", IDENTIFIED)
    return _axes(figure, 100 + 140 * len(curves))


def _with_bars(
    figure: go.Figure,
    names: Sequence[str],
    nominal: FloatArray,
    identified: FloatArray,
    std: FloatArray,
    place: tuple[int, int],
    signed: bool,
) -> None:
    row, col = place
    legend = place == (1, 1)
    up = 2.0 * np.nan_to_num(std)
    down = up if signed else np.minimum(up, np.maximum(identified, 0.0))
    figure.add_trace(
        go.Scatter(
            x=list(names),
            y=nominal.tolist(),
            name="nominal",
            legendgroup="nominal",
            mode="markers",
            showlegend=legend,
            marker={"symbol": "line-ew-open", "size": 18, "color": NOMINAL, "line": {"width": 3}},
        ),
        row=row,
        col=col,
    )
    figure.add_trace(
        go.Scatter(
            x=list(names),
            y=identified.tolist(),
            name="identified ± 2 σ",
            legendgroup="identified",
            mode="markers",
            showlegend=legend,
            marker={"size": 8, "color": IDENTIFIED},
            error_y={"type": "data", "array": up.tolist(), "arrayminus": down.tolist()},
        ),
        row=row,
        col=col,
    )


def _grid(titles: Sequence[str]) -> go.Figure:
    """Return two by two fields over the same names, which stand below the lower ones only."""
    figure = make_subplots(
        rows=2, cols=2, subplot_titles=titles, shared_xaxes=True, vertical_spacing=0.12
    )
    return figure.update_xaxes(automargin=True)


def friction_figure(found: Identification) -> go.Figure:
    """Draw the friction terms of every joint with bars of two standard deviations."""
    layout, estimate = found.robot.layout, found.estimate
    titles = [f"{term} [{_UNITS[term]}]" for term in FRICTION_TERMS]
    figure = _grid(titles)
    for k, term in enumerate(FRICTION_TERMS):
        where = layout.term(term)
        _with_bars(
            figure,
            layout.joints,
            found.nominal[where],
            estimate.parameters[where],
            estimate.std[where],
            (k // 2 + 1, k % 2 + 1),
            term == "offset",
        )
    return _axes(figure, 620)


def mass_figure(found: Identification) -> go.Figure:
    """Draw masses and first moments of every body with bars of two standard deviations."""
    layout, estimate = found.robot.layout, found.estimate
    quantities = {"mass [kg]": 0, "m·cx [kg·m]": 1, "m·cy [kg·m]": 2, "m·cz [kg·m]": 3}
    figure = _grid(list(quantities))
    nominal = layout.inertias(found.nominal)
    identified, std = layout.inertias(estimate.parameters), layout.inertias(estimate.std)
    for k, column in enumerate(quantities.values()):
        _with_bars(
            figure,
            layout.bodies,
            nominal[:, column],
            identified[:, column],
            std[:, column],
            (k // 2 + 1, k % 2 + 1),
            column > 0,
        )
    return _axes(figure, 620)


def consistency_figure(found: Identification) -> go.Figure:
    """Draw the smallest pseudo-inertia eigenvalue of every body, relative to its largest."""
    layout = found.robot.layout
    figure = go.Figure()
    for name, vector, colour in (
        ("nominal", found.nominal, NOMINAL),
        ("identified", found.estimate.parameters, IDENTIFIED),
    ):
        eigenvalues = np.linalg.eigvalsh(pseudo_inertia(layout.inertias(vector)))
        ratio = eigenvalues[:, 0] / np.maximum(eigenvalues[:, -1], 1e-300)
        figure.add_trace(
            go.Bar(
                x=list(layout.bodies),
                y=np.where(ratio > 0.0, ratio, np.nan).tolist(),
                name=name,
                marker_color=colour,
            )
        )
    figure.update_yaxes(type="log", title_text="smallest / largest eigenvalue", exponentformat="e")
    return _axes(figure, 340)


def determination_figure(found: Identification) -> go.Figure:
    """Draw which share of each base parameter's information the data brought."""
    order = np.argsort(-found.estimate.determined)
    share = found.estimate.determined[order]
    labels = found.regression.base.expressions(3)
    figure = go.Figure(
        go.Bar(
            x=np.arange(1, len(share) + 1),
            y=share.tolist(),
            customdata=[labels[i][:90] for i in order],
            hovertemplate="%{customdata}<br>%{y:.0%} from the data<extra></extra>",
            marker_color=[IDENTIFIED if s >= 0.5 else MUTED for s in share],
        )
    )
    figure.update_yaxes(title_text="share from the data", tickformat=".0%", range=[0.0, 1.02])
    figure.update_xaxes(title_text="base parameters, the best determined first")
    _axes(figure, 320)
    return figure.update_layout(hovermode="closest")
