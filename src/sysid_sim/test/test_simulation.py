# SPDX-License-Identifier: Apache-2.0
"""The robot as its driver sees it: payloads, noise, latency, brakes, readings."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.open_tree import OpenTree
from sysid_core.dynamics.stance import rest_configuration
from sysid_core.errors import RobotError
from sysid_core.inertia import smallest_eigenvalue
from sysid_core.robot import Robot
from sysid_sim.errors import SimulationError
from sysid_sim.mjcf import PhysicsConfig
from sysid_sim.plant import Plant
from sysid_sim.sensors import SensorConfig
from sysid_sim.simulation import Simulation, SimulationConfig, Stribeck

NOISY = SensorConfig(
    position_resolution=1e-4, position_noise=1e-4, velocity_noise=1e-2, effort_noise=1e-2
)


def inverse(plant: Plant, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
    """Return the torques (nj,) that cause an acceleration of a fixed base, by MuJoCo itself."""
    other = Plant(plant.robot, plant.parameters, plant.config)
    other.reset(q, v)
    dofs = [int(other.model.joint(name).dofadr[0]) for name in plant.robot.joint_names]
    other.data.qacc[dofs] = a
    mujoco.mj_inverse(other.model, other.data)
    return other.data.qfrc_inverse[dofs] + plant.parameters[plant.robot.layout.term("offset")]


def gravity_torque(simulation: Simulation) -> FloatArray:
    still = np.zeros(7)
    return inverse(simulation.plant, simulation.state.q, still, still)


def test_a_payload_adds_exactly_its_gravity_torque(panda: Robot, panda_truth: FloatArray) -> None:
    simulation = Simulation(panda, panda_truth)
    before = gravity_torque(simulation)
    com = np.array([0.03, -0.02, 0.1])
    simulation.attach_payload("panda_link8", 2.0, com, np.diag([0.01, 0.012, 0.008]))
    data = panda.model.createData()
    pin.computeJointJacobians(panda.model, data, simulation.state.q)
    frame = panda.model.getFrameId("panda_link8")
    pin.updateFramePlacements(panda.model, data)
    J = pin.getFrameJacobian(panda.model, data, frame, pin.LOCAL_WORLD_ALIGNED)
    arm = data.oMf[frame].rotation @ com
    weight = np.array([0.0, 0.0, -2.0 * 9.81])
    expected = -J[:3].T @ weight - J[3:].T @ np.cross(arm, weight)
    np.testing.assert_allclose(gravity_torque(simulation) - before, expected, atol=1e-9)


def test_a_payload_of_no_mass_takes_it_off_and_two_add_up(
    panda: Robot, panda_truth: FloatArray
) -> None:
    simulation = Simulation(panda, panda_truth)
    simulation.attach_payload("", 1.0)
    simulation.attach_payload("panda_link5", 0.5, (0.0, 0.1, 0.0))
    simulation.attach_payload("panda_link8", 2.0)  # replaces the first: it is the tool frame
    masses = panda.layout.masses
    gained = simulation.parameters[masses].sum() - panda_truth[masses].sum()
    assert gained == pytest.approx(2.5)
    assert (smallest_eigenvalue(panda.layout.inertias(simulation.parameters)) > 0.0).all()
    simulation.attach_payload("", 0.0)
    simulation.attach_payload("panda_link5", 0.0)
    np.testing.assert_allclose(simulation.parameters, panda_truth, atol=1e-15)
    assert not simulation.payloads


def test_a_payload_leaves_a_braked_arm_in_place_and_shows_in_its_torques(
    panda: Robot, panda_truth: FloatArray
) -> None:
    simulation = Simulation(panda, panda_truth)
    light = [simulation.step().effort for _ in range(300)][-1]
    simulation.attach_payload("", 3.0, (0.0, 0.0, 0.1))
    heavy = [simulation.step() for _ in range(300)][-1]
    np.testing.assert_allclose(heavy.position, rest_configuration(panda), atol=1e-4)
    assert np.abs(heavy.effort - light).max() > 5.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("panda_link8", -1.0), "at least zero"),
        (("panda_link8", np.nan), "finite"),
        (("panda_link8", 1.0, (0.0, np.nan, 0.0)), "finite"),
        (("panda_link8", 1.0, (0.0, np.inf, 0.0)), "too much"),
        (("panda_link8", 1e-100, (0.0, 0.0, 0.0), 1e100 * np.eye(3)), "too much"),
        (("panda_link8", 0.0, (1e200, 0.0, 0.0)), "too much"),
        (("panda_link8", 1.0, (0.0, 0.0)), "three"),
        (("panda_link8", 1.0, (0.0, 0.0, 0.0), np.diag([1.0, 0.1, 0.1])), "no body of 1 kg"),
        (("panda_link8", 0.0, (0.0, 0.0, 0.0), np.eye(3)), "no body of 0 kg"),
        (("panda_link0", 1.0), "does not move"),
    ],
)
def test_an_impossible_payload_is_refused_and_changes_nothing(
    arguments: tuple[object, ...], message: str, panda: Robot, panda_truth: FloatArray
) -> None:
    simulation = Simulation(panda, panda_truth)
    with pytest.raises(SimulationError, match=message):
        simulation.attach_payload(*arguments)  # type: ignore[arg-type]
    np.testing.assert_array_equal(simulation.parameters, panda_truth)


def test_a_payload_on_an_unknown_frame_is_refused(panda: Robot, panda_truth: FloatArray) -> None:
    with pytest.raises(RobotError, match="gripper"):
        Simulation(panda, panda_truth).attach_payload("gripper", 1.0)


def _run(robot: Robot, truth: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    config = SimulationConfig(sensors=NOISY)
    simulation = Simulation(robot, truth, config, seed=seed)
    readings = [simulation.step(np.full(7, np.sin(0.1 * i))) for i in range(100)]
    measured = np.array([np.hstack([r.position, r.velocity, r.effort]) for r in readings])
    return measured, simulation.state.q


def test_the_seed_decides_the_noise_and_nothing_else(
    panda: Robot, panda_truth: FloatArray
) -> None:
    first, q_first = _run(panda, panda_truth, seed=1)
    again, _ = _run(panda, panda_truth, seed=1)
    other, q_other = _run(panda, panda_truth, seed=2)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    np.testing.assert_array_equal(q_first, q_other)


def test_noise_has_the_spread_that_was_asked_for(panda: Robot, panda_truth: FloatArray) -> None:
    simulation = Simulation(panda, panda_truth, SimulationConfig(sensors=NOISY))
    q = simulation.state.q
    readings = [simulation.step() for _ in range(1500)][500:]
    position = np.array([r.position for r in readings]) - q
    # the encoder's rounding adds its own variance
    expected = np.hypot(NOISY.position_noise, NOISY.position_resolution / np.sqrt(12.0))
    np.testing.assert_allclose(position.std(axis=0), expected, rtol=0.1)
    steps = np.array([r.position for r in readings]) / NOISY.position_resolution
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)
    u = np.array([r.effort for r in readings])
    np.testing.assert_allclose(u.std(axis=0), 1e-2 * panda.limits.effort, rtol=0.1)


def test_a_reset_begins_anew(panda: Robot, panda_truth: FloatArray) -> None:
    simulation = Simulation(panda, panda_truth, SimulationConfig(sensors=NOISY))

    def run() -> FloatArray:
        return np.array([simulation.step(np.ones(7)).position for _ in range(50)])

    first = run()
    simulation.attach_payload("", 2.0)
    simulation.reset()
    assert simulation.time == 0.0
    assert simulation.holding
    assert not simulation.payloads
    np.testing.assert_array_equal(run(), first)


def test_commands_are_cut_off_at_the_torque_limits(panda: Robot, panda_truth: FloatArray) -> None:
    simulation = Simulation(panda, panda_truth)
    simulation.step(np.full(7, 1e6))
    effort = simulation.step(np.full(7, 1e6)).effort
    np.testing.assert_allclose(effort, panda.limits.effort)


@pytest.mark.parametrize("command", [np.zeros(6), np.full(7, np.nan), np.full(7, np.inf)])
def test_a_malformed_command_is_refused(
    command: FloatArray, panda: Robot, panda_truth: FloatArray
) -> None:
    with pytest.raises(SimulationError, match="7 finite torques"):
        Simulation(panda, panda_truth).step(command)


def test_latency_delays_commands_by_whole_periods(panda: Robot, panda_truth: FloatArray) -> None:
    config = SimulationConfig(latency=3)
    simulation = Simulation(panda, panda_truth, config)
    for _ in range(3):
        simulation.step(np.ones(7))
        assert simulation.holding
    simulation.step(np.zeros(7))
    assert not simulation.holding
    # the reading weighs the torque before and after its instant; both are the old command's
    simulation.step(np.zeros(7))
    np.testing.assert_allclose(simulation.step(np.zeros(7)).effort, 1.0)


def test_the_reading_answers_to_the_second_difference_of_the_positions(
    panda: Robot, panda_truth: FloatArray
) -> None:
    """M q̈ = τ + (…) holds between sampled signals although torque is held between samples."""
    truth = panda_truth.copy()
    for term in ("viscous", "coulomb"):
        truth[panda.layout.term(term)] = 0.0
    config = SimulationConfig(period=0.002)
    simulation = Simulation(panda, truth, config)
    holding = gravity_torque(simulation)
    commands = [holding + 3.0 * np.sin(0.3 * i + np.arange(7)) for i in range(200)]
    readings = [simulation.step(command) for command in commands]
    q = np.array([r.position for r in readings])
    a = (q[2:] - 2.0 * q[1:-1] + q[:-2]) / config.period**2
    v = (q[2:] - q[:-2]) / (2.0 * config.period)
    states = zip(q[1:-1], v, a, strict=True)
    needed = np.array([inverse(simulation.plant, *state) for state in states])[5:]
    error = needed - np.array([r.effort for r in readings])[6:-1]
    naive = needed - np.array(commands)[6:-1]
    assert np.sqrt(np.mean(error**2)) < 0.05 * np.sqrt(np.mean(naive**2))


def test_stribeck_friction_takes_more_to_start_than_to_slide(
    panda: Robot, panda_truth: FloatArray
) -> None:
    coulomb = panda_truth[panda.layout.term("coulomb")]
    moved = []
    for level in (0.0, 1.0):
        config = SimulationConfig(stribeck=Stribeck(level=level, velocity=0.01))
        simulation = Simulation(panda, panda_truth, config)
        push = gravity_torque(simulation) + 1.5 * coulomb
        for _ in range(100):
            simulation.step(push)
        moved.append(np.abs(simulation.state.v).max())
    assert moved[0] > 1e-2
    assert moved[1] < 1e-4


def test_chosen_friction_acts_as_the_law_says(panda: Robot, panda_truth: FloatArray) -> None:
    """With the load, the speed and the position of the moment."""
    terms = {"load": 1.0, "sigmoid": 0.3, "stribeck": 0.2, "spring": 1.0}
    robot, truth = panda.with_friction({"panda_joint4": terms}), panda_truth.copy()
    values = {"load": 0.2, "sigmoid": 3.0, "stribeck": 2.0, "spring": 5.0}
    for term, value in values.items():
        truth[robot.layout.term(term)] = value
    simulation, law = Simulation(robot, truth), OpenTree(robot, parameters=truth)
    push = 1.8 * gravity_torque(simulation)
    errors = []
    for _ in range(200):
        reading = simulation.step(push)
        q, v, a = simulation.state
        if abs(v[3]) > 0.05:
            errors.append(law.torque(q, v, a)[3] - push[3])
    assert reading is not None
    assert len(errors) > 50
    assert np.abs(errors).max() < 0.02 * np.abs(push[3])  # the load is that of the step before


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(SimulationError, match="multiple of the time step"):
        SimulationConfig(period=0.0007, physics=PhysicsConfig(time_step=0.0005))
    with pytest.raises(SimulationError, match="latency"):
        SimulationConfig(latency=-1)
    with pytest.raises(SimulationError, match="effort_noise"):
        SensorConfig(effort_noise=-1.0)
    with pytest.raises(SimulationError, match="time_step"):
        PhysicsConfig(time_step=0.0)


@pytest.mark.parametrize("name", ["solo12", "spot"])
def test_a_standing_quadruped_feels_gravity_and_its_feet(
    name: str,
    robot_of: Callable[[str], Robot],
    truth_of: Callable[[str], FloatArray],
) -> None:
    robot = robot_of(name)
    config = SimulationConfig(sensors=SensorConfig(wrenches=True))
    simulation = Simulation(robot, truth_of(name), config)
    base = [simulation.step() for _ in range(1500)][-1].base
    assert base is not None
    assert base.contacts.all()
    assert base.wrenches is not None
    np.testing.assert_allclose(base.specific_force, [0.0, 0.0, 9.81], atol=0.05)
    np.testing.assert_allclose(base.twist, 0.0, atol=5e-3)
    assert np.linalg.norm(base.pose[3:]) == pytest.approx(1.0)


def test_a_falling_quadruped_is_weightless(
    robot_of: Callable[[str], Robot], truth_of: Callable[[str], FloatArray]
) -> None:
    robot = robot_of("solo12")
    start = np.zeros(robot.model.nq)
    start[2], start[6] = 3.0, 1.0
    simulation = Simulation(robot, truth_of("solo12"), start=start)
    base = [simulation.step() for _ in range(200)][-1].base
    assert base is not None
    assert not base.contacts.any()
    np.testing.assert_allclose(base.specific_force, 0.0, atol=1e-3)
    assert base.twist[2] == pytest.approx(-9.81 * 0.199, rel=1e-3)


def test_a_time_step_too_long_for_the_damping_is_halved_until_it_fits(
    robot_of: Callable[[str], Robot], truth_of: Callable[[str], FloatArray]
) -> None:
    robot, truth = robot_of("kuka_lwr"), truth_of("kuka_lwr")
    coarse = SimulationConfig(period=0.01, physics=PhysicsConfig(time_step=0.01))
    simulation = Simulation(robot, truth, coarse)
    assert simulation.config.substeps in (2, 4, 8, 16, 32)
    assert simulation.config.period == coarse.period
    readings = [simulation.step(np.zeros(7)) for _ in range(20)]
    assert readings[-1].time == pytest.approx(0.2, abs=0.011)
    assert np.isfinite(readings[-1].position).all()
