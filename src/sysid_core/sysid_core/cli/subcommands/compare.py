# SPDX-License-Identifier: Apache-2.0
"""``sysid compare``: two estimates side by side, with an exit status for CI."""

import argparse
from typing import Any

from rich.markup import escape

from sysid_core.cli.console import named_table, print_json, print_units, stdout, warn, with_std
from sysid_core.cli.subcommands.validate import load_estimated_robot
from sysid_core.comparison import Comparison, TorqueDifference, compare, compare_torques
from sysid_core.estimate_file import read_estimate
from sysid_core.identification import IdentifyConfig
from sysid_core.recordings import Source
from sysid_core.signals.options import SignalConfig
from sysid_core.wording import number

__all__ = ["run"]

_MOST_SHOWN = 20  # Parameters that the table shows; JSON has all of them
_FIGURES = ("first", "second", "first_std", "second_std", "z")


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status: 0 they agree, 1 they differ."""
    first, second = read_estimate(args.first), read_estimate(args.second)
    found = compare(first, second)
    torque = None
    if args.data is not None:
        robot = load_estimated_robot(first, args.robot)
        options = IdentifyConfig(lenient=args.lenient, signals=SignalConfig(cutoff=args.cutoff))
        source = Source(args.data, topic=args.topic, without=tuple(args.without))
        torque = compare_torques(robot, source, first, second, options)
        warn(torque.warnings)
    agree = not (found.beyond or (torque is not None and torque.beyond))
    if args.json:
        print_json(_as_json(found, torque, agree))
        return int(not agree)
    _show(found)
    if torque is not None:
        _show_torque(torque)
        print_units(stdout(), robot)
    stdout().print(
        f"{'they agree' if agree else 'they differ'}: {len(found.beyond)} of "
        f"{len(found.differences)} parameters beyond |z| = {found.bound:.2g}, which estimates of "
        "one truth exceed in 1 % of comparisons"
        + (f"; torques differ at {', '.join(torque.beyond)}" if torque and torque.beyond else ""),
        markup=False,
    )
    return int(not agree)


def _show(found: Comparison) -> None:
    strongest = sorted(found.differences, key=lambda d: -abs(d.z))[:_MOST_SHOWN]
    title = "largest differences, in standard deviations of both"
    table = named_table(title, "parameter", "first", "second", "z")
    for d in strongest:
        if d.z == 0.0:
            break
        z = number(d.z)
        table.add_row(
            escape(d.name if d.kind != "base" else f"base: {d.name}"),
            with_std(d.first, d.first_std),
            with_std(d.second, d.second_std),
            f"[red]{z}[/]" if abs(d.z) > found.bound else z,
        )
    stdout().print(table if table.row_count else "all parameters are the same")
    if found.unmatched:
        warn([f"only one of the estimates has {len(found.unmatched)} quantities: not compared"])


def _show_torque(torque: TorqueDifference) -> None:
    headings = ("joint", "error of first", "error of second", "between them")
    table = named_table("predicted torque on the recording, RMS [N·m]", *headings)
    rows = zip(torque.joints, torque.first, torque.second, torque.between, strict=True)
    for joint, first, second, between in rows:
        cell = number(between)
        differs = joint in torque.beyond
        table.add_row(
            escape(joint), number(first), number(second), f"[red]{cell}[/]" if differs else cell
        )
    stdout().print(table)


def _as_json(found: Comparison, torque: TorqueDifference | None, agree: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"agree": agree, "bound": found.bound, "unmatched": found.unmatched}
    for kind in ("bodies", "friction", "base"):
        of_kind = (d for d in found.differences if d.kind == kind)
        result[kind] = {d.name: {name: getattr(d, name) for name in _FIGURES} for d in of_kind}
    if torque is not None:
        result["torque"] = {
            "joints": torque.joints,
            "rmse_first": torque.first,
            "rmse_second": torque.second,
            "between": torque.between,
            "differ": torque.beyond,
        }
    return result
