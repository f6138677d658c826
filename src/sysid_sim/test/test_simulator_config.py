# SPDX-License-Identifier: Apache-2.0
"""The parameters of the simulation's nodes, and checks between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")

from sysid_core.errors import SysidError
from sysid_core.robot import Robot
from sysid_core.settings import settings_of
from sysid_sim.reference_node import ReferenceConfig
from sysid_sim.simulator_config import SimulatorConfig
from sysid_sim.truth import TruthSpread, draw_truth


@pytest.mark.parametrize("config", [SimulatorConfig, ReferenceConfig])
def test_every_number_has_a_range_and_a_unit(config: Any) -> None:
    for setting in settings_of(config):
        assert setting.description
        if isinstance(setting.default, (bool, str)):
            assert setting.range is None
        else:
            assert setting.range is not None
            assert "[" in setting.description, f"{setting.name} has no unit"


def test_the_defaults_make_a_simulation() -> None:
    simulation = SimulatorConfig().simulation
    assert simulation.period == 0.002
    assert simulation.substeps == 4
    assert SimulatorConfig(sensors="ideal", wrenches=True).simulation.sensors.wrenches


def test_the_clock_ticks_with_the_joint_states_or_slower() -> None:
    assert SimulatorConfig(rate=500.0).clock_ticks == 1
    assert SimulatorConfig(rate=500.0, clock_rate=100.0).clock_ticks == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sensors": "cheap"}, "sensors must be one of ideal, good, digit, quadruped"),
        ({"speed": 2.0}, "publish_clock"),
        ({"lockstep": 0.004}, "publish_clock"),
        ({"lockstep": 0.004, "publish_clock": True, "behaviour": "trot"}, "waits for commands"),
        ({"rate": 300.0}, "multiple of the time step"),
    ],
)
def test_values_that_contradict_each_other_are_refused(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(SysidError, match=message):
        assert SimulatorConfig(**change).simulation


def test_the_truth_is_drawn_nominal_or_read(panda: Robot, tmp_path: Path) -> None:
    drawn = draw_truth(panda, 1, TruthSpread())
    np.testing.assert_array_equal(SimulatorConfig().true_robot(panda)[1], drawn)
    _, nominal = SimulatorConfig(truth="nominal").true_robot(panda)
    np.testing.assert_array_equal(nominal, panda.consistent_nominal)
    with pytest.raises(SysidError, match="cannot be read"):
        SimulatorConfig(truth=str(tmp_path / "none.json")).true_robot(panda)
