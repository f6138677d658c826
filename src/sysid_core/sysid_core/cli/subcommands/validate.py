# SPDX-License-Identifier: Apache-2.0
"""``sysid validate``: an identified model against other data."""

import argparse
from pathlib import Path

from rich.markup import escape

from sysid_core.cli.console import (
    named_table,
    print_json,
    print_scores,
    print_units,
    progress_bar,
    stdout,
    warn,
)
from sysid_core.estimate_file import EstimateFile, read_estimate
from sysid_core.estimate_json import forecasts_json, scores_json
from sysid_core.forecast import Forecast
from sysid_core.identification import IdentifyConfig
from sysid_core.recordings import Source
from sysid_core.robot import Robot, load_robot
from sysid_core.signals.options import SignalConfig
from sysid_core.validation import validate
from sysid_core.wording import number

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
    return estimate.as_identified(load_robot(given))


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
            Source(args.data, topic=args.topic, without=tuple(args.without)),
            nominal,
            identified,
            options,
            progress,
            learned_cutoff=estimate.cutoff,
            lag=estimate.lag,
            simulated=args.simulate,
        )
    scores = found.scores
    warn(found.warnings)
    if args.json:
        more = {} if found.forecasts is None else {"simulation": forecasts_json(found.forecasts)}
        print_json({**scores_json(scores), **more})
    else:
        low_pass = f"low-pass {found.cutoff:.3g} Hz"
        title = f"{robot.name} on {args.data}: {scores.samples} samples · {low_pass}"
        print_scores(stdout(), scores, title)
        if found.forecasts is not None:
            _show_forecasts(*found.forecasts)
        print_units(stdout(), robot)
    return 0


def _show_forecasts(nominal: Forecast, identified: Forecast) -> None:
    title = (
        f"simulated under the recorded torques: {identified.windows} windows of "
        f"{identified.seconds:.2g} s"
    )
    headings = (f"{what}\nnominal" for what in ("position [rad]", "velocity [rad/s]"))
    table = named_table(title, "joint", *(h for both in headings for h in (both, "identified")))
    errors = (nominal.position, identified.position, nominal.velocity, identified.velocity)
    for joint, *values in zip(identified.joints, *errors, strict=True):
        table.add_row(escape(joint), *map(number, values))
    stdout().print(table)
    for name, model in (("nominal", nominal), ("identified", identified)):
        if model.lost:
            stdout().print(f"the {name} model left its reach in {model.lost} more windows")
