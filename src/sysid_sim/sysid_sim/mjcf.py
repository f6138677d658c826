# SPDX-License-Identifier: Apache-2.0
"""Writes any robot description and parameter vector as a MuJoCo model (MJCF text)."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.stance import foot_radii
from sysid_core.inertia import central_inertia
from sysid_core.robot import Robot
from sysid_sim.errors import SimulationError

__all__ = [
    "GROUND_FRICTION",
    "PhysicsConfig",
    "brake_name",
    "build_mjcf",
    "foot_prefix",
    "joint_axis",
]

_BASE_JOINT = "floating_base"
GROUND_FRICTION = 0.8  # [-] Coulomb coefficient between feet and ground
_GROUND_TIME = 0.01  # [s] in which a foot that hits the ground comes to rest, two steps at least
_SOLE = (0.08, 0.04)
"""Half length and half width of a flat foot, which touches with its four corners [m]."""
_SHARED = ("viscous", "coulomb", "armature")  # Terms that joints have and coupled motors too


@dataclass(frozen=True)
class PhysicsConfig:
    """How MuJoCo simulates."""

    time_step: float = 0.0005  # [s]
    ground: bool = True  # Whether a robot with a floating base stands on a plane at height 0
    joint_limits: bool = True  # Whether stops hold the joints within their range

    def __post_init__(self) -> None:
        if not 0.0 < self.time_step <= 0.01:
            raise SimulationError(
                f"time_step must lie above 0 and at most 0.01 s, got {self.time_step:g}"
            )


class _Shares(NamedTuple):
    """One term of the parameters, of joints (nj,) and of coupled motors (nc,)."""

    joints: FloatArray
    couplings: FloatArray


def _shares(robot: Robot, parameters: FloatArray, term: str) -> _Shares:
    """Share one term out between joints and coupled motors.

    The layout counts a coupled motor's diagonal share as each joint's own, MuJoCo as the
    tendon's, so the joints' values here are less by that share.
    """
    layout = robot.layout
    joints = parameters[layout.term(term)].copy()
    couplings = parameters[layout.coupling_term(term)].copy()
    if term != "coulomb":
        for coupling, value in zip(robot.couplings, couplings, strict=True):
            joints -= value * coupling.direction**2
    for values, names in ((joints, layout.joints), (couplings, layout.couplings)):
        if (values < 0.0).any():
            name = names[int(np.argmin(values))]
            raise SimulationError(
                f"{name} would have a negative {term} of {values.min():g}; "
                "a simulated robot needs friction and armature of at least zero"
            )
    return _Shares(joints, couplings)


def _text(values: Iterable[float]) -> str:
    return " ".join(f"{float(value):.17g}" for value in values)


def _wxyz(rotation: FloatArray) -> FloatArray:
    x, y, z, w = pin.Quaternion(rotation).normalized().coeffs()
    return np.array([w, x, y, z])


def _add(parent: ET.Element, tag: str, **attributes: str) -> ET.Element:
    return ET.SubElement(parent, tag, attributes)


def _placement(placement: pin.SE3) -> dict[str, str]:
    return {"pos": _text(placement.translation), "quat": _text(_wxyz(placement.rotation))}


def brake_name(joint: str) -> str:
    """Return the name of the equality that holds a joint still."""
    return f"brake/{joint}"


def foot_prefix(contact: str) -> str:
    """Return what the names of a contact's geometries begin with."""
    return f"foot/{contact}/"


def joint_axis(joint: pin.JointModel, neutral: FloatArray) -> tuple[str, FloatArray]:
    """Return MuJoCo's kind and the axis (3,) of a joint with one degree of freedom."""
    data = joint.createData()
    joint.calc(data, neutral)
    subspace = np.asarray(data.S).reshape(6)
    linear, angular = subspace[:3], subspace[3:]
    return ("hinge", angular) if np.any(angular) else ("slide", linear)


def _inertial(body: ET.Element, name: str, phi: FloatArray) -> None:
    if phi[0] <= 0.0:
        raise SimulationError(f"body '{name}' needs a mass above zero, got {phi[0]:g} kg")
    moments, axes = np.linalg.eigh(central_inertia(phi))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    if moments[0] <= 0.0 or moments[0] + moments[1] < moments[2] * (1.0 - 1e-9):
        raise SimulationError(
            f"body '{name}' has an impossible inertia (principal moments "
            f"{_text(moments)} kg·m²); simulate with physically consistent parameters"
        )
    _add(
        body,
        "inertial",
        mass=_text(phi[:1]),
        pos=_text(phi[1:4] / phi[0]),
        quat=_text(_wxyz(axes)),
        diaginertia=_text(moments),
    )


def _add_joint(
    body: ET.Element, robot: Robot, index: int, friction: dict[str, _Shares], limits: bool
) -> None:
    model, name = robot.model, robot.model.names[index]
    j = robot.joint_names.index(name)
    neutral = pin.neutral(model)
    kind, axis = joint_axis(model.joints[index], neutral)
    attributes = {
        "name": name,
        "type": kind,
        "axis": _text(axis),
        "damping": _text([friction["viscous"].joints[j]]),
        "frictionloss": _text([friction["coulomb"].joints[j]]),
        "armature": _text([friction["armature"].joints[j]]),
    }
    span = robot.limits.lower[j], robot.limits.upper[j]
    if limits and np.isfinite(span).all() and span[0] < span[1] and not robot.passive[j]:
        attributes |= {"limited": "true", "range": _text(span)}
    _add(body, "joint", **attributes)


def _add_feet(body: ET.Element, robot: Robot, index: int) -> None:
    radii = foot_radii(robot)
    for contact, radius in zip(robot.description.contacts, radii, strict=True):
        parent, placement = robot.place(contact.frame)
        if parent != index:
            continue
        length, width = _SOLE if contact.type == "flat" else (0.0, 0.0)
        signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)] if contact.type == "flat" else [(0, 0)]
        _add(body, "site", name=foot_prefix(contact.name), **_placement(placement))
        for number, (sx, sy) in enumerate(signs):
            corner = placement.act(np.array([sx * length, sy * width, 0.0]))
            _add(
                body,
                "geom",
                name=f"{foot_prefix(contact.name)}{number}",
                type="sphere",
                size=_text([radius]),
                pos=_text(corner),
                condim="3",
                friction=_text([GROUND_FRICTION, 0.0, 0.0]),
                solref=_text([_GROUND_TIME, 1.0]),
            )


def _add_bodies(
    world: ET.Element,
    robot: Robot,
    parameters: FloatArray,
    friction: dict[str, _Shares],
    config: PhysicsConfig,
) -> None:
    model, layout = robot.model, robot.layout
    elements = {0: world}
    for index in range(1, model.njoints):
        name = layout.bodies[index - 1]
        body = elements[index] = _add(
            elements[model.parents[index]],
            "body",
            name=name,
            **_placement(model.jointPlacements[index]),
        )
        _inertial(body, name, parameters[layout.body(index - 1)])
        if robot.floating and index == 1:
            _add(body, "freejoint", name=_BASE_JOINT)
        else:
            _add_joint(body, robot, index, friction, config.joint_limits)
        _add_feet(body, robot, index)
    for loop in robot.description.loops:
        for end, frame in (("a", loop.frame_a), ("b", loop.frame_b)):
            parent, placement = robot.place(frame)
            _add(elements[parent], "site", name=f"loop/{loop.name}/{end}", **_placement(placement))


def _add_couplings(root: ET.Element, robot: Robot, friction: dict[str, _Shares]) -> None:
    if not robot.couplings:
        return
    tendons = _add(root, "tendon")
    for c, coupling in enumerate(robot.couplings):
        fixed = _add(
            tendons,
            "fixed",
            name=coupling.name,
            damping=_text([friction["viscous"].couplings[c]]),
            frictionloss=_text([friction["coulomb"].couplings[c]]),
            armature=_text([friction["armature"].couplings[c]]),
        )
        for joint, coefficient in zip(robot.joint_names, coupling.direction, strict=True):
            if coefficient != 0.0:
                _add(fixed, "joint", joint=joint, coef=_text([coefficient]))


def _add_equalities(root: ET.Element, robot: Robot) -> None:
    equality = _add(root, "equality")
    for loop in robot.description.loops:
        kind = "connect" if loop.type == "point" else "weld"
        ends = {"site1": f"loop/{loop.name}/a", "site2": f"loop/{loop.name}/b"}
        _add(equality, kind, name=f"loop/{loop.name}", **ends)
    for joint, mimic in robot.description.mimic.items():
        line = _text([mimic.offset, mimic.multiplier, 0.0, 0.0, 0.0])
        _add(equality, "joint", joint1=joint, joint2=mimic.joint, polycoef=line)
    for joint, passive in zip(robot.joint_names, robot.passive, strict=True):
        if not passive:
            # gentle, so that a brake that falls in on a moving joint does not hammer
            _add(
                equality,
                "joint",
                name=brake_name(joint),
                joint1=joint,
                active="false",
                solref="0.02 1",
            )


def _defaults(root: ET.Element, config: PhysicsConfig) -> None:
    # Friction and loops act within one or two steps, so that sliding friction is exactly
    # ±Fc, a stuck joint rests and a loop does not open: the softness that MuJoCo gives its
    # constraints by default is no part of the modelled robot.
    stiff = {"solref": _text([2.0 * config.time_step, 1.0]), "solimp": "0.9999 0.9999 0.001"}
    default = _add(root, "default")
    for tag in ("joint", "tendon"):
        _add(default, tag, solreffriction=stiff["solref"], solimpfriction=stiff["solimp"])
    _add(default, "equality", **stiff)


def build_mjcf(robot: Robot, parameters: FloatArray, config: PhysicsConfig | None = None) -> str:
    """Return a MuJoCo model of a robot that has the given parameters.

    Torque offsets have no counterpart in MJCF: whoever applies torques subtracts them. Parameters
    (p,) have friction terms of at least zero, and bodies that are physically consistent.

    Raises
    ------
    ModelError
        If the parameters do not belong to the robot.
    SimulationError
        If no body or motor with these parameters can exist.
    """
    robot.check_parameters(parameters)
    config = config or PhysicsConfig()
    root = ET.Element("mujoco", model=robot.name)
    _add(root, "compiler", angle="radian", autolimits="false", balanceinertia="false")
    option = _add(
        root,
        "option",
        timestep=_text([config.time_step]),
        gravity=_text(robot.description.gravity),
        integrator="Euler",
        cone="elliptic",
        impratio="10",  # feet within their friction cone stick
        solver="Newton",
        tolerance="1e-12",
    )
    # Explicit damping keeps the equation of motion exact at every step; `Plant` checks that the
    # step is short enough for it.
    _add(option, "flag", eulerdamp="disable")
    _defaults(root, config)
    world = _add(root, "worldbody")
    if robot.floating and config.ground:
        _add(
            world,
            "geom",
            name="ground",
            type="plane",
            size="0 0 1",
            condim="3",
            friction=_text([GROUND_FRICTION, 0.0, 0.0]),
            solref=_text([_GROUND_TIME, 1.0]),
        )
    friction = {term: _shares(robot, parameters, term) for term in _SHARED}
    _add_bodies(world, robot, parameters, friction, config)
    _add_couplings(root, robot, friction)
    _add_equalities(root, robot)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode")
