# SPDX-License-Identifier: Apache-2.0
"""``sysid init``: a robot description for any URDF."""

from __future__ import annotations

import argparse
from pathlib import Path

from sysid_core.cli.console import stdout, warn
from sysid_core.errors import OutputError
from sysid_core.files import write_text
from sysid_core.robot.description_reader import check_name
from sysid_core.robot.initialise import initialise

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    if args.name is not None:
        check_name(args.name)
    target: Path = args.out or Path(f"{args.name or args.urdf.stem}.yaml")
    if target.is_dir():
        target = target / f"{args.name or args.urdf.stem}.yaml"
    if target.exists() and not args.force:
        raise OutputError(f"{target}: exists already; give another name or --force")
    found = initialise(args.urdf, target, name=args.name, floating=args.floating)
    write_text(target, found.text)
    warn(found.notes)
    robot = found.robot
    console = stdout()
    console.print(
        f"{target}: {len(robot.layout.bodies)} bodies, {len(robot.joint_names)} joints, "
        f"{robot.description.base} base, tool frame '{robot.tool_frame}'",
        markup=False,
    )
    console.print(f"next: sysid identify DATA --robot {target} --out DIR", markup=False)
    return 0
