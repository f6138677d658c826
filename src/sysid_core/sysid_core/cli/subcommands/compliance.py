# SPDX-License-Identifier: Apache-2.0
"""``sysid compliance``: stiffness and damping of joints in six directions from link poses."""

import argparse
from pathlib import Path

from rich.markup import escape

from sysid_core.cli.console import named_table, print_json, progress_bar, stdout, warn, with_std
from sysid_core.compliance.estimate import AXES, Compliance, identify_compliance
from sysid_core.compliance.poses import read_poses
from sysid_core.compliance.report import FILES, write_compliance
from sysid_core.files import require_writable, results_folder
from sysid_core.robot import load_robot
from sysid_core.wording import number

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    robot = load_robot(args.robot)
    require_writable(args.out)
    with progress_bar() as show:
        show("reading", 0.0)
        poses = read_poses(args.data)
        show("estimation", 0.3)
        found = identify_compliance(robot, poses, coupled=args.coupled)
        show("report", 0.8)
        with results_folder(args.out) as folder:
            data = write_compliance(robot, found, folder)
    warn(found.warnings)
    if args.json:
        print_json(data)
    else:
        _show(found, args.out)
    return 0


def _show(found: Compliance, out: Path) -> None:
    console = stdout()
    title = f"{len(found.time)} poses at {found.rate:.4g} Hz · per direction of the joint's frame"
    headings = ("stiffness [N/m, N·m/rad]", "damping [N·s/m, N·m·s/rad]", "R²")
    table = named_table(title, "joint", "", *headings)
    for joint in found.joints:
        for k, axis in enumerate(AXES):
            table.add_row(
                escape(joint.joint) if k == 0 else "",
                axis,
                with_std(joint.stiffness[k, k], joint.stiffness_std[k], 4),
                with_std(joint.damping[k, k], joint.damping_std[k], 4),
                number(joint.r2[k], 4, "f"),
            )
    console.print(table)
    console.print(f"wrote {', '.join(FILES)} to {out}", markup=False)
