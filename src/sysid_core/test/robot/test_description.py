# SPDX-License-Identifier: Apache-2.0
"""A robot description is refused where it could do harm, with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from sysid_core.errors import RobotError
from sysid_core.robot import load_robot, parse_description


@pytest.mark.parametrize(
    "name", ["../../escaped", "/etc/passwd", "", ".hidden", "a" * 101, "two\nlines", "x\0y"]
)
def test_a_name_that_would_be_a_path_is_refused(name: str) -> None:
    with pytest.raises(RobotError, match="results are filed under it"):
        parse_description({"name": name, "urdf": "robot.urdf"})


@pytest.mark.parametrize("name", ["ur10", "digit_left_leg", "Spot-2.1", "7dof"])
def test_usual_names_are_taken(name: str) -> None:
    assert parse_description({"name": name, "urdf": "robot.urdf"}).name == name


@pytest.mark.parametrize("text", ["", "~", "urdf: x.urdf", "{}"])
def test_a_description_without_a_name_says_what_it_lacks(text: str, tmp_path: Path) -> None:
    (tmp_path / "robot.yaml").write_text(text)
    with pytest.raises(RobotError, match="'name' is missing: add it"):
        load_robot(tmp_path / "robot.yaml")


@pytest.mark.parametrize("kind", ["effort", "velocity"])
@pytest.mark.parametrize("value", [0.0, -5.0])
def test_a_limit_within_which_nothing_moves_is_refused(kind: str, value: float) -> None:
    limits = {kind: {"elbow": value}}
    with pytest.raises(RobotError, match=f"limits.{kind}.elbow' must be"):
        parse_description({"name": "arm", "urdf": "robot.urdf", "limits": limits})
