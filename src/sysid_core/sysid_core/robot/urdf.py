# SPDX-License-Identifier: Apache-2.0
"""Reads and checks a URDF without its meshes, and writes identified inertias back into it."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.errors import RobotError

__all__ = ["Geometry", "Urdf", "UrdfJoint", "UrdfLink", "read_urdf"]

MOVABLE = ("revolute", "continuous", "prismatic")


@dataclass(frozen=True)
class Geometry:
    """A primitive collision shape: its pose in the link and its half extents (3,) [m]."""

    pose: pin.SE3
    half_extents: FloatArray


@dataclass(frozen=True)
class UrdfLink:
    """A link's inertial parameters (10,) about its own frame and its primitive collisions."""

    name: str
    inertial: FloatArray
    collisions: tuple[Geometry, ...]


@dataclass(frozen=True)
class UrdfJoint:
    """A joint of the URDF; `damping` [N·m·s/rad] and `friction` [N·m] as given there."""

    name: str
    type: str
    parent: str
    child: str
    damping: float
    friction: float


@dataclass(frozen=True)
class Urdf:
    """A checked URDF.

    Attributes
    ----------
    xml : str
        Text for Pinocchio: meshes and other extras dropped, continuous joints made revolute.
    path : Path
    root : str
        Name of the root link.
    """

    xml: str
    path: Path
    root: str
    links: dict[str, UrdfLink]
    joints: dict[str, UrdfJoint]


def _numbers(text: str | None, count: int, where: str, source: str) -> FloatArray:
    try:
        values = [float(v) for v in (text or "").split()]
    except ValueError:
        values = []
    if len(values) != count or not all(math.isfinite(v) for v in values):
        raise RobotError(f"{where} must be {count} finite numbers, got {text!r}", source=source)
    return np.array(values)


def _pose(element: ET.Element | None, where: str, source: str) -> pin.SE3:
    if element is None:
        return pin.SE3.Identity()
    xyz = _numbers(element.get("xyz", "0 0 0"), 3, f"{where} origin xyz", source)
    rpy = _numbers(element.get("rpy", "0 0 0"), 3, f"{where} origin rpy", source)
    return pin.SE3(pin.rpy.rpyToMatrix(rpy), xyz)


def _inertial(link: ET.Element, source: str) -> FloatArray:
    """Return the inertial parameters (10,) of a link about its own frame."""
    element = link.find("inertial")
    if element is None:
        return np.zeros(10)
    where = f"link '{link.get('name')}'"
    mass_tag, inertia_tag = element.find("mass"), element.find("inertia")
    mass = _numbers(
        mass_tag.get("value") if mass_tag is not None else None, 1, f"{where} mass", source
    )[0]
    if mass < 0.0:
        raise RobotError(
            f"{where} has a negative mass of {mass:g} kg; correct it in the URDF", source=source
        )
    xx, xy, yy, xz, yz, zz = (
        _numbers(
            inertia_tag.get(k, "0") if inertia_tag is not None else "0", 1, f"{where} {k}", source
        )[0]
        for k in ("ixx", "ixy", "iyy", "ixz", "iyz", "izz")
    )
    central = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    pose = _pose(element.find("origin"), f"{where} inertial", source)
    return np.array(pose.act(pin.Inertia(mass, np.zeros(3), central)).toDynamicParameters())


def _half_extents(geometry: ET.Element, source: str) -> FloatArray | None:
    box, cylinder, sphere = (geometry.find(tag) for tag in ("box", "cylinder", "sphere"))
    if box is not None:
        return 0.5 * _numbers(box.get("size"), 3, "collision box size", source)
    if cylinder is not None:
        radius = _numbers(cylinder.get("radius"), 1, "collision cylinder radius", source)[0]
        length = _numbers(cylinder.get("length"), 1, "collision cylinder length", source)[0]
        return np.array([radius, radius, 0.5 * length])
    if sphere is not None:
        return np.full(3, _numbers(sphere.get("radius"), 1, "collision sphere", source)[0])
    return None


def _link(element: ET.Element, source: str) -> UrdfLink:
    name = element.get("name") or ""
    collisions = []
    for collision in element.findall("collision"):
        geometry = collision.find("geometry")
        half = None if geometry is None else _half_extents(geometry, source)
        if half is not None:
            pose = _pose(collision.find("origin"), f"link '{name}' collision", source)
            collisions.append(Geometry(pose, half))
    return UrdfLink(name, _inertial(element, source), tuple(collisions))


def _joint(element: ET.Element, links: dict[str, UrdfLink], source: str) -> UrdfJoint:
    name, kind = element.get("name") or "", element.get("type") or ""
    if kind not in (*MOVABLE, "fixed"):
        raise RobotError(
            f"joint '{name}' is of type '{kind}', which sysid does not support; use "
            "revolute, continuous, prismatic or fixed, and 'base: floating' for a floating base",
            source=source,
        )
    ends = []
    for tag in ("parent", "child"):
        end = element.find(tag)
        link = "" if end is None else (end.get("link") or "")
        if link not in links:
            raise RobotError(f"joint '{name}' has no {tag} link '{link}'", source=source)
        ends.append(link)
    dynamics = element.find("dynamics")
    values = [
        0.0
        if dynamics is None
        else _numbers(dynamics.get(key, "0"), 1, f"joint '{name}' {key}", source)[0]
        for key in ("damping", "friction")
    ]
    return UrdfJoint(name, kind, ends[0], ends[1], values[0], values[1])


def _strip(robot: ET.Element) -> str:
    """Return the URDF's text without what Pinocchio does not need or would change by."""
    for child in list(robot):
        if child.tag not in ("link", "joint"):
            robot.remove(child)
    for link in robot.findall("link"):
        for tag in ("visual", "collision"):
            for element in link.findall(tag):
                link.remove(element)
    for joint in robot.findall("joint"):
        if joint.get("type") == "continuous":  # a circle's (cos, sin) would need two numbers
            joint.set("type", "revolute")
            limit = joint.find("limit")
            if limit is None:
                limit = ET.SubElement(joint, "limit", effort="0", velocity="0")
            limit.set("lower", "-1e9")
            limit.set("upper", "1e9")
        for element in joint.findall("mimic"):
            joint.remove(element)
    return ET.tostring(robot, encoding="unicode")


def read_urdf(path: Path) -> Urdf:
    """Read and check a URDF.

    Raises
    ------
    RobotError
        If the file is missing, no URDF, has a negative mass, an unsupported joint type, links
        that hang on nothing, or numbers that are not finite.
    """
    source = str(path)
    try:
        robot = ET.fromstring(path.read_bytes())
    except OSError as error:
        raise RobotError(f"cannot be read ({error.strerror})", source=source) from error
    except ET.ParseError as error:
        raise RobotError(f"is not valid XML ({error})", source=source) from error
    if robot.tag != "robot":
        hint = " (expand xacro files first)" if "xacro" in path.name else ""
        raise RobotError(f"is no URDF: its root is <{robot.tag}>{hint}", source=source)
    links = {link.name: link for link in (_link(e, source) for e in robot.findall("link"))}
    joints = {j.name: j for j in (_joint(e, links, source) for e in robot.findall("joint"))}
    roots = set(links) - {joint.child for joint in joints.values()}
    if len(roots) != 1:
        raise RobotError(f"must have one root link, found {sorted(roots)}", source=source)
    if not any(joint.type in MOVABLE for joint in joints.values()):
        raise RobotError("has no movable joint: there is nothing to identify", source=source)
    return Urdf(_strip(robot), path, roots.pop(), links, joints)
