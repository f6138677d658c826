# SPDX-License-Identifier: Apache-2.0
"""Any URDF gets a description that loads, with guesses that can be overruled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sysid_core.errors import RobotError
from sysid_core.priors import default_constraints, default_prior
from sysid_core.recording import Recording
from sysid_core.robot import Robot, load_robot
from sysid_core.robot.description import RobotDescription
from sysid_core.robot.initialise import initialise
from sysid_core.robot.library import resolve_urdf
from sysid_core.robot.strength import borne_mass, working_limits

ARM = """<robot name="arm"><link name="base"/>
<link name="upper"><inertial><mass value="1"/>
  <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="lower"/>
<joint name="a" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
  <limit lower="-1" upper="1" effort="10" velocity="1"/></joint>
<joint name="b" type="continuous"><parent link="upper"/><child link="lower"/>
  <axis xyz="0 1 0"/></joint></robot>"""

LOWER = """<link name="lower"><inertial><origin xyz=".1 0 0"/><mass value="2"/>
  <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""

GRIPPER = """<link name="f"/><link name="g"/>
<joint name="finger" type="revolute"><parent link="lower"/><child link="f"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<joint name="other" type="revolute"><parent link="lower"/><child link="g"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/>
  <mimic joint="finger" multiplier="-2" offset=".1"/></joint></robot>"""

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
    assert found.robot.tool_frame == "base"
    assert any("--fixed" in note for note in found.notes)
    assert not initialise(urdf, tmp_path / "go2.yaml", floating=False).robot.floating


def test_two_footed_robots_stand_on_flat_feet_and_shins_on_balls(
    example_robots: Path, tmp_path: Path
) -> None:
    for urdf, count, kind, radius in (
        ("talos_data/robots/talos_reduced.urdf", 2, "flat", 0.0),
        ("bolt_description/robots/bolt.urdf", 2, "point", 0.0),
        ("anymal_c_simple_description/urdf/anymal.urdf", 4, "point", 0.03),
    ):
        robot = initialise(example_robots / urdf, tmp_path / "robot.yaml").robot
        contacts = robot.description.contacts
        assert robot.floating
        assert [c.type for c in contacts] == [kind] * count
        assert [c.radius for c in contacts] == pytest.approx([radius] * count)


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.replace("</robot>", GRIPPER))
    return path


def _recording(joints: tuple[str, ...], effort: bool = True) -> Recording:
    time = np.linspace(0.0, 1.0, 50)
    position = np.tile(0.2 * np.arange(1, len(joints) + 1), (50, 1))
    position[:, 0] += 0.1 * np.sin(6.0 * time)
    return Recording(time, joints, position, effort=position.copy() if effort else None)


def test_what_a_recording_lacks_is_locked_where_it_was(arm: Path, tmp_path: Path) -> None:
    recording = _recording(("a", "finger"))
    assert recording.effort is not None
    recording.effort[:, 1] = np.nan
    found = initialise(arm, tmp_path / "arm.yaml", recording=recording).robot
    # the joint that follows goes where its leader is, and what nobody saw stays neutral
    assert found.description.locked == pytest.approx({"b": 0.0, "finger": 0.4, "other": -0.7})
    assert found.joint_names == ("a",)


def test_prefixed_names_are_matched_and_other_robots_refused(arm: Path, tmp_path: Path) -> None:
    target = tmp_path / "arm.yaml"
    found = initialise(arm, target, recording=_recording(("left_a", "left_b"))).robot
    assert found.description.names == {"left_a": "a", "left_b": "b"}
    assert found.joint_names == ("a", "b")
    with pytest.raises(RobotError, match="none of its joints"):
        initialise(arm, target, recording=_recording(("x", "y")))


def test_xacro_is_said_to_be_xacro(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf.xacro"
    path.write_text(
        '<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">'
        '<xacro:include filename="x"/></robot>'
    )
    with pytest.raises(RobotError, match=r"xacro arm\.urdf\.xacro > arm\.urdf"):
        initialise(path, tmp_path / "arm.yaml")


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


def test_inertias_that_were_rounded_below_zero_are_zero(tmp_path: Path) -> None:
    urdf, target = tmp_path / "arm.urdf", tmp_path / "robot.yaml"
    urdf.write_text(ARM.replace('ixx=".1" iyy=".1"', 'ixx="-5.4e-20" iyy="-5.4e-20"'))
    target.write_text(initialise(urdf, target).text)
    robot = load_robot(target)
    assert any("'upper' has an impossible or degenerate inertia" in w for w in robot.warnings)
    assert np.isfinite(default_prior(robot).mean).all()
    urdf.write_text(ARM.replace('ixx=".1"', 'ixx="-.1"'))
    with pytest.raises(RobotError, match="an inertia that Pinocchio refuses"):
        initialise(urdf, target)


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


def test_a_velocity_limit_that_cannot_be_meant_is_told_of(tmp_path: Path) -> None:
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(ARM.replace('velocity="1"', 'velocity="1000"'), encoding="utf-8")
    found = initialise(urdf, tmp_path / "arm.yaml")
    assert any("velocity limits of a are taken for placeholders" in note for note in found.notes)
    velocity = working_limits(found.robot).velocity
    assert (velocity == velocity[1]).all()  # that of the joint without one
    assert velocity[0] < 10.0
    assert found.robot.limits.velocity[0] == 1000.0
    urdf.write_text(ARM, encoding="utf-8")
    known = initialise(urdf, tmp_path / "arm.yaml")
    assert working_limits(known.robot).velocity[0] == 1.0
    assert not any("velocity limits" in note for note in known.notes)


def test_a_sliding_joint_without_a_speed_limit_goes_through_its_range_as_one_that_turns(
    tmp_path: Path,
) -> None:
    urdf = tmp_path / "lift.urdf"
    text = ARM.replace('type="revolute"', 'type="prismatic"')
    urdf.write_text(text.replace('effort="10" velocity="1"', 'effort="10"'), encoding="utf-8")
    sliding, turning = working_limits(initialise(urdf, tmp_path / "lift.yaml").robot).velocity
    assert sliding == pytest.approx(turning * 2.0 / (2.0 * np.pi))


@pytest.mark.parametrize("said", ["0", "5000"])
def test_an_effort_limit_that_is_missing_or_cannot_be_meant_is_assumed(
    said: str, tmp_path: Path
) -> None:
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(ARM.replace('effort="10"', f'effort="{said}"'), encoding="utf-8")
    target = tmp_path / "arm.yaml"
    found = initialise(urdf, target)
    assumed = working_limits(found.robot).effort
    assert 1.0 < assumed[0] < 10.0  # 0.1 kg·m² in a lively motion takes 1 N·m
    assert np.isfinite(assumed).all()
    told = any("effort limits of a are taken for placeholders" in note for note in found.notes)
    assert told == (said != "0")  # the description's own comment tells of a missing one
    given = replace(found.robot.description, limits={"effort": {"a": 400.0}})
    assert working_limits(Robot(given, found.robot.urdf)).effort[0] == 400.0


@pytest.mark.parametrize(("damping", "friction"), [(0.5, 50.0), (50.0, 0.5), (0.5, 0.5)])
def test_friction_that_the_motor_cannot_overcome_counts_as_unknown(
    damping: float, friction: float, tmp_path: Path
) -> None:
    dynamics = f'<dynamics damping="{damping}" friction="{friction}"/></joint>'
    urdf, target = tmp_path / "arm.urdf", tmp_path / "arm.yaml"
    urdf.write_text(ARM.replace("</joint>", dynamics, 1), encoding="utf-8")
    found = initialise(urdf, target)
    target.write_text(found.text, encoding="utf-8")
    robot = load_robot(target)
    nominal, layout = robot.nominal, robot.layout
    assert nominal[layout.term("coulomb")][0] == (friction if friction < 10.0 else 0.0)
    assert nominal[layout.term("viscous")][0] == (damping if damping < 10.0 else 0.0)
    told = any("friction of a is more than" in note for note in found.notes)
    assert told == (max(damping, friction) > 10.0)


def test_bodies_that_only_ride_along_count_for_no_weight(tmp_path: Path) -> None:
    upright = '<axis xyz="0 0 1"/>\n  <limit'
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(ARM.replace('<link name="lower"/>', LOWER), encoding="utf-8")
    assert borne_mass(initialise(urdf, tmp_path / "arm.yaml").robot) == pytest.approx(3.0)
    turned = urdf.read_text(encoding="utf-8").replace('<axis xyz="0 1 0"/>\n  <limit', upright)
    urdf.write_text(turned, encoding="utf-8")
    assert borne_mass(initialise(urdf, tmp_path / "arm.yaml").robot) == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["panda", "ur10", "xarm6", "valkyrie_arm", "go2", "spot", "g1"])
def test_assumed_effort_limits_suit_robots_whose_limits_are_known(name: str) -> None:
    robot = load_robot(name)
    none = dict.fromkeys(robot.joint_names, np.inf)
    unknown = Robot(replace(robot.description, limits={"effort": none}), robot.urdf)
    known, assumed = robot.limits.effort[robot.actuated], working_limits(unknown).effort
    assert known.max() / 5.0 < assumed.max() < 10.0 * known.max()


@pytest.mark.parametrize("name", ["go2", "spot", "solo12"])
def test_limits_of_legs_that_bear_the_robot_are_no_placeholders(name: str, tmp_path: Path) -> None:
    urdf = resolve_urdf(load_robot(name).description)
    found = initialise(urdf, tmp_path / f"{name}.yaml")
    assert not [note for note in found.notes if "effort limits" in note]
