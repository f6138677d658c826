# SPDX-License-Identifier: Apache-2.0
"""A joint that slides slowly is learned from like one that turns."""

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.recording import Samples
from sysid_core.robot import Robot, load_robot, parse_description

BODY = (
    '<inertial><mass value="{}"/><origin xyz="0.05 0.02 0.1"/>'
    '<inertia ixx="0.1" iyy="0.1" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial>'
)
LIFT = f"""<robot name="lift"><link name="base"/>
  <joint name="lift" type="prismatic"><parent link="base"/><child link="carriage"/>
    <axis xyz="0 0 1"/><limit lower="0" upper="0.3" velocity="0.05" effort="500"/></joint>
  <link name="carriage">{BODY.format(8.0)}</link>
  <joint name="arm" type="revolute"><parent link="carriage"/><child link="forearm"/>
    <origin xyz="0.1 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="2" effort="50"/></joint>
  <link name="forearm">{BODY.format(3.0)}</link></robot>"""
FRICTION = 60.0, 900.0  # [N, N·s/m] of the lift


@pytest.fixture
def robot(tmp_path: Path) -> Robot:
    (tmp_path / "lift.urdf").write_text(LIFT)
    return load_robot(parse_description({"name": "lift", "urdf": str(tmp_path / "lift.urdf")}))


def test_a_slow_lift_is_learned_from(robot: Robot) -> None:
    time = np.arange(1000) / 100.0
    size, rate = np.array([0.01, 0.8]), np.array([1.5, 2.1])  # at most 0.015 m/s
    q = size * np.sin(rate * time[:, None]) + [0.15, 0.0]
    v = size * rate * np.cos(rate * time[:, None])
    a = -size * rate**2 * np.sin(rate * time[:, None])
    effort = np.array(
        [pin.rnea(robot.model, robot.model.createData(), *x) for x in zip(q, v, a, strict=True)]
    )
    effort[:, 0] += FRICTION[0] * np.sign(v[:, 0]) + FRICTION[1] * v[:, 0]
    identifier = OnlineIdentifier(robot)
    for part in np.array_split(np.arange(1000), 100):
        identifier.ingest(Samples(time, q, v, a, effort).select(part))
        update = identifier.update()
    assert update.identified
    layout = robot.layout
    found = (
        update.parameters[layout.term("coulomb")][0]
        + 0.01 * update.parameters[layout.term("viscous")][0]
    )
    assert found == pytest.approx(FRICTION[0] + 0.01 * FRICTION[1], rel=0.1)
