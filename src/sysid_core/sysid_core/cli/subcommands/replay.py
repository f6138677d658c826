# SPDX-License-Identifier: Apache-2.0
"""``sysid replay``: the online pipeline over a recording, as fast as it goes."""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np

from sysid_core.cli.console import print_json, progress_bar, stdout, warn
from sysid_core.data import read_recording
from sysid_core.errors import ParameterError
from sysid_core.online.replay import ReplayStep, replay, stream_settings_for
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.update import Update
from sysid_core.robot import load_robot
from sysid_core.robot.interpretation import interpret
from sysid_core.wording import number

__all__ = ["run"]

_LINE_EVERY = 1.0
"""Recorded time [s] between lines, unless something happens."""


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    if not (math.isfinite(args.rate) and args.rate > 0.0):
        raise ParameterError(f"--rate must be above zero, got {args.rate:g}")
    online = OnlineConfig(window=args.window, method=args.method)
    robot = load_robot(args.robot)
    recording = read_recording(args.data, joint_topic=args.topic)
    warn(interpret(robot, recording, lenient=args.lenient).warnings)
    stream = stream_settings_for(recording, robot, cutoff=args.cutoff)
    start, span = float(recording.time[0]), float(np.ptp(recording.time)) or 1.0
    summary = _Summary(start)
    begin = time.perf_counter()
    with progress_bar() as progress:
        for step in replay(
            recording,
            robot,
            stream=stream,
            online=online,
            update_rate=args.rate,
            clock=time.perf_counter,
            tell=warn,
        ):
            progress("replay", (step.update.time - start) / span)
            summary.add(step)
            if args.json:
                print_json(_line(step), line=True)
            elif summary.worth_a_line:
                _show(step.update, start)
    totals = summary.totals(time.perf_counter() - begin)
    if args.json:
        print_json({"summary": totals}, line=True)
    else:
        _show_totals(totals)
    return 0


class _Summary:
    """Counts and times over a replay."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._solve_ms: list[float] = []
        self._updates = self._accepted = self._samples = 0
        self._first: float | None = None
        self._shown = ("", False, -1)
        self.worth_a_line = False

    def add(self, step: ReplayStep) -> None:
        update = step.update
        self._updates += 1
        self._samples = update.samples
        if math.isfinite(step.solve_time):
            self._solve_ms.append(1e3 * step.solve_time)
        if update.changed and update.identified:
            self._accepted += 1
            if self._first is None:
                self._first = update.time - self._start
        shown = (
            update.state.name,
            update.payload_attached,
            int((update.time - self._start) / _LINE_EVERY),
        )
        self.worth_a_line, self._shown = shown != self._shown, shown

    def totals(self, elapsed: float) -> dict[str, Any]:
        times = np.array(self._solve_ms) if self._solve_ms else np.full(1, np.nan)
        p50, p99 = np.percentile(times, [50, 99])
        return {
            "updates": self._updates,
            "accepted": self._accepted,
            "first_accepted_s": self._first,
            "solve_ms": {"p50": p50, "p99": p99, "max": times.max()},
            "samples": self._samples,
            "samples_per_s": self._samples / max(elapsed, 1e-9),
        }


def _payload(update: Update) -> dict[str, Any] | None:
    found = update.payload
    if found is None:
        return None
    shown = ("mass", "mass_std", "com", "com_std", "inertia", "inertia_std")
    values = {name: getattr(found, name) for name in shown}
    return values | {"attached": update.payload_attached}


def _line(step: ReplayStep) -> dict[str, Any]:
    update = step.update
    return {
        "t": update.time,
        "state": update.state.name,
        "r2": update.scores.r2,
        "r2_joints": update.scores.candidate.r2,
        "revision": update.revision,
        "solve_ms": 1e3 * step.solve_time,
        "payload": _payload(update),
        "reasons": update.reasons,
        "warnings": update.warnings,
    }


def _show(update: Update, start: float) -> None:
    payload = (
        ""
        if update.payload is None
        else (f" · payload {update.payload.mass:.2f} ± {update.payload.mass_std:.2f} kg")
    )
    reasons = f" · {'; '.join(update.reasons)}" if update.reasons else ""
    stdout().print(
        f"{update.time - start:8.2f} s  {update.state.name:<10}  R² {number(update.scores.r2)}  "
        f"revision {update.revision}{payload}{reasons}",
        markup=False,
        soft_wrap=True,
    )


def _show_totals(totals: dict[str, Any]) -> None:
    first = totals["first_accepted_s"]
    solve = totals["solve_ms"]
    when = "never" if first is None else f"first after {first:.2f} s"
    stdout().print(
        f"{totals['updates']} updates, {totals['accepted']} accepted ({when}); solve "
        f"{number(solve['p50'])} ms median, {number(solve['p99'])} ms 99 %, "
        f"{number(solve['max'])} ms at most; {totals['samples']} samples, "
        f"{totals['samples_per_s']:.0f} per second",
        markup=False,
        soft_wrap=True,
    )
