# SPDX-License-Identifier: Apache-2.0
"""``sysid init``: a robot description for any URDF, or for a recorded robot."""

import argparse
import tempfile
from pathlib import Path

from sysid_core.cli.console import stdout, warn
from sysid_core.data import read_parts
from sysid_core.data.reading import read_robot_description
from sysid_core.errors import DataError, OutputError, ParameterError, UnreadableError
from sysid_core.files import write_text
from sysid_core.recordings import PART_ROWS
from sysid_core.robot.initialise import initialise, plain_name
from sysid_core.untrusted import parse_xml

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    if args.urdf is None and args.data is None:
        raise ParameterError("give a URDF, or --data with a bag that has /robot_description")
    xml = None if args.urdf is not None else read_robot_description(args.data)
    stem = args.name or (args.urdf.stem if xml is None else _robot_name(xml, args.data))
    target: Path = args.out or Path(f"{stem}.yaml")
    if target.is_dir():
        target = target / f"{stem}.yaml"
    urdf = target.with_suffix(".urdf")
    for path in (target,) if xml is None else (target, urdf):
        if path.exists() and not args.force:
            raise OutputError(f"{path}: exists already; give another name or --force")
    recording = None
    if args.data is not None:
        parts = read_parts(args.data, joint_topic=args.topic, rows=PART_ROWS, reach=1.0)
        recording = next(parts).recording
    with tempfile.TemporaryDirectory() as folder:
        source = args.urdf
        if xml is not None:
            source = Path(folder) / urdf.name
            source.write_text(xml, encoding="utf-8")
        found = initialise(
            source,
            target,
            name=stem if xml is not None else args.name,
            floating=args.floating,
            recording=recording,
            reference=None if xml is None else urdf.name,
        )
    if xml is not None:
        write_text(urdf, xml)
    write_text(target, found.text)
    warn(found.notes)
    robot = found.robot
    console = stdout()
    console.print(
        f"{target}: {len(robot.layout.bodies)} bodies, {len(robot.joint_names)} joints, "
        f"{robot.description.base} base, tool frame '{robot.tool_frame}'",
        markup=False,
    )
    data = "DATA" if args.data is None else args.data
    console.print(f"next: sysid identify {data} --robot {target} --out DIR", markup=False)
    return 0


def _robot_name(xml: str, data: Path) -> str:
    """Return the name that a URDF gives its robot, as far as a file can have it."""
    try:
        name = parse_xml(xml.encode()).get("name") or ""
    except UnreadableError as error:
        raise DataError(f"its /robot_description is no URDF: {error}", source=str(data)) from error
    return plain_name(name)
