# SPDX-License-Identifier: Apache-2.0
"""Identifies the demo's recording in batch: the unloaded arm, then its load as a load."""

import subprocess
import sys
from pathlib import Path

import numpy as np
from rich.console import Console

from sysid_core.data import read_recording, write_recording
from sysid_core.recording import Recording
from sysid_core.robot import Robot

__all__ = ["Span", "report"]

Span = tuple[float, float]


def cut(recording: Recording, start: float, stop: float, folder: Path) -> Path:
    """Write the part of a recording between two times [s] as a bag of its own."""
    first, last = np.searchsorted(recording.time, (start, stop))
    write_recording(recording.select(slice(int(first), int(last))), folder)
    return folder


def report(console: Console, out: Path, robot: Robot, free: Span, loaded: Span) -> None:
    """Identify the saved recording in batch: the arm without its load, then the load."""
    recording = read_recording(out / "bag")
    alone = cut(recording, *free, out / "bag_unloaded")
    carrying = cut(recording, *loaded, out / "bag_loaded")
    last = robot.layout.bodies[robot.frame(robot.tool_frame).parentJoint - 1]
    estimate = str(out / "identified" / "estimate.json")
    identify = (sys.executable, "-m", "sysid_core.cli.main", "identify", "--robot", robot.name)
    tasks = (
        ("the arm", alone, out / "identified", ()),
        ("its load", carrying, out / "load", ("--from", estimate, "--only", last)),
    )
    for text, bag, folder, known in tasks:
        command = [*identify, str(bag), "--out", str(folder), *known]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            console.print(f"The report on {text} could not be made: {done.stderr.strip()}")
            return
        console.print(f"Report on {text}: {folder / 'report.html'}", soft_wrap=True)
