# SPDX-License-Identifier: Apache-2.0
"""A wrench that is measured on an arm is no load of the arm's own bodies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.rows import PerJoint
from sysid_core.dynamics.select import make_regression
from sysid_core.errors import DataError
from sysid_core.identification import IdentifyConfig, identify
from sysid_core.recording import ContactRecording, Recording, Samples
from sysid_core.robot import Robot, load_robot, read_description
from sysid_core.robot.description import Contact, FrameOnLink

ROBOTS = Path(__file__).resolve().parents[4] / "config" / "robots"
ON_LINK = ((0.02, -0.03, 0.1), (0.3, 0.2, 0.1))


@pytest.fixture(scope="module")
def arm() -> Robot:
    described = read_description(ROBOTS / "ur10.yaml")
    frame = FrameOnLink(load_robot(described).tool_frame, *ON_LINK)
    return load_robot(replace(described, contacts=(Contact("flange", frame),)))


def _torques(arm: Robot, q: FloatArray, wrench: FloatArray) -> FloatArray:
    """Return what wrenches (n, 6) in the sensor's frame exert on the joints (n, nj)."""
    joint, place = arm.place(arm.description.contacts[0].frame)
    data, torques = arm.model.createData(), np.empty_like(q)
    for row, (where, felt) in enumerate(zip(q, wrench, strict=True)):
        outside = pin.StdVec_Force()
        outside.extend([pin.Force.Zero() for _ in range(arm.model.njoints)])
        outside[joint] = place.act(pin.Force(felt))
        rest = np.zeros(arm.model.nv)
        without = pin.rnea(arm.model, data, where, rest, rest).copy()
        torques[row] = without - pin.rnea(arm.model, data, where, rest, rest, outside)
    return torques


def test_what_a_wrench_exerts_is_on_the_right_hand_side(arm: Robot) -> None:
    rng = np.random.default_rng(2)
    q, v, a, effort = rng.normal(size=(4, 12, 6))
    wrench = rng.normal(size=(12, 1, 6)) * 20.0
    free = Samples(np.arange(12.0), q, v, a, effort)
    wrench[[3, 7], 0, 2] = np.nan
    regression = make_regression(arm)
    assert isinstance(regression, PerJoint)
    bare, pushed = regression.rows(free), regression.rows(replace(free, wrenches=wrench))
    seen = np.delete(np.arange(12), [3, 7])
    torque = _torques(arm, q[seen], wrench[seen, 0])
    for j, (one, other) in enumerate(zip(bare.blocks, pushed.blocks, strict=True)):
        np.testing.assert_array_equal(other.sample, seen)
        np.testing.assert_array_equal(other.matrix, one.matrix[seen])
        np.testing.assert_allclose(other.target - one.target[seen], torque[:, j], atol=1e-9)
        np.testing.assert_allclose(pushed.carried[j], -torque[:, j], atol=1e-9)
    assert pushed.left_out.count == 2


def test_an_arm_that_is_pushed_is_identified_as_if_it_were_not(arm: Robot) -> None:
    time = np.arange(0.0, 20.0, 0.01)[:, None]
    w = np.array([1.1, 1.3, 1.7, 1.9, 2.3, 2.9])
    q, v = 0.8 * np.sin(w * time), 0.8 * w * np.cos(w * time)
    states = zip(q, v, -(w**2) * q, strict=True)
    data = arm.model.createData()
    effort = np.array([pin.rnea(arm.model, data, *state) for state in states]) + 3.0 * v
    wrench = 40.0 * np.sin(0.7 * time + np.arange(6.0))
    effort -= _torques(arm, q, wrench)
    others = np.zeros_like(wrench)
    felt = ContactRecording(
        time[:, 0],
        ("other", "flange"),
        np.ones((len(time), 2), dtype=bool),
        np.stack([others, wrench], axis=1),
    )
    recording = Recording(time[:, 0], arm.joint_names, q, effort=effort)
    config = IdentifyConfig(friction="described")
    found = identify(arm, replace(recording, contacts=felt), config)
    blind = identify(arm, recording, config)
    assert found.validation is not None
    assert blind.validation is not None
    assert (found.validation.rmse_identified < 0.02 * blind.validation.rmse_identified).all()


def test_each_wrench_needs_its_contact(arm: Robot) -> None:
    none = np.zeros((3, 6))
    samples = Samples(np.arange(3.0), none, none, none, none, wrenches=np.zeros((3, 2, 6)))
    with pytest.raises(DataError, match="2 wrenches"):
        make_regression(arm).rows(samples)
