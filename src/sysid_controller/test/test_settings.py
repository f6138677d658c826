# SPDX-License-Identifier: Apache-2.0
"""Settings are checked when they are made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sysid_controller.settings import ControllerConfig
from sysid_core.errors import ParameterError
from sysid_core.settings import Setting, settings_of

SETTINGS = settings_of(ControllerConfig)
NUMBERS = [s for s in SETTINGS if s.range and not isinstance(s.default, tuple)]
TEXTS = [s for s in SETTINGS if s.choices]


def changed(**changes: Any) -> ControllerConfig:
    return replace(ControllerConfig(), **changes)


def test_every_parameter_is_checked() -> None:
    unchecked = {s.name for s in SETTINGS} - {s.name for s in (*NUMBERS, *TEXTS)}
    assert unchecked == {"start_enabled", "kp", "kd"}


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda s: s.name)
def test_numbers_out_of_range_or_not_finite_are_refused(setting: Setting) -> None:
    low, high = setting.range or (0.0, 0.0)
    for bad in (float("nan"), float("inf"), float("-inf"), high * 1.01, low - 0.01):
        with pytest.raises(ParameterError, match=setting.name):
            changed(**{setting.name: bad})
    changed(**{setting.name: low})
    changed(**{setting.name: high})


@pytest.mark.parametrize("setting", TEXTS, ids=lambda s: s.name)
def test_texts_are_one_of_the_choices(setting: Setting) -> None:
    for choice in setting.choices:
        changed(**{setting.name: choice})
    with pytest.raises(ParameterError, match="must be one of"):
        changed(**{setting.name: "other"})


@pytest.mark.parametrize("bad", [(), (-1.0,), (float("nan"),), (1.0, float("inf"))])
def test_gains_are_finite_and_not_negative(bad: Any) -> None:
    with pytest.raises(ParameterError, match="kp"):
        ControllerConfig(kp=bad)
