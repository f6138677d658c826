# SPDX-License-Identifier: Apache-2.0
"""Kinematics of a robot's contact frames, and bases of the motion that they leave free."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.errors import DataError, ModelError
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.signals.rotation import normalised

__all__ = [
    "BASE",
    "ContactGeometry",
    "ContactKinematics",
    "FloatingState",
    "configuration",
    "finite_samples",
    "null_space",
    "project",
    "whitened",
]

_STICTION = 1e4
"""Variance of the torque error of a joint that stands still, relative to the others."""


def null_space(jacobian: FloatArray) -> FloatArray:
    """Return orthonormal bases N (n, nv, nv − k) with ``J N = 0`` of Jacobians J (n, k, nv).

    From a full QR of Jᵀ. Where a Jacobian loses rank the basis still satisfies J N = 0; it only
    leaves out the additional directions, which noise would turn arbitrarily.
    """
    n, k, nv = jacobian.shape
    if k == 0:
        return np.broadcast_to(np.eye(nv), (n, nv, nv))
    if k >= nv:
        return np.zeros((n, nv, 0))
    Q = np.linalg.qr(np.swapaxes(jacobian, 1, 2), mode="complete")[0]
    return np.asarray(Q[:, :, k:])


def _carry(twists: FloatArray, position: FloatArray) -> None:
    """Carry twists (…, 6, m) from the origin to positions (…, 3) [m], in place."""
    linear, angular = twists[..., :3, :], twists[..., 3:, :]
    x, y, z = (position[..., k, None] for k in range(3))
    linear[..., 0, :] += angular[..., 1, :] * z - angular[..., 2, :] * y
    linear[..., 1, :] += angular[..., 2, :] * x - angular[..., 0, :] * z
    linear[..., 2, :] += angular[..., 0, :] * y - angular[..., 1, :] * x


def project(N: FloatArray, force: FloatArray) -> FloatArray:
    """Return ``N Nᵀ`` times forces (n, nv) for orthonormal bases N (n, nv, r)."""
    return np.asarray((N @ (np.swapaxes(N, 1, 2) @ force[:, :, None]))[:, :, 0])


def whitened(N: FloatArray, still: BoolArray) -> FloatArray:
    """Return bases (n, nv, r) whose rows have errors of the same size; `still` is (n, nv).

    They are whitened by the Cholesky factor of ``Nᵀ diag(variance) N``.
    """
    stuck = np.flatnonzero(still.any(axis=1))
    if len(stuck) and N.shape[2]:
        N = np.array(N)
        variance = np.where(still[stuck], 1.0 + _STICTION, 1.0)
        NT = np.swapaxes(N[stuck], 1, 2)
        L = np.linalg.cholesky(NT @ (variance[..., None] * N[stuck]))
        N[stuck] = np.swapaxes(np.linalg.solve(L, NT), 1, 2)
    return N


BASE = 6
"""Degrees of freedom of a floating base, which come first in velocities and forces."""


class FloatingState(NamedTuple):
    """Pinocchio's configuration, velocity and acceleration over samples."""

    q: FloatArray  # (n, nq) base position [m], quaternion x, y, z, w, joints [rad]
    # v, a: (n, nv) base twist in the base frame (linear, angular), joints; its component-wise
    # derivative.
    v: FloatArray
    a: FloatArray


class ContactGeometry(NamedTuple):
    """Where the contact frames are and how they move, with axes parallel to the world's."""

    jacobian: FloatArray
    """(n, nc, 6, nv) linear then angular velocity of each frame (Pinocchio's
    LOCAL_WORLD_ALIGNED)."""
    position: FloatArray  # (n, nc, 3) [m] in the world
    rotation: FloatArray  # (n, nc, 3, 3) from the contact frame to the world

    def generalised(self, wrenches: FloatArray) -> FloatArray:
        """Return Σ Jᵀw (n, nv) [N, N·m] of wrenches (n, nc, 6) given in the contact frames."""
        n, nc = wrenches.shape[:2]
        local = wrenches.reshape(n, nc, 2, 3, 1)
        world = (self.rotation[:, :, None] @ local).reshape(n, 1, 6 * nc)
        jacobian = self.jacobian.reshape(n, 6 * nc, -1)
        return np.asarray((world @ jacobian)[:, 0])


def configuration(robot: Robot, samples: Samples) -> FloatingState:
    """Return Pinocchio's q, v, a of samples; quaternions are scaled to unit length.

    The twist of `Samples` is Pinocchio's velocity of a free-flyer, and the derivative of its
    components the acceleration, so both pass through as they are. Samples whose base is unknown
    (NaN) stay NaN.

    Raises
    ------
    DataError
        If the base of a floating robot is missing.
    """
    if not robot.floating:
        return FloatingState(samples.position, samples.velocity, samples.acceleration)
    base = (samples.base_pose, samples.base_twist, samples.base_acceleration)
    for name, value in zip(("pose", "twist", "acceleration"), base, strict=True):
        if value is None:
            raise DataError(
                f"robot '{robot.name}' has a floating base, but the data hold no base {name}; "
                "record its odometry ('odom', nav_msgs/Odometry) along with the joint states"
            )
    pose, twist, acceleration = (np.asarray(value, dtype=float) for value in base)
    quaternion = pose[:, 3:].copy()
    known = np.isfinite(quaternion).all(axis=1)
    quaternion[known] = normalised(quaternion[known])
    return FloatingState(
        np.hstack([pose[:, :3], quaternion, samples.position]),
        np.hstack([twist, samples.velocity]),
        np.hstack([acceleration, samples.acceleration]),
    )


def finite_samples(robot: Robot, samples: Samples, state: FloatingState) -> BoolArray:
    """Return which samples (n,) have finite motion and actuated torque."""
    finite = np.isfinite(samples.effort[:, robot.actuated]).all(axis=1)
    for values in state:
        finite &= np.isfinite(values).all(axis=1)
    return np.asarray(finite)


class ContactKinematics:
    """Jacobians of a robot's contact frames.

    Raises
    ------
    ModelError
        If the robot describes no contacts.
    """

    def __init__(self, robot: Robot) -> None:
        if not robot.description.contacts:
            raise ModelError(
                f"robot '{robot.name}' needs contact frames; give 'contacts' in its description"
            )
        self.robot = robot
        self._data = robot.model.createData()
        contacts = robot.description.contacts
        self.names = tuple(contact.name for contact in contacts)
        self.flat = np.array([contact.type == "flat" for contact in contacts])
        gravity = np.array(robot.description.gravity)
        down = gravity / max(float(np.linalg.norm(gravity)), 1e-300)
        radius = np.array([contact.radius for contact in contacts])
        self.reach = np.where(self.flat, 0.0, radius)[:, None] * down
        # joint index and placement in that joint's frame of every contact
        self.frames = tuple(robot.place(contact.frame) for contact in contacts)
        # (nc, nv) 1 where a velocity moves a contact, else 0
        self._support = np.zeros((len(contacts), robot.model.nv))
        for row, (leaf, _) in zip(self._support, self.frames, strict=True):
            for joint in list(robot.model.supports[leaf])[1:]:
                start = robot.model.idx_vs[joint]
                row[start : start + robot.model.nvs[joint]] = 1.0

    def evaluate(self, q: FloatArray) -> ContactGeometry:
        """Return the geometry of all contacts at configurations q (n, nq)."""
        whole, rotation, position = self._placed(q, range(len(self.frames)))
        jacobian = whole[:, None] * self._support[:, None, :]
        _carry(jacobian, position)
        return ContactGeometry(jacobian, position, rotation)

    def held(self, q: FloatArray, active: BoolArray) -> FloatArray:
        """Return what the active contacts (nc,) hold fast at configurations q (n, nq).

        The same (n, k, nv) as `constraint_rows` of `evaluate`.
        """
        chosen = np.flatnonzero(active)
        whole, _, position = self._placed(q, chosen)
        sizes = np.where(self.flat[chosen], 6, 3)
        rows, start = np.empty((len(q), sizes.sum(), whole.shape[2])), 0
        for k, (c, size) in enumerate(zip(chosen, sizes, strict=True)):
            moved = whole * self._support[c]
            _carry(moved, position[:, k] + self.reach[c])
            rows[:, start : start + size] = moved[:, :size]
            start += size
        return rows

    def _placed(
        self, q: FloatArray, chosen: Iterable[int]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return all joints' twists at the world's origin (n, 6, nv), and some contacts' frames.

        These are rotations (n, m, 3, 3) and positions (n, m, 3).
        """
        model, data = self.robot.model, self._data
        frames = [self.frames[c] for c in chosen]
        whole = np.empty((len(q), 6, model.nv))
        poses = np.empty((len(q), len(frames), 4, 3))
        # views into Pinocchio's memory: asking for them anew would double this loop's time
        joints = [data.oMi[joint] for joint, _ in frames]
        views = [part for p in joints for part in (p.rotation, p.translation[None])]
        stacked = poses.reshape(len(q), -1, 3)
        for i in range(len(q)):
            whole[i] = pin.computeJointJacobians(model, data, q[i])
            if views:
                np.concatenate(views, out=stacked[i])
        rotation, position = poses[:, :, :3], poses[:, :, 3]
        for c, (_, placement) in enumerate(frames):
            position[:, c] += rotation[:, c] @ placement.translation
            rotation[:, c] = rotation[:, c] @ placement.rotation
        return whole, rotation, position

    def accelerations(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Return the frames' classical accelerations (n, nc, 6) [m/s², rad/s²], in world axes.

        Of states q (n, nq), v and a (n, nv).
        """
        model, data = self.robot.model, self._data
        moved = np.empty((len(q), len(self.frames), 6))
        for i in range(len(q)):
            pin.forwardKinematics(model, data, q[i], v[i], a[i])
            for c, (joint, placement) in enumerate(self.frames):
                moved[i, c] = pin.getFrameClassicalAcceleration(
                    model, data, joint, placement, pin.LOCAL_WORLD_ALIGNED
                ).vector
        return moved

    def at_ground(self, jacobian: FloatArray) -> FloatArray:
        """Return Jacobians (…, nc, 6, m) of the points that touch the ground.

        They lie a ball foot's radius below its frame's origin, wherever the foot rolls to: their
        distance `reach` (nc, 3) [m] from it is constant in the world, so that the same map holds
        for velocities and for accelerations.
        """
        if not self.reach.any():
            return jacobian
        result = np.array(jacobian)
        _carry(result, self.reach)
        return result

    def wrenches(self, forces: FloatArray, active: BoolArray) -> FloatArray:
        """Return wrenches (nc, 6) about the frames' origins of the constraints' forces (k,)."""
        result = np.zeros((len(active), 6))
        start = 0
        for c in np.flatnonzero(active):
            size = 6 if self.flat[c] else 3
            result[c, :size] = forces[start : start + size]
            start += size
        result[:, 3:] += np.cross(self.reach, result[:, :3])
        return result

    def constraint_rows(self, jacobian: FloatArray, active: BoolArray) -> FloatArray:
        """Stack what the active contacts (nc,) hold fast: 3 rows per point foot, 6 per flat one.

        Takes and returns Jacobians (n, nc, 6, nv), (n, k, nv). Rows of a ball foot are taken where
        it touches the ground.
        """
        rows = [6 * c + r for c in np.flatnonzero(active) for r in range(6 if self.flat[c] else 3)]
        n, nc, _, nv = jacobian.shape
        return self.at_ground(jacobian).reshape(n, 6 * nc, nv)[:, rows]
