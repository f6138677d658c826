# SPDX-License-Identifier: Apache-2.0
"""``sysid info``: what a recording holds and lacks, and whether a robot's loops close."""

import argparse
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from rich.markup import escape

from sysid_core.cli.console import named_table, print_json, stdout, warn
from sysid_core.data import RecordingSummary, StreamSummary, read_recording, summarise
from sysid_core.errors import DataError, ParameterError
from sysid_core.robot import Robot, load_robot
from sysid_core.robot.interpretation import interpret
from sysid_core.robot.loop_check import check_loops
from sysid_core.robot.loops import LoopClosure
from sysid_core.wording import number

__all__ = ["run"]


_STREAM_ROWS: dict[str, Callable[[StreamSummary], str]] = {
    "rows": lambda s: str(s.count),
    "duration [s]": lambda s: number(s.duration, 4),
    "rate [Hz]": lambda s: number(s.rate, 4),
    "jitter [ms]": lambda s: f"{1e3 * s.jitter:.2f}",
    "gaps": lambda s: str(s.gaps),
    "longest interval [s]": lambda s: number(s.longest_gap, 2),
    "lost rows": lambda s: str(s.lost),
    "doubled rows": lambda s: str(s.duplicates),
    "late rows": lambda s: str(s.late),
    "clock set back": lambda s: str(s.resets),
    "NaN or inf": lambda s: str(s.not_finite),
}


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    if args.data is None and args.robot is None:
        raise ParameterError("nothing to show; give DATA, --robot ROBOT, or both")
    robot = load_robot(args.robot) if args.robot else None
    shown: dict[str, Any] = {}
    warnings: list[str] = []
    if args.data is not None:
        shown, warnings = _data(args, robot)
    if robot is not None:
        shown["robot"] = _robot(robot, quiet=args.json)
        warnings += robot.warnings
    warn(list(dict.fromkeys(warnings)))
    if args.json:
        print_json({**shown, "warnings": warnings})
    return 0


def _data(args: argparse.Namespace, robot: Robot | None) -> tuple[dict[str, Any], list[str]]:
    """Show the recording unless JSON is wanted; return it for JSON, and warnings."""
    recording = read_recording(args.data, joint_topic=args.topic)
    summary = summarise(recording)
    fit: dict[str, Any] | None = None
    warnings = list(summary.warnings)
    if robot is not None:
        fit = {"robot": robot.name, "fits": True, "reason": ""}
        try:
            warnings = list(interpret(robot, recording).warnings)
        except DataError as error:
            fit.update(fits=False, reason=str(error))
    if args.json:
        return {**asdict(summary), "fit": fit}, warnings
    if robot is not None and not robot.floating:
        lacking = tuple(text for text in summary.missing if "floating" not in text)
        summary = replace(summary, missing=lacking)
    _show(summary)
    if fit is not None:
        fits, reason = f"fits robot '{fit['robot']}'", f"does not fit: {fit['reason']}"
        stdout().print(fits if fit["fits"] else reason, markup=False)
    return {}, warnings


def _robot(robot: Robot, *, quiet: bool) -> dict[str, Any]:
    """Show the robot unless quiet; return it for JSON."""
    loops = check_loops(LoopClosure(robot)) if robot.linked else None
    if not quiet:
        base = "floating" if robot.floating else "fixed"
        joints = f"{len(robot.actuated_names)} actuated"
        if robot.passive.any():
            joints += f" and {int(robot.passive.sum())} passive"
        lines = [f"robot '{robot.name}': {joints} joints on a {base} base"]
        lines += () if loops is None else loops.lines()
        for line in lines:
            stdout().print(line, markup=False)
    return {
        "name": robot.name,
        "floating": robot.floating,
        "actuated": list(robot.actuated_names),
        "passive": [n for n, p in zip(robot.joint_names, robot.passive, strict=True) if p],
        "loops": None if loops is None else {**asdict(loops), "holds": loops.holds},
    }


def _show(summary: RecordingSummary) -> None:
    console = stdout()
    if summary.topics:
        topics = named_table("Topics", "topic")
        topics.add_column("type")
        topics.add_column("messages", justify="right")
        for topic in summary.topics:
            topics.add_row(escape(topic.name), topic.type, str(topic.count))
        console.print(topics)
    streams = named_table("Signals", "", *(stream.name for stream in summary.streams))
    for heading, value in _STREAM_ROWS.items():
        streams.add_row(escape(heading), *(value(stream) for stream in summary.streams))
    console.print(streams)
    joints = named_table("Joints", "joint", "range [rad or m]")
    joints.add_column("moves")
    joints.add_column("lacks")
    for joint in summary.joints:
        joints.add_row(
            escape(joint.name),
            number(joint.range),
            "yes" if joint.moves else "no",
            ", ".join(joint.missing) or "–",
        )
    console.print(joints)
    for text in summary.missing:
        console.print(f"missing: {text}", markup=False)
