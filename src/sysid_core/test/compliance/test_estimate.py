# SPDX-License-Identifier: Apache-2.0
"""Springs and dampers are found as they are, and never come out negative."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from sysid_core.arrays import FloatArray
from sysid_core.compliance.estimate import identify_compliance
from sysid_core.compliance.poses import Poses
from sysid_core.errors import DataError
from sysid_core.robot import Robot

STIFFNESS = np.diag([2500.0, 1800.0, 3200.0, 90.0, 6.0, 60.0])
DAMPING = np.diag([6.0, 8.0, 5.0, 0.25, 0.1, 0.2])
REST = np.array([1e-3, -5e-4, 2e-3, 0.02, -0.05, 0.01])

Hang = Callable[[FloatArray, FloatArray, FloatArray], Poses]


@pytest.fixture(scope="module")
def poses(hang: Hang) -> Poses:
    return hang(STIFFNESS, DAMPING, REST)


@pytest.mark.parametrize("coupled", [False, True])
def test_exact_poses_give_every_coefficient(body: Robot, poses: Poses, coupled: bool) -> None:
    found = identify_compliance(body, poses, coupled=coupled)
    (joint,) = found.joints
    assert joint.joint == "hinge"
    np.testing.assert_allclose(np.diag(joint.stiffness), np.diag(STIFFNESS), rtol=5e-3)
    np.testing.assert_allclose(np.diag(joint.damping), np.diag(DAMPING), rtol=5e-3)
    np.testing.assert_allclose(joint.rest, REST, atol=1e-5)
    assert joint.r2.min() > 0.9999
    assert found.warnings == ()


def test_couplings_between_directions_are_found(body: Robot, hang: Hang) -> None:
    stiffness, damping = STIFFNESS.copy(), DAMPING.copy()
    stiffness[0, 4] = stiffness[4, 0] = 50.0
    stiffness[1, 3] = stiffness[3, 1] = -80.0
    damping[2, 5] = damping[5, 2] = 0.3
    found = identify_compliance(body, hang(stiffness, damping, 0.0 * REST), coupled=True)
    (joint,) = found.joints
    scale = np.sqrt(np.outer(np.diag(stiffness), np.diag(stiffness)))
    np.testing.assert_allclose(joint.stiffness / scale, stiffness / scale, atol=5e-3)
    scale = np.sqrt(np.outer(np.diag(damping), np.diag(damping)))
    np.testing.assert_allclose(joint.damping / scale, damping / scale, atol=5e-3)


@pytest.mark.parametrize("coupled", [False, True])
def test_nothing_comes_out_negative_from_poor_poses(
    body: Robot, poses: Poses, coupled: bool
) -> None:
    rng = np.random.default_rng(2)
    n = len(poses)
    turn = Rotation.from_rotvec(2e-3 * rng.normal(size=(n, 3)))
    q = (turn * Rotation.from_quat(poses.orientation[:, 0])).as_quat()
    q *= np.sign(np.sum(q * poses.orientation[:, 0], axis=1, keepdims=True))
    position = poses.position + 1e-3 * rng.normal(size=(n, 1, 3))
    noisy = Poses(poses.time, poses.links, position, q[:, None])
    found = identify_compliance(body, noisy, coupled=coupled)
    (joint,) = found.joints
    for matrix in (joint.stiffness, joint.damping):
        values = np.linalg.eigvalsh(matrix)
        assert values.min() >= -1e-9 * values.max()
    assert any("no better than a tenth" in warning for warning in found.warnings)


def test_the_poses_of_a_still_root_change_nothing(body: Robot, poses: Poses) -> None:
    n = len(poses)
    still = np.tile([0.0, 0.0, 0.0, 1.0], (n, 1, 1))
    rooted = Poses(
        poses.time,
        ("base", *poses.links),
        np.concatenate([np.zeros((n, 1, 3)), poses.position], axis=1),
        np.concatenate([still, poses.orientation], axis=1),
    )
    (alone,) = identify_compliance(body, poses).joints
    (joint,) = identify_compliance(body, rooted).joints
    np.testing.assert_allclose(joint.stiffness, alone.stiffness, rtol=1e-6)


def test_vibrations_beyond_the_poses_rate_are_warned_of(body: Robot, poses: Poses) -> None:
    shake = 1e-3 * np.sin(2.0 * np.pi * 55.0 * poses.time)
    position = poses.position + shake[:, None, None]
    found = identify_compliance(body, Poses(poses.time, poses.links, position, poses.orientation))
    assert any("record faster" in warning for warning in found.warnings)


def test_few_poses_are_refused(body: Robot, poses: Poses) -> None:
    few = Poses(poses.time[:40], poses.links, poses.position[:40], poses.orientation[:40])
    with pytest.raises(DataError, match="too few"):
        identify_compliance(body, few)
