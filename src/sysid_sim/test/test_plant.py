# SPDX-License-Identifier: Apache-2.0
"""Laws of the simulated robot: equation of motion, energy, friction, loops, contacts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.closed_chain import ClosedChainDynamics
from sysid_core.dynamics.open_tree import OpenTree, random_states
from sysid_core.dynamics.stance import FOOT_RADIUS, rest_configuration
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.errors import ModelError
from sysid_core.robot import Robot, load_robot, parse_description
from sysid_core.robot.loops import LoopClosure
from sysid_sim.errors import SimulationError
from sysid_sim.mjcf import PhysicsConfig
from sysid_sim.plant import Plant, PlantState

RobotOf = Callable[[str], Robot]
TruthOf = Callable[[str], FloatArray]

TREES = ("panda", "ur10", "tx40", "kuka_lwr", "valkyrie_arm", "digit_left_arm")
LEGGED = ("solo12", "spot")
LEGS = ("digit_left_leg", "digit_right_leg")
FREE = PhysicsConfig(ground=False, joint_limits=False)

HAND = (
    "<robot name='hand'><link name='base'/>"
    + "".join(
        f"""<link name="l{i}"><inertial><origin xyz="{x} 0 0"/><mass value="1"/><inertia ixx=".01"
    iyy=".02" izz=".02" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j{i}"
    type="revolute"><parent link="base"/><child link="l{i}"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" velocity="9" effort="9"/></joint>"""
        for i, x in enumerate((0.3, 0.1))
    )
    + "</robot>"
)


def inverse(plant: Plant, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
    """Return the torques (nj,) that cause an acceleration of a fixed base, by MuJoCo itself."""
    other = Plant(plant.robot, plant.parameters, plant.config)
    other.reset(q, v)
    dofs = [int(other.model.joint(name).dofadr[0]) for name in plant.robot.joint_names]
    other.data.qacc[dofs] = a
    mujoco.mj_inverse(other.model, other.data)
    return other.data.qfrc_inverse[dofs] + plant.parameters[plant.robot.layout.term("offset")]


def expected_torque(robot: Robot, truth: FloatArray, state: PlantState) -> FloatArray:
    """Return rigid-body torque by Pinocchio plus the friction law's, (nv,)."""
    return OpenTree(robot, parameters=truth).torque(*state)


def energy(plant: Plant) -> float:
    mujoco.mj_energyPos(plant.model, plant.data)
    mujoco.mj_energyVel(plant.model, plant.data)
    return float(plant.data.energy.sum())


def largest_gap(plant: Plant) -> float:
    """Return the largest distance [m] between the ends of a loop."""
    mujoco.mj_kinematics(plant.model, plant.data)
    ends = [
        [plant.data.site(f"loop/{loop.name}/{end}").xpos for end in "ab"]
        for loop in plant.robot.description.loops
    ]
    return max(float(np.linalg.norm(a - b)) for a, b in ends)


def frictionless(robot: Robot, truth: FloatArray) -> FloatArray:
    vector = truth.copy()
    for term in ("viscous", "coulomb", "offset"):
        vector[robot.layout.term(term)] = 0.0
    for term in ("viscous", "coulomb"):
        vector[robot.layout.coupling_term(term)] = 0.0
    return vector


@pytest.mark.parametrize("name", TREES)
def test_inverse_dynamics_equal_the_regressor_times_the_parameters(
    name: str, robot_of: RobotOf, truth_of: TruthOf
) -> None:
    robot, truth = robot_of(name), truth_of(name)
    plant = Plant(robot, truth)
    q, v, a = random_states(robot, 20, seed=1)
    # beyond the speeds at which a description smooths the sign, which the plant does not
    v += np.copysign(20.0 * robot.description.coulomb_velocity, v)
    A = TreeRegression(robot).full(q, v, a)
    for i in range(len(q)):
        torque = inverse(plant, q[i], v[i], a[i])
        np.testing.assert_allclose(torque, A[i] @ truth, atol=1e-9)


@pytest.mark.parametrize("name", [*TREES, *LEGGED])
def test_forward_dynamics_equal_pinocchios(
    name: str, robot_of: RobotOf, truth_of: TruthOf
) -> None:
    robot, truth = robot_of(name), truth_of(name)
    plant = Plant(robot, truth, FREE)
    nj = len(robot.joint_names)
    q, v, a = random_states(robot, 5, seed=2)
    v[:, -nj:] += np.copysign(1.0, v[:, -nj:])  # too fast for friction to stop within a step
    for i in range(len(q)):
        torque = expected_torque(robot, truth, PlantState(q[i], v[i], a[i]))[-nj:]
        plant.reset(q[i], v[i])
        state = plant.advance(torque)
        np.testing.assert_allclose(state.q, q[i], atol=1e-12)
        np.testing.assert_allclose(state.v, v[i], atol=1e-12)
        whole = expected_torque(robot, truth, state)
        # sliding friction comes out of an iterative solver; its tolerance is 1e-12 of the whole
        np.testing.assert_allclose(whole[-nj:], torque, atol=1e-7)
        np.testing.assert_allclose(whole[:-nj], 0.0, atol=1e-7)


@pytest.mark.parametrize("name", ["panda", "tx40", "digit_left_leg"])
def test_without_friction_energy_grows_by_the_work_of_the_motors(
    name: str, robot_of: RobotOf, truth_of: TruthOf
) -> None:
    robot = robot_of(name)
    truth = frictionless(robot, truth_of(name))
    limits = PhysicsConfig(time_step=1e-4, joint_limits=False)
    plant = Plant(robot, truth, limits)
    torque = np.where(robot.actuated, 1.0, 0.0)
    before, start = energy(plant), plant.configuration()
    for _ in range(1000):
        plant.advance(torque)
    work = torque @ (plant.configuration() - start)
    kinetic = 0.5 * plant.velocity() @ plant.mass_matrix() @ plant.velocity()
    assert kinetic > 0.01
    # the integrator is of first order: its energy error falls with the step
    assert energy(plant) - before == pytest.approx(work, abs=2e-3 * kinetic)


def test_sliding_friction_is_exactly_the_coulomb_and_viscous_one(
    panda: Robot, panda_truth: FloatArray
) -> None:
    plant = Plant(panda, panda_truth)
    q = rest_configuration(panda)
    still, moving = np.zeros(7), np.full(7, 0.3)
    torques = []
    for coulomb in (True, False):
        truth = panda_truth if coulomb else frictionless(panda, panda_truth)
        plant = Plant(panda, truth)
        torques.append(inverse(plant, q, moving, still))
    terms = panda.layout.joints_of(panda_truth).values()
    friction = [t["coulomb"] + 0.3 * t["viscous"] + t["offset"] for t in terms]
    np.testing.assert_allclose(torques[0] - torques[1], friction, atol=1e-9)


def test_a_joint_rests_while_its_load_is_below_coulomb_friction(
    panda: Robot, panda_truth: FloatArray
) -> None:
    plant = Plant(panda, panda_truth)
    q = plant.configuration()
    slides = frictionless(panda, panda_truth)
    holding = inverse(Plant(panda, slides), q, np.zeros(7), np.zeros(7))
    coulomb = panda_truth[panda.layout.term("coulomb")]
    offset = panda_truth[panda.layout.term("offset")]
    for _ in range(500):
        plant.advance(holding + offset + 0.9 * coulomb)
    assert np.abs(plant.velocity()).max() < 1e-5
    for _ in range(500):
        plant.advance(holding + offset + 1.5 * coulomb)
    assert np.abs(plant.velocity()).max() > 1e-2


@pytest.mark.parametrize("name", LEGS)
def test_loops_stay_closed_while_the_leg_is_thrown_about(
    name: str, robot_of: RobotOf, truth_of: TruthOf, rng: np.random.Generator
) -> None:
    robot = robot_of(name)
    plant = Plant(robot, truth_of(name))
    worst = 0.0
    for _ in range(20):
        torque = np.where(robot.actuated, rng.uniform(-20.0, 20.0, len(robot.joint_names)), 0.0)
        for _ in range(50):
            plant.advance(torque)
        worst = max(worst, largest_gap(plant))
    assert np.abs(plant.velocity()).max() > 0.5
    # the integrator leaves the arc that a rod of 0.5 m turns in by (Δt q̇)² / 2 · 0.5 m per step
    assert worst < 1e-4  # [m]


@pytest.mark.parametrize("name", LEGS)
def test_the_legs_motors_feel_the_constrained_dynamics(
    name: str, robot_of: RobotOf, truth_of: TruthOf
) -> None:
    robot, truth = robot_of(name), truth_of(name)
    plant = Plant(robot, truth)
    torque = np.where(robot.actuated, 4.0, 0.0)
    plant.advance(torque, 100)
    state = plant.advance(torque)
    G, _ = LoopClosure(robot).map(state.q)
    felt = G.T @ expected_torque(robot, truth, state)
    # u = Gᵀ(M q̈ + h + friction) (Zhang et al. 29); the loops give by some 1e-8 m
    np.testing.assert_allclose(felt, torque[robot.actuated], atol=2e-3)


@pytest.mark.parametrize("name", LEGGED)
def test_feet_carry_a_standing_robots_weight(
    name: str, robot_of: RobotOf, truth_of: TruthOf
) -> None:
    robot, truth = robot_of(name), truth_of(name)
    plant = Plant(robot, truth)
    q = plant.configuration()
    q[2] = -min(_foot_heights(robot, q)) + FOOT_RADIUS
    plant.reset(q)
    plant.brake(True)
    plant.advance(np.zeros(len(robot.joint_names)), 3000)
    plant.advance(np.zeros(len(robot.joint_names)))
    contacts = plant.contacts()
    weight = 9.81 * truth[robot.layout.masses].sum()
    assert contacts.active.all()
    world = [
        pose.rotation @ wrench[:3]
        for pose, wrench in zip(
            _foot_poses(robot, plant.configuration()), contacts.wrenches, strict=True
        )
    ]
    np.testing.assert_allclose(np.sum(world, axis=0), [0.0, 0.0, weight], atol=0.01 * weight)


def _foot_poses(robot: Robot, q: FloatArray) -> list[pin.SE3]:
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    contacts = robot.description.contacts
    return [data.oMf[robot.model.getFrameId(contact.frame.link)] for contact in contacts]


def _foot_heights(robot: Robot, q: FloatArray) -> list[float]:
    return [float(pose.translation[2]) for pose in _foot_poses(robot, q)]


def test_brakes_hold_the_arm_and_report_the_load(panda: Robot, panda_truth: FloatArray) -> None:
    truth = frictionless(panda, panda_truth)
    plant = Plant(panda, truth)
    q = plant.configuration()
    plant.brake(True)
    plant.advance(np.zeros(7), 1000)
    plant.advance(np.zeros(7))
    np.testing.assert_allclose(plant.configuration(), q, atol=1e-5)
    gravity = inverse(plant, plant.configuration(), np.zeros(7), np.zeros(7))
    np.testing.assert_allclose(plant.brake_torque(), gravity, atol=1e-3)


def test_parameters_change_without_a_jump_in_state(panda: Robot, panda_truth: FloatArray) -> None:
    plant = Plant(panda, panda_truth)
    plant.advance(np.ones(7), 50)
    before = plant.configuration(), plant.velocity(), plant.time
    plant.change_parameters(panda.consistent_nominal)
    np.testing.assert_array_equal(plant.configuration(), before[0])
    np.testing.assert_array_equal(plant.velocity(), before[1])
    assert plant.time == before[2]


def test_a_time_step_too_long_for_the_damping_is_refused(
    robot_of: RobotOf, truth_of: TruthOf
) -> None:
    robot = robot_of("kuka_lwr")
    with pytest.raises(SimulationError, match=r"damped too strongly .* 0.01 s; it allows 0.00"):
        Plant(robot, truth_of("kuka_lwr"), PhysicsConfig(time_step=0.01))


def test_impossible_parameters_are_refused(panda: Robot, panda_truth: FloatArray) -> None:
    massless = panda_truth.copy()
    massless[panda.layout.body("panda_link3")] = 0.0
    with pytest.raises(SimulationError, match=r"panda_link3.*mass"):
        Plant(panda, massless)
    slippery = panda_truth.copy()
    slippery[panda.layout.term("coulomb")][2] = -0.1
    with pytest.raises(SimulationError, match=r"panda_joint3.*negative coulomb"):
        Plant(panda, slippery)
    pole = panda_truth.copy()
    pole[panda.layout.body("panda_link2")][9] *= 50.0
    with pytest.raises(SimulationError, match=r"panda_link2.*impossible inertia"):
        Plant(panda, pole)
    with pytest.raises(ModelError):
        Plant(panda, panda_truth[:-1])


def test_a_state_of_the_wrong_size_is_refused(panda: Robot, panda_truth: FloatArray) -> None:
    plant = Plant(panda, panda_truth)
    with pytest.raises(ModelError, match="7 finite numbers"):
        plant.reset(np.zeros(6))
    with pytest.raises(ModelError, match="7 finite numbers"):
        plant.reset(np.zeros(7), np.full(7, np.nan))


def test_joints_that_mimic_others_move_as_the_model_says(tmp_path: Path) -> None:
    (tmp_path / "hand.urdf").write_text(HAND)
    follow = {"j1": {"joint": "j0", "multiplier": -1.5, "offset": 0.1}}
    data = {"name": "hand", "urdf": str(tmp_path / "hand.urdf"), "joints": {"mimic": follow}}
    robot = load_robot(parse_description(data))
    truth, start = robot.consistent_nominal, np.array([0.3, -0.35])
    plant, dynamics = Plant(robot, truth, FREE), ClosedChainDynamics(robot)
    plant.reset(start)
    plant.advance(np.zeros(2), 300)
    q, v, step = start[:1].copy(), np.zeros(1), plant.model.opt.timestep
    for _ in range(300):
        v += step * dynamics.acceleration(q, v, np.zeros(1))
        q += step * v
    leader, follower = plant.configuration()
    assert abs(leader - start[0]) > 0.05
    assert leader == pytest.approx(q[0], abs=1e-4)
    assert follower == pytest.approx(0.1 - 1.5 * leader, abs=1e-6)
