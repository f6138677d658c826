# SPDX-License-Identifier: Apache-2.0
"""Joints that mimic others: what they weigh and rub is felt by their leader, through the ratio."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.dynamics.select import make_dynamics, make_regression
from sysid_core.errors import RobotError
from sysid_core.identification import IdentifyConfig, identify
from sysid_core.recording import Recording, Samples
from sysid_core.robot import Robot, load_robot, parse_description
from sysid_core.robot.initialise import initialise

RATIO, OFFSET = -1.5, 0.01
LINK = """<link name="{n}"><inertial><origin xyz=".1 .02 0"/><mass value="{m}"/>
<inertia ixx=".01" iyy=".02" izz=".02" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{n}_joint" type="{kind}"><parent link="{p}"/><child link="{n}"/>
<origin xyz=".3 0 0"/><axis xyz="{axis}"/>{mimic}
<limit lower="-2" upper="2" velocity="5" effort="80"/></joint>"""
LINKS = (
    ("upper", "base", "revolute", "0 1 0", 3.0, ""),
    ("left", "upper", "prismatic", "0 0 1", 0.8, ""),
    ("right", "upper", "prismatic", "0 0 1", 0.6, "left"),
    ("tip", "right", "revolute", "0 1 0", 0.4, "right"),
)


def _urdf(folder: Path) -> Path:
    text = '<robot name="hand"><link name="base"/>'
    for name, parent, kind, axis, mass, leader in LINKS:
        mimic = f'<mimic joint="{leader}_joint" multiplier="{RATIO}" offset="{OFFSET}"/>'
        shown = mimic if leader else ""
        text += LINK.format(n=name, m=mass)
        text += JOINT.format(n=name, p=parent, kind=kind, axis=axis, mimic=shown)
    path = folder / "hand.urdf"
    path.write_text(f"{text}</robot>", encoding="utf-8")
    return path


@pytest.fixture
def robot(tmp_path: Path) -> Robot:
    follow = {"multiplier": RATIO, "offset": OFFSET}
    mimic = {
        "right_joint": {"joint": "left_joint", **follow},
        "tip_joint": {"joint": "right_joint", **follow},
    }
    return load_robot(
        parse_description(
            {"name": "hand", "urdf": str(_urdf(tmp_path)), "joints": {"mimic": mimic}}
        )
    )


def _whole(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Return E and o with q = E q_a + o, in the robot's order."""
    E, o = np.zeros((4, 2)), np.zeros(4)
    order = [robot.joint_names.index(f"{link[0]}_joint") for link in LINKS]
    E[order] = [[1.0, 0.0], [0.0, 1.0], [0.0, RATIO], [0.0, RATIO**2]]
    o[order] = [0.0, 0.0, OFFSET, OFFSET + RATIO * OFFSET]
    return E, o


def test_torques_and_rows_are_those_of_the_tree_seen_by_the_leaders(robot: Robot) -> None:
    E, o = _whole(robot)
    q, v, a = np.random.default_rng(0).normal(size=(3, 20, 2)) * 0.3
    x = robot.consistent_nominal.copy()
    x[robot.layout.term("viscous")] = np.where(robot.actuated, 0.7, 0.0)
    model = robot.with_parameters(x)
    data = model.createData()
    states = zip(q @ E.T + o, v @ E.T, a @ E.T, strict=True)
    expected = [E.T @ pin.rnea(model, data, *state) for state in states]
    expected += 0.7 * v
    dynamics = make_dynamics(robot)
    dynamics.set_parameters(x)
    np.testing.assert_allclose(dynamics.torques(q, v, a), expected, atol=1e-9)
    inertia = dynamics.inertia(q[0])
    assert inertia[1, 1] == pytest.approx(0.8 + RATIO**2 * (0.6 + 0.4), rel=0.2)
    regression = make_regression(robot)
    motion = [np.full((20, 4), np.nan) for _ in range(4)]
    for values, known in zip(motion, (q, v, a, np.array(expected)), strict=True):
        values[:, robot.actuated] = known
    rows = regression.rows(Samples(np.arange(20.0), *motion))
    for residual in rows.residuals(regression.base.project(x)):
        np.testing.assert_allclose(residual, 0.0, atol=1e-9)


def test_a_recorded_gripper_is_identified_and_its_description_says_who_follows(
    robot: Robot, tmp_path: Path
) -> None:
    E, o = _whole(robot)
    time = np.arange(0.0, 20.0, 0.01)[:, None]
    w = np.array([1.3, 2.1])
    q_a, v_a, a_a = np.sin(w * time), w * np.cos(w * time), -(w**2) * np.sin(w * time)
    q_a, v_a, a_a = (0.4 * (x + y[:, ::-1]) for x, y in ((q_a, q_a), (v_a, v_a), (a_a, a_a)))
    model = robot.model
    data = model.createData()
    states = zip(q_a @ E.T + o, v_a @ E.T, a_a @ E.T, strict=True)
    effort = np.full((len(time), 4), np.nan)
    effort[:, robot.actuated] = [E.T @ pin.rnea(model, data, *state) for state in states]
    recording = Recording(time[:, 0], robot.joint_names, q_a @ E.T + o, effort=effort)
    made = initialise(_urdf(tmp_path), tmp_path / "hand.yaml", recording=recording)
    assert made.robot.description.mimic == robot.description.mimic
    assert made.robot.model_hash == robot.model_hash
    assert any("right_joint, tip_joint follow" in note for note in made.notes)
    found = identify(made.robot, recording, IdentifyConfig())
    assert found.validation is not None
    assert (found.validation.r2_identified > 0.999).all()


@pytest.mark.parametrize(
    ("mimic", "message"),
    [
        ({"right_joint": {"joint": "nobody"}}, "joints.mimic names"),
        ({"right_joint": {"joint": "left_joint", "factor": 1}}, "unknown key"),
        ({"right_joint": {"joint": "right_joint"}}, "no loop goes"),
        ({"right_joint": {"joint": "left_joint", "multiplier": "x"}}, "must be a number"),
    ],
)
def test_what_cannot_be_followed_is_named(
    mimic: dict[str, dict[str, object]], message: str, tmp_path: Path
) -> None:
    description = {"name": "hand", "urdf": str(_urdf(tmp_path)), "joints": {"mimic": mimic}}
    with pytest.raises(RobotError, match=message):
        make_regression(load_robot(parse_description(description)))
