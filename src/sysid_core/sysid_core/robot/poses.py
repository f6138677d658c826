# SPDX-License-Identifier: Apache-2.0
"""Where the bodies of a tree are at many configurations at once."""

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray

__all__ = ["Poses", "hat"]


class Poses:
    """Where the bodies of a tree are, and how joints move them, at n configurations."""

    def __init__(self, model: pin.Model, q: FloatArray) -> None:
        # (n, nj, 4, 4) homogeneous transforms of the joints' frames in the world
        self.bodies = np.empty((*q.shape, 4, 4))
        # (n, nj, 4, 4) motion of space per motion of each joint, ``[[ω]×, v; 0, 0]`` about the
        # world's origin
        self.screws = np.empty_like(self.bodies)
        for k in range(q.shape[1]):
            joint, parent = model.joints[k + 1], model.parents[k + 1] - 1
            data = joint.createData()
            joint.calc(data, q[0, k : k + 1])
            S = hat(np.ravel(data.S))
            turn = q[:, k, None, None]
            if S[:3, :3].any():  # Rodrigues' formula: the axis passes through the frame's origin
                step = np.eye(4) + np.sin(turn) * S + (1.0 - np.cos(turn)) * (S @ S)
            else:
                step = np.eye(4) + turn * S
            place = model.jointPlacements[k + 1].homogeneous @ step
            pose = self.bodies[:, parent] @ place if parent >= 0 else place
            self.bodies[:, k], self.screws[:, k] = pose, pose @ S @ _inverse(pose)


def hat(twist: FloatArray) -> FloatArray:
    """Return the matrix (4, 4) of a twist (6,), linear part first."""
    X = np.zeros((4, 4))
    X[:3, :3], X[:3, 3] = pin.skew(twist[3:]), twist[:3]
    return X


def _inverse(pose: FloatArray) -> FloatArray:
    inverse = np.zeros_like(pose)
    inverse[..., :3, :3] = np.swapaxes(pose[..., :3, :3], -1, -2)
    inverse[..., :3, 3] = -np.einsum("...ji,...j->...i", pose[..., :3, :3], pose[..., :3, 3])
    inverse[..., 3, 3] = 1.0
    return inverse
