# SPDX-License-Identifier: Apache-2.0
"""Writes a designed motion: a table, a message to play, whose it is, a picture of what moves."""

import csv
from pathlib import Path
from typing import Any

import yaml
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sysid_core.excitation.motion_file import IDENTITY, TRAJECTORY
from sysid_core.excitation.optimise import Excitation
from sysid_core.files import json_text, write_text

__all__ = ["FILES", "write_excitation"]

FILES = ("trajectory.csv", TRAJECTORY, IDENTITY, "trajectory.png")
_MESSAGE_RATE = 20.0
"""Points of the message [Hz]: players interpolate between them by fifth-order polynomials."""
_DIGITS = 9


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS) + 0.0  # no negative zeros


def _table(found: Excitation, joints: tuple[str, ...], path: Path, rate: float) -> None:
    time = found.motion.times(rate)
    states = found.motion.states(time)
    kinds = ("position", "velocity", "acceleration")
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["time", *(f"{joint}/{kind}" for joint in joints for kind in kinds)])
        for i, t in enumerate(time):
            row = [states[k][i, j] for j in range(len(joints)) for k in range(3)]
            writer.writerow([_rounded(value) for value in (t, *row)])


def _message(found: Excitation, joints: tuple[str, ...]) -> str:
    """Return the motion as a trajectory_msgs/JointTrajectory in YAML."""
    time = found.motion.times(_MESSAGE_RATE)
    points = []
    for t, *state in zip(time, *found.motion.states(time), strict=True):
        nanoseconds = round(1e9 * float(t))
        names = ("positions", "velocities", "accelerations")
        points.append(
            {
                name: [_rounded(v) for v in values]
                for name, values in zip(names, state, strict=True)
            }
            | {"time_from_start": {"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9}}
        )
    message = {
        "header": {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""},
        "joint_names": list(joints),
        "points": points,
    }
    head = (
        "# trajectory_msgs/JointTrajectory [rad, rad/s, rad/s², s]; be at the first point first\n"
    )
    return head + yaml.safe_dump(message, sort_keys=False, default_flow_style=None, width=100000)


def _picture(found: Excitation, joints: tuple[str, ...], path: Path) -> None:
    time = found.motion.times(100.0)
    states, limits = found.motion.states(time), found.limits
    count = len(found.moving)
    figure = Figure(figsize=(11.0, 1.2 + 1.3 * count), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(count, 3, sharex=True, squeeze=False)
    bounds = (
        (limits.lower, limits.upper),
        (-limits.velocity, limits.velocity),
        (-limits.acceleration, limits.acceleration),
    )
    for column, title in enumerate(
        ("position [rad]", "velocity [rad/s]", "acceleration [rad/s²]")
    ):
        grid[0, column].set_title(title, fontsize=10)
        grid[-1, column].set_xlabel("time [s]", fontsize=9)
        for row, joint in enumerate(found.moving):
            axes, j = grid[row, column], joints.index(joint)
            axes.plot(time, states[column][:, j], color="#1f5fa8", linewidth=1.1)
            for bound in bounds[column]:
                axes.axhline(bound[j], color="#c0392b", linewidth=0.8, linestyle="--")
            axes.tick_params(labelsize=7)
            axes.margins(x=0.0)
            if column == 0:
                axes.set_ylabel(joint, fontsize=7)
    figure.savefig(path, format="png")


def write_excitation(
    found: Excitation,
    joints: tuple[str, ...],
    identity: dict[str, Any],
    folder: Path,
    *,
    rate: float,
) -> None:
    """Write the files of `FILES` into a folder; the table at a rate [Hz].

    Raises
    ------
    OutputError
        If they cannot be written.
    """
    _table(found, joints, folder / FILES[0], rate)
    write_text(folder / FILES[1], _message(found, joints))
    write_text(folder / FILES[2], json_text(identity, indent=1))
    _picture(found, joints, folder / FILES[3])
