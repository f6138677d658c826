# SPDX-License-Identifier: Apache-2.0
"""A robot that hangs askew is told so live; joints are not blamed, nor masses bent to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.online.gate import GateState
from sysid_core.online.gravity import Gravity
from sysid_core.online.law import Choices, Past, Seen
from sysid_core.online.replay import replay, stream_settings_for
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.update import Update
from sysid_core.recording import Recording, Samples
from sysid_core.robot import Robot, load_robot
from sysid_core.signals.rotation import rotate_into_body

DESCRIBED = OnlineConfig(friction="described", low_pass="described")
DURATION = 10.0


def _gravity(degrees: float) -> tuple[float, float, float]:
    angle = np.radians(degrees)
    return (9.81 * float(np.sin(angle)), 0.0, -9.81 * float(np.cos(angle)))


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("ur10")


@pytest.fixture(scope="module")
def mounted(
    robot: Robot, make_recording: Callable[..., Recording]
) -> Callable[[float], Recording]:
    """Return what records the robot mounted askew by an angle [°]."""
    truth = robot.consistent_nominal * 1.1
    for term in ("coulomb", "viscous"):
        truth[robot.layout.term(term)] = 2.0

    def record(degrees: float) -> Recording:
        askew = load_robot(replace(robot.description, gravity=_gravity(degrees)))
        return make_recording(askew, truth, duration=DURATION, rate=125.0, noise=0.3, seed=4)

    return record


def _updates(robot: Robot, recording: Recording, config: OnlineConfig = DESCRIBED) -> list[Update]:
    stream = stream_settings_for(recording, robot)
    return [step.update for step in replay(recording, robot, stream=stream, online=config)]


@pytest.mark.parametrize(
    "degrees",
    [90.0, *(pytest.param(each, marks=pytest.mark.heavy) for each in (10.0, 45.0, 180.0))],
)
def test_a_robot_mounted_otherwise_is_told_so_and_no_joint_is_blamed(
    robot: Robot, mounted: Callable[[float], Recording], degrees: float
) -> None:
    updates = _updates(robot, mounted(degrees))
    late = [u for u in updates if u.time - updates[0].time > 0.5 * DURATION]
    for update in late:
        assert [cause.kind for cause in update.causes] == ["tilt"]
        assert update.state is GateState.NOMINAL
        assert not update.identified
    said = str(late[-1].causes[0])
    assert float(said.split("°")[0].split()[-1]) == pytest.approx(degrees, abs=1.0)
    assert "set 'gravity: [" in said


def test_a_small_tilt_is_told_beside_a_model_that_is_used(
    robot: Robot, mounted: Callable[[float], Recording]
) -> None:
    last = _updates(robot, mounted(3.0))[-1]
    assert last.identified
    assert any("gravity acts 3." in text or "gravity acts 2.9" in text for text in last.warnings)


def test_a_robot_that_stands_as_described_is_not_told(
    robot: Robot, mounted: Callable[[float], Recording]
) -> None:
    last = _updates(robot, mounted(0.0))[-1]
    assert last.identified
    assert not any("gravity" in text for text in (*last.warnings, *last.reasons))


def test_efforts_of_the_opposite_sign_are_told_of_all_joints(
    robot: Robot, mounted: Callable[[float], Recording]
) -> None:
    recording = mounted(0.0)
    assert recording.effort is not None
    last = _updates(robot, replace(recording, effort=-recording.effort))[-1]
    assert not last.identified
    assert [cause.kind for cause in last.causes] == ["effort_sign"]


def test_efforts_without_gravity_are_not_asked_for_it(
    robot: Robot, mounted: Callable[[float], Recording]
) -> None:
    without = Robot(replace(robot.description, effort_excludes=("gravity",)), robot.urdf)
    assert not Choices.of(without, OnlineConfig()).gravity
    assert Choices.of(robot, DESCRIBED).gravity


def test_a_robot_that_is_refused_is_asked_on(robot: Robot) -> None:
    config, seen = OnlineConfig(window=1.0), Seen(None, np.ones(6))
    samples = Samples(np.arange(100.0) / 100.0, *np.zeros((4, 100, 6)))
    for refuses in (False, True):
        past, asked = Past(Choices(friction=True, low_pass=False, gravity=True)), []
        past.gravity = Gravity(refuses=refuses)
        for second in range(80):
            past.add(replace(samples, time=samples.time + second), 100)
            if past.question(robot, config, seen) is not None:
                asked.append(second)
            past.close()
        assert asked[:5] == [0, 1, 3, 7, 15]
        assert len(asked) == (5 if not refuses else 9)


def test_a_base_is_turned_until_gravity_acts_as_described() -> None:
    robot = load_robot("solo12")
    rng = np.random.default_rng(2)
    orientation = rng.normal(size=(5, 4))
    orientation /= np.linalg.norm(orientation, axis=1, keepdims=True)
    pose = np.hstack([rng.normal(size=(5, 3)), orientation])
    samples = replace(Samples(np.arange(5.0), *np.zeros((4, 5, 12))), base_pose=pose)
    found = np.array(_gravity(7.0))
    levelled = Gravity(direction=found).levelled(robot, samples)
    assert levelled.base_pose is not None
    upright, described = levelled.base_pose[:, 3:], np.tile(robot.description.gravity, (5, 1))
    np.testing.assert_allclose(
        rotate_into_body(upright, described),
        rotate_into_body(orientation, np.tile(found, (5, 1))),
        atol=1e-12,
    )
    assert Gravity.AS_DESCRIBED.levelled(robot, samples) is samples
