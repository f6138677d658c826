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

from sysid_core.robot.description import RobotDescription
from sysid_core.robot.description_reader import check_name, parse_description
from sysid_core.robot.model import Robot
from sysid_core.robot.urdf import Urdf, read_urdf
from sysid_core.untrusted import parse_xml, parse_yaml, read_bytes

__all__ = ["InitialDescription", "initialise"]

_TOOL = re.compile(r"tool|flange|tcp|(^|_)ee($|_)|end_?effector|hand|gripper", re.IGNORECASE)
_FOOT = re.compile(r"foot|feet|toe|sole|ankle|contact", re.IGNORECASE)
_ROOTED = re.compile(r"world|map|odom|footprint|palm|hand|gripper|table", re.IGNORECASE)
_LIMBS = 3
"""A root that carries as many limbs is taken for a trunk that walks or flies."""


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
    urdf_path: Path, target: Path, *, name: str | None = None, floating: bool | None = None
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
        Whether the base is free; None: guessed from the number of limbs at the root.

    Raises
    ------
    RobotError
        If the URDF cannot be used.
    """
    check_name(name or _plain(urdf_path.stem))
    urdf = read_urdf(urdf_path)
    notes: list[str] = []
    mimics = _mimics(urdf_path)
    description = RobotDescription(
        name=name or _plain(urdf_path.stem),
        urdf=_reference(urdf_path, target),
        source=target,
        locked=dict.fromkeys(mimics, 0.0),
    )
    if mimics:
        notes.append(f"joints that mimic others are locked at 0: {', '.join(mimics)}")
    robot = Robot(description, urdf)
    if floating is None:
        floating = _limbs(robot) >= _LIMBS and not _ROOTED.search(urdf.root)
        if floating:
            notes.append(
                f"{_limbs(robot)} limbs hang on '{urdf.root}': the base is taken as floating; use "
                "--fixed if it is bolted down"
            )
    if floating:
        robot = Robot(replace(description, base="floating"), urdf)
    notes += robot.warnings
    text = _write(robot, urdf, notes)
    robot = Robot(parse_description(parse_yaml(text), source=target), urdf)
    return InitialDescription(text, robot, tuple(notes))


def _plain(stem: str) -> str:
    return re.sub(r"[^0-9A-Za-z_]+", "_", stem).strip("_") or "robot"


def _reference(urdf_path: Path, target: Path) -> str:
    relative = os.path.relpath(urdf_path.resolve(), target.resolve().parent)
    return relative if relative.count("..") <= 1 else str(urdf_path.resolve())


def _mimics(urdf_path: Path) -> list[str]:
    """Return the movable joints that mimic others."""
    tree = parse_xml(read_bytes(urdf_path))
    return [
        joint.get("name") or ""
        for joint in tree.findall("joint")
        if joint.find("mimic") is not None and joint.get("type") != "fixed"
    ]


def _limbs(robot: Robot) -> int:
    """Return how many chains of two joints or more, wheels left out, hang on the root."""
    model, joints = robot.model, robot.urdf.joints
    starts = [i for i in range(1, model.njoints) if model.parents[i] == 0]
    return sum(
        joints[model.names[i]].type != "continuous" and len(model.subtrees[i]) > 1 for i in starts
    )


def _tool_frame(robot: Robot) -> str:
    """Return the most outward frame whose name speaks of a tool, else the robot's own choice."""
    model = robot.model
    last = model.frames[model.getFrameId(robot.tool_frame)].parentJoint
    names = [f.name for f in model.frames if f.parentJoint == last and f.name in robot.urdf.links]
    named = [n for n in names if _TOOL.search(n)]
    return named[-1] if named else robot.tool_frame


def _feet(robot: Robot) -> list[str]:
    """Return links at the ends of the limbs that may be feet."""
    model = robot.model
    ends = [i for i in range(1, model.njoints) if len(model.subtrees[i]) == 1]
    feet = []
    for end in ends:
        names = [
            f.name for f in model.frames if f.parentJoint == end and f.name in robot.urdf.links
        ]
        feet += [n for n in names if _FOOT.search(n)][-1:]
    return feet


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
tool_frame: {_quoted(_tool_frame(robot))}  # frame that a payload is expressed in

joints:
  actuated:  # joints with a motor whose torque is measured{_list(robot.joint_names, 4)}
  passive: []  # joints without a motor
  locked:{_mapping(locked, 4)}  # joint: position [rad], welded for identification

names: {{}}  # name in the data: name in the URDF, where they differ

effort:
  gain: 1.0  # [N·m per published unit]; a mapping joint: gain if drives publish currents
  position_offset: {{}}  # joint: [rad] added to the data's positions
  # transmission:  # coupled motors: motor = matrix · joint, joint torque = matrixᵀ · motor torque
  #   joints: [joint_5, joint_6]
  #   matrix: [[45.0, 0.0], [32.0, 32.0]]  # gear ratios [-]
  #   side: auto  # auto | joint | motor: where the data were taken

friction:
  terms: [{", ".join(usual)}]  # identified; the others keep their nominal value
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
    feet = _feet(robot) if robot.floating else []
    if not feet:
        return " []  # feet: - {name: , link: , type: point | flat, xyz: [m]}"
    return "  # frames that may touch the ground" + "".join(
        f"\n  - {{name: {_quoted(foot)}, link: {_quoted(foot)}, type: point, xyz: [0, 0, 0]}}"
        for foot in feet
    )
