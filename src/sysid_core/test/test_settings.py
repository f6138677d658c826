# SPDX-License-Identifier: Apache-2.0
"""A configuration describes its parameters once, and refuses what they do not allow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest

from sysid_core.errors import ParameterError
from sysid_core.settings import (
    Setting,
    check_config,
    group,
    parameter,
    settings_of,
    with_values,
)


@dataclass(frozen=True)
class Inner:
    share: float = parameter(0.5, "Share [-]", range=(0.0, 1.0))

    def __post_init__(self) -> None:
        check_config(self)


@dataclass(frozen=True)
class Config:
    rate: float = parameter(10.0, "Rate [Hz]", range=(1.0, 100.0), read_only=True)
    count: int = parameter(3, "Count [-]", range=(0, 5))
    law: str = parameter("soft", "Law", choices=("soft", "hard"))
    on: bool = parameter(True, "Whether it is on")
    gains: tuple[float, ...] = parameter((0.0,), "Gains [1/s]", range=(0.0, 9.0))
    constant: float = 7.0
    inner: Inner = group(Inner, "inner.")

    def __post_init__(self) -> None:
        check_config(self)
        if self.law == "hard" and self.count == 0:
            raise ParameterError("a hard law counts")


def test_settings_follow_from_the_fields() -> None:
    settings = settings_of(Config)
    names = ["rate", "count", "law", "on", "gains", "inner.share"]
    assert [setting.name for setting in settings] == names
    assert settings[0] == Setting("rate", 10.0, "Rate [Hz]", (1.0, 100.0), read_only=True)
    assert settings_of(Config()) == settings


def test_a_setting_says_what_it_takes() -> None:
    rate, *_, gains, _ = settings_of(Config)
    assert rate.expected == "a float from 1 to 100, like 10.0"
    assert gains.expected == "a list from 0 to 9, like (0.0,)"


def test_values_are_put_in_by_name() -> None:
    start = Config(constant=8.0)
    new = with_values(start, {"count": 4, "gains": [1, 2], "inner.share": 0.25})
    assert new == Config(count=4, gains=(1.0, 2.0), constant=8.0, inner=Inner(0.25))
    assert with_values(start, {}) == start


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rate", 0.5, r"rate must lie in \[1, 100\], got 0.5"),
        ("rate", "fast", "rate must be a float from 1 to 100, like 10.0, got 'fast'"),
        ("rate", True, "rate must be a float"),
        ("count", 1.5, "count must be an int"),
        ("law", "odd", "law must be one of soft, hard, got 'odd'"),
        ("on", 1, "on must be a bool"),
        ("gains", 3.0, "gains must be a list"),
        ("gains", [], "gains must have a number"),
        ("gains", [1.0, -1.0], r"gains must lie in \[0, 9\], got -1.0"),
        ("inner.share", 2.0, r"inner.share must lie in \[0, 1\], got 2.0"),
        ("inner.shape", 2.0, "no parameter 'inner.shape'"),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_what_is_allowed(
    name: str, value: Any, message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        with_values(Config(), {name: value})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_must_be_finite(value: float) -> None:
    with pytest.raises(ParameterError, match="rate must be finite"):
        Config(rate=value)
    with pytest.raises(ParameterError, match="gains must be finite"):
        Config(gains=(value,))


def test_values_are_checked_together() -> None:
    assert with_values(Config(count=0), {"law": "hard", "count": 1}).law == "hard"
    with pytest.raises(ParameterError, match="a hard law counts"):
        with_values(Config(), {"law": "hard", "count": 0})
