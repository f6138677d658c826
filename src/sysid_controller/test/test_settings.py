# SPDX-License-Identifier: Apache-2.0
"""Settings are checked when they are made."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from sysid_controller.settings import ControllerConfig
from sysid_core.errors import ParameterError

NUMBERS = [f.name for f in fields(ControllerConfig) if ControllerConfig.range_of(f.name)]
TEXTS = [f.name for f in fields(ControllerConfig) if ControllerConfig.choices_of(f.name)]


def changed(**changes: Any) -> ControllerConfig:
    return replace(ControllerConfig(), **changes)


def test_every_setting_is_checked() -> None:
    unchecked = {f.name for f in fields(ControllerConfig)} - set(NUMBERS) - set(TEXTS)
    assert unchecked == {"start_enabled", "kp", "kd"}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_out_of_range_or_not_finite_are_refused(name: str) -> None:
    low, high = ControllerConfig.range_of(name) or (0.0, 0.0)
    for bad in (float("nan"), float("inf"), float("-inf"), high * 1.01, low - 0.01):
        with pytest.raises(ParameterError, match=name):
            changed(**{name: bad})
    changed(**{name: low})
    changed(**{name: high})


@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_one_of_the_choices(name: str) -> None:
    for choice in ControllerConfig.choices_of(name) or ():
        changed(**{name: choice})
    with pytest.raises(ParameterError, match="must be one of"):
        changed(**{name: "other"})


@pytest.mark.parametrize("bad", [(), (-1.0,), (float("nan"),), (1.0, float("inf"))])
def test_gains_are_finite_and_not_negative(bad: Any) -> None:
    with pytest.raises(ParameterError, match="kp"):
        ControllerConfig(kp=bad)
