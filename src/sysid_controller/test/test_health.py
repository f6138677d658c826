# SPDX-License-Identifier: Apache-2.0
"""Diagnostics name the cause."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_controller.controller import Controller
from sysid_controller.health import Health
from sysid_controller.settings import ControllerConfig
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.robot import Robot

PERIOD = 0.002


@pytest.fixture
def controller(panda: Robot) -> Controller:
    return Controller(panda, ControllerConfig())


def findings(health: Health, controller: Controller, steady: float) -> dict[str, Diagnostic]:
    return {finding.kind: finding for finding in health.report(controller, steady)}


def drive(
    health: Health, controller: Controller, ticks: int, period: float = PERIOD, begin: float = 0.0
) -> float:
    position = np.array([0.0, -0.5, 0.0, -1.8, 0.0, 1.4, 0.6])
    for k in range(ticks):
        t = begin + period * k
        controller.take_joint_states(controller.joint_names, position, np.zeros(7), t, t)
        health.ticked(controller.tick(t, t), 1e-4, t)
    return t


def test_all_is_well_when_it_is(controller: Controller) -> None:
    health = Health()
    drive(health, controller, 200)
    health.report(controller, 0.4)  # the ramp from zero is limited, and said so
    end = drive(health, controller, 1000, begin=0.4)
    found = findings(health, controller, end)
    assert {f.severity for f in found.values()} == {Severity.OK}
    assert "holds" in found["state"].message
    assert found["timing"].values["rate [Hz]"] == "500.0"
    assert found["timing"].values["tick p99 [µs]"] == "100"


def test_one_reason_with_other_figures_is_no_news() -> None:
    health = Health()
    texts = [f"out of order: 0.0{k} s older than the newest" for k in range(10, 99)]
    assert [health.refuse("joint states", text, 0.0) for text in texts].count(True) == 1
    assert health.warnings(0.1) == [f"joint states refused: {texts[-1]}"]


def test_reasons_that_never_repeat_are_logged_once_a_second_at_most() -> None:
    health = Health()
    news = [
        health.refuse("reference", f"no joint '{chr(97 + k % 26) * (1 + k // 26)}'", 0.01 * k)
        for k in range(2000)
    ]
    assert sum(news) <= 20
    assert len(health.warnings(20.0)) <= 5


def test_waiting_and_stale_joint_states_are_named(controller: Controller) -> None:
    health = Health()
    assert "driver" in findings(health, controller, 0.0)["state"].message
    end = drive(health, controller, 10)
    controller.tick(end + 1.0, end + 1.0)
    found = findings(health, controller, end + 1.0)["state"]
    assert found.severity is Severity.ERROR
    assert "no valid joint states for 1.00 s" in found.message


def test_refusals_are_news_once_and_forgotten_after_a_while(controller: Controller) -> None:
    health = Health()
    assert health.refuse("reference", "has no points", 1.0)
    assert not health.refuse("reference", "has no points", 2.0)
    assert health.refuse("parameters", "of robot 'other'", 2.0)
    assert len(health.warnings(3.0)) == 2
    found = findings(health, controller, 3.0)
    assert "has no points" in found["reference"].message
    assert found["reference"].values["refused"] == "2"
    assert "other" in found["parameters"].message
    assert found["joint states"].severity is Severity.OK
    assert health.warnings(20.0) == []
    assert findings(health, controller, 20.0)["reference"].severity is Severity.OK


def test_limits_name_the_joints_and_the_cause(controller: Controller) -> None:
    health = Health()
    drive(health, controller, 3)
    found = findings(health, controller, 0.1)["limits"]
    assert found.severity is Severity.WARNING
    assert "torque rate limited: panda_joint2" in found.message


def test_a_slow_loop_is_reported(controller: Controller) -> None:
    health = Health()
    end = drive(health, controller, 100, period=0.01)
    found = findings(health, controller, end)["timing"]
    assert found.severity is Severity.WARNING
    assert "100 Hz instead of 500" in found.message
