# SPDX-License-Identifier: Apache-2.0
"""Figures of the legged benchmark: error over the number of samples and over the noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

__all__ = ["plot_noise", "plot_samples"]

STYLE = {
    "nominal": ("0.6", ":"),
    "SVD": ("black", "--"),
    "SVD, same rows": ("0.4", "-."),
    "LMI": ("tab:red", "-"),
    "LMI (sdp)": ("tab:orange", "-."),
    "MLP leaky_relu": ("tab:blue", "-"),
    "MLP tanh": ("tab:cyan", "-"),
}


def _plot(
    table: dict[str, Any], motions: tuple[str, ...], label: str, path: Path, *, log: bool
) -> None:
    figure, axes = plt.subplots(1, len(motions), figsize=(12, 3.6), layout="constrained")
    for axis, motion in zip(axes, motions, strict=True):
        for model, (colour, line) in STYLE.items():
            points = [
                (float(x), entry[motion][model])
                for x, entry in table.items()
                if model in entry[motion]
            ]
            if not points:
                continue
            xs = [x for x, _ in points]
            errors = np.array([values for _, values in points])
            axis.plot(xs, errors.mean(axis=1), line, color=colour, marker=".", label=model)
            axis.fill_between(xs, errors.min(axis=1), errors.max(axis=1), color=colour, alpha=0.15)
        axis.set_title(motion)
        axis.set_xlabel(label)
        axis.set_yscale("log")
        axis.set_xscale("log" if log else "linear")
        axis.grid(alpha=0.3, which="both")
    axes[0].set_ylabel("projected torque RMSE [N·m]")
    axes[0].legend(fontsize=7)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def plot_samples(table: dict[str, Any], motions: tuple[str, ...], path: Path) -> None:
    """Plot errors over the number of samples (the paper's figure 2); bands span the seeds."""
    _plot(table, motions, "samples", path, log=True)


def plot_noise(table: dict[str, Any], motions: tuple[str, ...], path: Path) -> None:
    """Plot errors over the noise, as a multiple of the stated levels."""
    _plot(table, motions, "noise / stated noise", path, log=False)
