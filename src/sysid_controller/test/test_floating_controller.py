# SPDX-License-Identifier: Apache-2.0
"""The controller of a robot on its feet: it stands, sways, lifts feet, and stops safely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from sysid_controller.command import Command, ControlState
from sysid_controller.controller import Controller
from sysid_controller.health import Health
from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.diagnostics import Severity
from sysid_core.dynamics.contact_dynamics import ContactDynamics
from sysid_core.exchange import ParameterSet, TrajectoryPoints
from sysid_core.robot import Robot, load_robot

PERIOD = 0.002
STANDING = np.array([0.0, 0.7, -1.4] * 2 + [0.0, -0.7, 1.4] * 2)
START = np.concatenate([[0.0, 0.0, 0.24, 0.0, 0.0, 0.0, 1.0], STANDING])
ALL = np.ones(4, dtype=bool)
METHODS = ("projected", "qp")
SETTINGS = ControllerConfig()


@pytest.fixture(scope="module")
def solo12() -> Robot:
    return load_robot("solo12")


class Bench:
    """A controller, and a robot whose loaded feet the ground holds fast."""

    def __init__(self, robot: Robot, config: ControllerConfig = SETTINGS) -> None:
        self.robot = robot
        self.controller = Controller(robot, config)
        assert self.controller.base is not None
        self.base = self.controller.base
        self.plant = ContactDynamics(robot, 0.05)
        self.health = Health()
        self.feet = tuple(contact.name for contact in robot.description.contacts)
        self.time = 0.0
        self.q, self.v = START.copy(), np.zeros(18)
        self.standing: BoolArray = ALL.copy()

    def measure(self, *, base: bool = True, joints: bool = True) -> None:
        controller, t = self.controller, self.time
        if base:
            assert self.base.take_odometry(self.q[:7].copy(), self.v[:6].copy(), t) is None
            assert self.base.take_contacts(self.feet, self.standing.tolist(), t, t) is None
        if joints:
            q, v = self.q[7:].copy(), self.v[6:].copy()
            assert controller.take_joint_states(self.robot.joint_names, q, v, t, t) is None

    def tick(self, count: int = 1, *, base: bool = True, moves: bool = True) -> Command:
        for _ in range(count):
            self.measure(base=base)
            command = self.controller.tick(self.time, self.time)
            self.health.ticked(command, 1e-4, self.time)
            assert np.isfinite(command.effort).all()
            assert (np.abs(command.effort) <= self.robot.limits.effort).all()
            if moves:
                self._move(command.effort)
            self.time += PERIOD
        return command

    def _move(self, effort: FloatArray) -> None:
        terms = self.plant.terms(self.q, self.v)
        J, _ = self.plant.constraint(terms, self.standing)
        moved = self.plant.forward(terms, effort, self.standing, -20.0 * J @ self.v)
        self.v = self.v + PERIOD * moved.acceleration
        self.q = pin.integrate(self.robot.model, self.q, PERIOD * self.v)

    def finding(self, name: str) -> tuple[Severity, str]:
        for finding in self.health.report(self.controller, self.time):
            if finding.kind == name:
                return finding.severity, finding.message
        raise KeyError(name)


def swaying(robot: Robot, time: FloatArray, begin: float) -> FloatArray:
    """Return joints (n, 12) that let the base sway over fixed feet, from rest at `begin`."""
    kinematics = ContactDynamics(robot).kinematics
    feet = kinematics.evaluate(START[None]).position
    since = np.maximum(time - begin, 0.0)[:, None]
    q = np.tile(START, (len(time), 1))
    q[:, :3] += 0.012 * (1.0 - np.cos(np.array([4.0, 5.0, 6.0]) * since))
    for _ in range(8):
        geometry = kinematics.evaluate(q)
        missing = feet - geometry.position
        J = geometry.jacobian[:, :, :3, 6:].reshape(-1, 12, 12)
        q[:, 7:] += np.linalg.solve(J, missing.reshape(-1, 12, 1))[..., 0]
    return q[:, 7:]


def offered(robot: Robot, vector: FloatArray, stamp: float) -> ParameterSet:
    return ParameterSet(robot.name, robot.model_hash, 1, stamp, True, vector)


def test_waits_for_joint_states_odometry_and_contacts_by_name(solo12: Robot) -> None:
    bench = Bench(solo12)
    assert bench.tick(base=False, moves=False).state is ControlState.WAITING
    assert bench.finding("state") == (
        Severity.WARNING,
        "waiting for odometry and contacts: is the driver running?",
    )
    assert bench.finding("odometry") == (Severity.ERROR, "none yet")
    refused = bench.controller.take_reference(
        TrajectoryPoints(solo12.joint_names, None, np.array([1.0]), STANDING[None]), bench.time
    )
    assert "no valid odometry and contacts yet" in str(refused)
    command = bench.tick(base=False, moves=False)
    assert command.output is None or not command.output.any()
    assert bench.tick().state is ControlState.HOLDING


@pytest.mark.parametrize("method", METHODS)
def test_stands_still_on_its_feet(solo12: Robot, method: str) -> None:
    bench = Bench(solo12, replace(SETTINGS, contact_control=method))
    command = bench.tick(1000)
    assert command.state is ControlState.HOLDING
    assert command.fallback is None
    # Euler's method and the sag while torque ramps up leave less than a millimetre
    np.testing.assert_allclose(bench.q[:3], START[:3], atol=1e-3)
    np.testing.assert_allclose(bench.v, 0.0, atol=1e-3)


@pytest.mark.parametrize(
    ("method", "mode"),
    [
        pytest.param("qp", "computed_torque", marks=pytest.mark.heavy),
        ("projected", "feed_forward"),
    ],
)
def test_tracking_at_least_halves_with_identified_parameters(
    solo12: Robot, method: str, mode: str, perturbed: Callable[..., FloatArray]
) -> None:
    truth = perturbed(solo12, 9, spread=0.2)
    truth[solo12.layout.term("coulomb")] *= 0.2
    bench = Bench(solo12, replace(SETTINGS, contact_control=method, mode=mode))
    bench.plant.set_parameters(truth)
    bench.tick(100)
    knots = np.arange(0.0, 6.0, 0.02)
    path = TrajectoryPoints(solo12.joint_names, 0.0, knots, swaying(solo12, knots, 0.6))
    assert bench.controller.take_reference(path, bench.time) is None
    errors, limited, k = [], [], 0
    while bench.time < 5.8:
        if k == 1250:
            refusal = bench.controller.take_parameters(offered(solo12, truth, bench.time))
            assert refusal is None
        command = bench.tick()
        errors.append(command.position_error)
        limited.append(command.limited.any())
        k += 1
    before = np.sqrt(np.mean(np.square(errors[300:1250])))
    after = np.sqrt(np.mean(np.square(errors[2000:])))
    assert after < 0.5 * before
    assert not any(limited[300:])  # the change of parameters is no jump


@pytest.mark.parametrize("method", METHODS)
def test_a_planned_foot_lifts_and_the_others_carry(solo12: Robot, method: str) -> None:
    bench = Bench(solo12, replace(SETTINGS, contact_control=method))
    bench.tick(200)
    lifted = np.array([False, True, True, True])
    target = STANDING.copy()
    target[1:3] += np.array([0.15, -0.3])
    knots = TrajectoryPoints(solo12.joint_names, None, np.array([0.5]), target[None])
    assert bench.controller.take_reference(knots, bench.time) is None
    command = bench.tick(250)
    # without a plan a standing foot is not pulled off the ground
    assert np.abs(command.position_error[:3]).max() > 0.05
    now = bench.time
    assert bench.base.plan_contacts(bench.feet, lifted.tolist(), now, now) is None
    bench.standing = lifted
    command = bench.tick(150)  # soon it tips over: nobody shifts its weight over three feet
    assert command.state is ControlState.HOLDING
    assert np.abs(command.position_error[:3]).max() < 0.06
    height = bench.plant.kinematics.evaluate(bench.q[None]).position[0, :, 2]
    assert height[0] > height[1:].max() + 0.01


def test_a_lost_base_is_held_by_name_and_taken_up_again(solo12: Robot) -> None:
    bench = Bench(solo12)
    bench.tick(300)
    before = bench.tick().effort
    command = bench.tick(200, base=False)
    assert "no valid odometry and contacts for" in str(command.failure)
    level, text = bench.finding("state")
    assert level is Severity.WARNING
    assert "holds where the model last gave torque: no valid odometry" in text
    assert bench.finding("odometry")[0] is Severity.ERROR
    # what carried it before still does
    np.testing.assert_allclose(command.effort, before, atol=0.1)
    np.testing.assert_allclose(bench.q[:3], START[:3], atol=2e-3)
    command = bench.tick(100)
    assert command.failure is None
    assert command.state is ControlState.HOLDING
    assert bench.finding("odometry")[0] is Severity.OK


def test_a_lost_base_can_mean_zero_torque(solo12: Robot) -> None:
    bench = Bench(solo12, replace(SETTINGS, stale_action="zero"))
    bench.tick(300)
    command = bench.tick(200, base=False, moves=False)
    assert command.failure is not None
    np.testing.assert_array_equal(command.effort, 0.0)


def test_stale_joint_states_stop_it_too(solo12: Robot) -> None:
    bench = Bench(solo12)
    bench.tick(300)
    held = bench.tick().effort
    for _ in range(200):
        bench.time += PERIOD
        bench.measure(joints=False)
        command = bench.controller.tick(bench.time, bench.time)
    assert command.state is ControlState.STALE
    np.testing.assert_allclose(command.effort, held, atol=0.1)


def test_a_fall_stops_it_with_a_reason_until_it_stands_and_is_enabled(solo12: Robot) -> None:
    bench = Bench(solo12)
    bench.tick(300)
    upright = bench.q[3:7].copy()
    bench.q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(1.2, 0.0, 0.0)).coeffs()
    command = bench.tick(100, moves=False)
    assert command.state is ControlState.DISABLED
    np.testing.assert_array_equal(command.effort, 0.0)
    level, text = bench.finding("state")
    assert level is Severity.ERROR
    assert "tilted by 1.20 rad" in text
    assert any("fell" in warning for warning in bench.health.warnings(bench.time))
    refusal = bench.controller.set_enabled(True)
    assert refusal is not None
    assert "upright" in str(refusal)
    bench.q[3:7] = upright
    assert (
        bench.tick(10, moves=False).state is ControlState.DISABLED
    )  # it does not start by itself
    assert bench.controller.set_enabled(True) is None
    command = bench.tick(200)
    assert command.state is ControlState.HOLDING
    assert command.stopped == ""


def test_parameters_of_another_robot_are_refused(solo12: Robot, panda: Robot) -> None:
    bench = Bench(solo12)
    bench.tick(300)
    before = bench.tick().effort
    foreign = ParameterSet(panda.name, panda.model_hash, 1, 1.0, True, panda.nominal)
    assert "robot 'panda'" in str(bench.controller.take_parameters(foreign))
    np.testing.assert_allclose(bench.tick().effort, before, atol=1e-3)


def test_a_weak_robot_never_leaves_its_limits(solo12: Robot) -> None:
    """More is asked for than the QP can give: it says so, and torques stay within limits."""
    bench = Bench(solo12, replace(SETTINGS, effort_scale=0.05))
    limit = 0.05 * solo12.limits.effort
    for _ in range(200):
        command = bench.tick(moves=False)
        assert (np.abs(command.effort) <= limit * (1.0 + 1e-12)).all()


@pytest.mark.parametrize("method", METHODS)
def test_whatever_arrives_no_torque_leaves_its_limits(
    solo12: Robot, method: str, perturbed: Callable[..., FloatArray]
) -> None:
    """All inputs fuzzed at once, odometry and contacts among them."""
    rng = np.random.default_rng(5)
    config = replace(SETTINGS, contact_control=method)
    controller = Controller(solo12, config)
    base = controller.base
    assert base is not None
    limit = solo12.limits.effort
    vectors = [perturbed(solo12, seed) for seed in range(3)]
    now, steady, last, states = 10.0, 10.0, np.zeros(12), set()
    feet = ("FL", "FR", "HL", "HR")
    with np.errstate(all="ignore"):
        for i in range(1500):
            step = float(rng.choice([PERIOD, 0.0, 0.3, -1.0], p=[0.96, 0.02, 0.01, 0.01]))
            now, steady = now + step, steady + max(step, 0.0)
            pose = START[:7] + rng.normal(scale=0.05, size=7)
            pose[3:] /= np.linalg.norm(pose[3:])
            twist = rng.normal(size=6) * 10.0 ** rng.integers(-2, 3)
            joints = STANDING + rng.normal(scale=0.2, size=12)
            speed = rng.normal(size=12) * 10.0 ** rng.integers(-2, 3)
            for array in (pose, twist, joints, speed):
                if rng.random() < 0.01:
                    array[rng.integers(len(array))] = rng.choice([np.nan, np.inf, 1e300])
            active = (rng.random(4) < 0.8).tolist()
            if i % 300 < 240:
                base.take_odometry(pose, twist, steady)
                base.take_contacts(feet, active[: rng.integers(3, 5)], now, steady)
            if i % 400 < 340:
                controller.take_joint_states(solo12.joint_names, joints, speed, now, steady)
            if rng.random() < 0.02:
                goal = STANDING + rng.normal(scale=0.2, size=(1, 12))
                path = TrajectoryPoints(solo12.joint_names, None, rng.uniform(0, 3, 1), goal)
                controller.take_reference(path, now)
                base.plan_contacts(feet, active, now + float(rng.normal()), now)
                vector = vectors[int(rng.integers(3))]
                controller.take_parameters(offered(solo12, vector, float(rng.random())))
            if rng.random() < 0.01:
                controller.set_enabled(bool(rng.random() < 0.8))
            command = controller.tick(now, steady)
            states.add(command.state)
            assert np.isfinite(command.effort).all()
            assert (np.abs(command.effort) <= limit).all()
            rate = 200.0 if command.state is ControlState.STOPPED else config.effort_rate
            most = rate * limit * 5.0 * PERIOD * 1.001
            assert (np.abs(command.effort - last) <= most).all()
            last = command.effort
    assert states >= {
        ControlState.DISABLED,
        ControlState.HOLDING,
        ControlState.TRACKING,
        ControlState.STALE,
    }
