# SPDX-License-Identifier: Apache-2.0
"""An exported URDF is the robot's own with exactly the identified parameters in it."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from sysid_core.arrays import FloatArray
from sysid_core.errors import ModelError, OutputError, RobotError
from sysid_core.inertia import from_pseudo_inertia, pseudo_inertia
from sysid_core.robot import Robot, known_robots, load_robot
from sysid_core.robot.description_reader import parse_description
from sysid_core.robot.export import (
    identified_description,
    identified_urdf,
    require_elsewhere,
    write_model,
)


def _random_parameters(robot: Robot, scale: float) -> FloatArray:
    rng = np.random.default_rng(3)
    vector = robot.consistent_nominal.copy()
    phi = robot.layout.inertias(vector)
    J = np.linalg.cholesky(pseudo_inertia(phi))
    bend = np.eye(4) + scale * rng.uniform(-1.0, 1.0, J.shape)
    phi[:] = from_pseudo_inertia(J @ bend @ np.swapaxes(bend, 1, 2) @ np.swapaxes(J, 1, 2))
    friction = robot.layout.nonnegative
    vector[friction] = rng.uniform(0.1, 1.0, len(friction))
    return vector


def _reloaded(robot: Robot, text: str, folder: Path) -> Robot:
    path = folder / "identified.urdf"
    path.write_text(text, encoding="utf-8")
    description = replace(robot.description, urdf=str(path), friction_nominal={})
    return load_robot(description)


@pytest.mark.parametrize("name", sorted(known_robots()))
@pytest.mark.parametrize("scale", [0.05, 0.6])
def test_reading_the_urdf_back_gives_the_identified_parameters(
    name: str, scale: float, tmp_path: Path
) -> None:
    robot = load_robot(name)
    vector = _random_parameters(robot, scale)
    back = _reloaded(robot, identified_urdf(robot, vector), tmp_path).nominal
    layout = robot.layout
    # a dozen additions of numbers of the size of the largest moment of inertia
    np.testing.assert_allclose(layout.inertias(back), layout.inertias(vector), atol=1e-12)
    for term in ("viscous", "coulomb"):
        np.testing.assert_allclose(back[layout.term(term)], vector[layout.term(term)])


def test_all_but_inertias_and_friction_stays_as_it_was(tmp_path: Path) -> None:
    robot = load_robot("ur10")
    text = identified_urdf(robot, _random_parameters(robot, 0.3))
    before, after = ET.parse(robot.urdf.path).getroot(), ET.fromstring(text)
    for tree in (before, after):
        for link in tree.findall("link"):
            for element in link.findall("inertial"):
                link.remove(element)
        for joint in tree.findall("joint"):
            for element in joint.findall("dynamics"):
                joint.remove(element)

    def shape(node: ET.Element) -> list[object]:
        return [node.tag, sorted(node.attrib.items()), [shape(child) for child in node]]

    assert shape(before) == shape(after)


def test_nominal_parameters_change_nothing() -> None:
    robot = load_robot("panda")
    nominal = robot.nominal.copy()
    for term in ("viscous", "coulomb"):
        key = {"viscous": "damping", "coulomb": "friction"}[term]
        nominal[robot.layout.term(term)] = [
            getattr(robot.urdf.joints[name], key) for name in robot.joint_names
        ]
    text = identified_urdf(robot, nominal)
    assert ET.canonicalize(text) == ET.canonicalize(from_file=str(robot.urdf.path))


def test_fixed_links_give_up_their_inertia_where_nothing_would_be_left(tmp_path: Path) -> None:
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(
        """<robot name="arm"><link name="base"/>
        <link name="arm"><inertial><mass value="1"/>
          <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <link name="tool"><inertial><mass value="3"/>
          <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="j" type="revolute"><parent link="base"/><child link="arm"/>
          <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="10" velocity="1"/></joint>
        <joint name="f" type="fixed"><parent link="arm"/><child link="tool"/>
          <origin xyz="0 0 .5"/></joint></robot>"""
    )
    description = replace(
        load_robot("ur10").description, name="arm", urdf=str(urdf), actuated=None, tool_frame=None
    )
    robot = load_robot(description)
    body, own = robot.layout.body("arm"), robot.urdf.links["arm"].inertial
    heavier, lighter = robot.nominal.copy(), robot.nominal.copy()
    heavier[body] += 0.5 * own  # the arm alone can have changed
    lighter[body] *= 0.5  # it cannot: the tool weighs more than all of it
    for vector, tool_mass in ((heavier, 3.0), (lighter, 0.0)):
        back = _reloaded(robot, identified_urdf(robot, vector), tmp_path)
        np.testing.assert_allclose(back.nominal, vector, atol=1e-12)
        assert back.urdf.links["tool"].inertial[0] == tool_mass


def test_parameters_of_another_robot_are_refused() -> None:
    with pytest.raises(ModelError, match="parameters"):
        identified_urdf(load_robot("ur10"), load_robot("panda").nominal)


@pytest.mark.parametrize("name", sorted(known_robots()))
def test_the_description_written_makes_the_identified_model_the_nominal_one(
    name: str, tmp_path: Path
) -> None:
    robot = load_robot(name)
    if robot.is_tree:
        terms = {"sigmoid": 0.1, "load": 1.0}
        robot = robot.with_friction(dict.fromkeys(robot.joint_names[:2], terms))
    vector = _random_parameters(robot, 0.3)
    vector[robot.layout.term("offset")] = -0.5
    write_model(robot, vector, tmp_path)
    back = load_robot(tmp_path / "identified.yaml")
    np.testing.assert_allclose(back.nominal, vector, rtol=1e-9, atol=1e-12)
    assert back.friction_scales.tolist() == robot.friction_scales.tolist()
    assert back.model_hash == robot.model_hash
    alike = [
        replace(own.description, urdf="", source=None, friction_nominal={})
        for own in (back, robot)
    ]
    assert alike[0] == alike[1]


def test_arms_keep_the_cutoff_that_was_chosen_for_them() -> None:
    def cutoff(robot: Robot) -> float | None:
        text = identified_description(robot, robot.nominal, 7.5)
        return parse_description(yaml.safe_load(text)).signals.cutoff

    ur10, solo12 = load_robot("ur10"), load_robot("solo12")
    assert ur10.description.signals.cutoff is None
    assert cutoff(ur10) == 7.5
    # of a floating base it depends on its sensors
    assert cutoff(solo12) == solo12.description.signals.cutoff
    given = parse_description({**ur10.description.given, "signals": {"cutoff": 5.0}})
    assert cutoff(load_robot(replace(given, source=ur10.description.source))) == 5.0


def test_gravity_that_was_identified_is_the_descriptions(tmp_path: Path) -> None:
    robot = load_robot("ur10").in_gravity((0.0, 6.9, -6.9))
    write_model(robot, robot.nominal, tmp_path)
    assert load_robot(tmp_path / "identified.yaml").description.gravity == (0.0, 6.9, -6.9)


def test_friction_that_no_joint_can_have_is_held_to_zero() -> None:
    robot = load_robot("ur10")
    vector = robot.nominal.copy()
    vector[robot.layout.term("viscous")] = -1.0
    back = parse_description(yaml.safe_load(identified_description(robot, vector)))
    assert {terms["viscous"] for terms in back.friction_nominal.values()} == {0.0}


def test_a_robots_own_description_is_not_replaced(tmp_path: Path) -> None:
    robot = load_robot("ur10")
    write_model(robot, robot.nominal, tmp_path)
    own = load_robot(tmp_path / "identified.yaml")
    with pytest.raises(OutputError, match="own description"):
        require_elsewhere(own, tmp_path)
    require_elsewhere(own, tmp_path / "result")


def test_a_robots_own_urdf_is_not_replaced(tmp_path: Path) -> None:
    shutil.copy(load_robot("ur10").urdf.path, tmp_path / "mine.urdf")
    own = load_robot(parse_description({"name": "mine", "urdf": str(tmp_path / "mine.urdf")}))
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    for folder in (tmp_path, link):
        with pytest.raises(OutputError, match=r"mine\.urdf: is the robot's own URDF"):
            require_elsewhere(own, folder)
    require_elsewhere(own, tmp_path / "result")


def test_nominal_friction_of_what_does_not_move_is_refused() -> None:
    given = {**load_robot("tx40").description.given, "friction": {"nominal": {"elbow": {}}}}
    source = load_robot("tx40").description.source
    with pytest.raises(RobotError, match=r"friction\.nominal names \['elbow'\]"):
        load_robot(parse_description(given, source=source))
