# SPDX-License-Identifier: Apache-2.0
"""ROS parameters, settings and the YAML say the same."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest
import yaml

from sysid_controller.node_settings import SETTINGS, changed
from sysid_controller.settings import ControllerConfig
from sysid_core.errors import ParameterError

CONFIG = Path(__file__).parents[3] / "config" / "controller.yaml"


@pytest.mark.skipif(not CONFIG.is_file(), reason=f"no {CONFIG}")
def test_the_yaml_holds_every_parameter_at_its_default() -> None:
    data = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    defaults = {
        setting.name: list(setting.default)
        if isinstance(setting.default, tuple)
        else setting.default
        for setting in SETTINGS
    }
    assert data["/**"]["ros__parameters"] == defaults


def test_every_setting_is_a_described_parameter() -> None:
    names = [setting.name for setting in SETTINGS]
    assert names == ["robot", *(field.name for field in fields(ControllerConfig))]
    assert all(setting.description for setting in SETTINGS)


def test_changes_are_applied_to_their_settings_only() -> None:
    settings = changed(ControllerConfig(), {"blend_time": 2.0, "kp": [1, 2], "other": 3})
    assert settings == replace(ControllerConfig(), blend_time=2.0, kp=(1.0, 2.0))


@pytest.mark.parametrize("change", [{"blend_time": "soon"}, {"kp": 3.0}, {"mode": "pid"}])
def test_changes_of_the_wrong_kind_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        changed(ControllerConfig(), change)
