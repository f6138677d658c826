# SPDX-License-Identifier: Apache-2.0
"""What is known of parameters together holds in the estimate, and misspelling it is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.errors import RobotError, SysidError
from sysid_core.estimation import estimator
from sysid_core.identification import IdentifyConfig, identify
from sysid_core.priors import default_constraints
from sysid_core.recording import Recording
from sysid_core.robot import Robot, load_robot, parse_description
from sysid_core.robot.known import Relations
from sysid_core.signals.options import SignalConfig

BODIES = ["wrist_1_link", "wrist_2_link"]


@pytest.fixture(scope="module")
def ur10() -> Robot:
    return load_robot("ur10")


def _with(robot: Robot, constraints: dict[str, Any], mass: dict[str, Any] | None = None) -> Robot:
    given = parse_description(
        {
            "name": "ur10",
            "urdf": str(robot.urdf.path),
            "constraints": constraints,
            "bounds": {"mass": mass or {}},
        }
    )
    description = replace(
        robot.description, relations=given.relations, mass_bounds=given.mass_bounds
    )
    return Robot(description, robot.urdf)


@pytest.mark.parametrize("method", ["entropic", "qp", "sdp"])
def test_relations_hold_in_the_estimate(
    ur10: Robot, make_recording: Callable[..., Recording], method: str
) -> None:
    robot = _with(
        ur10,
        {
            "equal": [BODIES],
            "linear": [
                {"terms": {"upper_arm_link.m": 1, "forearm_link.m": 1}, "value": 15, "std": 0.01},
                {"terms": {"wrist_3_link.m": 1, "forearm_link.m": -1}, "least": -4.0},
            ],
        },
        {"shoulder_link": "±10%"},
    )
    recording = make_recording(ur10, ur10.consistent_nominal, duration=10.0, noise=0.2)
    options = IdentifyConfig(
        signals=SignalConfig(cutoff=5.0), friction="described", estimator=estimator(method)
    )
    found = identify(robot, recording, options).estimate.parameters
    layout = robot.layout
    one, two = (found[layout.body(body)] for body in BODIES)
    np.testing.assert_allclose(one, two, atol=2e-2)
    mass: dict[str, float] = dict(zip(layout.bodies, found[layout.masses], strict=True))
    assert mass["upper_arm_link"] + mass["forearm_link"] == pytest.approx(15.0, abs=0.05)
    assert mass["wrist_3_link"] - mass["forearm_link"] > -4.01
    nominal = ur10.nominal[layout.body("shoulder_link")][0]
    assert 0.9 * nominal <= mass["shoulder_link"] <= 1.1 * nominal


def test_mirrored_bodies_differ_in_the_signs_across(ur10: Robot) -> None:
    robot = _with(ur10, {"mirrored": [{"bodies": BODIES, "across": "y"}]})
    phi = np.arange(1.0, 11.0)
    mirrored = phi * [1, 1, -1, 1, 1, -1, 1, 1, -1, 1]
    vector: FloatArray = np.zeros(robot.layout.size)
    for body, values in zip(BODIES, (phi, mirrored), strict=True):
        vector[robot.layout.body(body)] = values
    known = default_constraints(robot).known
    assert known is not None
    assert known[0].shape[0] == 10
    np.testing.assert_allclose(known[0] @ vector, known[1])


@pytest.mark.parametrize(
    "constraints",
    [
        {"equals": [BODIES]},
        {"equal": [["a"]]},
        {"mirrored": [{"bodies": BODIES, "across": "w"}]},
        {"linear": [{"terms": {"a.m": 1}}]},
        {"linear": [{"terms": {"a.m": 1}, "value": 1, "std": 0}]},
        {"linear": [{"terms": {"a.m": "1"}, "least": 1}]},
        {"linear": [{"terms": {"a.m": 1}, "least": 2, "most": 1}]},
    ],
)
def test_other_forms_are_refused(ur10: Robot, constraints: dict[str, Any]) -> None:
    with pytest.raises(RobotError, match="constraints"):
        _with(ur10, constraints)


def test_unknown_names_are_refused(ur10: Robot) -> None:
    assert _with(ur10, {}).description.relations == Relations()
    for constraints in (
        {"equal": [["wrist_1_link", "tail"]]},
        {"linear": [{"terms": {"tail.m": 1}, "least": 0}]},
    ):
        with pytest.raises(SysidError, match="tail"):
            default_constraints(_with(ur10, constraints))
