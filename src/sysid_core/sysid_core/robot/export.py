# SPDX-License-Identifier: Apache-2.0
"""Writes identified parameters back into a robot's own URDF and description.

Everything else in them is left alone.
"""

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import yaml

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.friction import FRICTION
from sysid_core.errors import ModelError, OutputError, UnreadableError
from sysid_core.files import write_text
from sysid_core.inertia import smallest_eigenvalue, transform_matrix
from sysid_core.robot.model import Robot
from sysid_core.robot.plausibility import absurdity
from sysid_core.untrusted import parse_xml, read_bytes

__all__ = [
    "identified_description",
    "identified_urdf",
    "model_files",
    "require_believable",
    "require_elsewhere",
    "write_model",
]

_UNCHANGED = 1e-12


def require_believable(robot: Robot, parameters: FloatArray, override: str) -> None:
    """Refuse parameters (p,) whose mass or torques are absurd, as of efforts in amperes.

    Raises
    ------
    ModelError
        If the total mass, or the torques at most joints, are off by a factor; `override` names
        what lets them pass.
    """
    found = absurdity(robot, parameters)
    if found is not None:
        raise ModelError(f"{found}, or {override}")


def model_files(robot: Robot) -> tuple[str, str]:
    """Return the names of the files that hold an identified model: URDF and description."""
    return f"{robot.name}.urdf", "identified.yaml"


def require_elsewhere(robot: Robot, folder: Path) -> None:
    """Refuse a folder where an identified model would replace the files it started from.

    Raises
    ------
    OutputError
        If it would.
    """
    written = {(folder / name).resolve() for name in model_files(robot)}
    for path, what in ((robot.description.source, "description"), (robot.urdf.path, "URDF")):
        if path is not None and path.resolve() in written:
            raise OutputError(f"{path}: is the robot's own {what}; choose another folder")


def write_model(
    robot: Robot, parameters: FloatArray, folder: Path, cutoff: float | None = None
) -> None:
    """Write the URDF and the description of an identified robot to a folder.

    Raises
    ------
    ModelError
        As `identified_urdf`.
    OutputError
        If the folder cannot be written to.
    """
    urdf, description = model_files(robot)
    write_text(folder / urdf, identified_urdf(robot, parameters))
    write_text(folder / description, identified_description(robot, parameters, cutoff))


def identified_description(
    robot: Robot, parameters: FloatArray, cutoff: float | None = None
) -> str:
    """Return the text of a description whose nominal model is the identified one.

    It is the robot's own with the URDF of `model_files` beside it, and what has no place in a
    URDF: chosen friction terms and their coefficients, armature, offsets, gravity where it was
    identified, and the cut-off [Hz] of arms, unless the description gives one.
    """
    robot.check_parameters(parameters)
    given, own = dict(robot.description.given), robot.description
    layout = robot.layout
    friction = {**layout.joints_of(parameters), **layout.couplings_of(parameters)}
    found: dict[str, Any] = {
        **given,
        "name": own.name,
        "urdf": model_files(robot)[0],
        "gravity": list(own.gravity),
        "friction": {
            **given.get("friction", {}),
            "chosen": {joint: dict(terms) for joint, terms in own.friction_chosen.items()},
            "nominal": {name: _possible(terms) for name, terms in friction.items()},
        },
    }
    if cutoff is not None and not robot.floating and own.signals.cutoff is None:
        found["signals"] = {**given.get("signals", {}), "cutoff": float(cutoff)}
    text = yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=99)
    return (
        f"# The identified model of {own.name}, to be given wherever a robot is asked for\n{text}"
    )


def _possible(terms: dict[str, float]) -> dict[str, float]:
    """Return friction coefficients that are not zero, held to what the terms allow."""
    lower = {term.name: term.lower for term in FRICTION}
    held = {name: max(value, lower[name]) for name, value in terms.items()}
    usual = ("viscous", "coulomb")  # a zero keeps the URDF's from coming back
    return {name: value for name, value in held.items() if value or name in usual}


def identified_urdf(robot: Robot, parameters: FloatArray) -> str:
    """Return the text of the robot's URDF with the identified parameters in it.

    A body of the model lumps the link that a joint moves with the links fixed to it. Their own
    inertias are kept and the moving link takes the difference, unless that would leave it an
    impossible inertia: then it takes everything and the fixed links' inertial tags go. Viscous and
    Coulomb friction go to ``<dynamics>``, sigmoid and presliding friction as the Coulomb friction
    that they become on the way; other terms, armature and offsets have no place in a URDF.

    Raises
    ------
    ModelError
        If the parameters are not the robot's, or bodies of locked joints cannot be told apart.
    """
    robot.check_parameters(parameters)
    tree, preface = _parsed(robot)
    links = {link.get("name"): link for link in tree.findall("link")}
    nominal = robot.layout.bodies_of(robot.nominal)
    for body, phi in robot.layout.bodies_of(parameters).items():
        scale = max(float(np.abs(phi).max()), 1e-12)
        if np.abs(phi - nominal[body]).max() <= _UNCHANGED * scale:
            continue
        own, others = _share(robot, body, phi)
        if others is not None:
            for name in others:
                _remove_inertial(links[name])
        _write_inertial(links[body], own)
    joints = {joint.get("name"): joint for joint in tree.findall("joint")}
    for name, terms in robot.layout.joints_of(parameters).items():
        _write_friction(joints[name], robot, name, terms)
    text = ET.tostring(tree, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{preface}{text}\n'


def _parsed(robot: Robot) -> tuple[ET.Element, str]:
    """Return the URDF's tree with its comments, and the comments before it."""
    try:
        text = read_bytes(robot.urdf.path)
        tree = parse_xml(text, comments=True)
    except UnreadableError as error:
        raise ModelError(f"{robot.urdf.path}: {error}, though it could be before") from error
    head = text.partition(b"<robot")[0].decode("utf-8", errors="replace")
    preface = "".join(f"{comment}\n" for comment in re.findall(r"<!--.*?-->", head, re.DOTALL))
    return tree, preface


def _share(robot: Robot, body: str, phi: FloatArray) -> tuple[FloatArray, list[str] | None]:
    """Return the moving link's inertia (10,), and the fixed links that lose theirs, if any."""
    index = robot.body_joint_ids[robot.layout.bodies.index(body)]
    attached = np.zeros(10)
    names = []
    for frame in robot.model.frames:
        if frame.type != pin.FrameType.BODY or frame.parentJoint != index or frame.name == body:
            continue
        link = robot.urdf.links.get(frame.name)
        if link is None or not link.inertial.any():
            continue
        names.append(frame.name)
        placement = frame.placement
        attached += transform_matrix(placement.rotation, placement.translation) @ link.inertial
    own = phi - attached
    # the link's frame is the joint's in a URDF, so no transformation is left
    if not names or (own[0] > 0.0 and smallest_eigenvalue(own) > 0.0):
        return own, None
    return phi, names


def _remove_inertial(link: ET.Element) -> None:
    for element in link.findall("inertial"):
        link.remove(element)


def _write_inertial(link: ET.Element, phi: FloatArray) -> None:
    """Replace a link's inertial tag: centre of mass as origin, inertia about it, link's axes."""
    inertia = pin.Inertia.FromDynamicParameters(phi)
    old = link.find("inertial")
    element = old if old is not None else ET.Element("inertial")
    for child in list(element):
        element.remove(child)
    xyz = " ".join(_text(v) for v in inertia.lever)
    ET.SubElement(element, "origin", xyz=xyz, rpy="0 0 0")
    ET.SubElement(element, "mass", value=_text(inertia.mass))
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    entries = zip(names, inertia.inertia[np.triu_indices(3)], strict=True)
    ET.SubElement(element, "inertia", {key: _text(value) for key, value in entries})
    ET.indent(element, space="  ", level=2)
    if old is None:
        link.insert(0, element)
        element.tail = "\n    "
        if not (link.text or "").strip():
            link.text = "\n    "


def _write_friction(joint: ET.Element, robot: Robot, name: str, terms: dict[str, float]) -> None:
    nominal = robot.urdf.joints[name]
    dry = terms["coulomb"]
    chosen = robot.description.friction_chosen.get(name, {})
    dry += sum(terms[term] for term in ("sigmoid", "presliding") if term in chosen)
    values = {"damping": terms["viscous"], "friction": dry}
    if values == {"damping": nominal.damping, "friction": nominal.friction}:
        return
    element = joint.find("dynamics")
    if element is None:
        if len(joint):
            joint[-1].tail = "\n    "
        element = ET.SubElement(joint, "dynamics")
        element.tail = "\n  "
    for key, value in values.items():
        element.set(key, _text(max(value, 0.0)))


def _text(value: float) -> str:
    return repr(float(value))
