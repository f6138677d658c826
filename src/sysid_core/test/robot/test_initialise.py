# SPDX-License-Identifier: Apache-2.0
"""Any URDF gets a description that loads, with guesses that can be overruled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sysid_core.errors import RobotError
from sysid_core.priors import default_constraints, default_prior
from sysid_core.robot import load_robot
from sysid_core.robot.description import RobotDescription
from sysid_core.robot.initialise import initialise

ARM = """<robot name="arm"><link name="base"/>
<link name="upper"><inertial><mass value="1"/>
  <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="lower"/>
<joint name="a" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
  <limit lower="-1" upper="1" effort="10" velocity="1"/></joint>
<joint name="b" type="continuous"><parent link="upper"/><child link="lower"/>
  <axis xyz="0 1 0"/></joint></robot>"""

EXAMPLES = [
    "panda_description/urdf/panda.urdf",
    "anymal_c_simple_description/urdf/anymal.urdf",
    "talos_data/robots/talos_reduced.urdf",
    "tiago_description/robots/tiago_no_hand.urdf",
    "ur_description/urdf/ur5_robot.urdf",
    "z1_description/urdf/z1.urdf",
    "allegro_hand_description/urdf/allegro_left_hand.urdf",
    "double_pendulum_description/urdf/double_pendulum_simple.urdf",
]


@pytest.mark.parametrize("path", EXAMPLES)
def test_robots_of_the_field_get_a_description_that_loads(
    path: str, example_robots: Path, tmp_path: Path
) -> None:
    target = tmp_path / "robot.yaml"
    found = initialise(example_robots / path, target)
    target.write_text(found.text, encoding="utf-8")
    robot = load_robot(target)
    assert robot.model_hash == found.robot.model_hash
    assert np.isfinite(default_prior(robot).mean).all()
    assert default_constraints(robot).fixed.shape == (robot.layout.size,)


def test_legged_robots_are_taken_as_floating_with_feet(
    example_robots: Path, tmp_path: Path
) -> None:
    urdf = example_robots / "go2_description/urdf/go2.urdf"
    found = initialise(urdf, tmp_path / "go2.yaml")
    assert found.robot.floating
    assert len(found.robot.description.contacts) == 4
    assert any("--fixed" in note for note in found.notes)
    assert not initialise(urdf, tmp_path / "go2.yaml", floating=False).robot.floating


def test_joints_that_mimic_others_are_locked(example_robots: Path, tmp_path: Path) -> None:
    found = initialise(
        example_robots / "panda_description/urdf/panda.urdf", tmp_path / "panda.yaml"
    )
    assert list(found.robot.description.locked) == ["panda_finger_joint2"]


def test_bodies_without_mass_are_named_in_the_file(tmp_path: Path) -> None:
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(ARM)
    found = initialise(urdf, tmp_path / "arm.yaml")
    assert any("'lower' has no mass" in note for note in found.notes)
    assert "# note: body 'lower' has no mass" in found.text


def test_defaults_written_are_those_of_the_code(tmp_path: Path) -> None:
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(ARM)
    written = initialise(urdf, tmp_path / "arm.yaml").robot.description
    default = RobotDescription(name="arm", urdf="arm.urdf")
    assert written.prior == default.prior
    assert written.friction_terms == default.friction_terms
    assert written.gravity == default.gravity
    assert written.coulomb_velocity == default.coulomb_velocity
    assert written.signals == default.signals


def test_what_is_no_urdf_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "notes.urdf"
    other.write_text("no robot")
    with pytest.raises(RobotError, match="not valid XML"):
        initialise(other, tmp_path / "robot.yaml")
