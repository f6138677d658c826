# SPDX-License-Identifier: Apache-2.0
"""Deflections of joints and the wrenches across them, from the motion of the links alone."""

from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from sysid_core.arrays import FloatArray
from sysid_core.compliance.poses import LinkMotion
from sysid_core.errors import DataError, ModelError
from sysid_core.robot.model import Robot

__all__ = ["JointLoad", "joint_loads"]


class JointLoad(NamedTuple):
    """What a joint carries and how far it gives way, in the axes of its frame on the parent."""

    joint: str
    deflection: FloatArray
    """(n, 6) [m, rad] of the child's frame from its place at rest: translation, rotation
    vector."""
    rate: FloatArray
    """(n, 6) [m/s, rad/s] rate of the translation as the parent sees it, relative angular
    velocity."""
    wrench: FloatArray  # (n, 6) [N, N·m] of the parent on the child, at the child frame's origin


class _Body(NamedTuple):
    """Inertial force (n, 3) [N] with gravity, its point (n, 3) [m], torque (n, 3) [N·m]."""

    force: FloatArray
    centre: FloatArray
    torque: FloatArray


class _Frame(NamedTuple):
    """A frame with origin, velocity [m, m/s] and axes (n, …) and its angular velocity."""

    origin: FloatArray
    velocity: FloatArray
    rotation: FloatArray
    spin: FloatArray


def joint_loads(robot: Robot, motion: LinkMotion, links: tuple[str, ...]) -> list[JointLoad]:
    """Return loads and deflections of all joints that the recorded links determine.

    A joint is determined if its link and every link beyond it are recorded, and the link before
    it is recorded or is the base, which then stands at the world's origin. The wrench follows from
    Newton's and Euler's equations of all bodies beyond the joint.

    Raises
    ------
    ModelError
        If the robot has a floating base or closed loops.
    DataError
        If the links are not the robot's or determine no joint.
    """
    if robot.floating or robot.linked:
        raise ModelError(
            f"robot '{robot.name}' has a floating base or closed loops; compliance is identified "
            "for trees on a fixed base"
        )
    model, bodies = robot.model, robot.layout.bodies
    known = {*bodies, robot.urdf.root}
    unknown = [link for link in links if link not in known]
    if unknown:
        raise DataError(
            f"the robot has no moving link {', '.join(unknown)}; its links are "
            f"{', '.join([robot.urdf.root, *bodies])}"
        )
    place = {link: k for k, link in enumerate(links)}
    carried = {
        i: _body(robot, i, motion, place[body])
        for i, body in enumerate(bodies, start=1)
        if body in place
    }
    loads = []
    for i, joint in enumerate(robot.joint_names, start=1):
        parent = int(model.parents[i])
        parent_link = bodies[parent - 1] if parent else robot.urdf.root
        beyond = [int(k) for k in model.subtrees[i]]
        if any(k not in carried for k in beyond) or not (parent == 0 or parent_link in place):
            continue
        before = _frame(motion, place.get(parent_link))
        child = _frame(motion, place[bodies[i - 1]])
        seat = _seated(before, model.jointPlacements[i].homogeneous)
        loads.append(_load(joint, seat, child, [carried[k] for k in beyond]))
    if not loads:
        raise DataError(
            "no joint is determined: record the poses of a link, of all links beyond it and of "
            "the link before it (the base may be left out if it stands still)"
        )
    return loads


def _body(robot: Robot, index: int, motion: LinkMotion, link: int) -> _Body:
    inertia = robot.model.inertias[index]
    R, w = motion.rotation[:, link], motion.angular_velocity[:, link]
    wdot = motion.angular_acceleration[:, link]
    lever = R @ inertia.lever
    acceleration = motion.acceleration[:, link] + np.cross(wdot, lever)
    acceleration += np.cross(w, np.cross(w, lever))
    world = R @ inertia.inertia @ np.swapaxes(R, 1, 2)
    spin = np.einsum("nij,nj->ni", world, w)
    torque = np.einsum("nij,nj->ni", world, wdot) + np.cross(w, spin)
    force = inertia.mass * (acceleration - robot.model.gravity.linear)
    return _Body(force, motion.position[:, link] + lever, torque)


def _frame(motion: LinkMotion, link: int | None) -> _Frame:
    """Return a link's frame; None: the base at the world's origin."""
    if link is None:
        n = len(motion.time)
        nothing = np.zeros((n, 3))
        return _Frame(nothing, nothing, np.tile(np.eye(3), (n, 1, 1)), nothing)
    return _Frame(
        motion.position[:, link],
        motion.velocity[:, link],
        motion.rotation[:, link],
        motion.angular_velocity[:, link],
    )


def _seated(frame: _Frame, placement: FloatArray) -> _Frame:
    """Return the joint's frame on its parent, where the child's frame is at rest."""
    lever = frame.rotation @ placement[:3, 3]
    return _Frame(
        frame.origin + lever,
        frame.velocity + np.cross(frame.spin, lever),
        frame.rotation @ placement[:3, :3],
        frame.spin,
    )


def _load(joint: str, seat: _Frame, child: _Frame, beyond: list[_Body]) -> JointLoad:
    into = np.swapaxes(seat.rotation, 1, 2)

    def seen(vectors: FloatArray) -> FloatArray:
        return np.einsum("nij,nj->ni", into, vectors)

    gap = child.origin - seat.origin
    drift = child.velocity - seat.velocity - np.cross(seat.spin, gap)
    force = sum((body.force for body in beyond), np.zeros_like(gap))
    torque = sum(
        (body.torque + np.cross(body.centre - child.origin, body.force) for body in beyond),
        np.zeros_like(gap),
    )
    turned = Rotation.from_matrix(into @ child.rotation).as_rotvec()
    return JointLoad(
        joint,
        np.hstack([seen(gap), turned]),
        np.hstack([seen(drift), seen(child.spin - seat.spin)]),
        np.hstack([seen(force), seen(torque)]),
    )
