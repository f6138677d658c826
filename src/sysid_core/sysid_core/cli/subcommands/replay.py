# SPDX-License-Identifier: Apache-2.0
"""``sysid replay``: the online pipeline over a recording, as fast as it goes."""

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

_LINE_EVERY = 1.0  # Recorded time [s] between lines, unless something happens


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    if not (math.isfinite(args.rate) and args.rate > 0.0):
        raise ParameterError(f"--rate must be above zero, got {args.rate:g}")
    low_pass = "chosen" if args.cutoff is None else "described"
    online = OnlineConfig(window=args.window, method=args.method, low_pass=low_pass)
    robot = load_robot(args.robot)
    recording = read_recording(args.data, joint_topic=args.topic)
    warn(interpret(robot, recording, lenient=args.lenient).warnings)
    stream = stream_settings_for(recording, robot, cutoff=args.cutoff)
    start, span = float(recording.time[0]), float(np.ptp(recording.time)) or 1.0
    solve_ms: list[float] = []
    accepted: list[float] = []
    updates, shown = 0, None
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
            update, since = step.update, step.update.time - start
            progress("replay", since / span)
            updates += 1
            if math.isfinite(step.solve_time):
                solve_ms.append(1e3 * step.solve_time)
            if update.changed and update.identified:
                accepted.append(since)
            news = (update.state, update.payload_attached, int(since / _LINE_EVERY))
            if args.json:
                print_json(_line(step), line=True)
            elif news != shown:
                _show(update, start)
            shown = news
    elapsed = time.perf_counter() - begin
    samples = update.samples if updates else 0
    p50, p99, most = np.percentile(solve_ms or [np.nan], [50, 99, 100])
    totals = {
        "updates": updates,
        "accepted": len(accepted),
        "first_accepted_s": accepted[0] if accepted else None,
        "solve_ms": {"p50": p50, "p99": p99, "max": most},
        "samples": samples,
        "samples_per_s": samples / max(elapsed, 1e-9),
    }
    if args.json:
        print_json({"summary": totals}, line=True)
    else:
        _show_totals(totals)
    return 0


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
