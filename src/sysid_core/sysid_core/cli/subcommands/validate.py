# SPDX-License-Identifier: Apache-2.0
"""``sysid validate``: an identified model against other data."""

from __future__ import annotations

import argparse
from pathlib import Path

from sysid_core.cli.console import (
    print_json,
    print_scores,
    print_units,
    progress_bar,
    stdout,
    warn,
)
from sysid_core.estimate_file import EstimateFile, read_estimate
from sysid_core.estimate_json import scores_json
from sysid_core.identification import IdentifyConfig
from sysid_core.recordings import Source
from sysid_core.robot import Robot, load_robot
from sysid_core.signals import SignalConfig
from sysid_core.validation import validate

__all__ = ["load_estimated_robot", "run"]


def load_estimated_robot(estimate: EstimateFile, given: str | None) -> Robot:
    """Return the robot of an estimate: the one given, else the description that was used.

    Raises
    ------
    RobotError
        If it cannot be found.
    """
    if given is None:
        used = estimate.description
        given = used if used is not None and Path(used).is_file() else estimate.robot
    return estimate.with_friction(load_robot(given))


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    estimate = read_estimate(args.estimate)
    robot = load_estimated_robot(estimate, args.robot)
    nominal, identified = estimate.nominal(robot), estimate.parameters(robot)
    options = IdentifyConfig(lenient=args.lenient, signals=SignalConfig(cutoff=args.cutoff))
    with progress_bar() as progress:
        progress("signals", 0.0)
        found = validate(
            robot,
            Source(args.data, topic=args.topic),
            nominal,
            identified,
            options,
            progress,
            learned_cutoff=estimate.cutoff,
        )
    scores = found.scores
    warn(found.warnings)
    if args.json:
        print_json(scores_json(scores))
    else:
        low_pass = f"low-pass {found.cutoff:.3g} Hz"
        title = f"{robot.name} on {args.data}: {scores.samples} samples · {low_pass}"
        print_scores(stdout(), scores, title)
        print_units(stdout(), robot)
    return 0
