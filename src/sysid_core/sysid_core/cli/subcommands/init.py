# SPDX-License-Identifier: Apache-2.0
"""``sysid init``: a robot description for any URDF."""

from __future__ import annotations

import argparse
from pathlib import Path

from sysid_core.cli.console import stdout, warn
from sysid_core.errors import OutputError
from sysid_core.files import write_text
from sysid_core.robot.initialise import initialise

__all__ = ["verb"]


class _Init:
    name = "init"
    help = "write a robot description for a URDF"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("urdf", metavar="URDF", type=Path, help="meshes are not needed")
        parser.add_argument(
            "-o", "--out", metavar="YAML", type=Path, help="default: <name>.yaml in this folder"
        )
        parser.add_argument("--name", help="of the robot; default: the file's")
        base = parser.add_mutually_exclusive_group()
        base.add_argument(
            "--floating", dest="floating", action="store_true", default=None, help="free base"
        )
        base.add_argument(
            "--fixed", dest="floating", action="store_false", help="base bolted down"
        )
        parser.add_argument("--force", action="store_true", help="replace an existing file")

    def run(self, args: argparse.Namespace) -> int:
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


verb = _Init()
