# SPDX-License-Identifier: Apache-2.0
"""Figures of the Digit benchmark: predicted torques, forward simulations, tracking errors."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from bench.digit_experiments import Segments, Tracking
from bench.digit_plant import Log
from sysid_core.scores import Curve

__all__ = ["plot_segments", "plot_torques", "plot_tracking"]

COLOURS = {"measured": "0.4", "nominal": "tab:orange", "identified": "tab:blue"}


def _axes(joints: tuple[str, ...]) -> tuple[Figure, np.ndarray]:
    figure, axes = plt.subplots(3, 2, figsize=(11, 8), sharex=True, layout="constrained")
    for axis, joint in zip(axes.flat, joints, strict=True):
        axis.set_title(joint, fontsize=9)
        axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    return figure, axes


def _save(figure: Figure, axes: np.ndarray, unit: str, path: Path) -> None:
    for axis in axes[:, 0]:
        axis.set_ylabel(unit)
    axes.flat[0].legend(fontsize=8, loc="upper right")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def plot_torques(curves: tuple[Curve, ...], path: Path) -> None:
    """Plot measured and predicted torques on the test motion (the paper's figure 3)."""
    figure, axes = _axes(tuple(curve.joint for curve in curves))
    for axis, curve in zip(axes.flat, curves, strict=True):
        for name, values in (
            ("measured", curve.measured),
            ("nominal", curve.nominal),
            ("identified", curve.identified),
        ):
            axis.plot(curve.time, values, lw=0.9, color=COLOURS[name], label=name)
    _save(figure, axes, "torque [N·m]", path)


def plot_segments(
    joints: tuple[str, ...], log: Log, results: dict[str, Segments], path: Path
) -> None:
    """Plot segments of forward simulation over the measured motion (the paper's figure 4)."""
    figure, axes = _axes(joints)
    stop = next(iter(results.values())).time[-1, -1]
    shown = log.time <= stop
    for j, axis in enumerate(axes.flat):
        axis.plot(
            log.time[shown],
            np.degrees(log.position[shown, j]),
            lw=2.0,
            color=COLOURS["measured"],
            label="measured",
        )
        for name, segments in results.items():
            for k, (time, position) in enumerate(
                zip(segments.time, segments.position, strict=True)
            ):
                axis.plot(
                    time,
                    np.degrees(position[:, j]),
                    lw=0.9,
                    color=COLOURS[name],
                    label=name if k == 0 else None,
                )
    _save(figure, axes, "position [°]", path)


def plot_tracking(joints: tuple[str, ...], results: dict[str, Tracking], path: Path) -> None:
    """Plot tracking errors (the paper's figure 5)."""
    figure, axes = _axes(joints)
    for j, axis in enumerate(axes.flat):
        for name, tracking in results.items():
            axis.plot(tracking.time, tracking.error[:, j], lw=0.9, color=COLOURS[name], label=name)
    _save(figure, axes, "error [°]", path)
