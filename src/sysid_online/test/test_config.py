# SPDX-License-Identifier: Apache-2.0
"""A default in the code and in the YAML is the same, and every setting is in both."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")

CONFIG = Path(__file__).parents[3] / "config"


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested parameters with dots in their names."""
    result: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            result.update(flat(value, f"{prefix}{key}."))
        else:
            result[prefix + key] = value
    return result


@pytest.mark.parametrize(
    ("node", "module"),
    [
        ("recorder", "recorder_settings"),
        ("identifier", "identifier_settings"),
        ("replay", "replay_node"),
    ],
)
def test_the_yaml_holds_the_defaults_of_the_code(node: str, module: str) -> None:
    settings = importlib.import_module(f"sysid_online.{module}").SETTINGS
    text = (CONFIG / f"{node}.yaml").read_text()
    values = flat(yaml.safe_load(text)["/**"]["ros__parameters"])
    assert values == {setting.name: setting.default for setting in settings}
    for setting in settings:
        assert type(values[setting.name]) is type(setting.default), setting.name
        if setting.range is not None:
            assert setting.range[0] <= setting.default <= setting.range[1], setting.name


def test_stream_defaults_are_the_cores() -> None:
    from sysid_core.online.stream_config import StreamConfig
    from sysid_online.recorder_settings import SETTINGS

    defaults = StreamConfig()
    for setting in SETTINGS:
        if setting.name in ("sample_rate", "gap", "contact_margin"):
            assert setting.default == getattr(defaults, setting.name)
