# SPDX-License-Identifier: Apache-2.0
"""Odometry and contacts are checked, age, and tell of a fall."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from sysid_controller.floating_base import FloatingBase
from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import FloatArray
from sysid_core.robot import load_robot

FEET = ("FL", "FR", "HL", "HR")
ALL = (True,) * 4
LEVEL = np.array([0.0, 0.0, 0.25, 0.0, 0.0, 0.0, 1.0])
SETTINGS = ControllerConfig()


@pytest.fixture
def base() -> FloatingBase:
    return FloatingBase(load_robot("solo12"), SETTINGS)


def tilted(roll: float, pitch: float = 0.0, yaw: float = 0.0) -> FloatArray:
    turn = pin.Quaternion(pin.rpy.rpyToMatrix(roll, pitch, yaw)).coeffs()
    return np.concatenate([LEVEL[:3], turn])


def test_names_what_is_missing_and_what_grew_old(base: FloatingBase) -> None:
    assert "odometry and contacts" in base.unknown(0.0)
    assert base.take_odometry(LEVEL, np.zeros(6), 1.0) is None
    assert base.unknown(1.0) == "no valid contacts yet"
    assert base.take_contacts(FEET, ALL, 1.0, 1.0) is None
    assert base.unknown(1.05) == ""
    assert base.take_contacts(FEET, ALL, 1.5, 1.5) is None
    assert base.unknown(1.5) == "no valid odometry for 0.50 s"
    assert "odometry and contacts" in base.unknown(2.0)


def test_odometry_that_cannot_be_is_refused_and_the_last_kept(base: FloatingBase) -> None:
    base.take_odometry(tilted(0.1), np.arange(6.0), 0.0)
    bad = LEVEL.copy()
    bad[0] = np.nan
    assert "not finite" in str(base.take_odometry(bad, np.zeros(6), 0.0))
    assert "not finite" in str(base.take_odometry(LEVEL, np.full(6, np.inf), 0.0))
    assert "unit quaternion" in str(base.take_odometry(np.zeros(7), np.zeros(6), 0.0))
    np.testing.assert_allclose(base.pose, tilted(0.1))
    np.testing.assert_array_equal(base.twist, np.arange(6.0))
    slightly = LEVEL * 1.01
    assert base.take_odometry(slightly, np.zeros(6), 0.0) is None
    assert np.linalg.norm(base.pose[3:]) == pytest.approx(1.0)


def test_contacts_go_by_name(base: FloatingBase) -> None:
    names = ("HR", "tail", "FL", "HL", "FR")
    assert base.take_contacts(names, (True, True, False, True, False), 1.0, 0.0) is None
    np.testing.assert_array_equal(base.contacts(1.0), [False, False, True, True])
    assert "without the feet HR" in str(base.take_contacts(FEET[:3], ALL[:3], 1.0, 0.0))
    assert "3 flags for 4 feet" in str(base.take_contacts(FEET, ALL[:3], 1.0, 0.0))


def test_a_foot_that_loses_touch_for_a_moment_still_stands(base: FloatingBase) -> None:
    lifted = (False, True, True, True)
    base.take_contacts(FEET, ALL, 1.0, 0.0)
    base.take_contacts(FEET, lifted, 1.010, 0.0)
    assert base.contacts(1.010).all()
    base.take_contacts(FEET, lifted, 1.020, 0.0)
    np.testing.assert_array_equal(base.contacts(1.020), lifted)
    base.take_contacts(FEET, lifted, 0.0, 0.0)  # the clock was set back
    np.testing.assert_array_equal(base.contacts(0.0), lifted)


def test_a_planned_foot_is_unloaded_in_its_time(base: FloatingBase) -> None:
    base.take_contacts(FEET, ALL, 0.0, 0.0)
    lifted = (False, True, True, True)
    assert base.plan_contacts(FEET, lifted, 2.0, 0.0) is None
    assert base.plan_contacts(FEET, ALL, 3.0, 0.0) is None
    expected = ((1.9, True), (2.0, False), (2.9, False), (3.0, True), (9.0, True))
    assert [bool(base.contacts(t)[0]) for t, _ in expected] == [e for _, e in expected]
    assert base.plan_contacts(FEET, lifted, 4.0, 3.0) is None
    base.forget_plan()
    assert base.contacts(5.0).all()
    assert "check the clocks" in str(base.plan_contacts(FEET, ALL, 1e9, 0.0))
    assert "without the feet" in str(base.plan_contacts((), (), 1.0, 0.0))


def test_it_fell_when_tilted_for_some_readings(base: FloatingBase) -> None:
    for pose in (tilted(0.5, 0.5), tilted(0.0, 0.0, 3.0), tilted(1.5)):
        base.take_odometry(pose, np.zeros(6), 0.0)
        assert base.fallen == ""  # one reading may be wrong
    assert base.tilt == pytest.approx(1.5)
    for _ in range(4):
        base.take_odometry(tilted(1.5), np.zeros(6), 0.0)
    assert "tilted by 1.50 rad, more than tilt_limit (0.8 rad)" in base.fallen
    base.configure(replace(SETTINGS, tilt_limit=3.0))
    base.take_odometry(tilted(1.5), np.zeros(6), 0.0)
    assert base.fallen == ""
