# SPDX-License-Identifier: Apache-2.0
"""The robots that ship with the project: complete, possible, and true to their references."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.inertia import smallest_eigenvalue
from sysid_core.robot import Robot, known_robots, load_robot

WORKSPACE = Path(__file__).resolve().parents[4]
ROBOTS = WORKSPACE / "config" / "robots"
DATA = Path(os.environ.get("SYSID_DATA", WORKSPACE.parent / "shared" / "data"))
REFERENCE = DATA.parent / "reference"
SHIPPED = (
    "digit_left_arm",
    "digit_left_leg",
    "digit_right_arm",
    "digit_right_leg",
    "fr3",
    "g1",
    "gen3",
    "go2",
    "iiwa14",
    "iiwa7",
    "kuka_lwr",
    "lite6",
    "panda",
    "solo12",
    "spot",
    "tx40",
    "ur10",
    "ur10e",
    "ur16e",
    "ur20",
    "ur30",
    "ur3e",
    "ur5e",
    "valkyrie_arm",
    "xarm6",
    "xarm7",
)
DIGIT_LEGS = ("digit_left_leg", "digit_right_leg")
FLOATING = ("g1", "go2", "solo12", "spot")


class Reference(NamedTuple):
    """A published URDF and how its names differ from ours (ours: theirs)."""

    path: Path
    root: str
    names: dict[str, str]


def _digit(side: str, part: str) -> Reference:
    """Return the whole robot's URDF; its links and joints share their names."""
    rods = {
        "achilles_rod": ("achilles_rod", "ach2"),
        "toe_a_rod": ("toe_A_rod", "A2"),
        "toe_b_rod": ("toe_B_rod", "B2"),
    }
    names = {"base": "torso", "toe_a": "toe_A", "toe_b": "toe_B"}
    for ours, (yaw, pitch) in rods.items():
        names |= {f"{ours}_yaw": yaw, f"{ours}_pitch": pitch, f"{ours}_cross": yaw, ours: pitch}
    plain = {
        "leg": ("hip_roll", "hip_yaw", "hip_pitch", "knee", "tarsus", "toe_pitch", "toe_roll"),
        "arm": ("shoulder_roll", "shoulder_pitch", "shoulder_yaw", "elbow"),
    }[part]
    names |= {name: name for name in plain}
    renamed = {"torso": "torso"}
    for ours, theirs in names.items():
        renamed[f"{side}_{ours}"] = f"{side}_{theirs}"
        renamed[f"{side}_{ours}_link"] = f"{side}_{theirs}"
    return Reference(REFERENCE / "digit-v3/digit-v3-springfixed.urdf", "torso", renamed)


REFERENCES = {
    "ur10": Reference(DATA / "ur10/ur10_robot.urdf", "base_link", {}),
    "ur10e": Reference(DATA / "ur10e/ur10e.urdf", "base_link", {}),
    "panda": Reference(
        DATA / "panda/fer_nohand_gaz2019.urdf",
        "panda_link0",
        {f"panda_{kind}{i}": f"fer_{kind}{i}" for kind in ("link", "joint") for i in range(8)},
    ),
    "tx40": Reference(DATA / "tx40/tx40_mdh_modified.urdf", "base_link", {}),
    "solo12": Reference(DATA / "solo12/solo12.urdf", "base_link", {}),
    "spot": Reference(REFERENCE / "spot/spot.urdf", "body", {}),
    "digit_left_leg": _digit("left", "leg"),
    "digit_right_leg": _digit("right", "leg"),
    "digit_left_arm": _digit("left", "arm"),
    "digit_right_arm": _digit("right", "arm"),
}


@pytest.fixture(params=SHIPPED, scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def robot(name: str) -> Robot:
    return load_robot(ROBOTS / f"{name}.yaml")


def test_every_promised_robot_can_be_named() -> None:
    assert set(SHIPPED) <= set(known_robots())


def test_the_description_is_named_like_its_file(robot: Robot, name: str) -> None:
    assert robot.name == name
    assert robot.urdf.path == ROBOTS / "urdf" / f"{name}.urdf"


def test_no_mesh_is_needed(robot: Robot) -> None:
    text = robot.urdf.path.read_text(encoding="utf-8")
    assert not re.search(r"<(mesh|gazebo|transmission|material)\b", text)
    assert robot.floating == (robot.name in FLOATING)
    assert not re.search(r'type="(floating|planar)"', text)


def test_every_body_is_possible(robot: Robot) -> None:
    """Each pseudo-inertia is positive definite, so nothing needs repair."""
    assert robot.warnings == ()
    for body, phi in robot.layout.bodies_of(robot.nominal).items():
        assert phi[0] > 0.0, body
        assert smallest_eigenvalue(phi) > 1e-9 * phi[0], body


def test_every_body_has_a_shape(robot: Robot) -> None:
    """Each body has primitive shapes with its centre of mass inside their bounding box."""
    frames = [f for f in robot.model.frames if f.type == pin.FrameType.BODY]
    for joint, body in zip(robot.body_joint_ids, robot.layout.bodies, strict=True):
        corners = [
            frame.placement.act(shape.pose.act(s * shape.half_extents))
            for frame in frames
            if frame.parentJoint == joint
            for shape in robot.urdf.links[frame.name].collisions
            for s in (np.array([x, y, z]) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1))
        ]
        assert corners, body
        com = robot.model.inertias[joint].lever
        assert (np.min(corners, axis=0) <= com).all(), body
        assert (com <= np.max(corners, axis=0)).all(), body


def test_limits_are_those_of_a_real_joint(robot: Robot) -> None:
    limits = robot.limits
    assert (limits.lower < limits.upper).all()
    for bound in (limits.lower, limits.upper):  # a continuous joint has none
        assert (np.abs(bound[np.isfinite(bound)]) <= 2 * np.pi + 1e-9).all()
    assert (limits.velocity[robot.actuated] <= 100.0).all()
    assert (limits.effort[robot.actuated] <= 800.0).all()


def test_the_tool_frame_exists(robot: Robot) -> None:
    if robot.floating:
        assert robot.description.tool_frame is not None
    frame = robot.frame(robot.tool_frame)
    assert frame.type == pin.FrameType.BODY


def test_names_in_data_lead_to_moving_joints(robot: Robot) -> None:
    assert set(robot.description.names.values()) <= set(robot.joint_names)
    assert not set(robot.description.names) & set(robot.joint_names)


def test_actuated_joints_are_listed(robot: Robot) -> None:
    description = robot.description
    assert description.actuated is not None
    assert set(description.actuated) | set(description.passive) == set(robot.joint_names)
    assert description.signals.rate is not None


def _model(path: Path, floating: bool) -> pin.Model:
    # meshes are never opened: only the kinematic and inertial tags are read
    text = path.read_text(encoding="utf-8")
    if floating:
        return pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
    return pin.buildModelFromXML(text)


def _frame(model: pin.Model, link: str) -> int:
    return int(model.getFrameId(link, pin.FrameType.BODY))


def _axes(model: pin.Model, data: pin.Data, joint: str) -> FloatArray:
    """Return a joint's axis and a point of it in the world: its column of the Jacobian (6,)."""
    index = model.getJointId(joint)
    jacobian = pin.getJointJacobian(model, data, index, pin.ReferenceFrame.WORLD)
    column: FloatArray = jacobian[:, model.joints[index].idx_v]
    return column


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_kinematics_equal_the_published_model(name: str) -> None:
    """Every link's pose and every joint's axis, over random configurations, to 1e-6."""
    reference = REFERENCES[name]
    if not reference.path.is_file():
        pytest.skip(f"no {reference.path}")
    ours = _model(ROBOTS / "urdf" / f"{name}.urdf", name in FLOATING)
    theirs = _model(reference.path, name in FLOATING)
    data, their_data = ours.createData(), theirs.createData()
    robot = load_robot(ROBOTS / f"{name}.yaml")
    rng = np.random.default_rng(20)
    compared = 0
    for _ in range(10):
        q, their_q = pin.neutral(ours), pin.neutral(theirs)
        for joint in robot.joint_names:
            value = rng.uniform(-2.0, 2.0)
            q[ours.idx_qs[ours.getJointId(joint)]] = value
            their_joint = theirs.getJointId(reference.names.get(joint, joint))
            their_q[theirs.idx_qs[their_joint]] = value
        for model, d, configuration in ((ours, data, q), (theirs, their_data, their_q)):
            pin.computeJointJacobians(model, d, configuration)
            pin.framesForwardKinematics(model, d, configuration)
        root = data.oMf[_frame(ours, reference.root)]
        their_root = their_data.oMf[
            _frame(theirs, reference.names.get(reference.root, reference.root))
        ]
        for joint in robot.joint_names:
            their_joint = reference.names.get(joint, joint)
            column = root.toActionMatrixInverse() @ _axes(ours, data, joint)
            other = their_root.toActionMatrixInverse() @ _axes(theirs, their_data, their_joint)
            np.testing.assert_allclose(column, other, atol=1e-6)
        for link in robot.urdf.links:
            their_link = reference.names.get(link, link)
            if not theirs.existFrame(their_link, pin.FrameType.BODY):
                continue
            pose = root.actInv(data.oMf[_frame(ours, link)])
            other_pose = their_root.actInv(their_data.oMf[_frame(theirs, their_link)])
            np.testing.assert_allclose(pose.homogeneous, other_pose.homogeneous, atol=1e-6)
            compared += 1
    assert compared >= 10 * len(robot.joint_names)


@pytest.mark.parametrize("name", ["panda", "solo12", "spot", "digit_left_arm", "digit_right_arm"])
def test_dynamics_equal_the_published_model(name: str) -> None:
    """Inverse dynamics agree over random motion, relative to the largest torque."""
    reference = REFERENCES[name]
    if not reference.path.is_file():
        pytest.skip(f"no {reference.path}")
    robot = load_robot(ROBOTS / f"{name}.yaml")
    ours, theirs = robot.model, _model(reference.path, robot.floating)
    rows, their_rows = list(range(6 * robot.floating)), list(range(6 * robot.floating))
    for joint in robot.joint_names:
        rows.append(ours.idx_vs[ours.getJointId(joint)])
        their_rows.append(theirs.idx_vs[theirs.getJointId(reference.names.get(joint, joint))])
    offset = ours.nq - ours.nv
    rng = np.random.default_rng(21)
    data, their_data = ours.createData(), theirs.createData()
    for _ in range(10):
        q, their_q = pin.neutral(ours), pin.neutral(theirs)
        v, their_v = np.zeros(ours.nv), np.zeros(theirs.nv)
        a, their_a = np.zeros(ours.nv), np.zeros(theirs.nv)
        v[rows], a[rows] = rng.normal(size=(2, len(rows)))
        their_v[their_rows], their_a[their_rows] = v[rows], a[rows]
        joints = slice(6 * robot.floating, None)
        q[np.array(rows[joints]) + offset] = rng.uniform(-1.0, 1.0, len(robot.joint_names))
        their_q[np.array(their_rows[joints]) + offset] = q[np.array(rows[joints]) + offset]
        torque = pin.rnea(ours, data, q, v, a)[rows]
        their_torque = pin.rnea(theirs, their_data, their_q, their_v, their_a)[their_rows]
        np.testing.assert_allclose(torque, their_torque, atol=1e-6 * np.abs(torque).max())


@pytest.mark.parametrize(
    ("name", "table", "masses"),
    [
        (
            "ur10",
            (0.1273, -0.612, -0.5723, 0.163941, 0.1157, 0.0922),
            (7.1, 12.7, 4.27, 2.0, 2.0, 0.365),
        ),
        (
            "ur10e",
            (0.181, -0.613, -0.571, 0.174, 0.12, 0.117),
            (7.369, 13.051, 3.989, 2.1, 1.98, 0.615),
        ),
    ],
)
def test_universal_robots_bodies_are_the_manufacturers(
    name: str, table: tuple[float, ...], masses: tuple[float, ...]
) -> None:
    """Seen from the Denavit-Hartenberg frames, masses and centres of mass are the published."""
    d1, a2, a3, d4, d5, d6 = table
    quarter = np.pi / 2
    rows = [(0, d1, quarter), (a2, 0, 0), (a3, 0, 0), (0, d4, quarter), (0, d5, -quarter)]
    centres = [
        (0.021, 0.0, 0.027),
        (0.38, 0.0, 0.158),
        (0.24, 0.0, 0.068),
        (0.0, 0.007, 0.018),
        (0.0, 0.007, 0.018),
        (0.0, 0.0, -0.026),
    ]
    robot = load_robot(ROBOTS / f"{name}.yaml")
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, pin.neutral(robot.model))
    frame = data.oMf[_frame(robot.model, "base")].copy()
    for i, (a, d, alpha) in enumerate([*rows, (0, d6, 0)]):
        frame = frame * pin.SE3(pin.rpy.rpyToMatrix(alpha, 0.0, 0.0), np.array([a, 0.0, d]))
        body = data.oMi[i + 1].act(robot.model.inertias[i + 1])
        assert body.mass == pytest.approx(masses[i])
        np.testing.assert_allclose(frame.actInv(body.lever), centres[i], atol=1e-8)


@pytest.mark.parametrize(
    ("name", "mass", "legs"),
    [("solo12", 2.5013, ("FL", "FR", "HL", "HR")), ("spot", 34.0, ("FL", "FR", "HL", "HR"))],
)
def test_quadrupeds_weigh_what_they_weigh_and_stand_on_four_feet(
    name: str, mass: float, legs: tuple[str, ...]
) -> None:
    robot = load_robot(ROBOTS / f"{name}.yaml")
    assert robot.nominal[robot.layout.masses].sum() == pytest.approx(mass, abs=5e-5)
    assert len(robot.joint_names) == 12
    assert tuple(c.name for c in robot.description.contacts) == legs
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, pin.neutral(robot.model))
    for contact in robot.description.contacts:
        x, y, z = data.oMf[_frame(robot.model, contact.frame.link)].translation
        assert z < 0.0
        assert (x > 0.0) == (contact.name[0] == "F")
        assert (y > 0.0) == (contact.name[1] == "L")


def _closure(robot: Robot, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the loops' position errors (9,) [m] and their Jacobian (9, 15)."""
    model, data = robot.model, robot.model.createData()
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    errors, jacobians = [], []
    for loop in robot.description.loops:
        ends = []
        for frame in (loop.frame_a, loop.frame_b):
            index = _frame(model, frame.link)
            arm = data.oMf[index].rotation @ np.array(frame.xyz)
            J = pin.getFrameJacobian(model, data, index, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
            ends.append((data.oMf[index].translation + arm, J[:3] - pin.skew(arm) @ J[3:]))
        errors.append(ends[0][0] - ends[1][0])
        jacobians.append(ends[0][1] - ends[1][1])
    return np.concatenate(errors), np.vstack(jacobians)


def _close(robot: Robot, q: FloatArray) -> FloatArray:
    """Return the configuration (15,) with the passive joints solved by Newton's method."""
    q = q.copy()
    for _ in range(30):
        error, jacobian = _closure(robot, q)
        step = np.linalg.solve(jacobian[:, robot.passive], error)
        q[robot.passive] -= step * min(1.0, 0.3 / np.abs(step).max())
        if np.abs(error).max() < 1e-13:
            break
    return q


@pytest.mark.parametrize("name", DIGIT_LEGS)
def test_digit_legs_have_as_many_closures_as_passive_joints(name: str) -> None:
    robot = load_robot(ROBOTS / f"{name}.yaml")
    assert len(robot.joint_names) == 15
    assert robot.actuated.sum() == 6
    assert robot.passive.sum() == 9
    assert [loop.type for loop in robot.description.loops] == ["point"] * 3


@pytest.mark.parametrize("name", DIGIT_LEGS)
def test_digit_legs_close_near_their_drawn_posture(name: str) -> None:
    """The rods fit to 1.2 mm as drawn, and exactly once the passive joints give way a little."""
    robot = load_robot(ROBOTS / f"{name}.yaml")
    error, _ = _closure(robot, np.zeros(15))
    assert np.linalg.norm(error.reshape(3, 3), axis=1).max() < 1.3e-3
    q = _close(robot, np.zeros(15))
    assert np.abs(q).max() < 0.02
    error, _ = _closure(robot, q)
    assert np.abs(error).max() < 1e-12


@pytest.mark.parametrize("name", DIGIT_LEGS)
def test_digit_legs_move_without_singularity(name: str) -> None:
    """Over random actuated positions the loops close and determine the passive joints."""
    robot = load_robot(ROBOTS / f"{name}.yaml")
    rng = np.random.default_rng(22)
    # the two toe motors turned against each other soon reach the limit of the toe's roll
    span = np.array([0.15 if "toe" in n else 0.3 for n in robot.actuated_names])
    for _ in range(50):
        q = np.zeros(15)
        q[robot.actuated] = rng.uniform(-span, span)
        q = _close(robot, q)
        error, jacobian = _closure(robot, q)
        assert np.abs(error).max() < 1e-12
        assert (robot.limits.lower <= q).all()
        assert (q <= robot.limits.upper).all()
        assert np.linalg.cond(jacobian[:, robot.passive]) < 100.0


@pytest.mark.parametrize("part", ["leg", "arm"])
def test_digit_is_the_same_on_both_sides(part: str) -> None:
    """Mirrored configurations have mirrored centres of mass, mirrored joints mirrored limits."""
    left, right = (load_robot(ROBOTS / f"digit_{side}_{part}.yaml") for side in ("left", "right"))
    rng = np.random.default_rng(23)
    order = [left.joint_names.index(n.replace("right", "left")) for n in right.joint_names]
    # a mirror turns every axis but those along it; the rods' pitch axes lie along it
    signs = np.array([1.0 if n.endswith("rod_pitch") else -1.0 for n in right.joint_names])
    for _ in range(10):
        q = rng.uniform(-1.0, 1.0, len(order))
        com = pin.centerOfMass(left.model, left.model.createData(), q)
        mirrored = pin.centerOfMass(right.model, right.model.createData(), signs * q[order])
        np.testing.assert_allclose(mirrored * [1.0, -1.0, 1.0], com, atol=1e-6)
    np.testing.assert_allclose(left.limits.effort[order], right.limits.effort)
    flipped = signs < 0.0
    np.testing.assert_allclose(-left.limits.upper[order][flipped], right.limits.lower[flipped])


def test_the_tx40s_sixth_motor_turns_with_joint_five() -> None:
    robot = load_robot(ROBOTS / "tx40.yaml")
    assert [coupling.name for coupling in robot.couplings] == ["joint_6_motor"]
    np.testing.assert_array_equal(robot.couplings[0].direction, [0, 0, 0, 0, 1, 1])
