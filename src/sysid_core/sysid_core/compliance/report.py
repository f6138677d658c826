# SPDX-License-Identifier: Apache-2.0
"""Writes identified springs and dampers: numbers as JSON, wrenches as a picture."""

from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sysid_core.compliance.estimate import AXES, Compliance
from sysid_core.files import json_text, write_text
from sysid_core.robot.model import Robot

__all__ = ["FILES", "compliance_json", "write_compliance"]

FILES = ("compliance.json", "wrenches.png")
_FIGURES = ("stiffness", "damping", "stiffness_std", "damping_std", "rest", "r2", "rmse")


def compliance_json(robot: Robot, found: Compliance) -> dict[str, Any]:
    """Return the contents of the JSON file."""
    return {
        "robot": robot.name,
        "model_hash": robot.model_hash,
        "axes": AXES,
        "rate_hz": found.rate,
        "smoothing": found.smoothing,
        "joints": {
            joint.joint: {name: getattr(joint, name) for name in _FIGURES}
            for joint in found.joints
        },
        "warnings": found.warnings,
    }


def _picture(found: Compliance, path: Path) -> None:
    figure = Figure(figsize=(14.0, 0.8 + 1.9 * len(found.joints)), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(found.joints), len(AXES), sharex=True, squeeze=False)
    for row, joint in zip(grid, found.joints, strict=True):
        measured = joint.load.wrench - joint.load.wrench.mean(axis=0)
        modelled = joint.wrench()
        for k, axes in enumerate(row):
            unit = "N" if k < 3 else "N·m"
            axes.plot(found.time, measured[:, k], color="#8a94a3", linewidth=1.4)
            axes.plot(found.time, modelled[:, k], color="#1f5fa8", linewidth=0.8)
            axes.set_title(f"{joint.joint} {AXES[k]} [{unit}]", fontsize=8, loc="left", pad=2)
            axes.tick_params(labelsize=7)
            axes.margins(x=0.0)
    for axes in grid[-1]:
        axes.set_xlabel("time [s]", fontsize=8)
    figure.suptitle(
        "wrench across each joint, less its mean: from inertia (grey), from springs and dampers "
        "(blue)",
        fontsize=9,
    )
    figure.savefig(path, format="png")


def write_compliance(robot: Robot, found: Compliance, folder: Path) -> dict[str, Any]:
    """Write the files of `FILES` into a folder and return what the JSON holds.

    Raises
    ------
    OutputError
        If they cannot be written.
    """
    data = compliance_json(robot, found)
    write_text(folder / FILES[0], json_text(data, indent=1))
    _picture(found, folder / FILES[1])
    return data
