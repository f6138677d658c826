# SPDX-License-Identifier: Apache-2.0
"""Joints that a description locks are told where data show them elsewhere, if it matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Severity
from sysid_core.recording import Recording
from sysid_core.robot import Robot, load_robot
from sysid_core.robot.locked import locked_elsewhere

MOVING = ("shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint")
TIME: FloatArray = 0.01 * np.arange(500.0)


def _locked(**positions: float) -> Robot:
    """Return a UR10 with some locked joints."""
    ur10 = load_robot("ur10")
    return Robot(replace(ur10.description, locked=positions, actuated=None), ur10.urdf)


@pytest.fixture(scope="module")
def robot() -> Robot:
    """Return one whose first joint, which is upright, and whose last are locked."""
    return _locked(shoulder_pan_joint=0.5, wrist_3_joint=0.0)


def _told(robot: Robot, joint: str, there: FloatArray | float) -> list[tuple[str, Severity, str]]:
    position = 0.5 * np.sin(TIME[:, None] + np.arange(4.0))
    data = Recording(
        TIME,
        (*MOVING, joint),
        np.column_stack([position, np.broadcast_to(there, len(TIME))]),
        None,
        np.column_stack([np.ones((500, 4)), np.full(500, np.nan)]),
    )
    return [(d.subject, d.severity, str(d)) for d in locked_elsewhere(robot, data)]


def test_where_it_matters_to_gravity_is_told() -> None:
    robot = _locked(shoulder_lift_joint=-1.0)
    data = Recording(TIME, robot.joint_names, np.zeros((500, 5)), None, np.ones((500, 5)))
    more = replace(
        data,
        joint_names=(*data.joint_names, "shoulder_lift_joint"),
        position=np.column_stack([data.position, np.full(500, -1.3)]),
        effort=None,
    )
    (told,) = locked_elsewhere(robot, more)
    assert (told.subject, told.severity) == ("shoulder_lift_joint", Severity.ERROR)
    assert "set 'joints.locked: {shoulder_lift_joint: -1.3}'" in str(told)
    assert not list(locked_elsewhere(robot, data))  # which does not say where it is


def test_a_turn_about_the_vertical_matters_only_in_motion(robot: Robot) -> None:
    joint = "shoulder_pan_joint"
    assert not _told(robot, joint, 0.5)
    assert not _told(robot, joint, -1.5)
    ((subject, severity, text),) = _told(robot, joint, np.sin(TIME))
    assert (subject, severity) == (joint, Severity.ERROR)
    assert "is locked at 0.5, but moves from -1 to 1, which" in text


def test_what_hardly_matters_is_borne(robot: Robot) -> None:
    assert not _told(robot, "wrist_3_joint", 1.0)
