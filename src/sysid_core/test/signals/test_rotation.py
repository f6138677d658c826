# SPDX-License-Identifier: Apache-2.0
"""Angular motion from quaternions against the motion that they were made from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from sysid_core.errors import DataError
from sysid_core.signals.differences import differentiate
from sysid_core.signals.rotation import (
    angular_motion,
    continuous,
    normalised,
    rotate_into_body,
    turned,
)

DT = 0.005


def _tumbling() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a smooth rotation and its body-frame motion by a much finer difference."""
    time = np.arange(800) * DT

    def attitude(t: np.ndarray) -> Rotation:
        angles = np.stack([np.sin(t), 0.8 * np.cos(1.3 * t), 2.0 * t], axis=1)
        return Rotation.from_euler("xyz", angles)

    def velocity(t: np.ndarray) -> np.ndarray:
        h = 1e-4
        return (attitude(t - h).inv() * attitude(t + h)).as_rotvec() / (2 * h)

    h = 1e-3
    acceleration = (velocity(time + h) - velocity(time - h)) / (2 * h)
    return attitude(time).as_quat(), velocity(time), acceleration


def test_continuity_undoes_any_choice_of_signs() -> None:
    quaternions, _, _ = _tumbling()
    signs = np.random.default_rng(8).choice([-1.0, 1.0], size=(len(quaternions), 1))
    chain = continuous(quaternions * signs)
    assert np.all(np.sum(chain[1:] * chain[:-1], axis=1) > 0.0)
    np.testing.assert_allclose(np.abs(np.sum(chain * quaternions, axis=1)), 1.0, atol=1e-12)


def test_angular_motion_is_that_of_the_rotation_whatever_the_length() -> None:
    quaternions, velocity, acceleration = _tumbling()
    length = 1.0 + 0.3 * np.sin(np.arange(len(quaternions)) * DT)[:, np.newaxis]
    scaled = continuous(quaternions) * length
    motion = angular_motion(
        scaled, differentiate(scaled, DT), differentiate(scaled, DT, derivative=2)
    )
    np.testing.assert_allclose(motion.velocity, velocity, atol=1e-5)
    np.testing.assert_allclose(motion.acceleration, acceleration, atol=1e-4)


def test_vectors_are_turned_into_the_body_frame() -> None:
    quaternions, _, _ = _tumbling()
    vectors = np.random.default_rng(10).standard_normal((len(quaternions), 3))
    np.testing.assert_allclose(
        rotate_into_body(quaternions, vectors),
        Rotation.from_quat(quaternions).apply(vectors, inverse=True),
        atol=1e-12,
    )


def test_zero_quaternions_are_refused() -> None:
    with pytest.raises(DataError, match="orientation 2"):
        normalised(np.array([[0.0, 0.0, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0]]))


def test_turned_orientations_show_a_vector_where_it_is_wanted() -> None:
    rng = np.random.default_rng(3)
    quaternions = Rotation.random(50, random_state=3).as_quat()
    down = np.tile([0.0, 0.0, -9.81], (50, 1))
    before = rotate_into_body(quaternions, down)
    after = before + rng.normal(size=(50, 3))
    found = rotate_into_body(turned(quaternions, before, after), down)
    wanted = after * (9.81 / np.linalg.norm(after, axis=1))[:, None]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    there = Rotation.from_quat(turned(quaternions, before, after))
    angles = (Rotation.from_quat(quaternions).inv() * there).magnitude()
    between = np.arccos(np.sum(before * wanted, axis=1) / 9.81**2)
    np.testing.assert_allclose(angles, between, atol=1e-7)  # the shortest way
