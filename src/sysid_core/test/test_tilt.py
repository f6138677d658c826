# SPDX-License-Identifier: Apache-2.0
"""A robot that does not stand as described is told so, and in which direction gravity acts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.errors import DataError
from sysid_core.identification import IdentifyConfig, identify
from sysid_core.recording import Recording
from sysid_core.robot import load_robot
from sysid_core.signals.options import SignalConfig
from sysid_core.validation import validate
from sysid_core.workers import workers

CONFIG = IdentifyConfig(friction="described", signals=SignalConfig(cutoff=8.0))


@pytest.mark.parametrize(
    ("name", "degrees"),
    [("ur10", 0.0), ("kuka_lwr", 0.0), ("ur10", 3.0), ("kuka_lwr", 90.0), ("ur10", 180.0)],
)
def test_gravity_in_another_direction_is_named_with_its_angle(
    name: str, degrees: float, make_recording: Callable[..., Recording]
) -> None:
    robot = load_robot(name)
    angle = np.radians(degrees)
    gravity = (9.81 * float(np.sin(angle)), 0.0, -9.81 * float(np.cos(angle)))
    truth = robot.consistent_nominal * 1.1
    for term in ("coulomb", "viscous"):
        truth[robot.layout.term(term)] = 2.0
    tilted = load_robot(replace(robot.description, gravity=gravity))
    recording = make_recording(tilted, truth, duration=10.0, noise=0.3, seed=4)
    found = identify(robot, recording, CONFIG)
    said = [text for text in found.warnings if "gravity acts" in text]
    if degrees == 0.0:
        assert not said
        assert found.gravity is None
        return
    assert float(said[0].split("°")[0].split()[-1]) == pytest.approx(degrees, abs=1.0)
    assert "set 'gravity: [" in said[0]
    right = identify(tilted, recording, CONFIG)
    assert not any("gravity acts" in text for text in right.warnings)
    assert found.gravity == pytest.approx(gravity, abs=0.1)
    errors = [float(np.linalg.norm(each.train.rmse_identified)) for each in (found, right)]
    assert errors[0] < 1.01 * errors[1]


@pytest.mark.parametrize("degrees", [0.0, 180.0])
def test_efforts_of_the_opposite_sign_are_not_taken_for_a_robot_on_the_ceiling(
    degrees: float, make_recording: Callable[..., Recording]
) -> None:
    robot = load_robot("ur10")
    stands = load_robot(
        replace(robot.description, gravity=(0.0, 0.0, -9.81 + degrees / 180.0 * 2 * 9.81))
    )
    truth = robot.consistent_nominal * 1.1
    for term in ("coulomb", "viscous"):
        truth[robot.layout.term(term)] = 2.0
    recording = make_recording(stands, truth, duration=10.0, noise=0.3, seed=6)
    assert recording.effort is not None
    turned = replace(recording, effort=-recording.effort)
    if degrees == 0.0:
        with pytest.raises(DataError, match="simulated: efforts have the opposite sign"):
            identify(robot, turned, CONFIG)
    else:
        assert identify(robot, recording, CONFIG).gravity is not None


@pytest.mark.heavy
def test_workers_keep_nothing_of_the_gravity_described(
    make_recording: Callable[..., Recording],
) -> None:
    robot = load_robot("kuka_lwr")
    ramp = load_robot(replace(robot.description, gravity=(0.0, 1.70, -9.66)))
    recording = make_recording(ramp, robot.consistent_nominal * 1.1, duration=10.0, noise=0.3)
    alone = identify(robot, recording, CONFIG)
    for processes in (1, 2):
        with workers(processes) as pool:
            found = identify(robot, recording, CONFIG, pool=pool)
        assert found.gravity is not None
        assert found.train.samples == alone.train.samples
        np.testing.assert_allclose(
            found.estimate.parameters, alone.estimate.parameters, rtol=1e-6, atol=1e-9
        )


def test_a_robot_that_was_mounted_otherwise_is_told_so_on_validation(
    make_recording: Callable[..., Recording],
) -> None:
    robot = load_robot("ur10")
    truth = robot.consistent_nominal * 1.1
    ramp = load_robot(replace(robot.description, gravity=(0.0, 1.70, -9.66)))
    for stands, on_ramp in ((robot, False), (ramp, True)):
        recording = make_recording(stands, truth, duration=10.0, noise=0.3, seed=5)
        found = validate(robot, recording, robot.nominal, truth, CONFIG)
        assert any("gravity acts 10" in text for text in found.warnings) is on_ramp
