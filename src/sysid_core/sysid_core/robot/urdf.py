# SPDX-License-Identifier: Apache-2.0
"""Reads and checks a URDF without its meshes, and writes identified inertias back into it."""

import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.errors import RobotError, UnreadableError, found_in
from sysid_core.untrusted import parse_xml, read_bytes
from sysid_core.wording import one_line

__all__ = ["Geometry", "Mesh", "Urdf", "UrdfJoint", "UrdfLink", "read_urdf"]

MOVABLE = ("revolute", "continuous", "prismatic")
_INERTIA = ("ixx", "ixy", "iyy", "ixz", "iyz", "izz")
_LARGEST = 1e9
"""Of masses [kg], inertias and lengths: no link's come near, and their products stay finite."""
_ROUNDING = 1e-9
"""Negative moment of inertia [kg·m²] per kg that is a rounded zero, as in iCub's URDF."""
_LARGEST_LIMIT = 1e300  # Of a joint: some files write a number of this sort where they mean none
_MOST_LINKS = 1000
_MOST_DEPTH = 200
"""Of joints in a row: Pinocchio's reader calls itself for each, and ends the process at 4,000."""
_MOST_MOVING = 200  # Movable joints: a humanoid with hands has 80; rows have 14 columns for each


@dataclass(frozen=True)
class Geometry:
    """A primitive collision shape: its pose in the link and its half extents (3,) [m]."""

    pose: pin.SE3
    half_extents: FloatArray


@dataclass(frozen=True)
class Mesh:
    """A collision shape from a file: its pose in the link, address, and scale (3,) to metres."""

    pose: pin.SE3
    address: str
    scale: FloatArray


@dataclass(frozen=True)
class UrdfLink:
    """A link's inertial parameters (10,) about its own frame and its collision shapes."""

    name: str
    inertial: FloatArray
    collisions: tuple[Geometry, ...]  # Primitive ones
    meshes: tuple[Mesh, ...]


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
    """A checked URDF."""

    xml: str
    path: Path
    root: str
    links: dict[str, UrdfLink]
    joints: dict[str, UrdfJoint]


def _numbers(text: str | None, count: int, where: str, *, most: float = _LARGEST) -> FloatArray:
    try:
        values = [float(v) for v in (text or "").split()]
    except ValueError:
        values = []
    if len(values) != count or not all(abs(v) <= most for v in values):
        raise RobotError(
            f"{where} must be {count} finite numbers up to {most:g}, got {text!r:.60}"
        )
    return np.array(values)


def _pose(element: ET.Element | None, where: str) -> pin.SE3:
    if element is None:
        return pin.SE3.Identity()
    xyz = _numbers(element.get("xyz", "0 0 0"), 3, f"{where} origin xyz")
    rpy = _numbers(element.get("rpy", "0 0 0"), 3, f"{where} origin rpy")
    return pin.SE3(pin.rpy.rpyToMatrix(rpy), xyz)


def _inertial(link: ET.Element) -> FloatArray:
    """Return the inertial parameters (10,) of a link about its own frame."""
    element = link.find("inertial")
    if element is None:
        return np.zeros(10)
    where = f"link '{link.get('name')}'"
    mass_tag, inertia_tag = element.find("mass"), element.find("inertia")
    mass = _numbers(mass_tag.get("value") if mass_tag is not None else None, 1, f"{where} mass")[0]
    if mass < 0.0:
        raise RobotError(f"{where} has a negative mass of {mass:g} kg; correct it in the URDF")
    xx, xy, yy, xz, yz, zz = (
        _numbers(inertia_tag.get(k, "0") if inertia_tag is not None else "0", 1, f"{where} {k}")[0]
        for k in _INERTIA
    )
    central = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    values, axes = np.linalg.eigh(central)
    if -_ROUNDING * mass <= values[0] < 0.0:
        central = (axes * np.maximum(values, 0.0)) @ axes.T
    pose = _pose(element.find("origin"), f"{where} inertial")
    try:
        return np.array(pose.act(pin.Inertia(mass, np.zeros(3), central)).toDynamicParameters())
    except (RuntimeError, ValueError) as error:
        raise RobotError(
            f"{where} has an inertia that Pinocchio refuses ({one_line(error)}); correct it"
        ) from error


def _half_extents(geometry: ET.Element) -> FloatArray | None:
    box, cylinder, sphere = (geometry.find(tag) for tag in ("box", "cylinder", "sphere"))
    if box is not None:
        return 0.5 * _numbers(box.get("size"), 3, "collision box size")
    if cylinder is not None:
        radius = _numbers(cylinder.get("radius"), 1, "collision cylinder radius")[0]
        length = _numbers(cylinder.get("length"), 1, "collision cylinder length")[0]
        return np.array([radius, radius, 0.5 * length])
    if sphere is not None:
        return np.full(3, _numbers(sphere.get("radius"), 1, "collision sphere")[0])
    return None


def _link(element: ET.Element) -> UrdfLink:
    name = element.get("name") or ""
    collisions, meshes = [], []
    for collision in element.findall("collision"):
        geometry, where = collision.find("geometry"), f"link '{name}' collision"
        half = None if geometry is None else _half_extents(geometry)
        mesh = None if geometry is None else geometry.find("mesh")
        if half is None and mesh is None:
            continue
        pose = _pose(collision.find("origin"), where)
        if half is not None:
            collisions.append(Geometry(pose, half))
        if mesh is not None:
            scale = _numbers(mesh.get("scale", "1 1 1"), 3, f"{where} mesh scale")
            meshes.append(Mesh(pose, mesh.get("filename") or "", scale))
    return UrdfLink(name, _inertial(element), tuple(collisions), tuple(meshes))


def _joint(element: ET.Element, links: dict[str, UrdfLink]) -> UrdfJoint:
    name, kind = element.get("name") or "", element.get("type") or ""
    if kind not in (*MOVABLE, "fixed"):
        raise RobotError(
            f"joint '{name}' is of type '{kind}', which sysid does not support; use "
            "revolute, continuous, prismatic or fixed, and 'base: floating' for a floating base"
        )
    ends = []
    for tag in ("parent", "child"):
        end = element.find(tag)
        link = "" if end is None else (end.get("link") or "")
        if link not in links:
            raise RobotError(f"joint '{name}' has no {tag} link '{link}'")
        ends.append(link)
    dynamics = element.find("dynamics")
    values = [
        0.0
        if dynamics is None
        else _numbers(dynamics.get(key, "0"), 1, f"joint '{name}' {key}")[0]
        for key in ("damping", "friction")
    ]
    return UrdfJoint(name, kind, ends[0], ends[1], values[0], values[1])


def _plain_link(link: ET.Element) -> ET.Element:
    """Return what Pinocchio needs of a checked link."""
    plain = ET.Element("link", name=link.get("name") or "")
    inertial = link.find("inertial")
    if inertial is not None:
        copy = ET.SubElement(plain, "inertial")
        copy.extend(inertial.findall("origin")[:1])
        copy.extend(inertial.findall("mass")[:1])
        tag = inertial.find("inertia")
        given = {} if tag is None else tag.attrib
        ET.SubElement(copy, "inertia", {key: given.get(key, "0") for key in _INERTIA})
    return plain


def _plain_joint(joint: ET.Element) -> ET.Element:
    """Return what Pinocchio needs of a joint, its numbers checked."""
    name = joint.get("name") or ""
    where, kind = f"joint '{name}'", joint.get("type") or ""
    # A circle's (cos, sin) would need two numbers.
    plain = ET.Element("joint", name=name, type="revolute" if kind == "continuous" else kind)
    for tag in ("origin", "parent", "child"):
        plain.extend(joint.findall(tag)[:1])
    _pose(joint.find("origin"), where)
    axis, limit = joint.find("axis"), joint.find("limit")
    if axis is not None and kind != "fixed":
        if not _numbers(axis.get("xyz"), 3, f"{where} axis").any():
            raise RobotError(f"{where} has an axis of length zero; correct it")
        plain.append(axis)
    if kind != "fixed":
        if limit is None and kind != "continuous":
            raise RobotError(f"{where} has no <limit>; add it with its numbers")
        given = {} if limit is None else dict(limit.attrib)
        if kind == "continuous":
            given |= {"lower": "-1e9", "upper": "1e9"}
        limits = {key: given.get(key, "0") for key in ("lower", "upper", "effort", "velocity")}
        for key, text in limits.items():
            _numbers(text, 1, f"{where} {key} limit", most=_LARGEST_LIMIT)
        ET.SubElement(plain, "limit", limits)
    return plain


def _plain(robot: ET.Element) -> str:
    """Return a URDF of checked numbers alone, so that nobody else has to complain of it."""
    plain = ET.Element("robot", name=robot.get("name") or "robot")
    for link in robot.findall("link"):
        plain.append(_plain_link(link))
    for joint in robot.findall("joint"):
        plain.append(_plain_joint(joint))
    return ET.tostring(plain, encoding="unicode")


def _root(links: list[UrdfLink], joints: list[UrdfJoint]) -> str:
    """Return the root of links and joints that form one tree, not too deep and not too large."""
    for kind, names in (("link", [x.name for x in links]), ("joint", [x.name for x in joints])):
        twice = sorted(name for name, count in Counter(names).items() if count > 1 or not name)
        if twice:
            raise RobotError(f"has {kind}s without a name of their own: {one_line(twice)}")
        if len(names) > _MOST_LINKS:
            raise RobotError(f"has more than {_MOST_LINKS} {kind}s")
    parents = {joint.child: joint.parent for joint in joints}
    roots = sorted({link.name for link in links} - parents.keys())
    if len(roots) != 1:
        raise RobotError(f"must have one root link, found {one_line(roots)}")
    if len(parents) < len(joints):
        twice = sorted(n for n, c in Counter(j.child for j in joints).items() if c > 1)
        raise RobotError(
            f"has links on two joints: {one_line(twice)}; leave one of them out and name the "
            "loop in the description"
        )
    for link in parents:
        depth = 0
        while link in parents:
            link, depth = parents[link], depth + 1
            if depth > _MOST_DEPTH:
                raise RobotError(
                    f"has a chain of more than {_MOST_DEPTH} joints, or one without an end"
                )
    return roots[0]


def read_urdf(path: Path) -> Urdf:
    """Read and check a URDF.

    Raises
    ------
    RobotError
        If the file is missing, no URDF, too large, has a negative mass, an unsupported joint
        type, links that hang on nothing or on two joints, or numbers that are not finite.
    """
    with found_in(path):
        try:
            robot = parse_xml(read_bytes(path))
        except UnreadableError as error:
            raise RobotError(str(error)) from error
        if any("xacro}" in str(element.tag) for element in robot.iter()):
            stem = path.name.split(".")[0]
            made = f"{stem}.urdf" if path.name != f"{stem}.urdf" else f"{stem}_made.urdf"
            raise RobotError(
                f"is a xacro file, of which a URDF is yet to be made: run 'xacro {path.name} > "
                f"{made}' ('ros2 run xacro xacro' on ROS 2, 'pip install "
                "xacro' without) and give that"
            )
        if robot.tag != "robot":
            raise RobotError(f"is no URDF: its root is <{robot.tag}>")
        links = [_link(element) for element in robot.findall("link")]
        by_name = {link.name: link for link in links}
        joints = [_joint(element, by_name) for element in robot.findall("joint")]
        root = _root(links, joints)
        moving = sum(joint.type in MOVABLE for joint in joints)
        if not 0 < moving <= _MOST_MOVING:
            raise RobotError(
                f"has {moving} movable joints; at least one and at most {_MOST_MOVING} can be "
                "identified"
            )
        return Urdf(_plain(robot), path, root, by_name, {j.name: j for j in joints})
