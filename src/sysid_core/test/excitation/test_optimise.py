# SPDX-License-Identifier: Apache-2.0
"""Designed motions keep the robot's limits and tell more than random ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.select import make_regression
from sysid_core.errors import ModelError, ParameterError
from sysid_core.excitation.design import Design, ExciteConfig
from sysid_core.excitation.fourier import States, random_motion
from sysid_core.excitation.information import FOCUSES, Information
from sysid_core.excitation.limits import MotionLimits, fit_into, motion_limits
from sysid_core.excitation.mechanism import View
from sysid_core.excitation.optimise import Excitation, excite
from sysid_core.loads import Bare
from sysid_core.robot import Robot, load_robot
from sysid_core.robot.clearance import NOTHING, Clearance, Obstacles
from sysid_core.robot.strength import torque_scale

FLOOR = 0.2
OPTIONS = ExciteConfig(
    duration=6.0, starts=1, iterations=15, obstacles=Obstacles(floor=FLOOR), seed=2
)


@pytest.fixture(scope="module")
def panda() -> Robot:
    return load_robot("panda")


@pytest.fixture(scope="module")
def limits(panda: Robot) -> MotionLimits:
    return motion_limits(panda, share=0.8, speed=0.7)


@pytest.fixture(scope="module")
def found(panda: Robot, limits: MotionLimits) -> Excitation:
    return excite(panda, limits, OPTIONS)


@pytest.mark.parametrize("focus", FOCUSES)
def test_the_gradient_is_that_of_the_objective(
    panda: Robot, limits: MotionLimits, focus: str
) -> None:
    design = Design(Information(panda, None, OPTIONS.obstacles, focus), limits, OPTIONS)
    rng = np.random.default_rng(1)
    motion = random_motion(7, OPTIONS.duration, design.harmonics, rng)
    # a quarter beyond the limits, so that every penalty is at work
    x = design.variables(fit_into(motion, limits, fill=True).scaled(1.25))
    direction, step = rng.normal(size=x.shape), 1e-5
    _, gradient = design(x)
    expected = (design(x + step * direction)[0] - design(x - step * direction)[0]) / (2.0 * step)
    assert gradient @ direction == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("robot", ["tx40", "ur10", "panda"])
def test_the_gradient_by_states_is_that_of_rows_and_torques(robot: str) -> None:
    """Coupled motors, load-dependent friction and joints at rest included."""
    arm = load_robot(robot)
    if robot == "ur10":
        arm = arm.with_friction(
            {arm.joint_names[1]: {"load": 1.0}, arm.joint_names[3]: {"spring": 1.0}}
        )
    information = Information(arm, arm.joint_names[1:])
    rng = np.random.default_rng(7)
    states = States(*rng.uniform(-1.0, 1.0, size=(3, 4, len(arm.joint_names))))
    view = information.view(states)[1]
    by = View(*(rng.normal(size=part.shape) for part in view))
    found, step = information.pullback(states, by), 1e-5

    def total(kind: int, joint: int, change: float) -> FloatArray:
        moved = [part.copy() for part in states]
        moved[kind][:, joint] += change
        parts = zip(information.view(States(*moved))[1], by, strict=True)
        return np.array(sum((v * b).reshape(len(v), -1).sum(axis=1) for v, b in parts))

    for kind in range(3):
        for k, joint in enumerate(information.moving):
            expected = (total(kind, joint, step) - total(kind, joint, -step)) / (2.0 * step)
            np.testing.assert_allclose(found[kind][:, k], expected, rtol=1e-4, atol=1e-4)


def test_variables_and_motion_are_two_forms_of_the_same(
    panda: Robot, limits: MotionLimits
) -> None:
    design = Design(Information(panda, None, OPTIONS.obstacles), limits, OPTIONS)
    x = np.random.default_rng(4).normal(size=7 + 2 * 7 * (design.harmonics - 1))
    np.testing.assert_allclose(design.variables(design.motion(x)), x, atol=1e-12)


def test_all_limits_are_kept(panda: Robot, limits: MotionLimits, found: Excitation) -> None:
    states = found.motion.states(np.linspace(0.0, OPTIONS.duration, 3001))
    assert (states.position >= limits.lower).all()
    assert (states.position <= limits.upper).all()
    assert (np.abs(states.velocity) <= limits.velocity).all()
    assert (np.abs(states.acceleration) <= limits.acceleration).all()
    model = panda.with_parameters(panda.consistent_nominal)
    data = model.createData()
    friction = np.array(
        [panda.nominal[panda.layout.term(t)] for t in ("coulomb", "viscous", "offset")]
    )
    for q, v, a in zip(*states, strict=True):
        signs = np.stack([np.sign(v), v, np.ones_like(v)])
        torque = pin.rnea(model, data, q, v, a) + (friction * signs).sum(axis=0)
        assert (np.abs(torque) <= limits.effort).all()
        pin.framesForwardKinematics(model, data, q)
        moving = ["panda_joint4", "panda_joint5", "panda_joint6", "panda_joint7", "panda_link8"]
        heights = [data.oMf[model.getFrameId(name)].translation[2] for name in moving]
        assert min(heights) >= FLOOR - 1e-4  # between the samples that the design looks at


def test_it_tells_more_than_random_motions(found: Excitation) -> None:
    assert found.condition < found.random_condition
    assert found.sharpness > 1.1


def test_the_same_seed_gives_the_same_motion(
    panda: Robot, limits: MotionLimits, found: Excitation
) -> None:
    again, time = excite(panda, limits, OPTIONS), found.motion.times(20.0)
    np.testing.assert_array_equal(again.motion.states(time), found.motion.states(time))


def test_robots_of_other_classes_are_refused() -> None:
    with pytest.raises(ModelError, match="floating base"):
        Information(load_robot("solo12"))


def test_limits_that_nothing_keeps_are_reported(panda: Robot, limits: MotionLimits) -> None:
    with pytest.raises(ParameterError, match="in the way was 200 times the floor at 10 m"):
        excite(panda, limits, ExciteConfig(obstacles=Obstacles(floor=10.0)))
    weak = replace(limits, effort=np.where(np.arange(7) == 1, 1e-3, limits.effort))
    with pytest.raises(ParameterError, match="effort limit of joint 'panda_joint2'"):
        excite(panda, weak, OPTIONS)


def test_friction_and_loads_at_rest_leave_a_motion(tmp_path: Path) -> None:
    """A drive that friction slows moves slower; one whose load nothing changes is left alone."""
    body = """<inertial><mass value="1"/><origin xyz="0.1 0 0"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>"""
    limit = "<limit lower='-1' upper='1' velocity='9' effort='5'/>"
    text = f"""<robot name="r"><link name="base"/><link name="l0">{body}</link>
    <joint name="arm" type="revolute"><parent link="base"/><child link="l0"/><axis xyz="0 0 1"/>
    {limit}<dynamics damping="10" friction="4"/></joint><link name="l1">{body}</link>
    <joint name="wheel_spring" type="prismatic"><parent link="base"/><child link="l1"/>
    <axis xyz="0 0 1"/>{limit}</joint></robot>"""
    (tmp_path / "r.urdf").write_text(text, encoding="utf-8")
    (tmp_path / "r.yaml").write_text("name: r\nurdf: r.urdf\n", encoding="utf-8")
    robot = load_robot(str(tmp_path / "r.yaml"))
    limits = motion_limits(robot, share=1.0, speed=1.0)
    np.testing.assert_allclose(limits.velocity, [0.1, 9.0])
    found = excite(robot, limits, replace(OPTIONS, iterations=3, obstacles=NOTHING))
    assert found.moving == ("arm",)
    assert 0.5 < found.usage["effort"][0] <= 1.0


def test_only_the_joints_asked_for_move(panda: Robot, limits: MotionLimits) -> None:
    two = ("panda_joint3", "panda_joint6")
    motion = excite(panda, limits, replace(OPTIONS, joints=two)).motion
    swing = np.ptp(motion.states(motion.times(50.0)).position, axis=0)
    assert [name for name, s in zip(panda.joint_names, swing, strict=True) if s > 0.0] == list(two)
    with pytest.raises(ParameterError, match="no actuated joint 'thumb'"):
        Information(panda, ["thumb"])


def test_a_motion_after_others_tells_what_they_did_not(panda: Robot, limits: MotionLimits) -> None:
    """Joints 1 to 4 have moved: the next motion adds most where they told nothing."""
    options = replace(OPTIONS, obstacles=Obstacles(), iterations=5)
    first = excite(panda, limits, replace(options, joints=panda.joint_names[:4])).motion
    known = first.states(first.times(50.0))
    information = Information(panda)
    information.count(known)

    def together(states: States) -> float:
        return information.merit(information.gained(states))

    alone = excite(panda, limits, options).motion
    after = excite(panda, limits, options, earlier=[known]).motion
    both = [together(m.states(m.times(50.0))) for m in (after, alone)]
    assert both[0] >= both[1] - 1e-6


def test_an_estimate_counts_as_what_it_was_learned_from(panda: Robot) -> None:
    rng = np.random.default_rng(9)
    states = States(*rng.uniform(-1.0, 1.0, size=(3, 40, 7)))
    counted, estimated = Information(panda), Information(panda)
    counted.count(states)
    gained = counted.gained(states)
    base = make_regression(panda).base
    learned = np.isin([base.labels[k] for k in base.columns], counted.labels)
    covariance: FloatArray = np.zeros((base.size, base.size))
    covariance[np.ix_(learned, learned)] = np.linalg.inv(gained)  # the rest was held
    estimated.count_estimate(Bare(panda.nominal, covariance, torque_scale(panda)), 1.0)
    nothing = np.zeros_like(gained)
    assert estimated.merit(nothing) == pytest.approx(counted.merit(nothing), rel=1e-6)
    with pytest.raises(ParameterError, match="covariance"):
        estimated.count_estimate(Bare(panda.nominal), 1.0)


def test_a_payload_is_told_better_by_a_motion_for_it(panda: Robot, limits: MotionLimits) -> None:
    options = replace(OPTIONS, obstacles=Obstacles(), iterations=10)
    motions = [
        excite(panda, limits, replace(options, focus=focus)).motion for focus in ("all", "payload")
    ]
    payload = Information(panda, focus="payload")
    merits = [payload.merit(payload.gained(m.states(m.times(20.0)))) for m in motions]
    assert merits[1] > merits[0]


def test_wheels_and_fingers_rest_unless_they_are_asked_for(tmp_path: Path) -> None:
    parts = [
        f"""<link name="l{k}"><inertial><mass value="{mass}"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="{name}" type="revolute"><parent link="{parent}"/><child link="l{k}"/>
        <axis xyz="0 1 0"/><limit lower="{lower}" upper="1" velocity="1" effort="50"/></joint>"""
        for k, (name, parent, mass, lower) in enumerate(
            [
                ("arm", "base", 2, -1),
                ("finger_joint", "l0", 1, -1),
                ("left_wheel", "base", 1, -1),
                ("tip", "l0", 1e-3, -1),
                ("stuck", "base", 1, 1),
            ]
        )
    ]
    text = f"<robot name='r'><link name='base'/>{''.join(parts)}</robot>"
    (tmp_path / "r.urdf").write_text(text, encoding="utf-8")
    (tmp_path / "r.yaml").write_text("name: r\nurdf: r.urdf\n", encoding="utf-8")
    robot = load_robot(str(tmp_path / "r.yaml"))

    def moving(joints: list[str] | None) -> list[str]:
        return [robot.joint_names[k] for k in Information(robot, joints).moving]

    assert moving(None) == ["arm"]
    assert sorted(moving(["tip", "left_wheel"])) == ["left_wheel", "tip"]
    with pytest.raises(ParameterError, match="without a range cannot move: stuck"):
        Information(robot, ["stuck"])


def test_a_linkages_gradient_keeps_its_passive_joints_within_reach() -> None:
    leg = load_robot("digit_left_leg")
    information = Information(leg)
    limits = motion_limits(leg)
    design = Design(information, limits, replace(OPTIONS, obstacles=Obstacles()))
    rng = np.random.default_rng(1)
    motion = random_motion(6, OPTIONS.duration, design.harmonics, rng)
    motion = replace(fit_into(motion, limits, fill=True).scaled(0.2), centre=information.rest)
    x, step = design.variables(motion), 1e-5
    direction = rng.normal(size=x.shape)
    _, gradient = design(x)
    expected = (design(x + step * direction)[0] - design(x - step * direction)[0]) / (2.0 * step)
    assert gradient @ direction == pytest.approx(expected, rel=1e-2)
    wide = information.demands(motion.scaled(5.0).states(motion.times(2.0)))
    assert wide.gaps.min() < 0.0


def test_bodies_stay_apart_where_that_is_asked_for() -> None:
    lwr = load_robot("kuka_lwr")
    config = replace(OPTIONS, iterations=3, obstacles=Obstacles(itself=True))
    found = excite(lwr, motion_limits(lwr), config)
    clearance = Clearance(lwr, config.obstacles)
    q = found.motion.states(found.motion.times(100.0)).position
    assert clearance.gaps(q).min() >= -1e-6


def test_frames_that_are_named_like_joints_confuse_nothing(tmp_path: Path) -> None:
    text = """<robot name="r"><link name="base"/><link name="a"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="a" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
      <limit lower="-1" upper="1" velocity="1" effort="50"/></joint></robot>"""
    (tmp_path / "r.urdf").write_text(text, encoding="utf-8")
    (tmp_path / "r.yaml").write_text("name: r\nurdf: r.urdf\n", encoding="utf-8")
    Information(load_robot(str(tmp_path / "r.yaml")))


@pytest.mark.parametrize(
    "wrong",
    [{"duration": 0.0}, {"duration": np.nan}, {"harmonics": 1}, {"starts": 0}],
)
def test_options_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        ExciteConfig(**wrong)  # type: ignore[arg-type]
