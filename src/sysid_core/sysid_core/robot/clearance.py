# SPDX-License-Identifier: Apache-2.0
"""How far a robot's bodies are from each other, from boxes and from the floor."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.inertia import pseudo_inertia
from sysid_core.robot.model import Robot
from sysid_core.robot.poses import Poses
from sysid_core.robot.urdf import Geometry

try:
    import coal
except ImportError:  # its name with Pinocchio up to 3.2
    import hppfcl as coal

__all__ = ["NOTHING", "Clearance", "Obstacles"]

_SOLID = 5.0  # Squared semi-axes of a solid ellipsoid over its mean squares along them
_ALWAYS = 0.5  # Share of random configurations in which shapes overlap that stand for no gap
_SAMPLES = 200
_TINY = 1e-12
_LEVEL = 1e-6  # Height [m] by which a frame must move for the floor to matter to it


@dataclass(frozen=True)
class Obstacles:
    """What a robot's bodies must stay clear of."""

    itself: bool = False  # Whether bodies must not touch each other
    boxes: tuple[tuple[float, ...], ...] = ()
    """Tuple of (6,) [m] centre and size of boxes along the world's axes."""
    floor: float | None = None  # [m] least height of the joints' frames and of the tool

    def __post_init__(self) -> None:
        if self.floor is not None and not np.isfinite(self.floor):
            raise ParameterError(f"floor must be a finite height [m], got {self.floor:g}")
        for box in self.boxes:
            if not (len(box) == 6 and np.isfinite(box).all() and min(box[3:]) > 0.0):
                raise ParameterError(
                    f"a box is its centre and its size, six finite numbers [m], got {box}"
                )


NOTHING = Obstacles()


class Clearance:
    """Distances between shapes that can touch, and heights above the floor.

    Shapes are a URDF's boxes, cylinders and spheres, or, of bodies that have none, the capsule
    around the solid ellipsoid with the nominal inertia. Bodies on both sides of a joint, and
    shapes that overlap in most configurations, are not looked at; nor is what does not move.
    """

    def __init__(self, robot: Robot, obstacles: Obstacles) -> None:
        self._model, self._data = robot.model, robot.model.createData()
        self._shapes = _shapes(robot, obstacles)
        self._result = self._shapes.createData()
        self._floor, self._walked = obstacles.floor or 0.0, 0
        self.names: tuple[str, ...] = self._pair_names()
        usual = np.random.default_rng(0).uniform(
            *robot.sampling_range, (_SAMPLES, len(robot.joint_names))
        )
        often = (self.gaps(usual) < 0.0).mean(axis=0) > _ALWAYS
        for pair in [*self._shapes.collisionPairs][::-1]:
            if often[self._shapes.findCollisionPair(pair)]:
                self._shapes.removeCollisionPair(pair)
        self._result = self._shapes.createData()
        tool = robot.frame(robot.tool_frame)
        self._carriers = np.array([*robot.body_joint_ids, tool.parentJoint]) - 1
        self._spots = np.zeros((len(self._carriers), 4))
        self._spots[:, 3], self._spots[-1, :3] = 1.0, tool.placement.translation
        moves = np.ptp(self.heights(usual), axis=0) > _LEVEL
        self._carriers, self._spots = self._carriers[moves], self._spots[moves]
        if obstacles.floor is not None:
            self._walked = len(self._spots)
        self.names = self._pair_names() + (f"the floor at {self._floor:g} m",) * self._walked

    def _pair_names(self) -> tuple[str, ...]:
        return tuple(self._name(pair) for pair in self._shapes.collisionPairs)

    def _name(self, pair: pin.CollisionPair) -> str:
        one, other = (self._shapes.geometryObjects[k].name for k in (pair.first, pair.second))
        if other.startswith("box"):
            return f"the {other}, which '{one}' hits"
        return f"the robot itself: bodies '{one}' and '{other}' come too close"

    def heights(self, configurations: FloatArray) -> FloatArray:
        """Return the heights (n, m) [m] of all joints and the tool, if they move up or down."""
        poses = Poses(self._model, configurations).bodies
        return np.einsum("nmx,mx->nm", poses[:, self._carriers, 2], self._spots)

    def gaps(self, configurations: FloatArray) -> FloatArray:
        """Return the gaps (n, g) [m] at configurations (n, nq); negative: overlap.

        They are zero where a configuration is not finite.
        """
        count = len(self._shapes.collisionPairs)
        gaps = np.zeros((len(configurations), len(self.names)))
        if self._walked:
            gaps[:, count:] = np.nan_to_num(self.heights(configurations) - self._floor)
        for row, q in zip(gaps, configurations, strict=True):
            if count and np.isfinite(q).all():
                self._measure(q)
                row[:count] = [found.min_distance for found in self._result.distanceResults]
        return gaps

    def _measure(self, q: FloatArray) -> None:
        pin.computeDistances(self._model, self._data, self._shapes, self._result, q)

    def push(self, configurations: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the gradient (n, nv) by positions of the weighted (n, g) sum of gaps."""
        count = len(self._shapes.collisionPairs)
        force = np.zeros((len(configurations), self._model.nv))
        for i in np.flatnonzero(weights.any(axis=1)):
            row, q, weight = force[i], configurations[i], weights[i]
            active = np.flatnonzero(weight)
            pin.computeJointJacobians(self._model, self._data, q)
            screws = np.array(self._data.J)
            if active[0] < count:
                self._measure(q)
            for k in active:
                for joint, point, normal in self._ends(int(k)):
                    wrench = np.r_[normal, np.cross(point, normal)]
                    dofs = [i - 1 for i in self._model.supports[joint] if i]
                    row[dofs] += weight[k] * (wrench @ screws[:, dofs])
        return force

    def _ends(self, gap: int) -> list[tuple[int, FloatArray, FloatArray]]:
        """Return the joint, the point and the direction of each end of a gap."""
        count = len(self._shapes.collisionPairs)
        if gap >= count:
            joint = int(self._carriers[gap - count]) + 1
            point = self._data.oMi[joint].act(self._spots[gap - count, :3])
            return [(joint, point, np.array([0.0, 0.0, 1.0]))]
        pair, found = self._shapes.collisionPairs[gap], self._result.distanceResults[gap]
        shapes = self._shapes.geometryObjects
        return [
            (shapes[pair.first].parentJoint, found.getNearestPoint1(), -found.normal),
            (shapes[pair.second].parentJoint, found.getNearestPoint2(), found.normal),
        ]


def _shapes(robot: Robot, obstacles: Obstacles) -> pin.GeometryModel:
    """Return the shapes of bodies and obstacles, with the pairs that may touch."""
    model, found = robot.model, pin.GeometryModel()
    for frame in model.frames:
        link = robot.urdf.links.get(frame.name)
        if frame.type == pin.FrameType.BODY and link is not None:
            for shape in link.collisions:
                place = frame.placement * shape.pose
                solid = pin.GeometryObject(frame.name, frame.parentJoint, place, _solid(shape))
                found.addGeometryObject(solid)
    shaped = {shape.parentJoint for shape in found.geometryObjects}
    bodies = robot.layout.bodies_of(robot.consistent_nominal)
    for joint, (name, phi) in zip(robot.body_joint_ids, bodies.items(), strict=True):
        if joint not in shaped:
            found.addGeometryObject(pin.GeometryObject(name, joint, *_capsule(phi)))
    count = found.ngeoms
    itself = obstacles.itself and not robot.description.loops
    for box in obstacles.boxes:
        place = pin.SE3(np.eye(3), np.array(box[:3]))
        name = f"box at {', '.join(f'{x:g}' for x in box[:3])} m"
        found.addGeometryObject(pin.GeometryObject(name, 0, place, coal.Box(*box[3:])))
    joints = [shape.parentJoint for shape in found.geometryObjects]
    for i, j in combinations(range(found.ngeoms), 2):
        one, other = joints[i], joints[j]
        apart = one not in (other, model.parents[other]) and other != model.parents[one]
        if (apart and itself) if j < count else (one and i < count):
            found.addCollisionPair(pin.CollisionPair(i, j))
    return found


def _solid(shape: Geometry) -> coal.CollisionGeometry:
    half = shape.half_extents
    if half[0] != half[1]:
        return coal.Box(*(2.0 * half))
    return coal.Sphere(half[0]) if half[0] == half[2] else coal.Cylinder(half[0], 2.0 * half[2])


def _capsule(phi: FloatArray) -> tuple[pin.SE3, coal.CollisionGeometry]:
    """Return the place of a body's capsule in its joint's frame, and the capsule."""
    J = pseudo_inertia(phi)
    mass = max(float(J[3, 3]), _TINY)
    centre = J[:3, 3] / mass
    spread = J[:3, :3] / mass - np.outer(centre, centre)
    values, axes = np.linalg.eigh(spread)
    _, middle, longest = np.sqrt(_SOLID * np.maximum(values, _TINY))
    axes[:, 0] *= np.linalg.det(axes)
    return pin.SE3(axes, centre), coal.Capsule(middle, 2.0 * (longest - middle))
