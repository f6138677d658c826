# SPDX-License-Identifier: Apache-2.0
"""The nodes' parameters: one default each, ranges that hold them, and checks between them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from sysid_core.errors import ParameterError, SysidError
from sysid_core.robot import Robot
from sysid_core.settings import Setting
from sysid_ros.parameters import chosen_robot
from sysid_sim.node_settings import (
    REFERENCE,
    SIMULATOR,
    ReferencePlan,
    SimulatorPlan,
    true_parameters,
)
from sysid_sim.truth import TruthSpread, draw_truth

CONFIG = Path(__file__).resolve().parents[3] / "config"
TABLES = [("simulator", SIMULATOR), ("reference", REFERENCE)]


def defaults(settings: Sequence[Setting]) -> dict[str, Any]:
    return {setting.name: setting.default for setting in settings}


@pytest.mark.parametrize(("name", "settings"), TABLES)
def test_the_yaml_holds_the_codes_defaults(name: str, settings: Sequence[Setting]) -> None:
    document = yaml.safe_load((CONFIG / f"{name}.yaml").read_text(encoding="utf-8"))
    values = document["/**"]["ros__parameters"]
    assert values == defaults(settings)
    for setting in settings:
        assert type(values[setting.name]) is type(setting.default), setting.name


@pytest.mark.parametrize(("name", "settings"), TABLES)
def test_every_default_is_within_its_range_and_described(
    name: str, settings: Sequence[Setting]
) -> None:
    assert name
    for setting in settings:
        assert setting.description
        if isinstance(setting.default, (bool, str)):
            assert setting.range is None
        else:
            assert setting.range is not None
            low, high = setting.range
            assert not isinstance(setting.default, tuple)
            assert low <= setting.default <= high
            assert "[" in setting.description, f"{setting.name} has no unit"


def test_the_defaults_make_a_plan() -> None:
    plan = SimulatorPlan.of(defaults(SIMULATOR))
    assert plan.simulation.period == 0.002
    assert plan.simulation.substeps == 4
    assert ReferencePlan.of(defaults(REFERENCE)).spacing == 0.02


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stale_action": "panic"}, "stale_action must be one of"),
        ({"speed": 2.0}, "publish_clock"),
        ({"lockstep": 0.004}, "publish_clock"),
        ({"rate": 300.0}, "multiple of the time step"),
    ],
)
def test_values_that_contradict_each_other_are_refused(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(SysidError, match=message):
        SimulatorPlan.of({**defaults(SIMULATOR), **change})


def test_the_truth_is_drawn_nominal_or_read(panda: Robot, tmp_path: Path) -> None:
    values = defaults(SIMULATOR)
    drawn = draw_truth(panda, 1, TruthSpread())
    np.testing.assert_array_equal(true_parameters(panda, values), drawn)
    nominal = true_parameters(panda, {**values, "truth": "nominal"})
    np.testing.assert_array_equal(nominal, panda.consistent_nominal)
    with pytest.raises(SysidError, match="cannot be read"):
        true_parameters(panda, {**values, "truth": str(tmp_path / "none.json")})


def test_a_robot_must_be_named() -> None:
    with pytest.raises(ParameterError, match="'robot' is empty"):
        chosen_robot(defaults(SIMULATOR))
