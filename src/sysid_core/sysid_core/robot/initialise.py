# SPDX-License-Identifier: Apache-2.0
"""Writes a robot description for any URDF, with comments that say what may be filled in."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sysid_core.errors import RobotError
from sysid_core.recording import Recording
from sysid_core.robot.description import RobotDescription
from sysid_core.robot.description_reader import check_name, parse_description
from sysid_core.robot.guesses import (
    Fitted,
    Foot,
    Mimic,
    feet_of,
    fit_to,
    floats,
    follow_leaders,
    tool_of,
)
from sysid_core.robot.model import Robot
from sysid_core.robot.urdf import Urdf, read_urdf
from sysid_core.untrusted import parse_xml, parse_yaml, read_bytes

__all__ = ["InitialDescription", "initialise", "plain_name"]


@dataclass(frozen=True)
class InitialDescription:
    """A first description of a robot.

    Attributes
    ----------
    text : str
        YAML with comments.
    robot : Robot
        What the description makes of the URDF.
    notes : tuple[str, ...]
        Guesses that the user should check, and what is wrong with the URDF.
    """

    text: str
    robot: Robot
    notes: tuple[str, ...]


def initialise(
    urdf_path: Path,
    target: Path,
    *,
    name: str | None = None,
    floating: bool | None = None,
    recording: Recording | None = None,
    reference: str | None = None,
) -> InitialDescription:
    """Describe the robot of a URDF.

    Parameters
    ----------
    urdf_path : Path
    target : Path
        Where the YAML will lie; the URDF's path is written relative to it where that is short.
    name : str, optional
        Default: the file name's stem.
    floating : bool, optional
        Whether the base is free; None: guessed from what hangs on the root.
    recording : Recording, optional
        Joints that it lacks are locked.
    reference : str, optional
        How the description names the URDF, where that is yet to be put in its place.

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
        fitted = Fitted({}, {}, {}, ())
    else:
        fitted = fit_to(recording, Robot(description, urdf))
        notes += fitted.notes
    locked = {**fitted.locked, **follow_leaders(mimics, fitted.position, notes)}
    if len(locked) == sum(joint.type != "fixed" for joint in urdf.joints.values()):
        raise RobotError("all of its joints would be locked", source=str(urdf_path))
    description = replace(description, locked=locked, names=fitted.names)
    robot = Robot(description, urdf)
    if floating is None:
        floating = floats(robot, notes)
    if floating:
        robot = Robot(replace(description, base="floating"), urdf)
        notes += _about_feet(feet_of(robot))
    notes += robot.warnings
    text = _write(robot, urdf, notes)
    robot = Robot(parse_description(parse_yaml(text), source=target), urdf)
    return InitialDescription(text, robot, tuple(notes))


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


def _list(names: Sequence[str], indent: int) -> str:
    return "".join(f"\n{' ' * indent}- {_quoted(name)}" for name in names) if names else " []"


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z_][\w.\-/]*", text) else json.dumps(text)


def _mapping(values: dict[str, str], indent: int) -> str:
    if not values:
        return " {}"
    return "".join(f"\n{' ' * indent}{_quoted(k)}: {v}" for k, v in values.items())


def _write(robot: Robot, urdf: Urdf, notes: Sequence[str]) -> str:
    description = robot.description
    locked = {joint: repr(value) for joint, value in description.locked.items()}
    names = {given: _quoted(joint) for given, joint in description.names.items()}
    doubtful = "".join(f"\n# note: {note}" for note in notes)
    efforts = robot.limits.effort
    usual = RobotDescription.friction_terms
    unlimited = [n for n, e in zip(robot.joint_names, efforts, strict=True) if np.isinf(e)]
    limits = f"\n# The URDF gives no effort limit for {', '.join(unlimited)}." if unlimited else ""
    return f"""\
# Description of '{description.name}' for sysid, written by 'sysid init' from {urdf.path.name}.
# {len(robot.layout.bodies)} bodies, {len(robot.joint_names)} moving joints.{doubtful}
name: {_quoted(description.name)}
urdf: {_quoted(description.urdf)}  # relative to this file, absolute, or package://package/path
base: {description.base}  # fixed | floating
gravity: [0.0, 0.0, -9.81]  # [m/s²] in the frame of the URDF's root
tool_frame: {_quoted(tool_of(robot))}  # frame that a payload is expressed in

joints:
  actuated:  # joints with a motor whose torque is measured{_list(robot.joint_names, 4)}
  passive: []  # joints without a motor
  locked:{_mapping(locked, 4)}  # joint: position [rad], welded for identification

names:{_mapping(names, 2)}  # name in the data: name in the URDF, where they differ

effort:
  gain: 1.0  # [N·m per published unit]; a mapping joint: gain if drives publish currents
  position_offset: {{}}  # joint: [rad] added to the data's positions
  # transmission:  # coupled motors: motor = matrix · joint, joint torque = matrixᵀ · motor torque
  #   joints: [joint_5, joint_6]
  #   matrix: [[45.0, 0.0], [32.0, 32.0]]  # gear ratios [-]
  #   side: auto  # auto | joint | motor: where the data were taken

friction:
  terms: [{", ".join(usual)}]  # identified; the others keep their nominal value
  # as 'sysid identify' chose: joint: {{load: 1, sigmoid: rad/s, stribeck: rad/s, spring: 1}}
  chosen: {{}}
  # nominal values [N·m·s/rad, N·m, kg·m², N·m]; default: the URDF's damping and friction
  nominal: {{}}  # e.g. joint: {{viscous: 0, coulomb: 0}}
  coulomb_velocity: 0.0  # [rad/s] width of the smoothed sign of the velocity; 0: the sign itself

# closed chains: - {{name: , frame_a: {{link: , xyz: [m]}}, frame_b: {{…}}, type: point | fixed}}
loops: []
contacts:{_contacts(robot)}

identify:
  inertias: all  # all | none | list of bodies

prior:
  relative_std: {description.prior.relative_std}  # [-] of the URDF's inertias
  friction_relative_std: {description.prior.friction_relative_std}  # [-] of nominal friction
  offset_std: {description.prior.offset_std}  # [-] of offsets, as a share of the effort limit
  confidence: {{}}  # body: relative standard deviation [-] of that body alone

# body: {{center: [m], semi_axes: [m]}} in the joint frame; default: from the URDF
ellipsoids: {{}}

bounds:
  mass: {{}}  # body: [least, most] [kg]
  total_mass: null  # {{value: [kg], std: [kg]}} if the robot was weighed

signals:
  rate: null  # [Hz] of the sensors; null: found from the data
  cutoff: null  # [Hz] of the low-pass; null: chosen from the data
{limits}
limits:  # overrides of the URDF's
  effort: {{}}  # joint: [N·m]
  velocity: {{}}  # joint: [rad/s]
  position: {{}}  # joint: [lower, upper] [rad]
"""


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
