# SPDX-License-Identifier: Apache-2.0
"""Tables stay readable on narrow screens, and units are those of the joints."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from sysid_core.cli.console import print_scores, print_units
from sysid_core.robot import load_robot
from sysid_core.scores import Scores

LIFT = """<robot name="lift">
  <link name="base"/>
  <link name="carriage"><inertial><mass value="3"/>
    <inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="lift_joint" type="prismatic"><parent link="base"/><child link="carriage"/>
    <axis xyz="0 0 1"/><limit lower="0" upper="1" effort="100" velocity="1"/></joint>
</robot>"""


@pytest.mark.parametrize("width", [40, 80, 120])
def test_joint_names_are_never_cut_short(width: int) -> None:
    joints = ("shoulder_pan_joint", "shoulder_lift_joint")
    values = np.array([123.456, 0.000123456])
    stream = io.StringIO()
    scores = Scores(joints, values, values / 3.0, values / 999.0, values / 9999.0, 100)
    print_scores(Console(file=stream, width=width), scores, "title")
    text = stream.getvalue()
    assert max(len(line) for line in text.splitlines()) <= width
    assert all(joint in text for joint in joints)


def test_prismatic_joints_are_named_with_their_units(tmp_path: Path) -> None:
    (tmp_path / "lift.urdf").write_text(LIFT)
    (tmp_path / "lift.yaml").write_text("name: lift\nurdf: lift.urdf\n")
    stream = io.StringIO()
    print_units(Console(file=stream, width=110), load_robot(str(tmp_path / "lift.yaml")))
    assert "N·s/m" in stream.getvalue()
    assert "lift_joint" in stream.getvalue()
    revolute = io.StringIO()
    print_units(Console(file=revolute), load_robot("ur10"))
    assert revolute.getvalue() == ""
