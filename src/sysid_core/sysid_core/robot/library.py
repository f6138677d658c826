# SPDX-License-Identifier: Apache-2.0
"""Finds robot descriptions and URDFs by name, path or ``package://`` address."""

import os
from contextlib import suppress
from pathlib import Path

from sysid_core.errors import RobotError, UnknownRobotError, UnreadableError
from sysid_core.robot.description import RobotDescription
from sysid_core.robot.description_reader import read_description
from sysid_core.robot.model import Robot
from sysid_core.robot.urdf import read_urdf
from sysid_core.untrusted import check_file

__all__ = ["known_robots", "load_robot", "resolve_urdf"]


def _share(package: str) -> list[Path]:
    """Return the share folders of a package, installed or in the source workspace."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    found = [Path(p) / "share" / package for p in prefixes if p]
    workspace = Path(__file__).resolve().parents[4]
    if package == "sysid_bringup":
        found.append(workspace)
    found.append(workspace / "src" / package)
    return [folder for folder in found if folder.is_dir()]


def _robot_folders() -> list[Path]:
    extra = os.environ.get("SYSID_ROBOTS", "").split(os.pathsep)
    folders = [Path(p) for p in extra if p]
    folders += [share / "config" / "robots" for share in _share("sysid_bringup")]
    return [folder for folder in folders if folder.is_dir()]


def known_robots() -> dict[str, Path]:
    """Return the robot descriptions that can be named: name → path of its YAML.

    They lie in the folders of ``$SYSID_ROBOTS``, in an installed ``sysid_bringup``, and in the
    source workspace; the first found wins.
    """
    robots: dict[str, Path] = {}
    for folder in _robot_folders():
        for path in sorted(folder.glob("*.yaml")):
            robots.setdefault(path.stem, path)
    return robots


def resolve_urdf(description: RobotDescription) -> Path:
    """Return the path of a description's URDF.

    Raises
    ------
    RobotError
        If it does not exist; the message names the places that were tried.
    """
    text = description.urdf
    if text.startswith("package://"):
        package, _, rest = text.removeprefix("package://").partition("/")
        tried = [share / rest for share in _share(package)]
    else:
        beside = description.source.parent if description.source else Path()
        tried = [Path(text).expanduser() if Path(text).is_absolute() else beside / text]
    for path in tried:
        with suppress(UnreadableError):
            check_file(path)
            return path
    places = ", ".join(map(str, tried)) or f"package of '{text}' not found"
    raise RobotError(
        f"URDF '{text}' does not exist (tried: {places}); correct 'urdf' in the description",
        source=str(description.source or description.name),
    )


def load_robot(robot: str | Path | RobotDescription) -> Robot:
    """Load a robot by name, by the path of its YAML, or from a description.

    Raises
    ------
    UnknownRobotError
        If a name is not known.
    RobotError
        If the description or its URDF cannot be used.
    """
    if isinstance(robot, RobotDescription):
        description = robot
    else:
        path = Path(robot).expanduser()
        if path.suffix.lower() == ".urdf":
            raise RobotError(
                "is a URDF, not a robot description; make one with 'sysid init' and give that",
                source=str(path),
            )
        if path.suffix not in (".yaml", ".yml"):
            known = known_robots()
            if str(robot) not in known:
                raise UnknownRobotError(str(robot), tuple(sorted(known)))
            path = known[str(robot)]
        description = read_description(path)
    return Robot(description, read_urdf(resolve_urdf(description)))
