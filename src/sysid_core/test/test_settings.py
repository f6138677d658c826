# SPDX-License-Identifier: Apache-2.0
"""A setting says what it takes, and refuses what types and ranges let pass."""

from __future__ import annotations

import math

import pytest

from sysid_core.errors import ParameterError
from sysid_core.settings import ROBOT, Setting, chosen_robot


def test_a_setting_says_what_it_takes() -> None:
    rate = Setting("rate", 500.0, "Rate [Hz]", (10.0, 2000.0))
    assert rate.expected == "a float from 10 to 2000, like 500.0"
    assert Setting("kp", (0.0,), "Gains [1/s²]").expected == "a list, like (0.0,)"


def test_a_text_must_be_among_the_choices() -> None:
    mode = Setting("mode", "a", "Law", choices=("a", "b"))
    mode.check("b")
    with pytest.raises(ParameterError, match="mode must be one of a, b, got 'c'"):
        mode.check("c")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_must_be_finite(value: float) -> None:
    with pytest.raises(ParameterError, match="gain must be finite"):
        Setting("gain", 1.0, "Gain [-]").check(value)


def test_a_robot_must_be_named() -> None:
    with pytest.raises(ParameterError, match="'robot' is empty"):
        chosen_robot({ROBOT.name: ROBOT.default})
    assert chosen_robot({ROBOT.name: "panda"}).name == "panda"
