# SPDX-License-Identifier: Apache-2.0
"""A joint whose efforts mean something else is named, and bends the bodies of others no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.errors import DataError
from sysid_core.identification import Identification, IdentifyConfig, identify
from sysid_core.recording import Recording
from sysid_core.robot import Robot, load_robot
from sysid_core.signals.options import SignalConfig

CONFIG = IdentifyConfig(friction="described", signals=SignalConfig(cutoff=8.0))


def _recording(robot: Robot, make_recording: Callable[..., Recording]) -> Recording:
    truth = robot.consistent_nominal.copy()
    truth[robot.layout.term("coulomb")] = 2.0
    truth[robot.layout.term("viscous")] = 3.0
    return make_recording(robot, truth, duration=10.0, noise=0.3, seed=4)


def _mass_error(robot: Robot, found: Identification) -> float:
    masses = found.robot.layout.inertias(found.estimate.parameters)[:, 0]
    return float(np.abs(np.log(masses / robot.layout.inertias(robot.nominal)[:, 0])).max())


def _spoiled(
    make_recording: Callable[..., Recording], joint: int, gain: float, said: str
) -> tuple[Robot, Identification]:
    """Identify an arm whose sound efforts say nothing, with one joint's times a gain."""
    robot = load_robot("ur10")
    recording = _recording(robot, make_recording)
    assert recording.effort is not None
    assert not [text for text in identify(robot, recording, CONFIG).warnings if said in text]
    effort = recording.effort.copy()
    effort[:, joint] *= gain
    return robot, identify(robot, replace(recording, effort=effort), CONFIG)


def test_efforts_of_another_unit_are_named_and_bend_no_bodies(
    make_recording: Callable[..., Recording],
) -> None:
    robot, found = _spoiled(make_recording, 1, 0.01, "contradict the other")
    assert any(
        text.startswith("shoulder_lift_joint: its efforts contradict") for text in found.warnings
    )
    assert _mass_error(robot, found) < 0.7


def test_a_wrong_gain_is_named_with_its_joint_and_factor(
    make_recording: Callable[..., Recording],
) -> None:
    _, found = _spoiled(make_recording, 2, 1.5, "times what masses")
    (said,) = [text for text in found.warnings if "times what masses" in text]
    assert said.startswith("elbow_joint: the torque is 1.6")


@pytest.mark.parametrize("value", [0.0, 12.3])
def test_efforts_that_never_change_are_left_out_and_named(
    make_recording: Callable[..., Recording], value: float
) -> None:
    """Drivers publish a constant for joints that nothing measures."""
    robot = load_robot("ur10")
    recording = _recording(robot, make_recording)
    assert recording.effort is not None
    effort = recording.effort.copy()
    effort[:, 2] = value
    found = identify(robot, replace(recording, effort=effort), CONFIG)
    assert found.validation is not None
    assert np.isnan(found.validation.r2_identified).tolist() == [j == 2 for j in range(6)]
    assert any("'elbow_joint' never changes" in text for text in found.warnings)
    assert _mass_error(robot, found) < 0.2
    layout, parameters = robot.layout, found.estimate.parameters
    for term in ("viscous", "coulomb", "offset"):  # as described, not a guess
        assert parameters[layout.term(term)][2] == robot.nominal[layout.term(term)][2]
        assert term == "offset" or (parameters[layout.term(term)][[0, 1, 3, 4, 5]] > 0.5).all()
    base = found.regression.base.project(parameters)
    np.testing.assert_allclose(found.estimate.base_parameters, base)


def test_efforts_of_which_none_changes_are_refused(
    make_recording: Callable[..., Recording],
) -> None:
    robot = load_robot("ur10")
    recording = _recording(robot, make_recording)
    stuck = replace(recording, effort=np.full_like(recording.position, 3.0))
    with pytest.raises(DataError, match="no joint moves and has an effort that changes"):
        identify(robot, stuck, CONFIG)
