# SPDX-License-Identifier: Apache-2.0
"""``sysid info``: what a recording holds, and what it lacks."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from rich.markup import escape
from rich.table import Table

from sysid_core.cli.arguments import add_data, add_json, add_robot
from sysid_core.cli.console import number, print_json, stdout, warn
from sysid_core.data import RecordingSummary, StreamSummary, read_recording, summarise
from sysid_core.errors import DataError
from sysid_core.robot import load_robot
from sysid_core.robot.interpretation import interpret

__all__ = ["verb"]


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


class _Info:
    name = "info"
    help = "show topics, joints, rates and gaps of a recording, and what is missing"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data(parser)
        add_robot(parser, required=False)
        add_json(parser, "everything")

    def run(self, args: argparse.Namespace) -> int:
        robot = load_robot(args.robot) if args.robot else None
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
            warn(warnings)
            print_json({**asdict(summary), "warnings": warnings, "fit": fit})
            return 0
        if robot is not None and not robot.floating:
            lacking = tuple(text for text in summary.missing if "floating" not in text)
            summary = replace(summary, missing=lacking)
        _show(summary)
        if fit is not None:
            fits, reason = f"fits robot '{fit['robot']}'", f"does not fit: {fit['reason']}"
            stdout().print(fits if fit["fits"] else reason, markup=False)
        warn(warnings)
        return 0


def _show(summary: RecordingSummary) -> None:
    console = stdout()
    if summary.topics:
        topics = Table(title="Topics", title_justify="left", title_style="bold")
        for heading in ("topic", "type"):
            topics.add_column(heading)
        topics.add_column("messages", justify="right")
        for topic in summary.topics:
            topics.add_row(topic.name, topic.type, str(topic.count))
        console.print(topics)
    streams = Table(title="Signals", title_justify="left", title_style="bold")
    streams.add_column("")
    for stream in summary.streams:
        streams.add_column(stream.name, justify="right")
    for heading, value in _STREAM_ROWS.items():
        streams.add_row(escape(heading), *(value(stream) for stream in summary.streams))
    console.print(streams)
    joints = Table(title="Joints", title_justify="left", title_style="bold")
    joints.add_column("joint")
    joints.add_column(escape("range [rad]"), justify="right")
    joints.add_column("moves")
    joints.add_column("lacks")
    for joint in summary.joints:
        joints.add_row(
            joint.name, number(joint.range), "yes" if joint.moves else "no",
            ", ".join(joint.missing) or "–",
        )  # fmt: skip
    console.print(joints)
    for text in summary.missing:
        console.print(f"missing: {text}", markup=False)


verb = _Info()
