# SPDX-License-Identifier: Apache-2.0
"""``sysid excite``: an optimised exciting trajectory within a robot's limits."""

import argparse
import math
from pathlib import Path
from typing import Any

from rich.markup import escape

from sysid_core.cli.console import named_table, print_json, progress_bar, stdout
from sysid_core.errors import ParameterError
from sysid_core.estimate_file import read_estimate
from sysid_core.excitation.design import ExciteConfig
from sysid_core.excitation.fourier import States
from sysid_core.excitation.limits import motion_limits
from sysid_core.excitation.motion_file import read_motion
from sysid_core.excitation.optimise import Excitation, excite
from sysid_core.excitation.write import FILES, write_excitation
from sysid_core.files import require_writable, results_folder
from sysid_core.robot import Robot, load_robot
from sysid_core.robot.clearance import Obstacles
from sysid_core.wording import number

__all__ = ["run"]

_RATE = 100.0
_MOST_ROWS = 10**6


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    robot = load_robot(args.robot)
    rate = args.rate
    if rate is None:
        rate = min(robot.description.signals.rate or _RATE, _RATE)
    if not (math.isfinite(rate) and 5.0 <= rate <= 1e5):
        raise ParameterError(f"--rate must lie between 5 and 100000 Hz, got {rate:g}")
    if args.duration * rate > _MOST_ROWS:
        raise ParameterError(
            f"{args.duration:g} s at {rate:g} Hz are more than {_MOST_ROWS} rows; lower --rate"
        )
    limits = motion_limits(
        robot, share=args.share, speed=args.speed, acceleration=args.acceleration
    )
    options = ExciteConfig(
        duration=args.duration,
        harmonics=args.harmonics,
        starts=args.starts,
        seed=args.seed,
        focus=args.focus,
        obstacles=Obstacles(args.apart, tuple(map(tuple, args.box)), args.floor),
        joints=None if args.joints is None else tuple(args.joints),
    )
    estimates = [
        path for path in args.after if path.suffix == ".json" or (path / "estimate.json").is_file()
    ]
    if len(estimates) > 1:
        raise ParameterError("--after takes one estimate and any number of motions")
    estimate = read_estimate(estimates[0]) if estimates else None
    if estimate is not None:
        robot = estimate.as_identified(robot)
    earlier = [_states(robot, path) for path in args.after if path not in estimates]
    require_writable(args.out)
    with progress_bar() as show:
        found = excite(robot, limits, options, show, earlier=earlier, estimate=estimate)
        with results_folder(args.out) as folder:
            summary = _summary(robot, found, options)
            write_excitation(found, robot.actuated_names, summary, folder, rate=rate)
    if args.json:
        print_json(summary)
    else:
        _show(robot, found, args.out)
    return 0


def _states(robot: Robot, path: Path) -> States:
    """Return an earlier motion of the robot."""
    motion = read_motion(path)
    if motion.model_hash not in ("", robot.model_hash):
        raise ParameterError(f"{path} is a motion of another robot or model than '{robot.name}'")
    return motion.states(robot.actuated_names)


def _summary(robot: Robot, found: Excitation, options: ExciteConfig) -> dict[str, Any]:
    source = robot.description.source
    return {
        "robot": robot.name,
        "model_hash": robot.model_hash,
        "description": None if source is None else str(source.resolve()),
        "duration_s": found.motion.period,
        "harmonics": found.motion.harmonics,
        "seed": options.seed,
        "joints": list(robot.actuated_names),
        "moving": list(found.moving),
        "start": found.motion.states(found.motion.times(1.0)[:1]).position[0].tolist(),
        "condition": {"optimised": found.condition, "random": found.random_condition},
        "sharpness": found.sharpness,
        "usage": {kind: values.tolist() for kind, values in found.usage.items()},
        "lowest_m": found.lowest,
    }


def _show(robot: Robot, found: Excitation, out: Path) -> None:
    console = stdout()
    table = named_table(
        f"{robot.name}, {found.motion.period:g} s, {found.motion.harmonics} harmonics · "
        "largest share of each limit that is used",
        *("joint", "start [rad]", *found.usage),
    )
    start = found.motion.states(found.motion.times(1.0)[:1]).position[0]
    for j, joint in enumerate(robot.actuated_names):
        shares = [f"{values[j]:.0%}" for values in found.usage.values()]
        table.add_row(escape(joint), f"{start[j]:.3f}", *shares)
    console.print(table)
    console.print(
        f"condition number {number(found.condition)}, of random motions within the same limits "
        f"{number(found.random_condition)}; parameters {found.sharpness:.2g} times as exact"
    )
    resting = [n for n in robot.actuated_names if n not in found.moving]
    if resting:
        console.print(f"at rest, unless --joints names them: {', '.join(resting)}", markup=False)
    checked = "only what --apart, --box and --floor name is kept clear of"
    console.print(
        f"lowest point of joints and tool {number(found.lowest)} m · {checked}: look at the "
        "motion in simulation, and move to the start slowly"
    )
    console.print(f"wrote {', '.join(FILES)} to {out}", markup=False)
