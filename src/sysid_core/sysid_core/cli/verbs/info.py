# SPDX-License-Identifier: Apache-2.0
"""``sysid info``: what a recording holds, and what it lacks."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from rich.markup import escape
from rich.table import Table

from sysid_core.cli.arguments import add_data, add_json, add_robot
from sysid_core.cli.console import number, print_json, stdout, warn
from sysid_core.data import RecordingSummary, read_recording, summarise
from sysid_core.errors import DataError
from sysid_core.robot import load_robot
from sysid_core.robot.interpretation import interpret

__all__ = ["verb"]


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
    streams.add_column("signal")
    for heading in (
        "rows", "duration [s]", "rate [Hz]", "jitter [ms]", "gaps", "longest gap [s]", "lost",
        "doubled", "late", "clock resets", "NaN or inf",
    ):  # fmt: skip
        streams.add_column(escape(heading), justify="right")
    for s in summary.streams:
        streams.add_row(
            s.name, str(s.count), number(s.duration, 4), number(s.rate, 4),
            number(1e3 * s.jitter, 2), str(s.gaps), number(s.longest_gap, 2), str(s.lost),
            str(s.duplicates), str(s.late), str(s.resets), str(s.not_finite),
        )  # fmt: skip
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
