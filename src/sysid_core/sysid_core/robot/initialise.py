# SPDX-License-Identifier: Apache-2.0
"""Writes a robot description for any URDF, with comments that say what may be filled in."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from string import Template

import numpy as np

from sysid_core.errors import RobotError
from sysid_core.recording import Recording
from sysid_core.robot.description import Mimic, RobotDescription
from sysid_core.robot.description_reader import check_name, parse_description
from sysid_core.robot.guesses import (
    Fitted,
    Foot,
    about_followers,
    about_limits,
    feet_of,
    fit_to,
    floats,
    frictionless,
    tool_of,
)
from sysid_core.robot.model import Robot
from sysid_core.robot.urdf import Urdf, read_urdf
from sysid_core.untrusted import parse_xml, parse_yaml, read_bytes

__all__ = ["InitialDescription", "initialise", "plain_name"]


@dataclass(frozen=True)
class InitialDescription:
    """A first description of a robot."""

    text: str  # YAML with comments
    robot: Robot  # What the description makes of the URDF
    notes: tuple[str, ...]  # Guesses that the user should check, and what is wrong with the URDF


def initialise(
    urdf_path: Path,
    target: Path,
    *,
    name: str | None = None,
    floating: bool | None = None,
    recording: Recording | None = None,
    reference: str | None = None,
) -> InitialDescription:
    """Describe the robot of a URDF by a YAML that will lie at `target`.

    The URDF's path is written relative to it where that is short, or as the `reference` says where
    the URDF is yet to be put in its place. Default of the name is the file's stem, and whether the
    base floats is guessed from what hangs on the root. Joints that a recording lacks are locked.

    Raises
    ------
    RobotError
        If the URDF cannot be used, or is not the recorded robot's.
    """
    check_name(name or plain_name(urdf_path.stem))
    urdf = read_urdf(urdf_path)
    notes: list[str] = []
    mimics = _mimics(urdf_path)
    description = RobotDescription(
        name=name or plain_name(urdf_path.stem),
        urdf=reference or _reference(urdf_path, target),
        source=target,
    )
    if recording is None:
        fitted = Fitted({}, {}, {}, frozenset(), ())
    else:
        fitted = fit_to(recording, Robot(description, urdf))
        notes += fitted.notes
    locked = dict(fitted.locked)
    for joint, mimic in mimics.items():
        locked[joint] = mimic.multiplier * fitted.position.get(mimic.joint, 0.0) + mimic.offset
    if len(locked) == sum(joint.type != "fixed" for joint in urdf.joints.values()):
        raise RobotError("all of its joints would be locked", source=str(urdf_path))
    description = replace(description, locked=locked, names=fitted.names)
    robot = Robot(description, urdf)
    if floating is None:
        floating = floats(robot, notes)
    if floating:
        robot = Robot(replace(description, base="floating"), urdf)
        notes += _about_feet(feet_of(robot))
    elif followers := {k: v for k, v in mimics.items() if _first(mimics, k) in fitted.moving}:
        held = {joint: where for joint, where in locked.items() if joint not in followers}
        robot = Robot(replace(description, locked=held, mimic=followers), urdf)
    notes += about_followers(mimics, locked, robot.description.mimic)
    robot = _described(_write(robot, urdf, notes), urdf, target)  # with feet, which bear it
    if friction := frictionless(robot, notes):
        robot = Robot(replace(robot.description, friction_nominal=friction), urdf)
    notes += [*about_limits(robot), *robot.warnings]
    text = _write(robot, urdf, notes)
    return InitialDescription(text, _described(text, urdf, target), tuple(notes))


def _described(text: str, urdf: Urdf, target: Path) -> Robot:
    """Return the robot that a description's text and a URDF make."""
    return Robot(parse_description(parse_yaml(text), source=target), urdf)


def _about_feet(feet: Sequence[Foot]) -> list[str]:
    if not feet:
        return ["no link is named like a foot: list what touches the ground under 'contacts'"]
    bare = [foot.link for foot in feet if foot.type == "point" and not foot.radius]
    if not bare:
        return []
    return [f"the URDF gives no radius of the feet {', '.join(bare)}: add it under 'contacts'"]


def plain_name(stem: str) -> str:
    """Return a name that a file can have."""
    return re.sub(r"[^0-9A-Za-z_]+", "_", stem).strip("_") or "robot"


def _reference(urdf_path: Path, target: Path) -> str:
    relative = os.path.relpath(urdf_path.resolve(), target.resolve().parent)
    return relative if relative.count("..") <= 1 else str(urdf_path.resolve())


def _mimics(urdf_path: Path) -> dict[str, Mimic]:
    """Return the movable joints that mimic others."""
    found = {}
    for joint in parse_xml(read_bytes(urdf_path)).findall("joint"):
        mimic = joint.find("mimic")
        if mimic is None or joint.get("type") == "fixed":
            continue
        try:
            factor, offset = float(mimic.get("multiplier", "1")), float(mimic.get("offset", "0"))
        except ValueError:
            factor = offset = np.nan
        if not np.isfinite([factor, offset]).all():
            raise RobotError(
                f"joint '{joint.get('name')}' mimics another by what is no number; correct it",
                source=str(urdf_path),
            )
        found[joint.get("name") or ""] = Mimic(mimic.get("joint") or "", factor, offset)
    return found


def _first(mimics: Mapping[str, Mimic], joint: str) -> str:
    """Return who leads a joint, or its leader, and so on."""
    for _ in mimics:
        joint = mimics[joint].joint if joint in mimics else joint
    return joint


def _list(names: Sequence[str], indent: int) -> str:
    return "".join(f"\n{' ' * indent}- {_quoted(name)}" for name in names) if names else " []"


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z_][\w.\-/]*", text) else json.dumps(text)


def _mapping(values: dict[str, str], indent: int) -> str:
    if not values:
        return " {}"
    return "".join(f"\n{' ' * indent}{_quoted(k)}: {v}" for k, v in values.items())


def _write(robot: Robot, urdf: Urdf, notes: Sequence[str]) -> str:
    description, prior = robot.description, robot.description.prior
    efforts = zip(robot.joint_names, robot.limits.effort, strict=True)
    unlimited = ", ".join(name for name, effort in efforts if np.isinf(effort))
    template = (files(__package__) / "description_template.yaml").read_text("utf-8")
    return Template(template).substitute(
        title=description.name,
        file=urdf.path.name,
        bodies=len(robot.layout.bodies),
        joints=len(robot.joint_names),
        notes="".join(f"\n# note: {note}" for note in notes),
        name=_quoted(description.name),
        urdf=_quoted(description.urdf),
        base=description.base,
        tool=_quoted(tool_of(robot)),
        actuated=_list(robot.actuated_names, 4),
        locked=_mapping({k: repr(v) for k, v in description.locked.items()}, 4),
        mimic=_mapping(
            {
                k: f"{{joint: {_quoted(m.joint)}, multiplier: {m.multiplier}, offset: {m.offset}}}"
                for k, m in description.mimic.items()
            },
            4,
        ),
        names=_mapping({k: _quoted(v) for k, v in description.names.items()}, 2),
        terms=", ".join(description.friction_terms),
        friction=_mapping(
            {k: str(v).replace("'", "") for k, v in description.friction_nominal.items()}, 4
        ),
        contacts=_contacts(robot),
        relative_std=prior.relative_std,
        friction_std=prior.friction_relative_std,
        offset_std=prior.offset_std,
        limits=f"\n# The URDF gives no effort limit for {unlimited}." if unlimited else "",
    )


def _contacts(robot: Robot) -> str:
    feet = feet_of(robot) if robot.floating else []
    if not feet:
        return " []  # feet: - {name: , link: , type: point | flat, xyz: [m], radius: [m]}"
    lines = []
    for foot in feet:
        name, (x, y, z) = _quoted(foot.link), foot.xyz.round(6).tolist()
        rest = f"xyz: [{x}, {y}, {z}]" + (f", radius: {foot.radius:g}" if foot.radius else "")
        lines.append(f"\n  - {{name: {name}, link: {name}, type: {foot.type}, {rest}}}")
    return "  # frames that may touch the ground; radius [m] of a ball" + "".join(lines)
