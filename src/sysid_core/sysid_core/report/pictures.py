# SPDX-License-Identifier: Apache-2.0
"""Pictures of an identification as PNG files, for documents and pull requests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sysid_core.dynamics.friction import FRICTION
from sysid_core.identification import Identification
from sysid_core.report.style import HELD_OUT, IDENTIFIED, MEASURED, MUTED, NOMINAL
from sysid_core.scores import Curve

__all__ = ["write_pictures"]

_DPI = 110
_MARGIN = {"left": 0.075, "right": 0.985}
"""Parts of the width; a layout engine, which measures every text, took half of the drawing."""
_FAST_COMPRESSION = {"compress_level": 1}
"""Pillow's default is three times slower and saves a tenth."""


def _save(figure: Figure, path: Path) -> None:
    # `savefig` would draw twice.
    canvas: Any = FigureCanvasAgg(figure)
    canvas.print_png(path, pil_kwargs=_FAST_COMPRESSION)


def _plain(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(True, color="#e6e9ee", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, colors=MUTED)


def _over_time(curves: Sequence[Curve], *, residuals: bool) -> Figure:
    height = 1.2 + (1.15 if residuals else 1.5) * len(curves)
    figure = Figure(figsize=(10.0, height), dpi=_DPI)
    edges = {"top": 1.0 - 0.5 / height, "bottom": 0.5 / height, "hspace": 0.35}
    figure.subplots_adjust(**_MARGIN, **edges)
    grid = figure.subplots(len(curves), 1, sharex=True, squeeze=False)[:, 0]
    for axes, curve in zip(grid, curves, strict=True):
        t = curve.time - curve.time[0]
        if curve.held_out.any():
            axes.axvspan(t[curve.held_out][0], t[-1], color=HELD_OUT, label="held out")
        if residuals:
            lines = {
                "nominal": (curve.measured - curve.nominal, NOMINAL),
                "identified": (curve.measured - curve.identified, IDENTIFIED),
            }
        else:
            lines = {
                "nominal": (curve.nominal, NOMINAL),
                "measured": (curve.measured, MEASURED),
                "identified": (curve.identified, IDENTIFIED),
            }
        for name, (values, colour) in lines.items():
            axes.plot(t, values, color=colour, linewidth=0.9, label=name)
        axes.set_title(curve.joint, fontsize=9, loc="left", pad=3)
        axes.set_ylabel("N·m", fontsize=8, color=MUTED)
        axes.margins(x=0.0)
        _plain(axes)
    grid[-1].set_xlabel("time [s]", fontsize=9)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncols=4, fontsize=8, frameon=False)
    return figure


def _friction(found: Identification) -> Figure:
    layout, estimate = found.robot.layout, found.estimate
    figure = Figure(figsize=(10.0, 6.0), dpi=_DPI)
    figure.subplots_adjust(**_MARGIN, top=0.92, bottom=0.2, hspace=0.2, wspace=0.16)
    place = np.arange(len(layout.joints))
    fields = figure.subplots((len(FRICTION) + 1) // 2, 2, sharex="col").ravel()
    for axes, term in zip(fields, FRICTION, strict=False):
        where = layout.term(term.name)
        axes.plot(
            place,
            found.nominal[where],
            "_",
            color=NOMINAL,
            markersize=14,
            markeredgewidth=2.5,
            label="nominal",
        )
        value, up = estimate.parameters[where], 2.0 * np.nan_to_num(estimate.std[where])
        down = up if term.lower < 0.0 else np.minimum(up, np.maximum(value, 0.0))
        axes.errorbar(
            place,
            value,
            np.vstack([down, up]),
            fmt="o",
            color=IDENTIFIED,
            markersize=5,
            capsize=3,
            label="identified ± 2 σ",
        )
        axes.set_title(f"{term.name} [{term.unit}]", fontsize=9, loc="left")
        axes.set_xticks(place, layout.joints, rotation=60, ha="right", fontsize=7)
        _plain(axes)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncols=2, fontsize=8, frameon=False)
    return figure


def write_pictures(found: Identification, folder: Path) -> None:
    """Write ``torques.png``, ``residuals.png`` and ``friction.png`` into a folder."""
    _save(_over_time(found.curves, residuals=False), folder / "torques.png")
    _save(_over_time(found.curves, residuals=True), folder / "residuals.png")
    _save(_friction(found), folder / "friction.png")
