# SPDX-License-Identifier: Apache-2.0
"""Bounding ellipsoids of bodies: as described, else from collision shapes, else from inertia."""

import os
from contextlib import suppress
from itertools import product
from pathlib import Path

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.errors import RobotError, UnreadableError
from sysid_core.inertia import Ellipsoid, equivalent_ellipsoid, pseudo_inertia
from sysid_core.robot.description import RobotDescription
from sysid_core.robot.urdf import Urdf
from sysid_core.untrusted import read_bytes

__all__ = ["around", "bounding_ellipsoids", "shape_of"]

INERTIA_SCALE = 3.0  # Stretch of the inertia's equivalent ellipsoid where no shape is known [-]
_THIN = 1e-3  # Half of the thickness that anything has at least [m]
_STEPS = 2000
_CLOSE = 0.1
"""Excess of the farthest point over its distance in the least ellipsoid, 4, that is let be."""
_SIGNS = np.array(list(product((-1.0, 1.0), repeat=3)))
_AXES = np.concatenate([np.eye(3), -np.eye(3)])
_DIRECTIONS = np.array(list(product((-2.0, -1.0, 0.0, 1.0, 2.0), repeat=3)))
"""Towards these, the outermost corners stand for all."""
_HEADER = 80  # Bytes before a binary STL's count of triangles
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_CORNERS = {".stl": b"vertex", ".obj": b"v"}
"""First word of a corner's line in a text, by the file's suffix."""


def _read_mesh(address: str, urdf: Path) -> FloatArray:
    """Return the corners (k, 3) of a mesh in STL or OBJ, in its own unit; none if unreadable.

    A ``package://`` is looked for in ``$AMENT_PREFIX_PATH`` and among the folders that the URDF
    lies in; other addresses are paths beside the URDF.
    """
    for path in _places(address, urdf):
        with suppress(UnreadableError, ValueError):
            points = _mesh_corners(read_bytes(path), _CORNERS[path.suffix.lower()])
            if np.isfinite(points).all():
                return points
    return np.zeros((0, 3))


def _places(address: str, urdf: Path) -> list[Path]:
    """Return where a mesh may lie that can be read."""
    scheme, _, rest = address.rpartition("://")
    if Path(rest).suffix.lower() not in _CORNERS:
        return []
    if scheme not in ("package", "model"):
        return [urdf.parent / rest]
    package, _, inside = rest.partition("/")
    prefixes = filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep))
    shares = [Path(prefix) / "share" / package for prefix in prefixes]
    around = [folder for folder in urdf.absolute().parents if folder.name == package]
    return [folder / inside for folder in (*shares, *around)]


def _mesh_corners(data: bytes, word: bytes) -> FloatArray:
    """Return the corners (k, 3) of a binary STL, else of a text's lines that begin with a word."""
    body = data[_HEADER + 4 :]
    count = int.from_bytes(data[_HEADER : _HEADER + 4], "little")
    if len(data) > _HEADER and len(body) == count * _TRIANGLE.itemsize:
        return np.frombuffer(body, _TRIANGLE)["corners"].reshape(-1, 3).astype(np.float64)
    lines = (line.split() for line in data.splitlines())
    return np.array([line[1:4] for line in lines if line[:1] == [word]], float).reshape(-1, 3)


def _corners(model: pin.Model, urdf: Urdf, index: int) -> FloatArray:
    """Return the corners (k, 3) [m] of all collision shapes that move with a joint.

    There are none where a mesh of theirs cannot be read: the others would not hold the body.
    """
    points = [np.zeros((0, 3))]
    for frame in model.frames:
        link = urdf.links.get(frame.name)
        if frame.type != pin.FrameType.BODY or frame.parentJoint != index or link is None:
            continue
        shapes = [(shape.pose, _SIGNS * shape.half_extents) for shape in link.collisions]
        meshes = [(mesh, _read_mesh(mesh.address, urdf.path)) for mesh in link.meshes]
        if not all(len(corners) for _, corners in meshes):
            return points[0]
        for pose, corners in (*shapes, *((mesh.pose, mesh.scale * x) for mesh, x in meshes)):
            place = frame.placement * pose
            points.append(corners @ place.rotation.T + place.translation)
    return np.concatenate(points)


def around(points: FloatArray) -> Ellipsoid:
    """Return the least ellipsoid around points (k, 3) [m], to 2 % of its axes.

    Khachiyan's algorithm: Todd, M. and Yıldırım, E., On Khachiyan's algorithm for the computation
    of minimum-volume enclosing ellipsoids, Discrete Applied Mathematics 155, 2007.
    """
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    points = np.concatenate([points, middle + _THIN * _AXES])
    outer = points[np.unique(np.argmax(points @ _DIRECTIONS.T, axis=0))]
    lifted = np.column_stack([outer, np.ones(len(outer))])
    weights = np.full(len(outer), 1.0 / len(outer))
    for _ in range(_STEPS):
        spread = np.linalg.inv(lifted.T @ (weights[:, np.newaxis] * lifted))
        distance = np.einsum("ki,ki->k", lifted @ spread, lifted)
        farthest = int(np.argmax(distance))
        excess = float(distance[farthest]) - 4.0
        if excess < _CLOSE:
            break
        step = excess / (4.0 * (distance[farthest] - 1.0))
        weights *= 1.0 - step
        weights[farthest] += step
    center = weights @ outer
    shape = 3.0 * (outer.T @ (weights[:, np.newaxis] * outer) - np.outer(center, center))
    offsets = points - center
    reach = np.einsum("ki,ki->k", offsets @ np.linalg.inv(shape), offsets).max()
    return Ellipsoid(center, reach * shape)


def _holds(ellipsoid: Ellipsoid, phi: FloatArray) -> bool:
    """Whether a body can have its centre of mass and its density inside."""
    J = pseudo_inertia(phi)
    offset = J[:3, 3] / J[3, 3] - ellipsoid.center
    inside = offset @ np.linalg.solve(ellipsoid.shape, offset) < 0.98
    return bool(inside and np.trace(J @ ellipsoid.quadric) > 0.02 * J[3, 3])


def shape_of(
    description: RobotDescription, urdf: Urdf, model: pin.Model, index: int, body: str
) -> Ellipsoid | None:
    """Return a body's ellipsoid (that of joint `index`) by description or collision shapes."""
    if given := description.ellipsoids.get(body):
        return Ellipsoid(np.array(given.center), np.diag(np.square(given.semi_axes)))
    points = _corners(model, urdf, index)
    return around(points) if len(points) else None


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
        If the description gives an ellipsoid for an unknown body.
    """
    unknown = set(description.ellipsoids) - set(nominal)
    if unknown:
        raise RobotError(
            f"ellipsoids names {sorted(unknown)}, but the bodies are {list(nominal)}",
            source=str(description.source or description.name),
        )
    found = []
    for index, (body, phi) in enumerate(nominal.items(), start=1):
        ellipsoid = shape_of(description, urdf, model, index, body)
        described = body in description.ellipsoids
        if ellipsoid is None or not (described or _holds(ellipsoid, phi)):
            ellipsoid = equivalent_ellipsoid(phi, INERTIA_SCALE)
        found.append(ellipsoid)
    return tuple(found)
