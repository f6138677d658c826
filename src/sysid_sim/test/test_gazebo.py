# SPDX-License-Identifier: Apache-2.0
"""Files for Gazebo: complete, well-formed, and only for robots that it can simulate."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from sysid_core.robot import Robot
from sysid_core.robot.urdf import read_urdf
from sysid_sim.gazebo import main

WORLDS = Path(__file__).resolve().parents[1] / "worlds"


def test_every_motor_gets_an_effort_interface(tmp_path: Path, panda: Robot) -> None:
    assert main(["panda", "--out", str(tmp_path / "gazebo")]) == 0
    path = tmp_path / "gazebo" / "robot.urdf"
    root = ET.parse(path).getroot()
    joints = root.findall("ros2_control/joint")
    assert tuple(joint.get("name") for joint in joints) == panda.actuated_names
    for joint in joints:
        assert [c.get("name") for c in joint.findall("command_interface")] == ["effort"]
        states = {s.get("name") for s in joint.findall("state_interface")}
        assert states == {"position", "velocity", "effort"}
        position = joint.findtext("state_interface[@name='position']/param")
        limit = root.find(f"joint[@name='{joint.get('name')}']/limit")
        assert limit is not None
        assert (
            float(limit.get("lower", "")) < float(position or "") < float(limit.get("upper", ""))
        )
    controllers = Path(root.findtext("gazebo/plugin/parameters") or "")
    parameters = yaml.safe_load(controllers.read_text())
    joints_driven = parameters["effort_controller"]["ros__parameters"]["joints"]
    assert tuple(joints_driven) == panda.actuated_names
    # what was there before is still there: the same robot, hung on the world
    urdf = read_urdf(path)
    assert urdf.root == "world"
    assert set(panda.urdf.links) < set(urdf.links)


@pytest.mark.parametrize("name", ["solo12", "digit_left_leg", "nosuch"])
def test_other_robots_are_refused_in_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--out", str(tmp_path / "gazebo")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "gazebo").exists()


def test_the_world_and_the_launch_file_are_well_formed(robot_of: Callable[[str], Robot]) -> None:
    world = ET.parse(WORLDS / "empty.sdf").getroot().find("world")
    assert world is not None
    gravity = [float(v) for v in (world.findtext("gravity") or "").split()]
    assert tuple(gravity) == robot_of("panda").description.gravity
    launch = yaml.safe_load((WORLDS / "gazebo.launch.yaml").read_text())["launch"]
    assert {"arg", "include", "node"} == {key for entry in launch for key in entry}
