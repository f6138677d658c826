# SPDX-License-Identifier: Apache-2.0
"""Bounding ellipsoids of bodies: as described, else from collision shapes, else from inertia."""

from __future__ import annotations

from itertools import product

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.errors import RobotError
from sysid_core.inertia import Ellipsoid, equivalent_ellipsoid, pseudo_inertia
from sysid_core.robot.description import RobotDescription
from sysid_core.robot.urdf import Urdf

__all__ = ["bounding_ellipsoids"]

INERTIA_SCALE = 3.0
"""Stretch of the inertia's equivalent ellipsoid where no shape is known [-]."""


def _from_description(description: RobotDescription, body: str) -> Ellipsoid:
    entry = description.ellipsoids[body]
    try:
        center = np.array(entry["center"], dtype=float)
        axes = np.array(entry["semi_axes"], dtype=float)
    except (KeyError, TypeError, ValueError):
        center, axes = np.zeros(0), np.zeros(0)
    if center.shape != (3,) or axes.shape != (3,) or not (axes > 0.0).all():
        raise RobotError(
            f"ellipsoids.{body} needs 'center' and positive 'semi_axes', three numbers each [m]",
            source=str(description.source or description.name),
        )
    return Ellipsoid(center, np.diag(axes**2))


def _corners(model: pin.Model, urdf: Urdf, index: int) -> FloatArray:
    """Return the corners (k, 3) [m] of all collision boxes that move with a joint."""
    points = []
    for frame in model.frames:
        link = urdf.links.get(frame.name)
        if frame.type != pin.FrameType.BODY or frame.parentJoint != index or link is None:
            continue
        for shape in link.collisions:
            for signs in product((-1.0, 1.0), repeat=3):
                points.append(frame.placement.act(shape.pose.act(shape.half_extents * signs)))
    return np.array(points).reshape(-1, 3)


def _around(points: FloatArray) -> Ellipsoid:
    """Return the axis-aligned ellipsoid through the corners of the points' bounding box."""
    low, high = points.min(axis=0), points.max(axis=0)
    axes = np.maximum(np.sqrt(3.0) * 0.5 * (high - low), 1e-3)
    return Ellipsoid(0.5 * (low + high), np.diag(axes**2))


def _holds(ellipsoid: Ellipsoid, phi: FloatArray) -> bool:
    """Whether a body can have its centre of mass and its density inside."""
    J = pseudo_inertia(phi)
    offset = J[:3, 3] / J[3, 3] - ellipsoid.center
    inside = offset @ np.linalg.solve(ellipsoid.shape, offset) < 0.98
    return bool(inside and np.trace(J @ ellipsoid.quadric) > 0.02 * J[3, 3])


def bounding_ellipsoids(
    description: RobotDescription, urdf: Urdf, model: pin.Model, nominal: dict[str, FloatArray]
) -> tuple[Ellipsoid, ...]:
    """Return a bounding ellipsoid for every body.

    A shape-based ellipsoid that the nominal inertia does not fit into is replaced by the one of
    that inertia: the shapes are incomplete then. Nominal parameters (10,) are consistent and in
    the order of the model's joints.

    Raises
    ------
    RobotError
        If the description gives an ellipsoid for an unknown body or a malformed one.
    """
    unknown = set(description.ellipsoids) - set(nominal)
    if unknown:
        raise RobotError(
            f"ellipsoids names {sorted(unknown)}, but the bodies are {list(nominal)}",
            source=str(description.source or description.name),
        )
    found = []
    for index, (body, phi) in enumerate(nominal.items(), start=1):
        if body in description.ellipsoids:
            found.append(_from_description(description, body))
            continue
        points = _corners(model, urdf, index)
        ellipsoid = _around(points) if len(points) else None
        if ellipsoid is None or not _holds(ellipsoid, phi):
            ellipsoid = equivalent_ellipsoid(phi, INERTIA_SCALE)
        found.append(ellipsoid)
    return tuple(found)
